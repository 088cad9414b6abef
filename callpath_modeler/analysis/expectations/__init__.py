"""Expectations of growth and cost in files, and their evaluation against models."""
