"""`mixture.outcome.write_models` in C."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled.library import call, doubles, integers, starts
from callpath_modeler.modeling.mixture.data import Data, floor_of
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import Posterior
from callpath_modeler.modeling.mixture.usual import Usual
from callpath_modeler.modeling.status import FitStatus

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
Columns = dict[str, npt.NDArray[Any]]

_STATUS = (FitStatus.CONSTANT, FitStatus.OK, FitStatus.OUTSIDE, FitStatus.NOISY)


def write_models(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: Data,
    unit: FloatArray,
    known: Hypotheses,
    far: FloatArray,
    usual: Usual,
) -> None:
    """Write models, alternatives, their quality and the outcome; arguments as there."""
    values, weight = doubles(data.values, data.weight)
    size, (rows,) = values.shape, integers(rows)
    scaled = _choose(columns, rows, found, data, unit, known, far)
    call(
        "measure_quality",
        *(*size, rows, values, weight, *doubles(floor_of(data), known.table), scaled),
        *(columns[name] for name in ("terms", "rss", "cv_error", "r2", "adjusted_r2")),
    )
    first = data.points if data.points.ndim == 1 else data.points[:, 0]
    breaks = found.weight * known.outside[found.chosen]
    broken = np.bincount(found.row, breaks, minlength=len(rows))
    broken = np.maximum(broken, known.breaks[columns["terms"][rows]].any(axis=1))
    call(
        "name_outcomes",
        *(*size, rows),
        *doubles(first, values, weight, unit, data.variance, found.variance, broken),
        *doubles(usual.exactly(data)),
        usual.most,
        *(columns[name] for name in ("noise", "rss", "terms")),
        *(np.array(_STATUS, dtype=np.int8), columns["status"]),
    )


def _choose(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: Data,
    unit: FloatArray,
    known: Hypotheses,
    far: FloatArray,
) -> FloatArray:
    """Write models and alternatives; return the coefficients in the unit of the row, [n, 3]."""
    scaled = np.zeros((len(rows), 3))
    call(
        "choose",
        *(len(rows), len(found.row), len(known.shapes), len(far)),
        *(columns["alternative_weight"].shape[1], rows, starts(found.row, len(rows))),
        *integers(found.chosen),
        *doubles(found.weight, found.coefficients, found.covariance),
        *integers(known.first, known.second),
        *doubles(known.scale, far, unit, data.least),
        *(columns[name] for name in _WRITTEN),
        scaled,
    )
    return scaled


_WRITTEN = (
    *("terms", "coefficients", "weight", "alternative_terms", "alternative_coefficients"),
    *("alternative_weight", "root"),
)
