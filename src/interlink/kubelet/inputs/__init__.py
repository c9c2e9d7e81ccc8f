"""What a pod's containers are given: environment and files."""
