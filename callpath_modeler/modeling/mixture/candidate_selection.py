"""Candidates: the hypotheses of each row that pass the screening; rows of whole numbers twice.

Iterations, blocks of a process and levels of a tree are rounded, up or to the nearest number.
Messages and bytes follow laws to the last digit. But some law of few terms fits small whole
numbers exactly by chance. So their rows are evaluated twice. As exact values, a fit that is closer
than the distance between whole numbers is no further evidence. As rounded values, they are known
to one half. See docs/explanation/noise-and-bands.md, 'Whole numbers'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from msgspec import structs

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.evidence import TINY
from callpath_modeler.modeling.constants.noise import EXACT_WHOLE, MATTERS, NEVER, ROUNDED
from callpath_modeler.modeling.mixture.candidates import Candidates, absolute_candidates, candidates
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.posterior import LogPriors, fitted_values, posterior
from callpath_modeler.modeling.mixture.residuals import ScreenedHypotheses, screen, smoothed
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    Drift,
    ScaledRows,
    error_unit,
    floor_of,
    relative_weights,
)

_STEADY = Drift(0.0)
"""No drift."""
EXACTLY = Deviations((_STEADY, _STEADY), np.zeros(1), np.zeros(1, dtype=np.intp), np.zeros(1))
"""Deviations of rounded values: none besides rounding."""

Looked = tuple[ScaledRows, Candidates, FloatArray]
"""Rows, their candidates, and the values that errors are relative to, [n, K]."""


def as_rounded(data: ScaledRows) -> ScaledRows:
    """Return the rows as whole numbers that are known to one half."""
    variance = _rounding(data)
    level = _mean_log(variance, data)
    weight = data.weight * np.exp(level)[:, None] / variance
    return replace(data, weight=weight, variance=np.exp(level))


def with_rounded(
    exact: Looked, rounded: Looked, hypotheses: Hypotheses, ways: Deviations, beliefs: LogPriors
) -> Candidates:
    """Return the candidates of rows of whole numbers, both exact and rounded.

    `rounded` holds the rows as returned by `as_rounded`, with candidates under `EXACTLY`.
    """
    data, one, _ = exact
    other = _as_deviations(exact, rounded, hypotheses, ways)
    limited = one.log_evidence - _too_precise(one, data, ways)
    limited[ways.deviation == 0] += np.log(EXACT_WHOLE)
    asked = structs.replace(one, log_evidence=limited)
    rows = len(data.values)
    odds = _probability(other, beliefs, rows) - _probability(asked, beliefs, rows)
    matters = odds > np.log(MATTERS)
    asked = structs.replace(one, log_evidence=np.where(matters[one.row], limited, one.log_evidence))
    found = Candidates.joined([asked, other.take(np.flatnonzero(matters[other.row]))])
    top = np.full(rows, -np.inf)
    np.maximum.at(top, found.row, found.log_evidence.max(axis=0))
    return structs.replace(found, log_evidence=found.log_evidence - top[found.row])


def _as_deviations(
    exact: Looked, rounded: Looked, hypotheses: Hypotheses, ways: Deviations
) -> Candidates:
    """Return the candidates of rounded rows in the columns of `ways`, with comparable evidence.

    The deviation that is most similar to rounding represents it.
    """
    data, half = exact[0], rounded[0]
    # A rounded constant is still a constant.
    other = rounded[1].take(np.flatnonzero(rounded[1].chosen > 0))
    level = _level(*rounded, hypotheses, EXACTLY) - _level(*exact, hypotheses, ways)
    level += np.log(ROUNDED * np.exp(ways.log_prior[ways.deviation == 0]).sum())
    apart = np.log(np.maximum(ways.steady().deviation, 1e-9)) - np.log(half.variance[:, None]) / 2
    like = np.abs(apart).argmin(axis=1)
    evidence = np.full((len(ways.deviation), len(other.row)), -np.inf)
    evidence[like[other.row], np.arange(len(other.row))] = (
        other.log_evidence[0] + (level - ways.log_prior[like])[other.row]
    )
    scale = half.variance / (data.variance + ways.deviation[like] ** 2)
    drifts = np.zeros(len(ways.drifts), dtype=np.intp)
    return Candidates(
        other.row,
        other.chosen,
        evidence,
        other.coefficients[drifts],
        other.covariance[drifts] * scale[other.row],
    )


def _rounding(data: ScaledRows) -> FloatArray:
    """Return the relative variance of values by rounding, [n, K]."""
    return np.asarray(data.rounding[:, None] / np.maximum(data.values, floor_of(data)) ** 2)


def _mean_log(values: FloatArray, data: ScaledRows) -> FloatArray:
    used = data.weight > 0
    return np.asarray(np.where(used, np.log(values), 0.0).sum(axis=1) / data.used)


def _level(
    data: ScaledRows,
    found: Candidates,
    fitted: FloatArray,
    hypotheses: Hypotheses,
    ways: Deviations,
) -> FloatArray:
    """Return the level of the evidence of each row, [n], from the evidence of its constant."""
    none = np.zeros(0, dtype=np.intp)
    nothing = ScreenedHypotheses(
        none, none, (none,) * 3, none, none, np.ones(len(fitted)), fitted, none
    )
    absolute = absolute_candidates(data, nothing, hypotheses, ways)
    alone = np.flatnonzero(found.chosen == 0)
    way = len(ways.steady().deviation) - 1
    level = np.empty(len(fitted))
    level[absolute.row] = absolute.log_evidence[way]
    level[found.row[alone]] -= found.log_evidence[way, alone]
    unit = error_unit(data, fitted)
    weights = relative_weights(data, unit, _STEADY)
    return np.asarray(level + _mean_log(np.where(weights > 0, weights, 1.0), data) * data.used / 2)


def _too_precise(found: Candidates, data: ScaledRows, ways: Deviations) -> FloatArray:
    """Return the log evidence of fits closer than the distance between whole numbers, [D, M]."""
    cell, more = np.log(_rounding(data)), np.empty((len(ways.deviation), len(data.values)))
    for way, (size, drift) in enumerate(zip(ways.deviation, ways.drift_of, strict=True)):
        spread = ways.drifts[drift].variances(data.points)
        level = np.log(data.variance + size**2) - _mean_log(spread + 0 * cell, data)
        spread[0] *= ways.drifts[drift].of_first
        beyond = np.maximum(cell - level[:, None] - np.log(spread), 0.0)
        more[way] = np.where(data.weight > 0, beyond, 0.0).sum(axis=1) / 2
    size = 1.0 * ((found.covariance[0, [0, 3, 5]] > 0).sum(axis=0))
    used = data.used[found.row]
    return np.asarray(more[:, found.row] * np.maximum(1 - size / used, 0.0))


def _probability(found: Candidates, beliefs: LogPriors, rows: int) -> FloatArray:
    """Return the log of the sum of the probabilities of all candidates of each row, [n]."""
    each = np.logaddexp.reduce(found.log_evidence + beliefs.deviations[:, None], axis=0)
    each += beliefs.hypotheses[found.chosen]
    top = np.full(rows, -np.inf)
    np.maximum.at(top, found.row, each)
    top = np.maximum(top, NEVER)
    share = np.bincount(found.row, np.exp(each - top[found.row]), rows)
    return np.asarray(top + np.log(np.maximum(share, TINY)))


def select_candidates(
    data: ScaledRows, hypotheses: Hypotheses, ways: Deviations, beliefs: LogPriors
) -> Candidates:
    """Return the hypotheses of each row that pass the screening, with their evidence.

    Rows of small whole numbers are evaluated twice: as exact values and as rounded ones.
    """
    chosen = _chosen(data, hypotheses, ways, beliefs)
    found = candidates(data, chosen, hypotheses, ways)
    whole = data.rounding > 0
    if not whole.any():
        return found
    rows, place = np.flatnonzero(whole), whole.cumsum() - 1
    its = whole[found.row]
    of_whole, others = (found.take(np.flatnonzero(each)) for each in (its, ~its))
    of_whole = structs.replace(of_whole, row=place[of_whole.row])
    exact = data.take(rows), of_whole, chosen.fitted[rows]
    half = as_rounded(exact[0])
    chosen = screen(half, hypotheses, beliefs.hypotheses, EXACTLY.drifts)
    rounded = half, candidates(half, chosen, hypotheses, EXACTLY), chosen.fitted
    both = with_rounded(exact, rounded, hypotheses, ways, beliefs)
    return Candidates.joined([others, structs.replace(both, row=rows[both.row])])


def _chosen(
    data: ScaledRows, hypotheses: Hypotheses, ways: Deviations, beliefs: LogPriors
) -> ScreenedHypotheses:
    """Return the hypotheses that pass the screening, and the values that errors are relative to.

    If measurements scatter about every model, these values come from an additional evaluation
    without drift.
    """
    chosen = screen(data, hypotheses, beliefs.hypotheses, ways.extremes)
    rows = chosen.scattered
    if not rows.size:
        return chosen
    some, steady = data.take(rows), ways.steady()
    few = LogPriors(beliefs.hypotheses, beliefs.deviations[: len(steady.deviation)])
    found = posterior(candidates(some, chosen.take(rows), hypotheses, steady), some, steady, few)
    fitted = chosen.fitted.copy()
    fitted[rows] = smoothed(some, fitted_values(found, hypotheses))
    return structs.replace(chosen, fitted=fitted)
