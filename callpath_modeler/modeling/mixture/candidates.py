"""Candidates of each row: coefficients, covariances and evidence of the screened hypotheses.

See docs/explanation/hypotheses.md, 'Evidence'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.residuals import ScreenedHypotheses
from callpath_modeler.modeling.mixture.scaled_rows import Deviations, ScaledRows


class Candidates(Struct, frozen=True):
    """M hypotheses of n rows under D deviations with L drifts, in any order.

    Attributes
    ----------
    row : [M] row of each candidate
    chosen : [M] number of its hypothesis
    log_evidence : [D, M] log evidence, up to a constant for each row
    coefficients : [L, 3, M] constant, first and second coefficient
    covariance : [L, 6, M] covariance of the coefficients for a variance of 1 per point: cc, cf, cs,
        ff, fs, ss
    """

    row: IntArray
    chosen: IntArray
    log_evidence: FloatArray
    coefficients: FloatArray
    covariance: FloatArray

    def by_row(self) -> Candidates:
        """Return the candidates ordered by row; the order within a row stays."""
        if (np.diff(self.row) >= 0).all():
            return self
        return self.take(np.argsort(self.row, kind="stable"))

    def take(self, which: IntArray) -> Candidates:
        """Return the candidates with the numbers `which`."""
        columns = (getattr(self, field.name) for field in structs.fields(self))
        return Candidates(*(np.take(column, which, axis=-1) for column in columns))

    @classmethod
    def joined(cls, parts: Sequence[Candidates]) -> Candidates:
        """Return the candidates of all parts, ordered by row; all parts number the rows alike."""
        columns = ([getattr(part, field.name) for part in parts] for field in structs.fields(cls))
        return cls(*(np.concatenate(column, axis=-1) for column in columns)).by_row()


def candidates(
    data: ScaledRows, chosen: ScreenedHypotheses, hypotheses: Hypotheses, deviations: Deviations
) -> Candidates:
    """Return the chosen hypotheses of n rows with their evidence; the best one of a row has 0.

    Parameters
    ----------
    data : n rows
    chosen : hypotheses of each row that passed the screening
    hypotheses : all hypotheses
    deviations : deviations of measurements from a law
    """
    result: Candidates = kernels().candidates(data, chosen, hypotheses, deviations)
    return result


def absolute_candidates(
    data: ScaledRows, chosen: ScreenedHypotheses, hypotheses: Hypotheses, deviations: Deviations
) -> Candidates:
    """Return candidates with absolute evidence, which can be compared with other evidence."""
    result: Candidates = kernels().candidates(data, chosen, hypotheses, deviations, absolute=True)
    return result
