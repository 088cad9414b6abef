"""Which fans of pairs are worth a look: bounds of their evidence.

Beside any function of a parameter, with a level of its own at each of its values, a shape leaves no
more than beside any term of it: one regression bounds a whole fan of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.bounds import (
    OneTermRegressions,
    SingleArray,
    as_float32,
    least_residual,
    profile_likelihood,
)
from callpath_modeler.modeling.mixture.hypotheses import PairGroups
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_VARIES = 1e-10
"""Of its square, what a shape varies by at each value of a parameter, if it does."""

_OUT_OF_QUESTION = 25.0
"""By how much less the bound of a fan is than the best one, in nats: no pair of it matters."""

_EVEN = 1e-3
"""In nats, what fans differ by that are as promising but for rounding, at most."""


def group_bounds(
    regressions: Sequence[OneTermRegressions],
    rows: IntArray,
    data: ScaledRows,
    fans: PairGroups,
    table: FloatArray,
    log_prior: FloatArray,
) -> SingleArray:
    """Bound the evidence of the pairs of each fan of some rows, [S D, n].

    Under any drift, and but for the part that depends on coefficients; `log_prior` [P] is of all
    pairs, `table` [S, K] of the shapes.
    """
    few = data.take(rows)
    left = least_residual([residuals_beside(seen, rows, few, fans, table) for seen in regressions])
    found = profile_likelihood(left, few, np.maximum(few.used - 3, 0.0))
    found += as_float32(fans.likely(log_prior))[:, None]
    return found


def residuals_beside(
    regressions: OneTermRegressions,
    rows: IntArray,
    data: ScaledRows,
    fans: PairGroups,
    table: FloatArray,
) -> FloatArray:
    """Return what each shape leaves beside any function of each parameter, [S D, n].

    `data` is of these rows. The coefficient of a shape is positive.
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
        varies = square > _VARIES * raw
        slope = np.where(varies, np.maximum(product, 0.0) / np.where(varies, square, 1.0), 0.0)
        found[:, axis] = total - slope * product
    return np.maximum(found, 0.0).reshape(len(table) * len(fans.ends), len(rows))


def expand(bounds: SingleArray, best: float, fans: PairGroups) -> IntArray:
    """Return the pairs of the most promising fans of a row; `bounds` [S D] are those of it.

    None that is out of question against the `best` of other hypotheses. Where parameters varied one
    at a time thousands are as promising: of such the first are opened.
    """
    order = np.flatnonzero(bounds >= best - _OUT_OF_QUESTION)
    if len(order) > fans.opened:
        promise = bounds[order]
        above = promise - np.partition(promise, -fans.opened)[-fans.opened]
        even = np.flatnonzero(np.abs(above) <= _EVEN)
        sure = np.flatnonzero(above > _EVEN)
        order = order[np.sort(np.append(sure, even[: fans.opened - len(sure)]))]
    shape, axis = np.divmod(order, len(fans.ends))
    size = (fans.ends - fans.begins)[axis]
    within = np.arange(size.sum()) - np.repeat(size.cumsum() - size, size)
    first = fans.start + shape * len(fans.terms) + fans.begins[axis]
    return np.asarray(np.repeat(first, size) + within)
