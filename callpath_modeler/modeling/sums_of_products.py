"""Posterior of sums of products of terms of three parameters or more.

See docs/explanation/several-parameters.md, 'Sums of products'.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import LOG_2PI, NO_PART, TINY
from callpath_modeler.modeling.constants.outcome import NEGLIGIBLE
from callpath_modeler.modeling.constants.several import (
    ASKED,
    BEYOND_NOISE,
    FOLLOWS,
    MATTERS,
    MENDED,
    SINGULAR,
    TERMS_OF_A_CHECK,
)
from callpath_modeler.modeling.distributions import log_normal_share
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.posterior import (
    LogPriors,
    Posterior,
    evidence_of_best,
    fitted_values,
    log_probability_of_all,
    posterior_of_sums,
    values_at_points,
)
from callpath_modeler.modeling.mixture.regressions import InterceptPenalty, likelihood
from callpath_modeler.modeling.mixture.residuals import large_misfits, log_residuals, smoothed
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    ScaledRows,
    error_unit,
    relative_weights,
)
from callpath_modeler.modeling.product_sums import ProductSpace, PromisingSums, promising_sums


class SumFits(Struct, frozen=True):
    """C sums of some rows under P deviations with L drifts.

    Attributes
    ----------
    row, residual : [C] row of each sum; its residual without a drift, per degree of freedom
    codes : [C, D] numbers of the products, slowest growth first; -1 = none
    log_prior : [C] log prior among the sums
    log_evidence : [P, C] log evidence
    coefficients, covariance : [L, 1 + D, C] and [L, E, C], as in `Candidates`
    """

    row: IntArray
    residual: FloatArray
    codes: IntArray
    log_prior: FloatArray
    log_evidence: FloatArray
    coefficients: FloatArray
    covariance: FloatArray

    @classmethod
    def joined(cls, parts: Sequence[SumFits]) -> SumFits:
        """Return the sums of all parts."""
        names = "row", "residual", "codes", "log_prior"
        columns = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        others = "log_evidence", "coefficients", "covariance"
        last = (np.concatenate([getattr(part, name) for part in parts], -1) for name in others)
        return cls(*columns, *last)

    def take(self, there: BoolArray, place: IntArray) -> SumFits:
        """Return the sums marked by `there`; rows get the number in `place`."""
        return SumFits(
            place[self.row[there]],
            self.residual[there],
            self.codes[there],
            self.log_prior[there],
            self.log_evidence[:, there],
            self.coefficients[..., there],
            self.covariance[..., there],
        )

    def log_probability(self, beliefs: LogPriors) -> FloatArray:
        """Return the log of the joint probability of each sum and the values, [C]."""
        of_each = self.log_evidence + beliefs.deviations[:, None]
        return np.asarray(np.logaddexp.reduce(of_each, axis=0) + (self.log_prior + beliefs.sums))

    def believed(self, data: ScaledRows, ways: Deviations, beliefs: LogPriors) -> Posterior:
        """Return the posterior of the sums, given that one of them is the law."""
        top = largest_of_each(self.row, self.log_evidence.max(axis=0), len(data.values))
        found = Candidates(
            self.row,
            np.arange(len(self.row)),
            self.log_evidence - top[self.row],
            self.coefficients,
            self.covariance,
        )
        return posterior_of_sums(
            found, data, ways, structs.replace(beliefs, hypotheses=self.log_prior)
        )


def largest_of_each(row: IntArray, number: FloatArray, count: int) -> FloatArray:
    """Return the largest number of each row, [count]."""
    found = np.full(count, -np.inf)
    np.maximum.at(found, row, number)
    return found


def fit_sums(
    row: int, data: ScaledRows, fitted: FloatArray, space: ProductSpace, ways: Deviations
) -> SumFits | None:
    """Return the promising sums of the only row of `data`; None if none is possible."""
    unit = error_unit(data, fitted)
    weights = np.concatenate([relative_weights(data, unit, drift) for drift in ways.drifts])
    parts = promising_sums(data, weights[0], space, ways)
    if not parts:
        return None
    found = SumFits.joined(
        [_fits(row, data, unit[0], weights, each, space, ways) for each in parts]
    )
    # Every sum may need a coefficient that is not positive.
    return found if np.isfinite(found.log_evidence).any() else None


def _fits(
    row: int,
    data: ScaledRows,
    unit: FloatArray,
    weights: FloatArray,
    sums: PromisingSums,
    space: ProductSpace,
    ways: Deviations,
) -> SumFits:
    """Return regressions of a row on sums, under all drifts [L, K]."""
    positions = space.by_growth(sums.positions)
    tables, _ = space.tables(positions.reshape(-1, positions.shape[2]))
    shapes = tables.reshape(*positions.shape[:2], -1).swapaxes(1, 2)
    values = data.values[0]
    design = np.concatenate([np.ones((*shapes.shape[:2], 1)), shapes], axis=2)
    normal = np.einsum("cki,lk,ckj->lcij", design, weights, design, optimize=True)
    whole, forced = (_solved(normal, design, values, weights, first) for first in (0, 1))
    left = [_left(design, each[0], values, weights, unit) for each in (whole, forced)]
    noise, used = data.variance, data.used
    point = np.maximum(noise, left[0][0] / max(float(used[0]) - design.shape[2], 1.0))
    price = InterceptPenalty(noise, used, np.ones(1, dtype=np.bool_))
    constant, level = whole[0][0, :, 0], np.maximum(whole[0][0], 0.0).sum(axis=1)
    free = (constant > 0) & price.accepts(constant, whole[1][0, :, 0, 0], left[0][0], level)
    numbers, inverse, log_det = (
        np.where(free.reshape(-1, *[1] * (one.ndim - 2)), one, other)
        for one, other in zip(whole, forced, strict=True)
    )
    residual = np.where(free, *left)
    size = positions.shape[1] + free
    evidence = _evidence(numbers, inverse, log_det, size, free, np.sqrt(point))
    # A coefficient of zero, or one by rounding, belongs to a sum of fewer products.
    positive = (numbers[0, :, 1:] > NO_PART * data.least[0]).all(axis=1)
    evidence = np.where(positive, evidence, -np.inf)
    log_evidence = np.empty((len(ways.deviation), len(positions)))
    for k, drift in enumerate(ways.drift_of):
        variance = data.variance + ways.deviation[k] ** 2
        of_first = np.log(ways.drifts[drift].of_first) / 2
        freedom = np.maximum(used - size, 0.0)
        log_evidence[k] = evidence[drift] - of_first
        log_evidence[k] += likelihood(residual[drift], variance, data.dof, freedom)
    log_evidence[:, used[0] <= size] = -np.inf
    codes = space.numbers(positions)
    found = _wide(row, point, codes, log_evidence, numbers, inverse, len(space.axes))
    return structs.replace(found, log_prior=sums.log_prior)


def _solved(
    normal: FloatArray, design: FloatArray, values: FloatArray, weights: FloatArray, first: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the solution of the normal equations; the `first` coefficients are zero.

    It consists of the coefficients [L, C, q], the inverse, and the logarithm of the determinant.
    The residuals of the first solution mend its rounding.
    """
    part = normal[..., first:, first:]
    diagonal = np.einsum("...ii->...i", part)
    # A small addition to the diagonal keeps equations solvable that are singular by rounding.
    part = part + SINGULAR * diagonal[..., None] * np.eye(part.shape[-1])
    inverse = np.zeros_like(normal)
    inverse[..., first:, first:] = np.linalg.inv(part)
    numbers = np.zeros(normal.shape[:-1])
    for _ in range(MENDED):
        left = values - np.einsum("cki,lci->lck", design, numbers)
        numbers += np.einsum(
            "lcij,cki,lck->lcj", inverse, design, weights[:, None] * left, optimize=True
        )
    return numbers, inverse, np.linalg.slogdet(part)[1]


