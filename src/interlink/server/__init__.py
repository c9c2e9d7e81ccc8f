"""The interLink server: a durable cache between virtual kubelets and one plugin."""
