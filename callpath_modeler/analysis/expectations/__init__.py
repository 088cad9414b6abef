"""Expectations of growth and cost, written in a file and held against models."""
