"""Flame graphs: call paths as boxes whose width is their cost."""
