"""Records of a code over its life: runs of commits, predictions, and later measurements."""
