"""Candidates of rows: calls into ``candidates.c``.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.compiled.drifts import precisions
from callpath_modeler.modeling.compiled.library import call, float64_arrays, int32_arrays
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses, HypothesisGroup
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, floor_of
from callpath_modeler.modeling.mixture.screened_hypotheses import ScreenedHypotheses


def compiled_candidates(
    data: ScaledRows, chosen: ScreenedHypotheses, hypotheses: Hypotheses, deviations: Deviations
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """Return the columns of `Candidates`, ordered by row."""
    row_in, chosen_in = _listed(chosen, hypotheses)
    drifts, size = deviations.drifts, len(row_in)
    sizes = (
        *data.values.shape,
        len(drifts),
        len(hypotheses.shapes),
        len(deviations.deviation),
        size,
    )
    of_first = np.log([drift.of_first for drift in drifts]) / 2
    row, found = np.empty((2, size), dtype=np.int64)
    log_evidence = np.empty((size, len(deviations.deviation)))
    coefficients = np.empty((size, len(drifts), 3))
    covariance = np.empty((size, len(drifts), 6))
    call(
        "candidates",
        *(*sizes, int(hypotheses.kept.frugal)),
        *float64_arrays(data.values, data.weight, data.variance, data.dof, floor_of(data)),
        *float64_arrays(chosen.variance, chosen.fitted, hypotheses.table_and_none),
        *float64_arrays(hypotheses.table.min(axis=1), hypotheses.table.max(axis=1)),
        *float64_arrays(hypotheses.single_group == HypothesisGroup.FALLING),
        *int32_arrays(hypotheses.first, hypotheses.second),
        *float64_arrays(*precisions(data.points, drifts), of_first, deviations.deviation**2),
        *int32_arrays(deviations.drift_of, row_in, chosen_in),
        *(row, found, log_evidence, coefficients, covariance),
    )
    numbers, elements = (np.moveaxis(column, 0, 2) for column in (coefficients, covariance))
    return row, found, log_evidence.T, numbers, elements


def _listed(chosen: ScreenedHypotheses, hypotheses: Hypotheses) -> tuple[IntArray, IntArray]:
    """Return rows and hypotheses of all chosen candidates and of the constants."""
    rows, size = len(chosen.variance), len(hypotheses.shapes)
    families = enumerate(chosen.families)
    singles = [1 + family * size + chosen.shape[which] for family, which in families]
    every = [np.arange(rows), *(chosen.row[which] for which in chosen.families), chosen.pair_row]
    codes = [np.zeros(rows, dtype=np.intp), *singles, 1 + 3 * size + chosen.pair]
    return np.concatenate(every), np.concatenate(codes)
