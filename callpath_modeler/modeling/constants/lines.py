"""Constants of slices and runs along one parameter.

See docs/explanation/several-parameters.md, 'Slices'.
"""

from __future__ import annotations

AS_CLOSE, AS_CLOSE_UNREPEATED = 1.25, 2.0
"""Largest distance of a slice from the runs that keeps it, relative to the model of the line.

The second number holds without repetitions, when models follow the noise of few points closely.

Unit: ratio. Evidence: ablation, runs instead of slices.
"""

DEVIATES = 0.5
"""Largest part of the variance about a slice, beyond the noise, that keeps it.

Unit: share. Evidence: ablation, doubts about slices and runs.
"""

DOUBT = 0.2
"""Largest probability of the alternatives: the line for a slice, or the slice for a line.

Unit: probability. Evidence: ablation, doubts about slices and runs.
"""
