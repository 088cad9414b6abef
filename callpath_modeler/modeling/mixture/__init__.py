"""The mixture method: every hypothesis gets a probability, and all of them enter predictions.

See docs/explanation/modeling.md, 'The method in one page'.
"""
