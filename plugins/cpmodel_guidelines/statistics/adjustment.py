"""Error rates of many checks.

A family is all checks of one answer. The family-wise error rate is the probability that any check
of the family is called violated by chance. The false discovery rate is the expected share of checks
called violated by chance.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from callpath_modeler.analysis.two_samples import false_discovery_rate
from callpath_modeler.arrays import FloatArray, IntArray


class Control(StrEnum):
    """Error rate that is controlled, and the method."""

    PERMUTATION = "permutation"  # family-wise, by permutations of mpiruns
    HOLM = "holm"  # family-wise, for any dependence of checks
    DISCOVERY = "bh"  # false discoveries, by Benjamini and Hochberg
    NONE = "none"  # each check on its own, as published


def adjusted(chance: FloatArray, control: Control, kinds: IntArray) -> FloatArray:
    """Return the error rate at which each check is called violated.

    Holm's method gives each kind of guideline the same part of the rate. Otherwise the many checks
    of splitting would hide all others.

    Parameters
    ----------
    chance : [C] p-values; NaN = no test
    control : any control except permutations
    kinds : [C] number of the kind of guideline

    Examples
    --------
    >>> chance, one = np.array([0.01, 0.04, 0.02]), np.zeros(3, int)
    >>> adjusted(chance, Control.HOLM, one).tolist()
    [0.03, 0.04, 0.04]
    """
    if control is Control.NONE:
        return chance
    if control is Control.DISCOVERY:
        return false_discovery_rate(chance)
    found = np.full(len(chance), np.nan)
    used = np.unique(kinds[~np.isnan(chance)])
    for kind in used:
        rows = kinds == kind
        found[rows] = np.minimum(len(used) * _holm(chance[rows]), 1.0)
    return found


def _holm(chance: FloatArray) -> FloatArray:
    tested = np.flatnonzero(~np.isnan(chance))
    order = tested[np.argsort(chance[tested], kind="stable")]
    rate = np.full(len(chance), np.nan)
    # Holm: A simple sequentially rejective multiple test procedure, 1979.
    times = np.arange(len(order), 0, -1)
    rate[order] = np.minimum(np.maximum.accumulate(chance[order] * times), 1.0)
    return rate
