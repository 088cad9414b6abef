"""Commands of `cpmodel guidelines`, one in each module."""
