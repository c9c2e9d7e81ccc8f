"""The certificate that the node's endpoint shows, and the authority whose clients it knows."""
