"""`posterior` and `fitted_values` of ``mixture/posterior.py`` in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled.library import call, doubles, integers, starts
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.data import Data
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses

if TYPE_CHECKING:
    from callpath_modeler.modeling.mixture.posterior import Beliefs, Posterior

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


def compiled_posterior(
    found: Candidates, data: Data, deviations: Deviations, beliefs: Beliefs, growth: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the columns of `Posterior`; `growth` [L] is that of deviations beyond the points."""
    found = found.by_row()
    rows, size, drifts = len(data.values), len(found.row), len(deviations.drifts)
    row, chosen = np.empty((2, size), dtype=np.int64)
    weight, numbers, elements = np.empty(size), np.empty((3, size)), np.empty((6, size))
    variance, drift = np.empty((2, rows))
    count = np.zeros(1, dtype=np.int64)
    call(
        "posterior",
        *(rows, size, len(deviations.deviation), drifts),
        *integers(starts(found.row, rows), found.chosen),
        *doubles(found.log_evidence.T),
        *doubles(*(np.moveaxis(each, 2, 0) for each in (found.coefficients, found.covariance))),
        *doubles(data.variance, beliefs.hypotheses, beliefs.deviations, deviations.deviation**2),
        *integers(np.searchsorted(deviations.drift_of, np.arange(drifts + 1))),
        *doubles(growth),
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


def compiled_fitted_values(found: Posterior, known: Hypotheses) -> FloatArray:
    """Return the mean of the models of each row at the points, [n, K]."""
    rows, points, codes = len(found.variance), known.table.shape[1], known.codes(found.chosen)
    shapes = np.where(codes < 0, len(known.shapes), codes)
    fitted = np.empty((rows, points))
    call(
        "fitted_values",
        *(rows, len(found.row), points),
        *integers(found.row, shapes[:, 0], shapes[:, 1]),
        *doubles(found.weight, found.coefficients, known.table_and_none),
        fitted,
    )
    return fitted
