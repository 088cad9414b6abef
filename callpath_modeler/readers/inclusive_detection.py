"""Detection of inclusive values that are not labelled as inclusive."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.units import counted

_CALLERS = 3
_COMPARISONS = 6
"""Fewest pairs of caller and run for a decision.

Exclusive values of callers such as main are mostly small, so many large ones are not an accident.
"""
_ROUNDING = 1e-3
"""Relative tolerance, because tools print few digits and take a little time themselves."""
_AT_ONCE = 1 << 18
"""Number of values that are compared together."""
_SAME = 0.01
"""Relative difference below which two functions have the same time, recorded twice."""


def looks_inclusive(tree: CallTree, values: FloatArray) -> str:
    """Return the reason why exclusive times look inclusive; "" = they look exclusive.

    Parameters
    ----------
    tree : the call tree
    values : [call paths, runs]; NaN = not measured
    """
    called = np.flatnonzero(tree.parent != ROOT)
    calls, comparisons = np.zeros(len(tree), bool), 0
    width = max(1, _AT_ONCE // max(1, len(tree)))
    for first in range(0, values.shape[1], width):
        measured = values[:, first : first + width]
        own = np.nan_to_num(measured)
        runs = own.shape[1]
        bins = tree.parent[called, None] * runs + np.arange(runs)
        sums = np.bincount(bins.ravel(), own[called].ravel(), minlength=own.size)
        callees = sums.reshape(own.shape)
        compared = (callees > 0) & ~np.isnan(measured)
        if (own[compared] < callees[compared] * (1 - _ROUNDING)).any():
            return ""
        calls |= compared.any(axis=1)
        comparisons += int(compared.sum())
    callers = int(calls.sum())
    if callers < _CALLERS or comparisons < _COMPARISONS:
        return ""
    return f"each of {callers} callers takes at least the time of its callees"


def same_times(tree: CallTree, values: FloatArray) -> str:
    """Return the reason why times seem to contain each other without being sums of callees.

    Parameters
    ----------
    tree : the call tree
    values : [call paths, runs]; NaN = not measured

    Returns
    -------
    str
        The number of functions that have the largest time in every run. They are either nested or
        in a list without callers. "" = no such functions.
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
