"""Generators of programs from specifications, each in a module or folder of its own."""
