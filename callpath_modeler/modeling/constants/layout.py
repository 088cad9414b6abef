"""Constants of arrays that Python and C share.

See docs/explanation/architecture.md.
"""

from __future__ import annotations

WHOLE = 16
"""Number of shapes or pairs in a block, as in ``bounds.h``.

Unit: count. Evidence: by convention.
"""

TERMS = 2
"""Terms of a model that the library reads.

Unit: count. Evidence: by convention.
"""

NUMBERS = 3
"""Coefficients of such a model, with the constant.

Unit: count. Evidence: by convention.
"""

ELEMENTS = 6
"""Elements of the covariance of these coefficients, or of its root.

Unit: count. Evidence: by convention.
"""
