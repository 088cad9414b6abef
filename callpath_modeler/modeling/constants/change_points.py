"""Constants of laws beyond a change point.

See docs/explanation/hypotheses.md, 'Laws beyond a change point'.
"""

from __future__ import annotations

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