def _left(
    design: FloatArray,
    numbers: FloatArray,
    values: FloatArray,
    weights: FloatArray,
    unit: FloatArray,
) -> FloatArray:
    """Return the residuals of models, [L, C]; large ones come from logarithms."""
    found = np.empty(numbers.shape[:2])
    for left, coefficients, its in zip(found, numbers, weights, strict=True):
        model = np.einsum("cki,ci->kc", design, coefficients)
        left[:] = its @ (model - values[:, None]) ** 2
        much = large_misfits(left, np.full(len(left), its @ unit**2))
        columns = (np.repeat(each[:, None], len(much), axis=1) for each in (values, its, unit))
        measured, weight, unit_ = columns
        left[much] *= log_residuals(measured, model[:, much], weight, unit_)
    return found


def _evidence(
    numbers: FloatArray,
    inverse: FloatArray,
    log_det: FloatArray,
    size: IntArray,
    free: BoolArray,
    spread: FloatArray,
) -> FloatArray:
    """Return log evidences of sums without the likelihood, [L, C], like those of `pair_evidence`.

    The prior is uniform in the logarithm of the level, and in the shares of the terms in the level.
    """
    level = np.maximum(numbers, 0.0).sum(axis=2)
    terms = numbers.shape[2] - 1
    found = (
        size * (LOG_2PI / 2 - np.log(np.maximum(level, 1e-40))) - log_det / 2 + lgamma(terms + 1)
    )
    errors = spread[:, None] * np.sqrt(np.einsum("...ii->...i", inverse))
    with np.errstate(divide="ignore", invalid="ignore"):
        signs = log_normal_share(numbers / errors)
    signs[..., 0] = np.where(free, signs[..., 0], 0.0)
    found += signs.sum(axis=2)
    return np.asarray(found)


