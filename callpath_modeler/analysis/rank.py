"""Call paths ranked by what they will cost at a target scale, or at infinity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.excess import Excess, excess_work, per_process, scaling_over
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import CallTree

MARKS = 4
"""Marks of trust that a prediction can have."""


class By(StrEnum):
    """What call paths are ranked by."""

    VALUE = "value"  # predicted value at the target
    GROWTH = "growth"  # asymptotic order, then value
    LOSS = "loss"  # predicted minus ideal
    SHARE = "share"  # change of the share of the total


@dataclass(frozen=True, eq=False)
class Ranking:
    """The answer: which call paths will hurt at the target.

    All columns are [call paths] of the experiment; `order` says which of them are ranked, and how.

    Attributes
    ----------
    fitted : the models behind it
    target : value of the parameter; ``inf`` = by growth alone
    base : the smallest measured scale, against which excess work is counted
    by : what the order is by
    order : rows of ranked call paths, worst first
    at_largest : measured value at the largest scale; NaN = did not occur there
    value, low, high : predicted value and its band; NaN = no model
    share_at_largest, share : fractions of the total
    excess : excess work between the base and the target
    trust : marks of trust, 0 to `MARKS`; -1 = no model
    total_at_largest, total : sums over all call paths, the total with its band
    unmodelled : rows that occur at the largest scale but have no model
    unmodelled_share : their share of the total at the largest scale
    """

    fitted: Fitted
    target: float
    base: float
    by: By
    order: NDArray[np.intp]
    at_largest: NDArray[np.float64]
    value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    share_at_largest: NDArray[np.float64]
    share: NDArray[np.float64]
    excess: Excess
    trust: NDArray[np.int8]
    total_at_largest: float
    total: tuple[float, float, float]
    unmodelled: NDArray[np.intp]
    unmodelled_share: float

    def __repr__(self) -> str:
        return (
            f"<Ranking {self.fitted.experiment.name} at {self.fitted.parameter} = "
            f"{self.target:g}: {len(self.order)} call paths by {self.by}>"
        )


def rank(fitted: Fitted, target: float, by: By = By.VALUE) -> Ranking:
    """Rank call paths at `target`, which may be infinite.

    Parameters
    ----------
    fitted : models of the exclusive or inclusive values of one metric
    target : value of the parameter
    by : what to order by; ties go to the costlier, then to the earlier call path

    Raises
    ------
    UsageError
        If the order needs a total and the metric does not add up over call paths.
    """
    if by in {By.LOSS, By.SHARE} and not fitted.metric.additive:
        raise UsageError(
            f"no ranking by {by}: {fitted.metric.name} does not add up over call paths",
            hint="--by value or --by growth",
        )
    at_largest = fitted.measured[:, -1]
    value, low, high = _predicted(fitted, target)
    share = _share_at_infinity(fitted, value) if np.isinf(target) else _share(fitted, value)
    excess = _excess_at(fitted, target, value, share)
    order = _order(fitted, target, by, {By.VALUE: value, By.LOSS: excess.lost, By.SHARE: share})
    total_at_largest = _total(fitted, at_largest)
    occurs = ~np.isnan(fitted.measured).all(axis=1)
    unmodelled = np.flatnonzero(~fitted.modelled & occurs)
    return Ranking(
        fitted=fitted,
        target=target,
        base=float(fitted.points[0]),
        by=by,
        order=order,
        at_largest=at_largest,
        value=value,
        low=low,
        high=high,
        share_at_largest=_share(fitted, at_largest),
        share=share,
        excess=excess,
        trust=_trust(fitted, target),
        total_at_largest=total_at_largest,
        total=_total_with_band(fitted, value, low, high),
        unmodelled=unmodelled,
        unmodelled_share=_fraction(float(np.nansum(at_largest[unmodelled])), total_at_largest),
    )


def _predicted(fitted: Fitted, target: float) -> tuple[NDArray[np.float64], ...]:
    """Return value, low and high at the target, each [call paths]; NaN without a model."""
    models, where = fitted.models, np.array([target])
    if np.isinf(target):
        columns = (models.values(where),) * 3
    else:
        prediction = models.predict(where)
        columns = (prediction.value, prediction.low, prediction.high)
    return tuple(np.where(fitted.modelled, column[:, 0], np.nan) for column in columns)


def _order(
    fitted: Fitted, target: float, by: By, columns: dict[By, NDArray[np.float64]]
) -> NDArray[np.intp]:
    """Return the rows that have a model, worst first; ties go to the costlier, then the earlier."""
    growth = fitted.models.growth_rank().astype(float)
    ties = [columns[By.VALUE]]
    if np.isinf(target):
        ties = [fitted.models.leading_coefficient(), growth]
    if by is By.GROWTH or (by is By.VALUE and np.isinf(target)):
        key = growth
    elif by is By.SHARE:
        key = columns[by] - np.nan_to_num(_share(fitted, fitted.measured[:, -1]))
    else:
        key = columns[by]
    first = np.arange(len(key))
    order = np.lexsort((first, *(-np.nan_to_num(tie, nan=-1.0) for tie in ties), -key))
    ranked: NDArray[np.intp] = order[fitted.modelled[order] & ~np.isnan(key[order])]
    return ranked


def _total(fitted: Fitted, values: NDArray[np.float64]) -> float:
    """Return the whole program's value: of the roots, or the sum of exclusive values.

    It is NaN for a metric that does not add up.
    """
    if not fitted.metric.additive:
        return float("nan")
    tree = fitted.experiment.tree
    return float(np.nansum(values[tree.roots] if fitted.inclusive else values))


def _total_with_band(
    fitted: Fitted,
    value: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> tuple[float, float, float]:
    # Errors of different call paths are taken as independent: half-widths add as squares.
    total = _total(fitted, value)
    if not np.isfinite(total):
        return total, total, total
    rows = fitted.experiment.tree.roots if fitted.inclusive else np.arange(len(value))
    below = float(np.sqrt(np.nansum((value[rows] - low[rows]) ** 2)))
    above = float(np.sqrt(np.nansum((high[rows] - value[rows]) ** 2)))
    return total, max(0.0, total - below), total + above


def _share(fitted: Fitted, values: NDArray[np.float64]) -> NDArray[np.float64]:
    total = _total(fitted, values)
    return values / total if 0 < total < np.inf else np.full_like(values, np.nan)


def _share_at_infinity(fitted: Fitted, limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return shares in the limit: the fastest growth takes all, by leading coefficients."""
    if np.isfinite(_total(fitted, limit)) or not fitted.metric.additive:
        return _share(fitted, limit)
    rows = fitted.experiment.tree.roots if fitted.inclusive else np.arange(len(limit))
    growth = np.where(fitted.modelled, fitted.models.growth_rank(), -1)
    fastest = growth[rows].max()
    lead = np.where(growth == fastest, fitted.models.leading_coefficient(), 0.0)
    share = lead / lead[rows].sum()
    # Inclusive models are made one by one: a callee's may outgrow the program's.
    return np.where(fitted.modelled & (growth <= fastest), share, np.nan)


