"""Whether values that nobody called inclusive look as if they were."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.units import counted

_CALLERS = 3
_COMPARISONS = 6
"""So many callers, and callers times runs, are no accident: exclusive values of callers, such as
that of main, are mostly small."""
_ROUNDING = 1e-3
"""Tools print few digits, and take a little time themselves."""
_SAME = 0.01
"""Functions whose times differ by less take the same time, which is recorded several times."""


def looks_inclusive(tree: CallTree, values: NDArray[np.float64]) -> str:
    """Say why exclusive times look inclusive; nothing where they do not.

    Parameters
    ----------
    values : [call paths, runs]; NaN = not measured
    """
    called = np.flatnonzero(tree.parent != ROOT)
    calls, comparisons = np.zeros(len(tree), bool), 0
    for measured in values.T:
        own = np.nan_to_num(measured)
        callees = np.bincount(tree.parent[called], own[called], minlength=len(tree))
        compared = (callees > 0) & ~np.isnan(measured)
        if (own[compared] < callees[compared] * (1 - _ROUNDING)).any():
            return ""
        calls |= compared
        comparisons += int(compared.sum())
    callers = int(calls.sum())
    if callers < _CALLERS or comparisons < _COMPARISONS:
        return ""
    return f"each of {callers} callers takes at least what its callees take together"


def same_times(tree: CallTree, values: NDArray[np.float64]) -> str:
    """Say why times look as if they contained each other, although they are no sums of callees.

    Parameters
    ----------
    values : [call paths, runs]; NaN = not measured

    Returns
    -------
    str
        How many functions take the same time, the largest in every run, of a list without callers
        or one below the other; nothing where there are none.
    """
    values = np.nan_to_num(values)
    largest = values.max(axis=0, initial=0.0)
    alike = (values >= (1 - _SAME) * largest).all(axis=1) & (largest > 0).all()
    rows = np.flatnonzero(alike)
    if len(rows) < _CALLERS or values.shape[1] < _CALLERS:
        return ""
    nested = bool((tree.end[rows[:-1]] > rows[1:]).all())
    if (tree.parent != ROOT).any() and not nested:
        return ""
    return f"{counted(len(rows), 'function')} take the same, largest time in every run"
