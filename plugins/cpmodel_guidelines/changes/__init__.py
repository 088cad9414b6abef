"""Comparison of two campaigns: verdicts before and after, and times of functions."""
