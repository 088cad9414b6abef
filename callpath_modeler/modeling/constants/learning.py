"""Constants of what is learnt from many rows: priors, and one scale unlike the others.

See docs/explanation/hypotheses.md, 'Priors that are learnt', and
docs/explanation/noise-and-bands.md, 'One scale unlike the others'.
"""

from __future__ import annotations

import math

CHUNK = 4096
"""Rows whose repetitions are summed together.

Unit: rows. Evidence: by convention.
"""

OFF = 3.0
"""Standard deviations between mean and model beyond which residuals are not noise.

Unit: standard deviations. Evidence: by convention.
"""

OF_ONE_LAW = 0.2
"""Largest correlation of the errors of call paths that follow one law outside of the hypotheses.

Unit: correlation. Evidence: ablation, correlation of errors.
"""

LEAST_IN_SUMS = 0.25
"""Smallest correlation of errors in sums.

Far beyond the points, models may miss surfaces or waiting of all call paths alike. The points
cannot show this. At scales that were held out, errors of real series have a correlation of 0.2 to
0.5, and those of simulated programs one of 0.2 to 0.35.

Unit: correlation. Evidence: measured, errors of real series at scales that were held out.
"""

MOST_LEARNT = 2_000_000
"""Largest number of hypotheses times rows that priors are learnt from.

Unit: hypotheses times rows. Evidence: ablation, learnt priors.
"""

SAMPLE = 500
"""Largest number of rows that priors are learnt from; they are spread evenly over all sizes.

Unit: rows. Evidence: ablation, learnt priors.
"""

LOOKS_AT_SCALES = 2
"""Number of times that errors show how noise grows with scale.

The errors of models that took noise for growth are too small.

Unit: count. Evidence: ablation, noise that grows with scale.
"""

KIND_STRENGTH = 10.0
"""Weight of the initial prior of kinds, in call paths.

Unit: call paths. Evidence: ablation, learnt priors.
"""

DEVIATION_STRENGTH = 30.0
"""Weight of the initial prior of deviations and drifts, in call paths.

Unit: call paths. Evidence: ablation, learnt priors.
"""

BY_ONE = 10.0
"""Largest count of the call path with the most evidence for a hypothesis, in pseudo-counts.

Otherwise a hypothesis with a prior of one in a million would get one in a thousand from a single
call path that it suits.

Unit: call paths. Evidence: ablation, learnt priors.
"""

ROUNDS = 10
"""Rounds of expectation maximisation.

Unit: rounds. Evidence: ablation, learnt priors.
"""


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

LEAST_NATS = -60.0
"""Smallest log likelihood that is evaluated, relative to the largest one of a row.

Unit: nats. Evidence: mathematics, exp(-60) is no part of a sum of doubles that contains 1.
"""

FACTORS = 321
"""Number of factors that are tried, evenly spaced in their logarithms.

Unit: count. Evidence: by convention.
"""
