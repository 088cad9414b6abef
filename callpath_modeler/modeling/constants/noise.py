"""Constants of noise, deviations and whole numbers, and of what is learnt from many rows.

See docs/explanation/noise-and-bands.md, 'Noise' and 'Whole numbers'.

See docs/explanation/hypotheses.md, 'Priors that are learnt', and
docs/explanation/noise-and-bands.md, 'One scale unlike the others'.
"""

from __future__ import annotations

import math

DEVIATIONS_BESIDE_NOISE = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Relative deviations that are tried in addition to a known noise.

Unit: ratio. Evidence: by convention.
"""

BESIDE_PRIOR = (0.4, 0.15, 0.15, 0.15, 0.1, 0.05)
"""Weight of each of these deviations in the prior, with each drift.

Unit: relative prior. Evidence: by convention.
"""

WILD, WILD_PRIOR = 1.0, 0.01
"""Further relative deviation in several parameters, and its weight in the prior.

Protocols change with the size of messages. So products of factors are true laws less often than
laws in one parameter are.

Unit: ratio, relative prior. Evidence: by convention.
"""

DEVIATIONS_ALONE = (0.0, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
"""Relative deviations that are tried without repetitions; they include the noise.

Unit: ratio. Evidence: by convention.
"""

FIRST_APART = 1e5
"""Factor of the variance at the first point if the point is apart.

Unit: ratio. Evidence: by convention.
"""

AS_A_RULE = 30.0
"""Prior of a separate regime of one process, relative to each other drift.

Unit: relative prior. Evidence: by convention.
"""

EXACT_VARIANCE = 1e-14
"""Relative variance below which values are exact, such as counts and averages of counts.

Unit: ratio. Evidence: by convention.
"""

MOST_DOF = 100.0
"""Largest number of degrees of freedom of the noise.

Unit: degrees of freedom. Evidence: by convention.
"""

FEWEST_ROWS = 3
"""Rows needed to know how much their noise differs.

Unit: rows. Evidence: by convention.
"""

TREND_ROWS = 12
"""Rows needed for a trend of the noise with the size of values.

Unit: rows. Evidence: by convention.
"""

WEIGHT_RANGE = (0.05, 3.0)
"""Range of the weight of a point by its own noise, relative to its usual weight.

Unit: ratio. Evidence: by convention.
"""

LARGE_SPREAD = 0.1
"""Relative deviation of repetitions from which on logarithms replace relative deviations.

Unit: ratio. Evidence: by convention.
"""

PROFILE_RANGE = (0.01, 100.0)
"""Range of the variance of a point, relative to the average of all points.

Unit: ratio. Evidence: by convention.
"""

ROUNDS = 20
"""Rounds of the iteration for the variances of points.

Unit: count. Evidence: by convention.
"""

DIFFERENCES_BY_CHANCE = 4.0
"""Mean square of the differences of points, in units of chance, that is attributed to chance.

It is 1 on average for points with equal noise.

Unit: ratio. Evidence: by convention.
"""

LIKENESS_BY_CHANCE = 3.0
"""Standard deviations up to which chance may make independent errors look alike.

Unit: standard deviations. Evidence: ablation, correlation of errors.
"""

NO_DIRECTION = 1e-6
"""Length of the relative errors of a row below which it has no direction to compare.

Unit: ratio. Evidence: ablation, correlation of errors.
"""

STEEPEST_NOISE, GROWTHS = 3.0, 121
"""Growth of the variance of noise per doubling of scale that is tried, as powers of two.

Unit: powers of two, count. Evidence: ablation, noise that grows with scale.
"""

MOST_DOUBLINGS = 12.0
"""Largest distance between scales, in doublings; larger ones are scaled down to it.

Numbers have no digits for larger ratios of variances.

Unit: doublings. Evidence: ablation, noise that grows with scale.
"""

NATS_BY_CHANCE = 4.0
"""Gain in log likelihood, in nats, that chance may bring.

Unit: nats. Evidence: ablation, noise that grows with scale.
"""

FEWEST_WITNESSES = 20.0
"""Independent rows needed to show how noise grows.

Unit: rows. Evidence: ablation, noise that grows with scale.
"""

EXACT = 1e-9
"""Relative difference below which two values are the same number written by two programs.

Unit: ratio. Evidence: by convention.
"""

LARGEST_COUNT = 1e6
"""Value from which on whole numbers may be ticks of a clock instead of counts.

Unit: count. Evidence: by convention.
"""

MEDIAN_VARIANCE = math.pi / 2
"""Variance of a median relative to a mean, for normal noise and more than two repetitions.

Unit: ratio. Evidence: mathematics, the variance of the median of a normal distribution.
"""

DRAWS = 4000
"""Number of resampled points that determine the efficiency of a centre.

Unit: count. Evidence: by convention.
"""

FEWEST_RESIDUALS = 15
"""Residuals needed to determine the efficiency of a centre.

Unit: count. Evidence: by convention.
"""

GROWTHS_OF_DRIFTS = (0.0, 10.0, 100.0)
"""Growth of the variance of deviations towards small scales that is tried; the first is no drift.

The second one is also that of runs that begin with one process.

Unit: relative variance per doubling. Evidence: by convention.
"""

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

Unit: ratio. Evidence: by convention.
"""

SMALL = 1000.0
"""Smallest value of a row, in ticks, from which on half a tick is too small to matter.

Unit: ticks. Evidence: by convention.
"""

MOST_TICKS = 2.0**53
"""Largest whole number whose neighbours are floating-point numbers.

Unit: ticks. Evidence: by convention.
"""

NEVER = -1e9
"""Log probability of a row without candidates.

Unit: natural logarithm. Evidence: by convention.
"""

CHUNK = 4096
"""Rows whose repetitions are summed together.

Unit: rows. Evidence: by convention.
"""

OFF = 3.0
"""Standard deviations between mean and model beyond which residuals are not noise.

Unit: standard deviations. Evidence: by convention.
"""

OF_ONE_LAW = 0.6
"""Largest correlation of the errors of call paths that follow one law outside of the hypotheses.

Visits of all functions of a solver have its number of iterations in common.

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

LEARNING_ROUNDS = 10
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

FEWEST_LEARNING_ROWS = 10
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

GRAINS = (0.1, 2.0)
"""Range of the variance of counts by chance, relative to their expectation.

The maximum over processes varies less than the count of a process.

Unit: ratio. Evidence: measured, generated counts.
"""

FEWEST_COUNTED, LEAST_TICKS = 20, 6
"""Different small multiples that show a tick; bound of the number of ticks of the smallest value.

Unit: count. Evidence: by convention.
"""

LEAST_EXPECTED = 0.1
"""Smallest expectation of a count.

Unit: ticks. Evidence: by convention.
"""

FEWEST_OF_ROW = 2.0
"""Degrees of freedom with which a row shows whether it varies by chance.

Unit: degrees of freedom. Evidence: by convention.
"""

QUIET, MOST_QUIET = 0.1, 0.25
"""Variance relative to counts by chance below which a row is quiet; largest share of quiet rows.

Unit: ratio, share. Evidence: measured, generated counts and counts of real series.
"""
