"""Constants of predictions and bands.

See docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

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
