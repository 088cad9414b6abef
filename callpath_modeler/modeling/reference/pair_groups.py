"""Upper bounds of the evidence of fans, which are groups of pairs.

A fan is a shape with all terms of one parameter. With a free level at each value of that
parameter, the shape leaves no larger residual than with any of the terms. So one regression bounds
a whole fan. See docs/explanation/several-parameters.md, 'Pairs'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import VARIES
from callpath_modeler.modeling.constants.hypotheses import EVEN, OUT_OF_QUESTION
from callpath_modeler.modeling.mixture.hypotheses import PairGroups
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.reference.bounds import (
    OneTermRegressions,
    least_residual,
    profile_likelihood,
)


def group_bounds(
    regressions: Sequence[OneTermRegressions],
    rows: IntArray,
    data: ScaledRows,
    fans: PairGroups,
    table: FloatArray,
    log_prior: FloatArray,
) -> FloatArray:
    """Return upper bounds of the log evidence of the pairs in each fan of some rows, [S D, n].

    They hold under any drift and lack the part that depends on coefficients. `log_prior` [P]
    belongs to all pairs, `table` [S, K] to the shapes.
    """
    few = data.take(rows)
    left = least_residual([residuals_beside(seen, rows, few, fans, table) for seen in regressions])
    likelihood = profile_likelihood(left, few, np.maximum(few.used - 3, 0.0))
    return np.asarray(likelihood + fans.likely(log_prior)[:, None])


def residuals_beside(
    regressions: OneTermRegressions,
    rows: IntArray,
    data: ScaledRows,
    fans: PairGroups,
    table: FloatArray,
) -> FloatArray:
    """Return the residual of each shape with any function of each parameter, [S D, n].

    `data` holds the rows `rows`. The coefficient of a shape is positive.
    """
    sums, weights = regressions.sums.take(rows), regressions.weights[:, rows]
    products = weights * (data.values.T - sums.mean)
    raw = sums.square + sums.weight * sums.at**2
    found = np.empty((len(table), len(fans.ends), len(rows)))
    for axis, levels in enumerate(fans.levels):
        square, product, total = raw.copy(), sums.product.copy(), sums.total.copy()
        for level in range(levels.max() + 1):
            here = levels == level
            weight = weights[here].sum(axis=0)
            per_weight = np.where(weight > 0, 1 / np.where(weight > 0, weight, 1.0), 0.0)
            at, value = table[:, here] @ weights[here], products[here].sum(axis=0)
            square -= at * at * per_weight
            product -= at * (value * per_weight)
            total -= value * value * per_weight
        varies = square > VARIES * raw
        slope = np.where(varies, np.maximum(product, 0.0) / np.where(varies, square, 1.0), 0.0)
        found[:, axis] = total - slope * product
    return np.maximum(found, 0.0).reshape(len(table) * len(fans.ends), len(rows))


def expand(bounds: FloatArray, best: float, fans: PairGroups) -> IntArray:
    """Return the pairs in the most promising fans of a row, which has the `bounds` [S D].

    Fans far below the `best` bound of other hypotheses are left out. If parameters varied one at a
    time, thousands of fans are equally promising; then the first of these are taken.
    """
    order = np.flatnonzero(bounds >= best - OUT_OF_QUESTION)
    if len(order) > fans.opened:
        promise = bounds[order]
        above = promise - np.partition(promise, -fans.opened)[-fans.opened]
        even = np.flatnonzero(np.abs(above) <= EVEN)
        sure = np.flatnonzero(above > EVEN)
        order = order[np.sort(np.append(sure, even[: fans.opened - len(sure)]))]
    shape, axis = np.divmod(order, len(fans.ends))
    size = (fans.ends - fans.begins)[axis]
    within = np.arange(size.sum()) - np.repeat(size.cumsum() - size, size)
    first = fans.start + shape * len(fans.terms) + fans.begins[axis]
    return np.asarray(np.repeat(first, size) + within)
