"""Rounds of expectation maximisation: calls into ``learn.c``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.compiled.library import call, float64_arrays, int32_arrays, starts

if TYPE_CHECKING:
    from callpath_modeler.modeling.mixture.candidates import Candidates
    from callpath_modeler.modeling.mixture.expectation_maximization import PseudoCounts


def rounds(
    found: Candidates, place: IntArray, counts: PseudoCounts, prior: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same as `_rounds`; `found` is ordered by row."""
    rows = int(found.row[-1]) + 1 if len(found.row) else 0
    prior, deviation = prior.copy(), counts.deviation / counts.deviation.sum()
    factor = np.empty(len(counts.of_kind))
    call(
        "learn",
        *(count, rows, *found.log_evidence.T.shape, len(prior), len(factor), counts.by_one),
        *int32_arrays(starts(found.row, rows), place),
        *float64_arrays(found.log_evidence.T),
        *int32_arrays(counts.kind),
        *float64_arrays(counts.hypothesis, counts.of_hypothesis, counts.of_kind, counts.deviation),
        *(prior, deviation, factor),
    )
    return prior, deviation, factor
