"""The domain, pure: no I/O, no HTTP, no Kubernetes client."""
