"""Constants of models, their alternatives, their status, and their validation against expectations.

See docs/explanation/noise-and-bands.md, 'Prediction and band'.

See docs/explanation/expectations.md.
"""

from __future__ import annotations

ALTERNATIVES = 7
"""Alternatives that are kept per row; each represents its neighbours in growth as well.

Unit: count. Evidence: by convention.
"""

TAILS = (0.03, 0.1, 0.3, 0.7, 0.9, 0.97)
"""Division of the hypotheses of a row, ordered by growth, in shares of their weight.

The parts are finest at both ends, which determine the ends of the band.

Unit: share. Evidence: by convention.
"""

FAR = 16.0
"""Scale at which the predictions of hypotheses are compared, in units of the largest point.

Unit: ratio. Evidence: by convention.
"""

AGREES = 0.05
"""Difference between log predictions there up to which hypotheses count as one law.

Unit: natural logarithm. Evidence: by convention.
"""

FAR_APART = 1e3
"""More than any difference between log predictions.

Unit: natural logarithm. Evidence: by convention.
"""

PREDICTED = 1e-12, 1e300
"""Range of the predictions for a row whose largest value is 1.

Unit: ratio. Evidence: by convention.
"""

COARSE = 1.5 * 2.0**22
"""A number that rounds to multiples of 2^-30 if it is added and subtracted again.

Unit: ratio. Evidence: by convention.
"""

TIED = 1e-8
"""Largest relative difference of probabilities that are equal except for rounding.

Unit: ratio. Evidence: by convention.
"""

ROUNDING = 1e-11
"""Coefficient, relative to the smallest value of a row, that is zero except for rounding.

Unit: ratio. Evidence: by convention.
"""

PARALLEL = 1e-12
"""Rest of the square of a column that equals another column except for rounding.

Unit: ratio. Evidence: by convention.
"""

NOISY_SPREAD = 0.25
"""Relative standard deviation of repetitions above which a constant is noisy.

Unit: ratio. Evidence: by convention.
"""

MISFIT = 0.05
"""Relative deviation above which a row may be outside the model class.

Unit: ratio. Evidence: by convention.
"""

FAR_BEYOND_NOISE = 3.0
"""The same, in units of the noise of a centre; the residual has to exceed it as well.

Unit: ratio. Evidence: by convention.
"""

MOST_DRIFT = 2.0
"""Largest growth of the variance of logarithms per doubling beyond the points.

One standard deviation is then a factor of four after one doubling, as much as p^2 grows. Otherwise
measurements that scatter over decades would have bands over dozens of decades.

Unit: variance of logarithms per doubling. Evidence: by convention.
"""

STEADY_DRIFT = 0.1
"""Largest such growth of the run time of a program.

Deviations of its parts are independent in part, so the whole drifts less. Of 290 run times of
series that were run once, bands hold 94.5 % at the next scale (97.6 % without the limit), and are
6.9 wide in the median (14.4).

Unit: variance of logarithms per doubling. Evidence: measured, next scales of run times.
"""

NEGLIGIBLE = 1e-7
"""Probability below which a candidate is left out.

Unit: probability. Evidence: by convention.
"""

GROWTH_BEYOND = 0.3
"""Growth of deviations beyond the points, relative to their growth towards small scales.

Small scales are known to follow other regimes. Bands of measured series hold 94.1 % of values at
the next scale with 0.3 (94.7 % with 0.4, 93.2 % with 0.2), and are a ninth narrower than with 0.4.

Unit: ratio. Evidence: measured, bands of real series at the next scale.
"""

PLACE_BESIDE = 2.0
"""Place of the other parameters where one is far, in units of their largest values.

Slices hold parameters at measured values as often as at larger ones.

Unit: ratio. Evidence: by convention.
"""

LESS_FAR = 0.7
"""Distance of each further parameter, in doublings, relative to that of the one before.

Unit: doublings. Evidence: by convention.
"""

FEWEST_MISFITS = 10
"""Rows needed to know the usual misfits.

Unit: rows. Evidence: ablation, usual misfits.
"""

LEAST_MISFIT = 0.1
"""Smallest limit of the misfit, relative to the values.

Unit: ratio. Evidence: ablation, usual misfits.
"""

TIMES_MEDIAN_MISFIT = 3.0
"""Smallest limit of the misfit, relative to the median misfit.

Unit: ratio. Evidence: ablation, usual misfits.
"""

MISFIT_DEVIATIONS = 2.5
"""Smallest distance of the limit from the median, in standard deviations of the logarithms.

Unit: standard deviations. Evidence: ablation, usual misfits.
"""

