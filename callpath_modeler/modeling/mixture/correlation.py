"""How much of what call paths deviate by is common to all: a run that was slower as a whole."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.data import Data, error_unit
from callpath_modeler.modeling.mixture.spread import EXACT_VARIANCE

FloatArray = npt.NDArray[np.float64]

_BY_CHANCE = 3.0
"""Standard deviations by which chance makes independent errors look alike, at most."""

_EXACT = 1e-6
"""A row that is met as closely has no errors to compare."""


def error_correlation(data: Data, fitted: FloatArray, *, noise_known: bool) -> float:
    """Estimate the correlation between the errors of rows, from 0 to 1.

    Errors are compared by their directions, each row's as a vector over the points with length 1:
    the squared length of the sum of n independent ones is n on average, that of n equal ones is
    n^2. A level and a power of each parameter are taken out first: where models are off by these
    in the same way, growth was not recognised, which is no matter of runs.

    Parameters
    ----------
    data : of n rows; those with missing values are left out, and those whose repetitions agree:
        what is counted alike in every run is off its law for other reasons than runs
    fitted : [n, K]
    noise_known : whether repetitions tell anything
    """
    whole = (data.weight > 0).all(axis=1) & ((data.variance > EXACT_VARIANCE) | (not noise_known))
    rows, fitted = data.take(whole), fitted[whole]
    error = np.clip((rows.values - fitted) / error_unit(rows, fitted), -1.0, 1.0)
    smooth = np.column_stack([np.ones(len(data.points)), np.log(data.points)])
    basis, _ = np.linalg.qr(smooth)
    error = error - error @ basis @ basis.T
    length = np.sqrt((error**2).sum(axis=1))
    error = error[length > _EXACT] / length[length > _EXACT, None]
    count, free = len(error), len(smooth) - smooth.shape[1]
    if count < 2 or free < 1:
        return 0.0
    likeness = float((error.sum(axis=0) ** 2).sum()) / count
    chance = 1 + _BY_CHANCE * float(np.sqrt(2 / free))
    return min(max(likeness - chance, 0.0) / (count - 1), 1.0)
