"""Matrices of guidelines as text, as an HTML page, and as tables for programs."""
