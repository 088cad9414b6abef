"""Constants of one scale unlike the others.

See docs/explanation/noise-and-bands.md, 'One scale unlike the others'.
"""

from __future__ import annotations

import math

FEWEST_POINTS = 5
"""Points needed: with fewer, the other points say too little about one of them.

Unit: points. Evidence: ablation, outlier scales.
"""

MOST_ROWS, MOST_OF_SEVERAL = 100, 40
"""Largest number of rows tested, in one parameter and in several; more rows add nothing.

Unit: rows. Evidence: ablation, outlier scales.
"""

SUSPECT = 0.02, 0.2
"""Correlation of errors, and share of rows that break, above which points are tested.

Unit: share. Evidence: ablation, outlier scales.
"""

FOLLOWS = 0.6
"""Share of the sum of squares of a shape at one point above which the shape could fit it alone.

Unit: share. Evidence: ablation, outlier scales.
"""

MOST_ERRING = 3
"""Number of points, the ones with the worst fit over all rows, that are tested.

Unit: points. Evidence: ablation, outlier scales.
"""

REACH = math.log(30.0)
"""Logarithm of the largest factor that is tried.

Unit: natural logarithm. Evidence: ablation, outlier scales.
"""

TELLS = 1.0
"""Nats by which a row has to prefer a factor or none to be decided.

Unit: ratio. Evidence: ablation, outlier scales.
"""

FEWEST_ROWS = 10
"""Rows needed, both in total and decided.

Unit: rows. Evidence: ablation, outlier scales.
"""

NEARLY_ALL, MOST_OF_ALL = 0.85, 0.8
"""Share of the decided rows that have to agree, in one parameter and in several.

In several parameters more laws are only approximated. In a test with 24 laws on a grid of 4 x 4,
whose last run took 1.4 times as long, bands hold 95 % (44 % without this rule).

Unit: share. Evidence: ablation, outlier scales.
"""

MUCH_LESS = 0.25
"""Largest log factor of another point, relative to that of the outlier.

Unit: natural logarithm. Evidence: ablation, outlier scales.
"""

CLOSE, HOPELESS = -4.5, -8.0
"""Two limits, in nats below the best factor of a row: three standard deviations, and four.

A row agrees with a factor above the first limit. A factor below the second limit has the value of
the limit, so that one row has a limited influence.

Unit: nats. Evidence: ablation, outlier scales.
"""

FACTORS = 321
"""Number of factors that are tried, evenly spaced in their logarithms.

Unit: count. Evidence: by convention.
"""
