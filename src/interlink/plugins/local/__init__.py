"""Pods as groups of processes of this host."""
