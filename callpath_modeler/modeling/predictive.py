"""Predictive distributions and prediction bands of models.

Each hypothesis of a row predicts a two-piece log-normal distribution. See
docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.bands import HARDLY, LARGEST
from callpath_modeler.modeling.distributions import normal_quantile
from callpath_modeler.modeling.evaluation import peaks
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.laws_before_change import LawsBeforeChange
from callpath_modeler.modeling.model_columns import ModelColumns
from callpath_modeler.modeling.uncertainty import Mixture


@dataclass(frozen=True, slots=True)
class ShapeTables:
    """Tables of the shapes, which all rows of an experiment share.

    Attributes
    ----------
    peak : [S + 1] largest magnitudes at the points
    at, inside : [S + 1, m] and [S + 1, K] shapes at the targets and at the points, relative to
        these
    """

    peak: FloatArray
    at: FloatArray
    inside: FloatArray

    @classmethod
    def of(cls, models: ModelColumns, p: FloatArray) -> ShapeTables:
        """Return the shapes of models at targets `p` [m]."""
        every = models.shapes.table(np.concatenate([models.points, p]))
        inside, at = np.split(every, [len(models.points)], axis=1)
        peak = peaks(inside)
        return cls(peak, np.minimum(at / peak[:, None], LARGEST), inside / peak[:, None])


def predictive_mixture(models: ModelColumns, p: FloatArray) -> Mixture:
    """Return the distributions of all rows at finite `p` [m].

    Each hypothesis predicts a value. Its spread combines the errors of the coefficients within
    their signs, and the deviation of measurements from the law, which grows with the distance.
    """
    found: Mixture = kernels().mixture(models, p, ShapeTables.of(models, p))
    earlier = LawsBeforeChange.of(models, p)
    if earlier is not None:
        earlier.put(found.centre, earlier.values[:, None])
        for spread in (found.below, found.above):
            earlier.put(spread, models.spread[earlier.rows, None, None])
    return found


def prediction_interval(models: ModelColumns, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends of the bands of all rows at finite `p` [m], each [n, m].

    Alternatives that together would hardly move an end are left out.
    """
    least = HARDLY * (1 - models.confidence)
    low, high = kernels().bands(models, p, ShapeTables.of(models, p), least)
    earlier = LawsBeforeChange.of(models, p)
    if earlier is not None:
        reach = normal_quantile((1 + models.confidence) / 2) * models.spread[earlier.rows, None]
        earlier.put(low, earlier.values * np.exp(-reach))
        earlier.put(high, earlier.values * np.exp(reach))
    return low, high
