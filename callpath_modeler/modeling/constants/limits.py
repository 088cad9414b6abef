"""Constants of sizes of inputs, blocks and stores, and of arrays that Python and C share.

See docs/explanation/architecture.md.
"""

from __future__ import annotations

from fractions import Fraction

DEEPEST = 50
"""Largest depth of nested brackets.

Unit: brackets. Evidence: by convention.
"""

LONGEST_NUMBER = 30
"""Largest number of digits of a number.

Unit: digits. Evidence: by convention.
"""

LONGEST_TEXT = 1000
"""Largest number of characters of a formula.

Unit: characters. Evidence: by convention.
"""

MOST_TERMS = 16
"""Largest number of terms of a model.

Unit: count. Evidence: by convention.
"""

MOST_ALTERNATIVES = 256
"""Largest number of alternatives of a row.

Unit: count. Evidence: by convention.
"""

ROUNDING = 1e-6
"""Amount by which rounding may lift a share above 1.

Unit: share. Evidence: by convention.
"""

ROUNDING_OF_SUMS = 1e-5
"""Of the sum of numbers in single precision.

Unit: ratio. Evidence: by convention.
"""

LARGEST_STORED = 1e300
"""Largest finite number that is multiplied.

Unit: ratio. Evidence: by convention.
"""

LARGEST_PART = 1e30
"""Largest error, and largest part of a coefficient in a value, in units of the row.

Squares of errors are multiplied by those of shapes.

Unit: ratio. Evidence: by convention.
"""

SMALLEST = 5e-324
"""Smallest number above zero, for divisors.

Unit: ratio. Evidence: by convention.
"""

MOST_PARAMETERS = 5
"""Largest number of parameters of a model; with more there are too many sums of products.

Unit: count. Evidence: by convention.
"""

MOST_SHAPES = 2**15 - 1
"""Largest number of shapes of the models of a metric, which columns of models can number.

Unit: count. Evidence: by convention.
"""

MOST_POINTS = 2**15 - 1
"""Largest number of points, which columns of models can count.

Unit: points. Evidence: by convention.
"""

LARGEST_POWER, FINEST, MOST_TERMS_OF_SPACE = 1000, 10**12, 40
"""Largest exponent, largest denominator, and largest number of characters of an exponent.

Unit: count. Evidence: by convention.
"""

BESIDE_EXPONENTIALS = Fraction(4), Fraction(5)
"""Further whole powers that are multiplied by exponentials, if terms go up to cubes.

Unit: exponent. Evidence: by convention.
"""

HEAP = 2**24
"""Size in bytes of a block that is allocated once before rows are fitted.

An allocator that returns freed pages at once spends an eighth of the run time on getting them
back. After it has freed a block of this size, it keeps smaller ones.

Unit: bytes. Evidence: by convention.
"""

MOST_TOGETHER = 8_000_000
"""Hypotheses times rows that are evaluated together; the library stores few of them.

Unit: hypotheses times rows. Evidence: by convention.
"""

NOTED = 16
"""Hypotheses with one shape, and pairs, of each row that the results have room for on average.

If there are more, the remaining rows are screened by another call. The system would have to clear
room for all hypotheses, of which few are used.

Unit: count. Evidence: by convention.
"""

FEW_ROWS = 8
"""Rows of a store for each row that is taken, from which on the others are not checked with it.

If more are taken, all are checked, so that no row is checked twice.

Unit: rows. Evidence: by convention.
"""

ROWS_TOGETHER = 8192
"""Rows that are summed or checked together.

Unit: rows. Evidence: by convention.
"""

CACHED = 2**19
"""Size of a part of a column that several checks read while it is in the processor's cache.

Unit: bytes. Evidence: by convention.
"""


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
