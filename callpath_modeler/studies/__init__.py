"""Studies: runs and their models, which answer questions."""
