"""Answers: excess work and rankings."""
