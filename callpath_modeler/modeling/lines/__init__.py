"""Models along one of several parameters: slices of surfaces, and models of the runs on a line.

See docs/explanation/several-parameters.md, 'Slices'.
"""
