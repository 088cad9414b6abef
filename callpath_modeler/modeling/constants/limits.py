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

MOST_PARAMETERS = 4
"""Largest number of parameters of a model; with more there are too many products of factors.

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

MOST_TOGETHER_IN_C = 8_000_000
"""Hypotheses times rows that are evaluated together; the library stores few of them.

Unit: hypotheses times rows. Evidence: by convention.
"""

MOST_TOGETHER_IN_NUMPY = 2_000_000
"""Hypotheses times rows that are evaluated together: an array of them has 16 MB.

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


COLUMNS = 6
"""Additive numbers of each prediction.

Unit: numbers. Evidence: mathematics, `sums.as_addends`.
"""

INNER = 0.3, 0.6
"""Scores of inner quantiles, as fractions of the score of the ends of bands.

Unit: ratio. Evidence: by convention.
"""

OUTER = 3.0
"""Smallest outermost score.

Unit: standard deviations. Evidence: by convention.
"""

BEYOND = 0.5
"""Smallest distance of the outermost score from the ends of bands.

Unit: standard deviations. Evidence: by convention.
"""

SCORES = 9
"""Quantiles of each row: the middle one, and on each side inner ones, the end and the outermost.

Unit: quantiles. Evidence: mathematics, `sums.scores`.
"""

ENDS = 1, 7
"""Places of the ends of the band among these quantiles.

Unit: places. Evidence: mathematics, `sums.scores`.
"""

STEPS = 4
"""Parts of each step between scores; the logarithm of a quantile is linear within a step.

Unit: parts. Evidence: by convention.
"""

NEGLIGIBLE = 1e-12
"""Fraction of the largest quantile below which a quantile has no logarithm of its own.

Unit: ratio. Evidence: by convention.
"""

WIDE = 2.0
"""Ratio of the ends of a band above which its shape is used; narrower bands are normal.

Unit: ratio. Evidence: by convention.
"""

ALIKE = 0.6
"""Correlation of errors of rows whose bands span decades.

Unit: correlation. Evidence: measured, simulated whole programs.
"""

DECADES = 4.0
"""Logarithm of the ratio of the ends at which a correlation is half way to that one.

Unit: natural logarithm. Evidence: measured, simulated whole programs.
"""

LARGEST = 1e150
"""Largest distance that can be squared.

Unit: unit of the metric. Evidence: mathematics, numbers of double precision.
"""

CORRELATIONS = 17
"""Correlations with stored weights of quantiles; weights between them are interpolated.

Unit: correlations. Evidence: by convention.
"""

TOGETHER = 8_192
"""Predictions that are processed at a time.

Unit: predictions. Evidence: by convention.
"""
