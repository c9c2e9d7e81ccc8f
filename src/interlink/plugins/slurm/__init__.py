"""Pods as Slurm jobs."""
