"""Statistics of guidelines: arrays in, arrays out.

Rows of arrays are checks, and columns are mpiruns.
"""
