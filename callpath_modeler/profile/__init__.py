"""What was measured: call trees, metrics, runs and the experiment they make."""
