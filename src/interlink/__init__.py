"""Kubernetes pods on machines Kubernetes does not own."""

__version__ = "0.1.0"
