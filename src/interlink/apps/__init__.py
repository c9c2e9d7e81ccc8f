"""Composition roots: the only place that chooses implementations and wires them together."""
