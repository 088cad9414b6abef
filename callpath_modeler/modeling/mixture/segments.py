"""Change points between two laws: the law beyond is modelled from the points beyond alone.

A break beside a constant or one term is a hypothesis like all others. Two laws of different growth
on the two sides of a change point have more coefficients than these. Where hypotheses with a break
are probable, or all hypotheses miss the measurements, each side of every place is fitted separately
with plain terms. The evidence of both sides is compared with that of all other hypotheses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.breaks import FEWEST_BEFORE, FEWEST_BEYOND, MOST_OFF
from callpath_modeler.modeling.mixture.candidate_selection import select_candidates
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.evidence import likelihood
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import LogPriors, Posterior, posterior
from callpath_modeler.modeling.mixture.regressions import TINY
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, error_unit, relative_weights
from callpath_modeler.modeling.mixture.side_regressions import (
    SideRegressions,
    plain_terms,
    prior_of_laws,
)
from callpath_modeler.modeling.mixture.total_evidence import log_probability_of_all

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

_MOST_PLACES = 12
"""Places that are tried; of very many points only some."""

_PRIOR = 0.03
"""How probable two laws are, before any value is seen. The level of the second law lies near that
of the first, which this includes."""
_ASKED = 0.1
"""How probable hypotheses with a break are where change points are tried."""
_MISSED = 3.0
"""From how many times the noise on deviations from laws are no noise."""
_MATTERS = 0.05
"""How probable two laws are where they are among what could be."""
_SURE = 0.5
"""The same where the law beyond is the model."""
_LAWS = 16
"""Laws beyond each place that are kept: the most probable ones."""
_NEGLIGIBLE = 1e-4


@dataclass(frozen=True, slots=True)
class SegmentedLaws:
    """What is believed of some rows, laws beyond change points among it.

    Attributes
    ----------
    rows : [n] which rows they are
    found : M candidates of these rows
    codes : [M, 2] their shapes, -1 = none
    shown : [M] which candidates may be the model
    data : the rows, without the points before their change point
    since : [n] the first point that follows the law beyond; 0 where that is not the model
    before : [n] the shape of the law before it, -1 = none
    before_coefficients : [n, 2] its constant and its coefficient, in units of the row
    """

    rows: IntArray
    found: Posterior
    codes: IntArray
    shown: BoolArray
    data: ScaledRows
    since: FloatArray
    before: IntArray
    before_coefficients: FloatArray


def with_laws_beyond(
    found: Posterior,
    data: ScaledRows,
    hypotheses: Hypotheses,
    ways: Deviations,
    beliefs: LogPriors,
    *,
    noise_known: bool,
) -> SegmentedLaws | None:
    """Add laws beyond change points to what is believed of rows; None where none matters.

    `noise_known` tells whether repetitions told the noise of `data`.
    """
    places = _places(data.points)
    if not places:
        return None
    rows = _asked(found, data, hypotheses, noise_known=noise_known)
    if not rows.size:
        return None
    some, their = _as_rounded(data.take(rows)), found.repeated(rows)
    terms = plain_terms(hypotheses)
    prior = prior_of_laws(beliefs.hypotheses, terms, len(hypotheses.shapes))
    steady = ways.steady()
    few = LogPriors(prior, _normalised(beliefs.deviations[: len(steady.deviation)]))
    weights = relative_weights(some, error_unit(some, some.values), steady.drifts[0])
    found_there = [
        _Place.of(place, some, weights, hypotheses, terms, steady, few) for place in places
    ]
    log_place = np.array([place.log_probability for place in found_there])
    log_place += np.log(_PRIOR / len(places))
    log_two = np.logaddexp.reduce(log_place, axis=0)
    log_one = _log_of_one_law(some, their, data.rounding[rows] > 0, hypotheses, ways, beliefs)
    share, told = np.zeros(len(rows)), np.isfinite(log_two) & np.isfinite(log_one)
    with np.errstate(over="ignore"):
        share[told] = 1 / (1 + np.exp(log_one[told] - log_two[told]))
    # Two laws that miss by much themselves explain nothing.
    best, every = log_place.argmax(axis=0), np.arange(len(rows))
    scatter = np.array([(part.weight * part.scatter).sum(axis=1) for part in found_there])
    share[scatter[best, every] > MOST_OFF**2] = 0.0
    matters = np.flatnonzero(share > _MATTERS)
    if not matters.size:
        return None
    of_place = np.exp(log_place[:, matters] - log_two[matters])
    beyond = [place.take(matters) for place in found_there]
    return _together(
        rows[matters],
        their.repeated(matters),
        data.take(rows[matters]),
        beyond,
        share[matters] * of_place,
        hypotheses,
        np.concatenate([[-1], terms, terms, terms]),
    )


def _log_of_one_law(
    data: ScaledRows,
    found: Posterior,
    rounded: BoolArray,
    hypotheses: Hypotheses,
    ways: Deviations,
    beliefs: LogPriors,
) -> FloatArray:
    """Return the log probability of the values of rows under all other hypotheses, [n].

    `rounded` rows [n] are of `_as_rounded`, and `found` is not of that noise.
    """
    logs = np.empty(len(rounded))
    for its, is_rounded in ((rounded, True), (~rounded, False)):
        rows = np.flatnonzero(its)
        if not rows.size:
            continue
        some, their = data.take(rows), found.repeated(rows)
        if is_rounded:
            their = posterior(
                select_candidates(some, hypotheses, ways, beliefs), some, ways, beliefs
            )
        logs[rows] = log_probability_of_all(
            their, some, some.values, their.variance, hypotheses, ways, beliefs
        )
    return logs


def _places(points: FloatArray) -> list[int]:
    """Return the numbers of points that may be the first one beyond a change point."""
    if points.ndim > 1:
        return []
    every = range(FEWEST_BEFORE, len(points) - FEWEST_BEYOND + 1)
    step = max(-(-len(every) // _MOST_PLACES), 1)
    return list(every[::-1][::step][::-1])


def _normalised(logs: FloatArray) -> FloatArray:
    return np.asarray(logs - np.logaddexp.reduce(logs))


def _as_rounded(data: ScaledRows) -> ScaledRows:
    """Return rows whose noise includes what rounding to few digits adds to their least value."""
    adds = np.zeros_like(data.rounding)
    whole = np.flatnonzero(data.rounding > 0)
    adds[whole] = data.rounding[whole] / np.maximum(data.least[whole] ** 2, TINY)
    return replace(data, variance=data.variance + adds, rounding=np.zeros_like(adds))


def _asked(
    found: Posterior, data: ScaledRows, hypotheses: Hypotheses, *, noise_known: bool
) -> IntArray:
    """Return the rows that may follow two laws: a break explains them, or no hypothesis does."""
    breaks = np.bincount(
        found.row, found.weight * hypotheses.outside[found.chosen], len(data.values)
    )
    asked = breaks > _ASKED
    if noise_known:
        asked |= found.variance > _MISSED**2 * np.maximum(data.variance, TINY)
    return np.flatnonzero(asked & (data.used >= FEWEST_BEFORE + FEWEST_BEYOND))


@dataclass(frozen=True, slots=True)
class _Place:
    """Two laws of n rows that change at one place: L laws beyond, each beside the best one before.

    Attributes
    ----------
    place : the number of the first point beyond
    log_probability : [n] of the values, if laws change there
    law, weight, scatter : [n, L] which laws beyond, how probable each is, variance of a point
    beyond : these laws, [n, L]
    law_before : [n]
    before : that law, [n]
    """

    place: int
    log_probability: FloatArray
    law: IntArray
    weight: FloatArray
    scatter: FloatArray
    beyond: SideRegressions
    law_before: IntArray
    before: SideRegressions

    def take(self, rows: IntArray) -> _Place:
        """Return some rows."""
        return _Place(
            self.place,
            self.log_probability[rows],
            self.law[rows],
            self.weight[rows],
            self.scatter[rows],
            self.beyond.of_rows(rows),
            self.law_before[rows],
            self.before.of_rows(rows),
        )

    @classmethod
    def of(
        cls,
        place: int,
        data: ScaledRows,
        weights: FloatArray,
        hypotheses: Hypotheses,
        terms: IntArray,
        steady: Deviations,
        beliefs: LogPriors,
    ) -> _Place:
        """Find them. Of `beliefs` hypotheses are laws on one side."""
        before = SideRegressions.of(data, weights, hypotheses, terms, slice(None, place))
        beyond = SideRegressions.of(data, weights, hypotheses, terms, slice(place, None))
        used = [(data.weight[:, side] > 0).sum(axis=1) for side in (np.s_[:place], np.s_[place:])]
        rows, dof = np.arange(len(data.values))[:, None], data.dof[:, None]
        # Good enough to choose laws by: the variance that the closest ones leave.
        least = sum(
            np.where(np.isfinite(side.evidence), side.residual, np.inf).min(axis=1)
            for side in (before, beyond)
        )
        with np.errstate(invalid="ignore"):
            about = np.fmax(data.variance, least / np.maximum(data.used - 4, 1.0))[:, None]
        about = np.where(np.isfinite(about), about, 1.0)
        freedom = [
            np.maximum(count[:, None] - side.size, 0.0)
            for count, side in zip(used, (before, beyond), strict=True)
        ]
        scores = likelihood(before.residual, about, dof, freedom[0])
        scores += before.evidence + beliefs.hypotheses
        first = scores.argmax(axis=1)[:, None]
        best = before.take(rows, first)
        # Other laws before it are as probable beside any law beyond.
        top = np.take_along_axis(scores, first, axis=1)
        there = np.isfinite(top)
        with np.errstate(invalid="ignore"):
            others = np.log(np.exp(np.where(there, scores - top, 0.0)).sum(axis=1))
        residual = beyond.residual + best.residual
        free = freedom[1] + np.take_along_axis(freedom[0], first, axis=1)
        scores = likelihood(residual, about, dof, free) + beyond.evidence + beliefs.hypotheses
        # One shape on both sides, without a constant, is a hypothesis with a break already.
        same = np.flatnonzero(best.size[:, 0] == 1)
        scores[same, first[same, 0]] = -np.inf
        law = np.argsort(-scores, axis=1, kind="stable")[:, :_LAWS]
        kept = beyond.take(rows, law)
        variance = data.variance[:, None] + steady.deviation**2
        of_each = beliefs.deviations + likelihood(
            np.take_along_axis(residual, law, axis=1)[..., None],
            variance[:, None],
            dof[..., None],
            np.take_along_axis(free, law, axis=1)[..., None],
        )
        logs = np.logaddexp.reduce(of_each, axis=2) + kept.evidence + beliefs.hypotheses[law]
        logs += best.evidence + beliefs.hypotheses[first] + others[:, None]
        logs[~np.isfinite(np.take_along_axis(scores, law, axis=1))] = -np.inf
        logs[(used[0] < FEWEST_BEFORE) | (used[1] < FEWEST_BEYOND) | ~there[:, 0]] = -np.inf
        whole = np.logaddexp.reduce(logs, axis=1)
        weight = np.exp(logs - np.where(np.isfinite(whole), whole, 0.0)[:, None])
        share = np.exp(of_each - of_each.max(axis=2, keepdims=True))
        scatter = (share * variance[:, None]).sum(axis=2) / share.sum(axis=2)
        last = best.take(rows[:, 0], np.zeros(len(rows), dtype=np.intp))
        return cls(place, whole, law, weight, scatter, kept, first[:, 0], last)


def _together(
    rows: IntArray,
    others: Posterior,
    data: ScaledRows,
    places: Sequence[_Place],
    share: FloatArray,
    hypotheses: Hypotheses,
    codes: IntArray,
) -> SegmentedLaws:
    """Put laws beyond places, of probabilities `share` [places, n], beside all other hypotheses.

    `codes` [H] are the shapes of the laws of one side.
    """
    two, chosen = share.sum(axis=0), share.argmax(axis=0)
    sure, count = two > _SURE, len(rows)
    since, before, numbers = np.zeros(count), np.full(count, -1), np.zeros((count, 2))
    used = data.weight.copy()
    variance = (1 - two) * others.variance
    none_left = np.ones(count)
    parts = [_Part.of(others, hypotheses.codes(others.chosen), 1 - two, ~sure)]
    outside = int(np.argmax(hypotheses.outside))
    for k, place in enumerate(places):
        its = np.flatnonzero(sure & (chosen == k))
        since[its] = data.points[place.place + (used[its, place.place :] > 0).argmax(axis=1)]
        used[its, : place.place] = 0.0
        before[its] = codes[place.law_before[its]]
        numbers[its] = np.stack([place.before.constant[its], place.before.slope[its]], axis=1)
        weight = place.weight * share[k][:, None]
        variance += (weight * place.scatter).sum(axis=1)
        row, law = np.nonzero(weight > _NEGLIGIBLE)
        of_law, none = place.beyond.take(row, law), np.zeros(len(row))
        covariance = np.stack([of_law.cc, of_law.cf, none, of_law.ff, none, none])
        believed = Posterior(
            row,
            # Laws beyond a change point are outside the model class, as breaks are.
            np.full(len(row), outside),
            weight[row, law],
            np.stack([of_law.constant, of_law.slope, none]),
            covariance * place.scatter[row, law],
            variance,
            others.drift,
        )
        shapes = np.stack([codes[place.law[row, law]], np.full(len(row), -1)], axis=1)
        parts.append(_Part.of(believed, shapes, none_left, sure & (chosen == k)))
    row = np.concatenate([part.found.row for part in parts])
    order = np.argsort(row, kind="stable")

    def joined(name: str) -> npt.NDArray[Any]:
        columns = [getattr(part.found, name) for part in parts]
        return np.take(np.concatenate(columns, axis=-1), order, axis=-1)

    found = Posterior(
        row[order],
        joined("chosen"),
        joined("weight"),
        joined("coefficients"),
        joined("covariance"),
        variance,
        (1 - two) * others.drift,
    )
    return SegmentedLaws(
        rows,
        found,
        np.concatenate([part.codes for part in parts])[order],
        np.concatenate([part.shown for part in parts])[order],
        replace(data, weight=used),
        since,
        before,
        numbers,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Some candidates, their shapes [M, 2], and which of them may be the model [M]."""

    found: Posterior
    codes: IntArray
    shown: BoolArray

    @classmethod
    def of(cls, found: Posterior, codes: IntArray, share: FloatArray, shown: BoolArray) -> _Part:
        """Return candidates whose rows have a probability of `share` [n] left.

        Of rows that are `shown` [n] they may be the model.
        """
        weighed = replace(found, weight=found.weight * share[found.row])
        return cls(weighed, codes, shown[found.row])
