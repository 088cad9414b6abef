"""Columns of models: calls into ``choice.c`` and ``quality.c``.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.compiled.library import call, float64_arrays, int32_arrays, starts
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.misfit_baseline import MisfitBaseline
from callpath_modeler.modeling.mixture.posterior import Posterior
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, floor_of
from callpath_modeler.modeling.status import FitStatus

Columns = dict[str, npt.NDArray[Any]]

_STATUS = (FitStatus.CONSTANT, FitStatus.OK, FitStatus.OUTSIDE, FitStatus.NOISY)
"""Codes that ``name_outcomes`` writes, in its order."""


def write_models(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: ScaledRows,
    unit: FloatArray,
    hypotheses: Hypotheses,
    far: FloatArray,
    baseline: MisfitBaseline,
) -> None:
    """Write models, alternatives, quality and status, as `mixture.outcome.write_models` does."""
    values, weight = float64_arrays(data.values, data.weight)
    size, (rows,) = values.shape, int32_arrays(rows)
    scaled = _choose(columns, rows, found, data, unit, hypotheses, far)
    call(
        "measure_quality",
        *(*size, rows, values, weight, *float64_arrays(floor_of(data), hypotheses.table), scaled),
        *(columns[name] for name in ("terms", "rss", "cv_error", "r2", "adjusted_r2")),
    )
    first = data.points if data.points.ndim == 1 else data.points[:, 0]
    breaks = found.weight * hypotheses.outside[found.chosen]
    broken = np.bincount(found.row, breaks, minlength=len(rows))
    broken = np.maximum(broken, hypotheses.breaks[columns["terms"][rows]].any(axis=1))
    call(
        "name_outcomes",
        *(*size, rows),
        *float64_arrays(first, values, weight, unit, data.variance, found.variance, broken),
        *float64_arrays(baseline.exactly(data)),
        baseline.most,
        *(columns[name] for name in ("noise", "rss", "terms")),
        *(np.array(_STATUS, dtype=np.int8), columns["status"]),
    )


def _choose(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: ScaledRows,
    unit: FloatArray,
    hypotheses: Hypotheses,
    far: FloatArray,
) -> FloatArray:
    """Write models and alternatives; return the coefficients in the unit of the row, [n, 3]."""
    scaled = np.zeros((len(rows), 3))
    call(
        "choose",
        *(len(rows), len(found.row), len(hypotheses.shapes), len(far)),
        *(columns["alternative_weight"].shape[1], rows, starts(found.row, len(rows))),
        *int32_arrays(found.chosen),
        *float64_arrays(found.weight, found.coefficients, found.covariance),
        *int32_arrays(hypotheses.first, hypotheses.second),
        *float64_arrays(hypotheses.scale, far, unit, data.least),
        *(columns[name] for name in _WRITTEN),
        scaled,
    )
    return scaled


_WRITTEN = (
    *("terms", "coefficients", "weight", "alternative_terms", "alternative_coefficients"),
    *("alternative_weight", "root"),
)
"""Columns that ``choose`` writes, in its order."""
