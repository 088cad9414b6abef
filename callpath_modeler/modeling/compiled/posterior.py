"""Posterior and fitted values: calls into ``posterior.c``.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.compiled.library import call, float64_arrays, int32_arrays, starts
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import LogPriors, Posterior
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows


def compiled_posterior(
    found: Candidates,
    data: ScaledRows,
    deviations: Deviations,
    beliefs: LogPriors,
    growth: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the columns of `Posterior`; `growth` [L] belongs to deviations beyond the points."""
    found = found.by_row()
    rows, size, drifts = len(data.values), len(found.row), len(deviations.drifts)
    row, chosen = np.empty((2, size), dtype=np.int64)
    weight, numbers, elements = np.empty(size), np.empty((3, size)), np.empty((6, size))
    variance, drift = np.empty((2, rows))
    count = np.zeros(1, dtype=np.int64)
    call(
        "posterior",
        *(rows, size, len(deviations.deviation), drifts),
        *int32_arrays(starts(found.row, rows), found.chosen),
        *float64_arrays(found.log_evidence.T),
        *float64_arrays(
            *(np.moveaxis(each, 2, 0) for each in (found.coefficients, found.covariance))
        ),
        *float64_arrays(
            data.variance, beliefs.hypotheses, beliefs.deviations, deviations.deviation**2
        ),
        *int32_arrays(np.searchsorted(deviations.drift_of, np.arange(drifts + 1))),
        *float64_arrays(growth),
        *(row, chosen, weight, numbers, elements, variance, drift, count),
    )
    kept = slice(int(count[0]))
    return (
        row[kept],
        chosen[kept],
        weight[kept],
        numbers[:, kept],
        elements[:, kept],
        variance,
        drift,
    )


def compiled_fitted_values(found: Posterior, hypotheses: Hypotheses) -> FloatArray:
    """Return the mean of the models of each row at the points, [n, K]."""
    rows, points, codes = (
        len(found.variance),
        hypotheses.table.shape[1],
        hypotheses.codes(found.chosen),
    )
    shapes = np.where(codes < 0, len(hypotheses.shapes), codes)
    fitted = np.empty((rows, points))
    call(
        "fitted_values",
        *(rows, len(found.row), points),
        *int32_arrays(found.row, shapes[:, 0], shapes[:, 1]),
        *float64_arrays(found.weight, found.coefficients, hypotheses.table_and_none),
        fitted,
    )
    return fitted
