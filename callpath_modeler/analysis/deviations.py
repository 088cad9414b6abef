"""Deviations of measurements from models, as the noise of runs that nobody repeated."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted

_ROUNDING = 1e-9
"""Part of the cost of a program below which a rest is a rounding error."""


def deviation_of_models(fitted: Fitted, *, inclusive: bool) -> tuple[FloatArray, FloatArray]:
    """Return the deviations from the models, as the noise of unrepeated measurements.

    Parameters
    ----------
    inclusive : True for values that include callees

    Returns
    -------
    variance, dof : [call paths + 1], relative variance of one measurement and its degrees of
        freedom (Welch-Satterthwaite); the last entry belongs to the whole program
    """
    columns = deviation_addends(fitted)
    rows = fitted.experiment.tree.inclusive(columns) if inclusive else columns
    return deviation_of_sums(np.vstack([rows, columns.sum(axis=0)]))


def deviation_addends(fitted: Fitted, point: int = -1) -> FloatArray:
    """Return additive numbers for `deviation_of_sums` at a point, [call paths, 3]."""
    models, value = fitted.models, np.nan_to_num(fitted.measured[:, point])
    modelled = fitted.modelled
    if not modelled.any():
        return np.full((len(value), 3), np.nan)
    # A call path without a model deviates like most others.
    spread, dof = (
        np.where(modelled, x, np.median(x[modelled])) for x in (models.spread, models.dof)
    )
    squares = (spread * value) ** 2
    share = squares**2 / np.maximum(np.nan_to_num(dof), 1.0)
    return np.column_stack([value, squares, share])


def deviation_of_sums(added: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return relative variances and degrees of freedom of sums, from sums of addends [n, 3]."""
    whole, squares, share = added.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return squares / whole**2, squares**2 / share


def deviation_of_shares(part: FloatArray, whole: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return relative variances and degrees of freedom of shares, from sums of addends.

    The part and the rest of the program deviate independently.

    Parameters
    ----------
    part : [n, 3] sums of addends over the parts
    whole : [3] sum over the program
    """
    rest = np.maximum(whole - part, 0.0)
    (of_part, dof), (of_rest, dof_rest) = deviation_of_sums(part), deviation_of_sums(rest)
    is_all = rest[:, 0] <= _ROUNDING * whole[0]
    of_rest, dof_rest = np.where(is_all, 0.0, of_rest), np.where(is_all, 1.0, dof_rest)
    both = of_part + of_rest
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = both**2 / (of_part**2 / dof + of_rest**2 / dof_rest)
        share = part[:, 0] / whole[0]
    return (1 - share) ** 2 * both, freedom