def _excess_at(
    fitted: Fitted, target: float, value: NDArray[np.float64], share: NDArray[np.float64]
) -> Excess:
    """Return excess work between the smallest scale and the target.

    The cost at the base is measured, that at the target predicted; a call path without a model is
    left out at both. Inclusive models are brought back to exclusive costs.
    """
    experiment, tree = fitted.experiment, fitted.experiment.tree
    base = float(fitted.points[0])
    scaling = scaling_over(experiment, fitted.parameter)
    if not fitted.metric.additive:
        nothing = np.full(len(tree), np.nan)
        return Excess(base, target, nothing, nothing, nothing)
    if np.isinf(target) and not np.isfinite(_total(fitted, value)):
        # Whatever grows without end is lost; a cost that stays finite is nothing beside it.
        own = _exclusive(tree, share) if fitted.inclusive else np.nan_to_num(share)
        lost = np.where(np.isinf(value), np.inf, 0.0)
        return Excess(base, target, own, tree.inclusive(own), lost)
    modelled = fitted.modelled
    cost = [np.where(modelled, column, np.nan) for column in (fitted.measured[:, 0], value)]
    if fitted.inclusive:
        cost = [_exclusive(tree, column) for column in cost]
    if np.isinf(target):
        return excess_work(tree, scaling, (base, cost[0]), (target, cost[1]))
    before = per_process(experiment, fitted.parameter, cost[0], base)
    after = per_process(experiment, fitted.parameter, cost[1], target)
    return excess_work(tree, scaling, (base, before), (target, after))


def _exclusive(tree: CallTree, inclusive: NDArray[np.float64]) -> NDArray[np.float64]:
    own = np.nan_to_num(inclusive)
    callees = np.zeros_like(own)
    inner = tree.parent >= 0
    np.add.at(callees, tree.parent[inner], own[inner])
    return own - callees


def _trust(fitted: Fitted, target: float) -> NDArray[np.int8]:
    """Give marks of trust: one is lost for each thing that speaks against the prediction.

    They are: a cross-validated error of 5 % or more; a target more than twice the largest scale;
    another hypothesis that the data do not exclude; a fit that is outside the model class or noisy.
    """
    models = fitted.models
    marks = np.full(len(models.status), MARKS, np.int8)
    marks -= ~(models.cv_error < 0.05)
    marks -= target > 2 * fitted.points[-1]
    marks -= models.alternative_count() > 0
    marks -= models.doubtful()
    return np.where(fitted.modelled, marks, -1).astype(np.int8)


def _fraction(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
