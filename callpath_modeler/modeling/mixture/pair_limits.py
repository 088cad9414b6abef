"""Limits of pairs: the evidence that any pair may have, and the cost of a constant in a pair.

See docs/explanation/hypotheses.md, 'Screening' and 'Small parts with shared work'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import LOG_2, LOG_2PI, PARALLEL
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.regressions import InterceptPenalty
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows


def promise_of_pairs(hypotheses: Hypotheses, log_prior: FloatArray) -> float:
    """Return an upper bound of the log evidence of pairs with a constant, without the likelihood.

    It includes the prior, for a level and weights of all points of 1. In several parameters there
    are too many points for a useful bound, and it is infinite.
    """
    if hypotheses.fans is not None:
        return np.inf
    points, first, second = hypotheses.table.shape[1], hypotheses.first, hypotheses.second
    mean = hypotheses.table.mean(axis=1)
    square = (hypotheses.table**2).sum(axis=1) - points * mean**2
    both = square[first] * square[second]
    determinant = (
        both - (hypotheses.products.sum(axis=1) - points * mean[first] * mean[second]) ** 2
    )
    volume = -0.5 * np.log(points * np.maximum(determinant, PARALLEL * both))
    of_pairs = log_prior[1 + 3 * len(hypotheses.shapes) :]
    return float((of_pairs + volume).max(initial=-np.inf) + 1.5 * LOG_2PI + LOG_2)


def intercept_penalty(
    data: ScaledRows, rows: IntArray, pairs: IntArray, hypotheses: Hypotheses
) -> InterceptPenalty:
    """Return the cost of the constants of `pairs`, [..., n or 1], in the rows `rows` [n]."""
    frugal = hypotheses.kept.frugal
    asked = pairs >= (0 if frugal else hypotheses.growing)
    return InterceptPenalty(data.variance[rows], data.used[rows], asked, shared=not frugal)