def _wide(
    row: int,
    point: FloatArray,
    codes: IntArray,
    log_evidence: FloatArray,
    numbers: FloatArray,
    inverse: FloatArray,
    most: int,
) -> SumFits:
    """Return sums with the columns of sums of `most` terms."""
    count, terms = codes.shape
    shapes = np.full((count, most), -1, dtype=np.intp)
    shapes[:, :terms] = codes
    whole = np.zeros((*numbers.shape[:2], 1 + most))
    whole[..., : 1 + terms] = numbers
    square = np.zeros((*whole.shape, 1 + most))
    square[..., : 1 + terms, : 1 + terms] = inverse
    upper = square[..., *np.triu_indices(1 + most)]
    return SumFits(
        np.full(count, row),
        point,
        shapes,
        np.zeros(count),
        log_evidence,
        whole.swapaxes(1, 2),
        upper.swapaxes(1, 2),
    )


class SumCandidates(Struct, frozen=True):
    """Posterior of some rows that includes sums of products.

    Attributes
    ----------
    rows : [n] numbers of the rows
    found : posterior with M candidates of these rows and coefficients [1 + D, M]
    codes : [M, D] numbers of the products of the candidates, -1 = none
    share : [n] probability of all sums of products together
    """

    rows: IntArray
    found: Posterior
    codes: IntArray
    share: FloatArray

    def fitted(self, space: ProductSpace, hypotheses: Hypotheses, far: FloatArray) -> FloatArray:
        """Return the mean of the models of each row at the points, [n, K]."""
        places, columns = space.columns(self.codes, hypotheses, far)
        return values_at_points(self.found, places, columns.table[:-1])


