"""Constants of priors that are learnt.

See docs/explanation/hypotheses.md, 'Priors that are learnt'.
"""

from __future__ import annotations

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
