"""How the programs are observed: logs and metrics."""
