"""The inner loops of models as plain numpy in double precision: the definition of their results.

Each function is the vector expression of an equation in docs/explanation/hypotheses.md or
docs/explanation/noise-and-bands.md. The compiled library computes the same, and tests compare both.
"""
