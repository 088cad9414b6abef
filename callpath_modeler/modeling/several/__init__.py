"""Models in several parameters: products of factors, and slices along one parameter.

See docs/explanation/several-parameters.md.
"""
