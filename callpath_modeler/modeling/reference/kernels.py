"""The kernels in numpy, which need no compiled library.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.limits import MOST_TOGETHER_IN_NUMPY
from callpath_modeler.modeling.mixture import outcome, posterior
from callpath_modeler.modeling.mixture.candidates import relative_candidates
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import Posterior
from callpath_modeler.modeling.mixture.residuals import MisfitBaseline
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.reference import (
    bands,
    repetitions,
    screening,
    special_functions,
    sums,
)


class ReferenceKernels:
    """Kernels in plain numpy, which define the results.

    Attributes
    ----------
    most_together : hypotheses times rows that are evaluated together, as memory allows
    in_threads : whether threads model rows at the same time
    """

    most_together = MOST_TOGETHER_IN_NUMPY
    in_threads = False

    normal_share = staticmethod(special_functions.normal_share)
    log_normal_share = staticmethod(special_functions.log_normal_share)
    normal_quantile = staticmethod(special_functions.normal_quantile)
    student_share = staticmethod(special_functions.student_share)
    student_quantile = staticmethod(special_functions.student_quantile)
    polygammas = staticmethod(special_functions.polygammas)

    exceedance = staticmethod(bands.exceedance)
    quantiles = staticmethod(bands.quantiles)
    mixture = staticmethod(bands.mixture)
    bands = staticmethod(bands.bands)
    quantiles_of_bands = staticmethod(sums.quantiles_of_bands)
    addends = staticmethod(sums.addends)

    repetition_stats = staticmethod(repetitions.repetition_stats)
    row_spread = staticmethod(repetitions.row_spread)
    pooled_noise = staticmethod(repetitions.pooled_noise)
    row_status = staticmethod(repetitions.row_status)
    point_counts = staticmethod(repetitions.point_counts)
    own_units = staticmethod(repetitions.own_units)

    screen = staticmethod(screening.screen)
    candidates = staticmethod(relative_candidates)
    posterior = staticmethod(posterior.posterior_in_numpy)

    def fitted_values(self, found: Posterior, hypotheses: Hypotheses) -> FloatArray:
        """Return as `posterior.fitted_values`."""
        return posterior.values_at_points(found, hypotheses.codes(found.chosen), hypotheses.table)

    def write_models(
        self,
        columns: dict[str, npt.NDArray[Any]],
        rows: IntArray,
        found: Posterior,
        data: ScaledRows,
        unit: FloatArray,
        hypotheses: Hypotheses,
        far: FloatArray,
        baseline: MisfitBaseline,
    ) -> None:
        """Write as `outcome.write_models`."""
        codes = hypotheses.codes(found.chosen)
        shapes = outcome.ShapeColumns.of(hypotheses, far)
        outcome.write_found(columns, rows, found, codes, data, unit, shapes, baseline)


def available() -> ReferenceKernels:
    """Return the kernels; numpy is always available."""
    return ReferenceKernels()
