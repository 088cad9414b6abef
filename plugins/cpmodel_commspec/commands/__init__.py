"""Commands of `cpmodel trace`, one in each module."""
