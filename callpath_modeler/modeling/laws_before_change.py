"""Earlier laws: models with a change point, at targets before it.

See docs/explanation/hypotheses.md, 'Laws beyond a change point'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.model_columns import ModelColumns


@dataclass(frozen=True, slots=True)
class LawsBeforeChange:
    """Values of the earlier laws of some rows.

    Attributes
    ----------
    rows : [r] rows with a change point
    where : [r, m] whether a target lies before the change point
    values : [r, m] values of the earlier laws there, in the unit of the metric; never negative
    """

    rows: IntArray
    where: BoolArray
    values: FloatArray

    @classmethod
    def of(cls, models: ModelColumns, p: FloatArray) -> Self | None:
        """Return the earlier laws at `p` [m]; None if no target lies before a change point."""
        if p.ndim > 1:
            return None
        rows = np.flatnonzero(models.since > p.min(initial=np.inf))
        if not rows.size:
            return None
        constant, slope = models.before_coefficients[rows].T[..., None]
        shape = models.shapes.table(p)[models.before[rows]]
        with np.errstate(invalid="ignore"):
            # A coefficient of zero times an infinite shape is zero.
            part = np.where(slope == 0, 0.0, slope * shape)
        return cls(rows, p < models.since[rows, None], np.maximum(constant + part, 0.0))

    def put(self, column: FloatArray, values: FloatArray) -> None:
        """Write `values`, which broadcast against [r, C, m], into a column [n, C, m] or [n, m]."""
        where = self.where if column.ndim < 3 else self.where[:, None]
        column[self.rows] = np.where(where, values, column[self.rows])
