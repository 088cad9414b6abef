"""What is kept over the life of a code: runs of its commits, predictions, and their outcomes."""
