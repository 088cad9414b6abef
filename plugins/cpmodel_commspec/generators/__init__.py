"""Generators: writers of specifications, one format in each module or folder."""
