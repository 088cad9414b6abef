"""Call trees, metrics, runs and experiments."""
