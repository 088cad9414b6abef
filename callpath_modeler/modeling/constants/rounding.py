"""Constants of rounded values and whole numbers.

See docs/explanation/noise-and-bands.md, 'Whole numbers'.
"""

from __future__ import annotations

LEAST, LEAST_OF_SEVERAL, LEAST_FAR = 0.003, 0.01, 1e-5
"""Smallest value that counts, relative to the largest value of a row.

The numbers hold for one parameter, for several, and for several that all begin above one.

Unit: ratio. Evidence: by convention.
"""

OF_ROUNDING = 12**-0.5
"""Standard deviation of rounding to the nearest whole number.

Unit: whole numbers. Evidence: mathematics, the variance of a uniform distribution.
"""

TICKS = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)
"""Ticks of counts, of timers, and of tables that were written with few digits.

Unit: ratio. Evidence: ablation, rounded whole numbers.
"""

SMALL = 1000.0
"""Smallest value of a row, in ticks, from which on half a tick is too small to matter.

Unit: ticks. Evidence: ablation, rounded whole numbers.
"""

MOST_TICKS = 2.0**53
"""Largest whole number whose neighbours are floating-point numbers.

Unit: ticks. Evidence: by convention.
"""

EXACT_WHOLE = 10.0
"""Prior of exactness for whole numbers, relative to that for other values.

An exact law of whole numbers has whole coefficients. They are rarer, by this factor, than all
coefficients that round to the same values.

Unit: relative prior. Evidence: ablation, rounded whole numbers.
"""

ROUNDED = 0.3
"""Prior of whole numbers being rounded, relative to that of values of any kind being exact.

Unit: relative prior. Evidence: ablation, rounded whole numbers.
"""

MATTERS = 0.05
"""Odds of rounding below which it is left out, because it hardly moves an end of a band.

Unit: odds. Evidence: ablation, rounded whole numbers.
"""

NEVER = -1e9
"""Log probability of a row without candidates.

Unit: natural logarithm. Evidence: by convention.
"""
