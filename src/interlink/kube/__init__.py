"""The only code that speaks to the Kubernetes API."""
