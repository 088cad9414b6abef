"""Constants of breaks, differences and exponentials.

See docs/explanation/hypotheses.md, 'Breaks and easings'.
"""

from __future__ import annotations

from fractions import Fraction

SHARPNESS = 3.0
"""Exponent of gradual breaks: 1 would give a sum, infinity the larger of both.

Unit: exponent. Evidence: ablation, gradual breaks.
"""

WITHIN = 1 - 1e-9
"""Factor that keeps rounding from lifting log_3(9) by a level.

Unit: ratio. Evidence: by convention.
"""

FEWEST_BEYOND = 4
"""Smallest number of points beyond a change point for a separate law there.

Unit: points. Evidence: ablation, laws beyond a change point.
"""

MOST_OFF = 0.3
"""Largest relative deviation of measurements from two laws that a change point separates.

Unit: ratio. Evidence: ablation, laws beyond a change point.
"""

FEWEST_BEFORE = 2
"""Smallest number of points before a change point; one point may be a law or an outlier.

Unit: points. Evidence: ablation, laws beyond a change point.
"""

LEAPS = ((-6, 0), (-4, 0), (-3, 0), (0, 1), (2, 0), (3, 0), (4, 0), (6, 0), (6, 1))
"""Terms that leap: sixths of their power, and the power of the logarithm.

Unit: sixths, count. Evidence: ablation, leaps.
"""

FEWEST_FOR_THREE = 5
"""Points needed to distinguish a law with three numbers from one point that is unlike the others.

Such laws are gradual changes, leaps, easings with a constant, a constant with two whole powers, and
exponentials with a constant.

Unit: points. Evidence: by convention.
"""

MOST_FOR_LEAPS = 40
"""Largest number of points with leaps at all places; else leaps precede the last point.

Unit: points. Evidence: ablation, leaps.
"""

SORTED_ITEMS, FEWEST_ITEMS = (20, 23, 26, 30, 36), 16
"""Logarithms of the number of items sorted together, and the fewest items of a process.

Unit: powers of two, items. Evidence: ablation, sorted shares.
"""

MOST_PLACES = 380
"""Largest number of places of each kind that are tried.

Unit: count. Evidence: ablation, breaks that begin at a capacity.
"""

PLACES_BETWEEN = 4
"""Places, per pair of neighbouring points, of breaks that begin at a capacity.

Unit: count. Evidence: ablation, breaks that begin at a capacity.
"""

EARLY = 8.0
"""Largest first point for these differences.

From 16 on, p - 1 equals p within noise and deviations, and other terms represent the rest.

Unit: processes. Evidence: by convention.
"""

FROM_TWO = 2.0, 16.0
"""Range of the first point within which it differs from 1/p; added growth is small there.

Unit: processes. Evidence: by convention.
"""

RATES = Fraction(1, 2), Fraction(1)
"""Rates of the exponentials that are compared.

Unit: exponent. Evidence: by convention.
"""

POWERS = range(6)
"""Whole powers that are multiplied by an exponential.

Unit: exponent. Evidence: by convention.
"""

MISSED = 0.02
"""Relative error (root mean square) of a model above which exponentials are tried.

Unit: ratio. Evidence: by convention.
"""

BETTER = 4.0
"""Smallest ratio of the error of the model to that of the exponential.

Unit: ratio. Evidence: by convention.
"""

VARIES = 1e-9
"""Share of the square of a column below which it equals another column.

Unit: share. Evidence: by convention.
"""