def _follows_lines(data: ScaledRows, space: ProductSpace) -> BoolArray:
    """Return whether rows follow terms along the lines of two parameters or more, [n].

    Values may vary too little for a product to be probable, but more than chance explains.
    """
    count = np.zeros(len(data.values))
    for axis in space.axes:
        there = np.where(axis.lines >= 0, data.weight[:, axis.lines] > 0, False)
        used = np.maximum(there.sum(axis=2, keepdims=True), 1)
        away = np.where(there, data.values[:, axis.lines], 0.0)
        away = np.where(there, away - away.sum(axis=2, keepdims=True) / used, 0.0)
        total, most = (away**2).sum(axis=(1, 2)), np.zeros(len(count))
        few = np.linspace(1, len(axis.table) - 1, TERMS_OF_A_CHECK).astype(np.intp)
        for table in axis.table[few][:, axis.lines]:
            shape = np.where(there, table, 0.0)
            shape = np.where(there, shape - shape.sum(axis=2, keepdims=True) / used, 0.0)
            square = np.maximum((shape**2).sum(axis=2), TINY)
            along = np.maximum((shape * away).sum(axis=2), 0.0)
            most = np.maximum(most, (along**2 / square).sum(axis=1))
        count += most > FOLLOWS * total
    return np.asarray(count > 1)


class FittedSums(Struct, frozen=True):
    """Sums of products of some rows, before priors are known.

    Attributes
    ----------
    rows : [n] numbers of the rows
    data : the rows
    fitted : [n, K] values that errors are relative to
    tried : sums of these rows
    """

    rows: IntArray
    data: ScaledRows
    fitted: FloatArray
    tried: SumFits

    @classmethod
    def of(
        cls,
        found: Posterior,
        data: ScaledRows,
        space: ProductSpace | None,
        hypotheses: Hypotheses,
        ways: Deviations,
    ) -> FittedSums | None:
        """Return the sums of the rows that depend on two parameters or more; None without any.

        `found` is the posterior of the rows of `data` without sums.
        """
        if space is None:
            return None
        joint = space.depends[hypotheses.codes(found.chosen)].any(axis=1).sum(axis=1) > 1
        asked = np.bincount(found.row, found.weight * joint, len(found.variance)) > ASKED
        asked |= (found.variance > BEYOND_NOISE * data.variance) & _follows_lines(data, space)
        rows = np.flatnonzero(asked)
        fitted = smoothed(data.take(rows), fitted_values(found.repeated(rows), hypotheses))
        told, parts = list[int](), list[SumFits]()
        for k, row in enumerate(rows):
            one = data.take(np.array([row]))
            part = fit_sums(len(parts), one, fitted[k : k + 1], space, ways)
            if part is not None:
                told.append(k)
                parts.append(part)
        if not parts:
            return None
        its = rows[told]
        return cls(its, data.take(its), fitted[told], SumFits.joined(parts))

    def as_one(
        self,
        found: Candidates,
        believed: Posterior,
        hypotheses: Hypotheses,
        ways: Deviations,
        beliefs: LogPriors,
    ) -> Candidates:
        """Return candidates in which all sums of a row are one more hypothesis, the last one.

        Parameters
        ----------
        found, believed : candidates of all rows, and their posterior under `beliefs`
        hypotheses, ways, beliefs : hypotheses, deviations, and their priors
        """
        rows, tried, count = self.rows, self.tried, len(self.rows)
        each = tried.log_evidence + tried.log_prior
        top = largest_of_each(tried.row, each.max(axis=0), count)
        likely = np.exp(each - top[tried.row])
        with np.errstate(divide="ignore"):
            of_sums = np.log([np.bincount(tried.row, one, count) for one in likely]) + top
        # The evidence of candidates lacks a constant, which their most probable one shows.
        variance = -largest_of_each(tried.row, -tried.residual, count)
        few = believed.repeated(rows)
        best, of_best = evidence_of_best(few, self.data, self.fitted, variance, hypotheses, ways)
        code = few.chosen[best]
        place = np.full(len(believed.variance), -1)
        place[rows] = np.arange(count)
        its = np.flatnonzero(place[found.row] >= 0)
        its = its[found.chosen[its] == code[place[found.row[its]]]]
        its = its[np.argsort(found.row[its])]
        level = [
            np.logaddexp.reduce(one + beliefs.deviations[:, None], axis=0)
            for one in (found.log_evidence[:, its], of_best)
        ]
        # A row of which no hypothesis can be compared teaches nothing about sums.
        shift = np.full(count, -np.inf)
        np.subtract(level[0], level[1], out=shift, where=np.isfinite(level[1]))
        nothing = np.zeros((len(ways.drifts), 1, count))
        more = Candidates(
            rows,
            np.full(count, len(hypotheses.log_prior)),
            of_sums + shift,
            np.repeat(nothing, found.coefficients.shape[1], axis=1),
            np.repeat(nothing, found.covariance.shape[1], axis=1),
        )
        both = Candidates.joined([found, more])
        most = largest_of_each(both.row, both.log_evidence.max(axis=0), len(believed.variance))
        return structs.replace(both, log_evidence=both.log_evidence - most[both.row])

    def candidates(
        self,
        found: Posterior,
        hypotheses: Hypotheses,
        ways: Deviations,
        beliefs: LogPriors,
    ) -> SumCandidates | None:
        """Return the posterior of rows with sums included; None if no sum matters.

        `found` is the posterior of all rows without sums.
        """
        rows, tried = self.rows, self.tried
        their = found.repeated(rows)
        log_sum = tried.log_probability(beliefs)
        variance = -largest_of_each(tried.row, -tried.residual, len(rows))
        log_others = log_probability_of_all(
            their, self.data, self.fitted, variance, hypotheses, ways, beliefs
        )
        top = np.maximum(log_others, largest_of_each(tried.row, log_sum, len(rows)))
        weight = np.exp(log_sum - top[tried.row])
        whole = np.bincount(tried.row, weight, len(rows)) + np.exp(log_others - top)
        weight /= whole[tried.row]
        # Rounding may exceed 1.
        share = np.minimum(np.bincount(tried.row, weight, len(rows)), 1.0)
        matters = np.flatnonzero(share > MATTERS)
        if not matters.size:
            return None
        place = np.full(len(rows), -1)
        place[matters] = np.arange(len(matters))
        few = tried.take((weight > NEGLIGIBLE) & (place[tried.row] >= 0), place)
        believed = few.believed(self.data.take(matters), ways, beliefs)
        return _together(
            rows[matters], their.repeated(matters), believed, few, share[matters], hypotheses
        )


