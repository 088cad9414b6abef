"""Series of runs: their plan, their launch on a machine or a scheduler, and the next run."""
