"""Commands of `cpmodel trace`, each in a module of its own."""
