"""Constants of the scatter from day to day, which histories show and single days do not.

See docs/explanation/noise-and-bands.md, 'From day to day'.
"""

from __future__ import annotations

OF_FEW = {2: 2.096, 3: 1.45, 4: 2.058, 5: 1.461, 6: 1.896, 7: 1.466, 8: 1.776}
"""As `OF_NORMAL`, for deviations from the median of two to eight repetitions, without its own one.

Unit: ratio. Evidence: mathematics, a simulation of normal values.
"""

BIWEIGHT = 4.685
"""Deviation, in standard deviations, from which on a repetition has no weight.

Unit: ratio. Evidence: paper, Beaton and Tukey 1974: 95 % efficiency for normal noise.
"""

BIWEIGHT_ROUNDS = 3
"""Rounds of the iteration for the centre of repetitions.

Unit: rounds. Evidence: by convention.
"""

CLIPPED = 2.5
"""Deviation, in standard deviations, at which a record is clipped before it shows the scatter.

Unit: ratio. Evidence: by convention.
"""

CLIPPED_SQUARE = 0.9776
"""Mean square of clipped normal deviations.

Unit: ratio. Evidence: mathematics, the second moment of a clipped normal distribution.
"""

SCALE_ROUNDS = 4
"""Rounds of the iteration for the scatter of clipped records.

Unit: rounds. Evidence: by convention.
"""

POOLED_DOF = 4.0
"""Degrees of freedom of the scatter that all call paths together suggest for one of them.

Unit: degrees of freedom. Evidence: measured, histories of benchmarks/history_noise.py.
"""

MOST_POOLED_DOF = 60.0
"""Largest number of degrees of freedom of the scatter that all call paths together suggest.

Unit: degrees of freedom. Evidence: by convention.
"""

FAR_OFF = 3.5
"""Distance, in standard deviations, of one scale from the others beyond which it is an odd one.

Unit: ratio. Evidence: by convention.
"""

MOST_OF_MIDDLE = 0.4
"""Largest weight of one scale in the middle of all scales of a record.

Unit: share. Evidence: by convention.
"""

OWN_RECORDS = 10.0
"""Number of own records that count as much as the records of all call paths in tails.

Unit: records. Evidence: measured, histories of benchmarks/history_noise.py.
"""

TAIL_POWER = 3.0
"""Power by which deviations become rarer beyond the largest one that was seen.

Unit: ratio. Evidence: measured, histories of benchmarks/history_noise.py.
"""

MOST_CORRELATED = 0.97
"""Largest correlation from record to record.

Unit: correlation. Evidence: by convention.
"""

SURE_CORRELATION, LEAST_CHANCE = 4.0, 0.2
"""Standard errors that show a correlation, and least variance of one record's correlation.

Unit: standard errors, ratio. Evidence: measured, histories of benchmarks/history_noise.py.
"""

RECENT = 64
"""Number of records whose scatter tells the spread of repetitions and the precision of scales.

Unit: records. Evidence: by convention.
"""

REFERENCE_RECORDS = 16
"""Number of first records whose median is the usual level of a call path.

Unit: records. Evidence: by convention.
"""
