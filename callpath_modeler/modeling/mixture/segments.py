"""Change points between two laws, each fitted to its own points.

A break with a constant or one term is an ordinary hypothesis. Two different laws on both sides of
a change point need more coefficients. They are tried where a break is probable, or where all
hypotheses miss the measurements. For each place, each side is fitted separately with plain terms.
The evidence of both sides is compared with that of all other hypotheses. See
docs/explanation/hypotheses.md, 'Laws beyond a change point'.

See docs/explanation/hypotheses.md, 'Laws beyond a change point'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import (
    ASKED,
    LAWS,
    MATTERS,
    MISSED,
    MOST_PLACES,
    NEGLIGIBLE_LAW,
    PLAIN_LAW,
    PRIOR_OF_TWO_LAWS,
    ROUNDING,
    SURE,
    TINY,
)
from callpath_modeler.modeling.constants.hypotheses import FEWEST_BEFORE, FEWEST_BEYOND, MOST_OFF
from callpath_modeler.modeling.mixture.candidate_selection import select_candidates
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses, HypothesisGroup
from callpath_modeler.modeling.mixture.posterior import (
    LogPriors,
    Posterior,
    log_probability_of_all,
    posterior,
)
from callpath_modeler.modeling.mixture.regressions import (
    OneTermFits,
    bare_evidence,
    constant_evidence,
    likelihood,
    offset_evidence,
    positive_evidence,
)
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    ScaledRows,
    error_unit,
    floor_of,
    relative_weights,
)
from callpath_modeler.modeling.terms import Term


def plain_terms(hypotheses: Hypotheses) -> IntArray:
    """Return the codes of the terms in laws of one side, [S]."""
    codes = [
        k for k, each in enumerate(hypotheses.shapes) if isinstance(each, Term) and not each.rate
    ]
    every = np.array(codes, dtype=np.intp)
    probable = (
        hypotheses.log_prior[_numbers(every, len(hypotheses.shapes))[1:]].reshape(3, -1).max(axis=0)
    )
    return np.asarray(every[probable >= probable.max(initial=-np.inf) - PLAIN_LAW])


def prior_of_laws(log_prior: FloatArray, terms: IntArray, shapes: int) -> FloatArray:
    """Return the log prior of laws in the order of `SideRegressions`, [1 + 3 S].

    Parameters
    ----------
    log_prior : log prior of all hypotheses, in the order of `Hypotheses`
    terms : [S] codes as returned by `plain_terms`
    shapes : number of shapes
    """
    found = log_prior[_numbers(terms, shapes)]
    return np.asarray(found - np.logaddexp.reduce(found))


def _numbers(terms: IntArray, shapes: int) -> IntArray:
    """Return the numbers of the laws of one side: constant, positive, offset, no constant."""
    return np.concatenate([[0], *(1 + family * shapes + terms for family in range(3))])


class SideRegressions(Struct, frozen=True):
    """Laws of n rows on one side of a change point, H = 1 + 3 S for each row.

    The laws are a constant, and each term with a positive constant, with a negative one, and
    without one.

    Attributes
    ----------
    residual, evidence, size : [n, H] residual sum of squares, log evidence without the likelihood,
        number of coefficients
    constant, slope : [n, H] coefficients of the shapes as scaled in `Hypotheses.table`
    cc, cf, ff : [n, H] covariance of both for a variance of 1 per point
    """

    residual: FloatArray
    evidence: FloatArray
    size: FloatArray
    constant: FloatArray
    slope: FloatArray
    cc: FloatArray
    cf: FloatArray
    ff: FloatArray

    def take(self, rows: IntArray, laws: IntArray) -> Self:
        """Return some laws; `rows` and `laws` broadcast against each other."""
        return type(self)(
            *(getattr(self, field.name)[rows, laws] for field in structs.fields(self))
        )

    def of_rows(self, rows: IntArray) -> Self:
        """Return all laws of some rows."""
        return type(self)(*(getattr(self, field.name)[rows] for field in structs.fields(self)))

    @classmethod
    def of(
        cls,
        data: ScaledRows,
        weights: FloatArray,
        hypotheses: Hypotheses,
        terms: IntArray,
        where: slice,
    ) -> Self:
        """Return the regressions of rows on every law over the points `where`; `weights` [n, K]."""
        values, w = data.values[:, where], weights[:, where]
        used = (w > 0).sum(axis=1).astype(np.float64)
        table = hypotheses.table[terms, where]
        peak = np.abs(table).max(axis=1)
        table = table / peak[:, None]
        weight = np.maximum(w.sum(axis=1), TINY)
        mean = (w * values).sum(axis=1) / weight
        products = w * (values - mean[:, None])
        total = (products * (values - mean[:, None])).sum(axis=1)
        at, raw = (w @ table.T) / weight[:, None], w @ (table**2).T
        square = np.maximum(raw - weight[:, None] * at**2, ROUNDING * raw + TINY)
        product = products @ table.T
        slope, shape = product / square, at.shape
        whole, level, in_row, least, most, falling = (
            np.broadcast_to(column, shape)
            for column in (
                weight[:, None],
                mean[:, None],
                np.maximum(used - 2, 1.0)[:, None],
                table.min(axis=1),
                table.max(axis=1),
                hypotheses.single_group[terms] == HypothesisGroup.FALLING,
            )
        )
        left = np.maximum(total[:, None] - slope * product, 0.0)
        variance = np.maximum(data.variance[:, None], left / in_row)
        found = OneTermFits(*(column.ravel() for column in (whole, level, at, square, slope)))
        falls = falling.ravel(), variance.ravel()
        # Rows that are zero on this side have no level; their laws get no evidence below.
        with np.errstate(divide="ignore", invalid="ignore"):
            positive, rising = positive_evidence(found, *falls)
            offset, beside = offset_evidence(found, least.ravel(), most.ravel(), *falls)
        rising, beside = rising.reshape(shape), beside.reshape(shape)
        through = square + whole * at**2
        along = np.maximum(slope * square + whole * at * level, 0.0)
        alone = along / through
        alone_left = (total + weight * mean**2)[:, None] - alone * along
        cc, cf, ff = (column.reshape(shape) for column in found.covariance())
        nothing, one = np.zeros(shape), np.ones(shape)

        def joined(constant: FloatArray | float, *families: FloatArray) -> FloatArray:
            first = np.broadcast_to(constant, len(values))[:, None]
            return np.concatenate([first, *families], axis=1)

        size = joined(1.0, 2 * one, 2 * one, one)
        bare = bare_evidence(np.maximum(level, TINY), alone, through)
        evidence = joined(
            constant_evidence(weight, mean), positive.reshape(shape), offset.reshape(shape), bare
        )
        # A law needs one point more than coefficients, except one coefficient on one point.
        evidence[used[:, None] <= size - (size == 1)] = -np.inf
        # If the mean is below the floor, the level has no evidence, unless values are counts.
        small = mean < floor_of(data)[:, 0]
        evidence[small & ((data.rounding == 0) | (mean <= 0))] = -np.inf
        evidence[small, 1:] = -np.inf
        evidence[np.isnan(evidence)] = -np.inf
        return cls(
            np.maximum(joined(total, left, left, alone_left), 0.0),
            evidence,
            size,
            joined(mean, level - rising * at, level - beside * at, nothing),
            joined(0.0, rising / peak, beside / peak, alone / peak),
            joined(1 / weight, cc, cc, nothing),
            joined(0.0, cf / peak, cf / peak, nothing),
            joined(0.0, ff / peak**2, ff / peak**2, 1 / through / peak**2),
        )


class SegmentedLaws(Struct, frozen=True):
    """Posterior of some rows that includes laws beyond change points.

    Attributes
    ----------
    rows : [n] numbers of the rows
    found : posterior with M candidates of these rows
    codes : [M, 2] shapes of the candidates, -1 = none
    shown : [M] whether a candidate may be the model
    data : the rows, without the points before their change point
    since : [n] first point that follows the law beyond; 0 where that law is not the model
    before : [n] shape of the law before it, -1 = none
    before_coefficients : [n, 2] constant and coefficient of that law, in units of the row
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
    """Return the posterior of rows with laws beyond change points; None if no such law matters.

    `noise_known` states whether the noise of `data` comes from repetitions.
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
    log_place += np.log(PRIOR_OF_TWO_LAWS / len(places))
    log_two = np.logaddexp.reduce(log_place, axis=0)
    log_one = _log_of_one_law(some, their, hypotheses, ways, beliefs)
    share, told = np.zeros(len(rows)), np.isfinite(log_two) & np.isfinite(log_one)
    with np.errstate(over="ignore"):
        share[told] = 1 / (1 + np.exp(log_one[told] - log_two[told]))
    # Two laws that miss the values by much do not explain them.
    best, every = log_place.argmax(axis=0), np.arange(len(rows))
    scatter = np.array([(part.weight * part.scatter).sum(axis=1) for part in found_there])
    share[scatter[best, every] > MOST_OFF**2] = 0.0
    matters = np.flatnonzero(share > MATTERS)
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
    hypotheses: Hypotheses,
    ways: Deviations,
    beliefs: LogPriors,
) -> FloatArray:
    """Return the log probability of the values of rows under all other hypotheses, [n].

    The rows come from `_as_rounded`; `found` does not have the noise of rounded rows.
    """
    rounded, logs = data.rounding > 0, np.empty(len(data.values))
    data = replace(data, rounding=np.zeros_like(data.rounding))
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
    """Return the numbers of the points that may be the first one beyond a change point."""
    if points.ndim > 1:
        return []
    every = range(FEWEST_BEFORE, len(points) - FEWEST_BEYOND + 1)
    step = max(-(-len(every) // MOST_PLACES), 1)
    return list(every[::-1][::step][::-1])


def _normalised(logs: FloatArray) -> FloatArray:
    return np.asarray(logs - np.logaddexp.reduce(logs))


def _as_rounded(data: ScaledRows) -> ScaledRows:
    """Return rows whose noise includes rounding.

    The noise is that of the largest value. Smaller values are rounded by a larger share, and have
    less weight.
    """
    adds = data.rounding[:, None] / error_unit(data, data.values) ** 2
    variance = data.variance + adds.min(axis=1)
    weight = data.weight * (variance[:, None] / (data.variance[:, None] + adds))
    return replace(data, variance=variance, weight=weight)


def _asked(
    found: Posterior, data: ScaledRows, hypotheses: Hypotheses, *, noise_known: bool
) -> IntArray:
    """Return the rows that may follow two laws: a break explains them, or no hypothesis does."""
    breaks = np.bincount(
        found.row, found.weight * hypotheses.outside[found.chosen], len(data.values)
    )
    asked = breaks > ASKED
    if noise_known:
        asked |= found.variance > MISSED**2 * np.maximum(data.variance, TINY)
    return np.flatnonzero(asked & (data.used >= FEWEST_BEFORE + FEWEST_BEYOND))


class _Place(Struct, frozen=True):
    """Two laws of n rows that change at one place: L laws beyond, each with the best law before.

    Attributes
    ----------
    place : number of the first point beyond
    log_probability : [n] log probability of the values if laws change there
    law, weight, scatter : [n, L] laws beyond, their probabilities, and the variance of a point
    beyond : regressions of these laws, [n, L]
    law_before : [n] law before the place
    before : regressions of that law, [n]
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
        """Return the laws at `place`; the hypotheses of `beliefs` are laws of one side."""
        before = SideRegressions.of(data, weights, hypotheses, terms, slice(None, place))
        beyond = SideRegressions.of(data, weights, hypotheses, terms, slice(place, None))
        used = [(data.weight[:, side] > 0).sum(axis=1) for side in (np.s_[:place], np.s_[place:])]
        rows, dof = np.arange(len(data.values))[:, None], data.dof[:, None]
        # The residual variance of the closest laws is precise enough to choose laws.
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
        # The odds of the other laws before the place do not depend on the law beyond.
        top = np.take_along_axis(scores, first, axis=1)
        there = np.isfinite(top)
        with np.errstate(invalid="ignore"):
            others = np.log(np.exp(np.where(there, scores - top, 0.0)).sum(axis=1))
        residual = beyond.residual + best.residual
        free = freedom[1] + np.take_along_axis(freedom[0], first, axis=1)
        scores = likelihood(residual, about, dof, free) + beyond.evidence + beliefs.hypotheses
        # The same law with one coefficient on both sides is already a hypothesis with a break.
        same = np.flatnonzero(best.size[:, 0] == 1)
        scores[same, first[same, 0]] = -np.inf
        law = np.argsort(-scores, axis=1, kind="stable")[:, :LAWS]
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
    """Return laws beyond places, of probabilities `share` [places, n], and all other hypotheses.

    `codes` [H] are the shapes of the laws of one side.
    """
    two, chosen = share.sum(axis=0), share.argmax(axis=0)
    sure, count = two > SURE, len(rows)
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
        row, law = np.nonzero(weight > NEGLIGIBLE_LAW)
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


class _Part(Struct, frozen=True):
    """Some candidates, their shapes [M, 2], and whether each may be the model [M]."""

    found: Posterior
    codes: IntArray
    shown: BoolArray

    @classmethod
    def of(cls, found: Posterior, codes: IntArray, share: FloatArray, shown: BoolArray) -> _Part:
        """Return candidates that share the remaining probability `share` [n] of their rows.

        They may be the model in the rows marked by `shown` [n].
        """
        weighed = structs.replace(found, weight=found.weight * share[found.row])
        return cls(weighed, codes, shown[found.row])
