"""What happens to a pod, from being seen to being gone."""
