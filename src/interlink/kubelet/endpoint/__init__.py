"""The HTTPS endpoint on the node's port."""
