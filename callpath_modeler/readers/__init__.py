"""Readers of profiles, and experiments from the profiles they read."""
