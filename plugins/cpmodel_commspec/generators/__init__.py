"""Generators: what a specification can be written as, each in a module or folder of its own."""