def _together(
    rows: IntArray,
    others: Posterior,
    believed: Posterior,
    few: SumFits,
    share: FloatArray,
    hypotheses: Hypotheses,
) -> SumCandidates:
    """Return the posterior of sums, with a total weight of `share` [n], and other candidates."""
    most = few.codes.shape[1]
    rest, codes = 1 - share, np.full((len(others.row), most), -1, dtype=np.intp)
    codes[:, :2] = hypotheses.codes(others.chosen)
    numbers = np.zeros((1 + most, len(others.row)))
    numbers[:3] = others.coefficients
    square = np.zeros((1 + most, 1 + most, len(others.row)))
    square[*np.triu_indices(3)] = others.covariance
    covariance = square[*np.triu_indices(1 + most)]
    row = np.concatenate([others.row, believed.row])
    order = np.argsort(row, kind="stable")
    weight = [others.weight * rest[others.row], believed.weight * share[believed.row]]
    found = Posterior(
        row[order],
        # A sum is not in the list of hypotheses and has no break, so it has the number of the
        # constant.
        np.concatenate([others.chosen, 0 * believed.chosen])[order],
        np.concatenate(weight)[order],
        np.concatenate([numbers, believed.coefficients], axis=1)[:, order],
        np.concatenate([covariance, believed.covariance], axis=1)[:, order],
        rest * others.variance + share * believed.variance,
        rest * others.drift + share * believed.drift,
    )
    codes = np.concatenate([codes, few.codes[believed.chosen]])[order]
    return SumCandidates(rows, found, codes, share)
