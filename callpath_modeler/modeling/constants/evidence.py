"""Constants of evidence, of laws beyond a change point, and of bands.

See docs/explanation/hypotheses.md, 'Evidence' and 'Laws beyond a change point', and
docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

import math

SHARE_EDGE = 1e-3
"""Smallest distance of a share from one: a smaller constant cannot be distinguished from none.

Unit: share. Evidence: by convention.
"""

FAR_OUT = 1e-280
"""Normal probability below which only its logarithm can be represented.

Unit: probability. Evidence: by convention.
"""

LOG_2PI = float(math.log(2 * math.pi))
"""Logarithm of 2 pi.

Unit: nats. Evidence: mathematics, natural logarithms.
"""

LOG_2 = float(math.log(2))
"""Logarithm of 2.

Unit: nats. Evidence: mathematics, natural logarithms.
"""

LEAST_LEVEL = 0.05
"""Smallest level of a hypothesis relative to the mean; the level of an offset may be near zero.

Unit: ratio. Evidence: by convention.
"""

TINY = 1e-300
"""Smallest sum or divisor, which stands for zero.

Unit: ratio. Evidence: by convention.
"""

LEAST = 1e-40
"""Smallest level; its powers are still above zero.

Unit: ratio. Evidence: by convention.
"""

NO_PART = 1e-9
"""Coefficient, relative to the level, that is zero except for rounding.

Unit: ratio. Evidence: by convention.
"""

CONSTANT_FOLDS, PAIR_FOLDS = 6.0, 12.0
"""Powers of e over which the share of a term with shared work is uniform in its logarithm.

The first number holds for a constant alone, the second one for all terms in pairs.

Unit: powers of e. Evidence: by convention.
"""

LEAST_SHARE = 1e-4
"""Smallest share in this prior, which replaces smaller shares.

Unit: share. Evidence: by convention.
"""

ALIKE = 1e-12
"""Relative squared variation of a shape over the points of a row that is only rounding.

Unit: ratio. Evidence: by convention.
"""

PARALLEL = 1e-10
"""Determinant of two shapes that are equal at all points, relative to the product of squares.

Unit: ratio. Evidence: by convention.
"""

ROUNDING = 1e-13
"""Size of a sum of products, relative to its parts, below which it is only rounding.

Unit: ratio. Evidence: by convention.
"""

LARGE_MISFIT = 0.01
"""Relative misfit (root mean square) from which on logarithms replace relative errors.

Unit: ratio. Evidence: by convention.
"""

LEAST_RATIO = 1e-3
"""Smallest ratio of a model to the value; smaller models have the error of this ratio.

Unit: ratio. Evidence: by convention.
"""

VARIES = 1e-10
"""Share of the square of a shape below which it does not vary besides others.

Unit: share. Evidence: by convention.
"""


MOST_PLACES = 12
"""Largest number of places that are tried; if there are more, some are skipped.

Unit: places. Evidence: ablation, laws beyond a change point.
"""

PRIOR_OF_TWO_LAWS = 0.03
"""Prior of two laws, shared by all places.

It includes that the level of the second law lies near that of the first. Of generated series that
follow one law, less than 2 % get a change point with 20 % noise and no repetitions, and 0.1 % with
10 % noise or less.

Unit: probability. Evidence: ablation, laws beyond a change point.
"""

ASKED = 0.1
"""Probability of hypotheses with a break above which change points are tried.

Unit: probability. Evidence: ablation, laws beyond a change point.
"""

MISSED = 3.0
"""Deviation from laws, in units of the noise, above which change points are tried.

Unit: standard deviations. Evidence: ablation, laws beyond a change point.
"""

MATTERS = 0.05
"""Probability of two laws above which they are among the alternatives.

Unit: probability. Evidence: ablation, laws beyond a change point.
"""

SURE = 0.5
"""Probability of two laws above which the law beyond is the model.

Unit: probability. Evidence: ablation, laws beyond a change point.
"""

LAWS = 16
"""Number of laws beyond each place that are kept, the most probable ones.

Unit: laws. Evidence: ablation, laws beyond a change point.
"""

NEGLIGIBLE_LAW = 1e-4
"""Probability below which a law beyond is left out.

Unit: probability. Evidence: ablation, laws beyond a change point.
"""

PLAIN_LAW = 3.5
"""Largest distance from the prior of the plainest term, in nats, of a term that is tried.

Unit: nats. Evidence: ablation, laws beyond a change point.
"""


LARGEST = 1e100
"""Largest value of an exponential, which counts as infinite; its square is still a number.

Unit: ratio. Evidence: by convention.
"""

HARDLY = 0.01
"""Total probability of hypotheses that hardly move a band, relative to that outside of it.

Unit: probability. Evidence: by convention.
"""

OUTER = 0.975
"""Quantile of the slope that gives the spread of a prediction.

Unit: probability. Evidence: by convention.
"""

DEVIATES = 1.959963984540054
"""Normal score of that quantile.

Unit: standard deviations. Evidence: mathematics, the normal distribution.
"""

NEGLIGIBLE = 1e-6
"""Prediction of a hypothesis, relative to the largest one of the row, that counts as zero.

Unit: ratio. Evidence: by convention.
"""

LEAST_SPREAD = 1e-9
"""Smallest standard deviation of the logarithm.

Unit: natural logarithm. Evidence: by convention.
"""

STEPS = 100
"""Halvings of the interval of a quantile, until it is as narrow as rounding.

Unit: halvings. Evidence: by convention.
"""

UNDECIDED = 0.1
"""Total probability of faster, or of slower, hypotheses up to which a growth is decided.

Unit: probability. Evidence: by convention.
"""
