"""The original method: cross-validation, and terms one by one until statistical shrinkage."""
