"""The classic method: cross-validation, and refinement term by term until statistical shrinkage.

See docs/explanation/modeling.md, 'The classic method'.
"""
