"""`mixture.learn` in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled.library import call, doubles, integers, starts

if TYPE_CHECKING:
    from callpath_modeler.modeling.mixture.candidates import Candidates
    from callpath_modeler.modeling.mixture.learn import Held

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


def rounds(
    found: Candidates, place: IntArray, held: Held, prior: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what `_rounds` does; `found` are ordered by row."""
    rows = int(found.row[-1]) + 1 if len(found.row) else 0
    prior, deviation = prior.copy(), held.deviation / held.deviation.sum()
    factor = np.empty(len(held.of_kind))
    call(
        "learn",
        *(count, rows, *found.log_evidence.T.shape, len(prior), len(factor), held.by_one),
        *integers(starts(found.row, rows), place),
        *doubles(found.log_evidence.T),
        *integers(held.kind),
        *doubles(held.hypothesis, held.of_hypothesis, held.of_kind, held.deviation),
        *(prior, deviation, factor),
    )
    return prior, deviation, factor
