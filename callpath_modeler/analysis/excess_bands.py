"""Bands of excess work at a target whose costs are predicted."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.bands import Band, propagate_errors
from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.sums import COLUMNS
from callpath_modeler.modeling.sums import ends_of_sums


def expected_band(expected: FloatArray, addends: FloatArray | None, one: float) -> Band:
    """Return expected costs per process with their bands, [n].

    Parameters
    ----------
    expected : expected costs per process, [n]
    addends : [n, columns] additive numbers of the costs as they were read; None = there is no band
    one : factor that converts a cost to one process
    """
    if addends is None:
        return Band(expected, expected, expected)
    low, high = ends_of_sums(expected / one, addends)
    return Band(expected, low * one, high * one)


def excess_band(
    value: FloatArray,
    addends: FloatArray,
    total: tuple[float, FloatArray],
    expected: Band,
    one: float,
) -> Band:
    """Return excess work with its band, [n]; NaN = no prediction.

    The errors of a cost, of the rest of the program and of the expected cost are propagated.

    Parameters
    ----------
    value : [n] predicted costs
    addends : [n, columns] their additive numbers; the first are those of `sums.addable`
    total : predicted cost of the program, and its additive numbers [columns]
    expected : expected costs per process, [n]
    one : factor that converts a cost to one process
    """
    cost, parts = np.nan_to_num(value), addends[:, :COLUMNS]
    rest = np.maximum(total[0] - cost, 0.0)
    beside = np.maximum(total[1][:COLUMNS] - parts, 0.0)
    mine = Band(cost, *ends_of_sums(cost, parts))
    others = Band(rest, *ends_of_sums(rest, beside))
    shares = propagate_errors(
        lambda of: (of[0] * one - of[2]) / ((of[0] + of[1]) * one), [mine, others, expected]
    )
    ends = np.array([shares.value, shares.low, shares.high])
    share, low, high = np.where(np.isnan(value), np.nan, ends)
    return Band(share, low, high)
