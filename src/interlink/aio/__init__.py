"""Asyncio and file toolkit: knows nothing of pods, imports only the standard library."""
