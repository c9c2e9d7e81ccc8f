"""The virtual kubelet: a node of Kubernetes whose pods run elsewhere."""
