"""The candidates of rows in C: the function of ``mixture/candidates.py``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled.drifts import precisions
from callpath_modeler.modeling.compiled.library import call, doubles, integers
from callpath_modeler.modeling.mixture.data import Data, floor_of
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Group, Hypotheses
from callpath_modeler.modeling.mixture.screen import Chosen

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


def compiled_candidates(
    data: Data, chosen: Chosen, known: Hypotheses, deviations: Deviations
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the columns of `Candidates`, which are ordered by row."""
    row_in, chosen_in = _listed(chosen, known)
    drifts, size = deviations.drifts, len(row_in)
    sizes = (*data.values.shape, len(drifts), len(known.shapes), len(deviations.deviation), size)
    of_first = np.log([drift.of_first for drift in drifts]) / 2
    row, found = np.empty((2, size), dtype=np.int64)
    log_evidence = np.empty((size, len(deviations.deviation)))
    coefficients = np.empty((size, len(drifts), 3))
    covariance = np.empty((size, len(drifts), 6))
    call(
        "candidates",
        *(*sizes, int(known.kept.frugal)),
        *doubles(data.values, data.weight, data.variance, data.dof, floor_of(data)),
        *doubles(chosen.variance, chosen.fitted, known.table_and_none),
        *doubles(known.table.min(axis=1), known.table.max(axis=1)),
        *doubles(known.single_group == Group.FALLING),
        *integers(known.first, known.second),
        *doubles(*precisions(data.points, drifts), of_first, deviations.deviation**2),
        *integers(deviations.drift_of, row_in, chosen_in),
        *(row, found, log_evidence, coefficients, covariance),
    )
    numbers, elements = (np.moveaxis(column, 0, 2) for column in (coefficients, covariance))
    return row, found, log_evidence.T, numbers, elements


def _listed(chosen: Chosen, known: Hypotheses) -> tuple[IntArray, IntArray]:
    """List rows and hypotheses of all that was chosen, and the constants."""
    rows, size = len(chosen.variance), len(known.shapes)
    families = enumerate(chosen.families)
    singles = [1 + family * size + chosen.shape[which] for family, which in families]
    every = [np.arange(rows), *(chosen.row[which] for which in chosen.families), chosen.pair_row]
    codes = [np.zeros(rows, dtype=np.intp), *singles, 1 + 3 * size + chosen.pair]
    return np.concatenate(every), np.concatenate(codes)
