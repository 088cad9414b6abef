"""The equations of models in plain numpy and double precision: what the engine in C has to give.

Each function is the expression of an equation in docs/explanation/hypotheses.md or
docs/explanation/noise-and-bands.md. Tests compare the engine with them; the package does not use
them.
"""