OF_NORMAL = 1.4826
"""Standard deviation of a normal distribution, relative to its median absolute deviation.

Unit: ratio. Evidence: mathematics, the median absolute deviation of a normal distribution.
"""

EXACT_MISFIT = 1e-3
"""Largest misfit of a law of exact values, relative to the values.

Unit: ratio. Evidence: ablation, usual misfits.
"""

MOST_ROUNDED = 3.0
"""Square of a half, the largest error of rounding, relative to the variance of rounding.

Unit: ratio. Evidence: ablation, usual misfits.
"""

NEXT_STEP_SHARE = 0.05
"""Probability of each of the two: more than a band of 95 % leaves out on either side.

Of generated staircases of four to six points, bands hold 97 % or more; without these hypotheses, 28
to 100 %.

Unit: probability. Evidence: ablation, next steps of staircases.
"""

REPEATED = 4
"""Number of steps downwards that must leave a positive value; else none is repeated.

Unit: count. Evidence: ablation, next steps of staircases.
"""

LAST_DIGIT = 1e-5
"""Relative deviation up to which a law fits to the last digit; such models stay as they are.

Unit: ratio. Evidence: by convention.
"""

RIVAL_MISFIT = 4.0
"""Misfit of a law beyond the least one up to which it fits as well, in units of the variance.

Unit: sum of squares of standard scores. Evidence: mathematics, 95 % of squares of normal scores.
"""

RIVAL_BEYOND = 1.25
"""Distance of the prediction of such a law from the band at which it is added.

Unit: ratio. Evidence: measured, marks of published laws.
"""

RIVAL_SHARE = 0.05
"""Probability of each of the two: more than a band of 95 % leaves out on either side.

Unit: probability. Evidence: measured, marks of published laws.
"""

SHORT = 3
"""Number of points on which any growth may end at the next one.

Unit: points. Evidence: measured, next scales of real series.
"""

ENDS_SHARE = 0.05
"""Probability that growth ends there: more than a band of 95 % leaves out on one side.

Unit: probability. Evidence: measured, next scales of real series.
"""

RIDGE = 1e-12
"""Addition to the squares of powers, relative to them, that keeps their equations solvable.

Unit: ratio. Evidence: mathematics, rounding in double precision.
"""

COSTLY = 0.005
"""Share of the total, at the largest point or far beyond, from which a row is compared with them.

Unit: share. Evidence: by convention.
"""

MATCH_CHUNK = 2048
"""Rows that are fitted together.

Unit: rows. Evidence: by convention.
"""

FURTHEST = 2.0**20
"""Largest scale at which a deciding run is searched, in units of the largest point.

Unit: ratio. Evidence: by convention.
"""

HIDDEN_FLOOR = 2.0
"""How many times slower than expected a law may fall up to `FAR`, if it only might level off.

Each falling law may end at a constant that is below the noise, and no data excludes it. Verdicts on
1/p are in docs/explanation/expectations.md.

Unit: ratio. Evidence: measured, verdicts on 1/p with and without a constant.
"""

PER_DOUBLING = 4
"""Values of the parameter per doubling that are tried.

Unit: count. Evidence: by convention.
"""

VERDICT_CHUNK = 256
"""Rows whose bands are computed together.

Unit: rows. Evidence: by convention.
"""

NEAR, NEARER = 0.1, 0.02
"""Distance from a sum of parts up to which a model stands for it, and the simplest does.

Unit: root mean square of the relative difference. Evidence: by convention.
"""

FAR_AWAY = 2.0**20
"""Scale at which a model of a sum of parts must not be negative, in units of its largest one.

Unit: ratio. Evidence: by convention.
"""

BARELY = 1e-6
"""Error of a coefficient whose error is counted elsewhere.

Unit: the largest value of a row. Evidence: by convention.
"""

OF_OWN_LAW = 0.1
"""Probability that a row whose parts are known follows the law of its own values instead.

Unit: probability. Evidence: measured, waiting on simulated clusters.
"""

WAITING_DRIFT = 0.12
"""Growth of the variance of what waits, per doubling beyond the points, besides the measured one.

Waiting has causes that a profile does not show. On simulated clusters, bands hold 92 % of what MPI
calls take at two to four times the largest scale (84 % with half of it), and 95 % at the next scale
of series that were measured (92 % without).

Unit: variance of logarithms per doubling. Evidence: measured, MPI calls at kept scales.
"""

STEADY_WAITING = 0.03
"""Deviation about a model at which half of it is added; of what follows its law, hardly any is.

Unit: ratio. Evidence: measured, as above.
"""
