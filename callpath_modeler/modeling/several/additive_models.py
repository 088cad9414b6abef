"""Sums of three and four terms: a factor of each of three parameters or more.

If runs vary one parameter at a time, two products and a constant fit such a sum exactly, and
predict hundreds of times as much where all parameters are large. There are millions of sums. So
only a few terms of each parameter are tried: those with the smallest residuals together with
arbitrary functions of the others. See docs/explanation/several-parameters.md, 'Sums of three and
four terms'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import lgamma

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import LOG_2PI, NO_PART, VARIES
from callpath_modeler.modeling.constants.outcome import NEGLIGIBLE
from callpath_modeler.modeling.constants.several import (
    ASKED,
    FEWEST_IN_SUMS,
    MATTERS,
    PRIOR_OF_SUMS,
    SINGULAR,
    TRIED,
)
from callpath_modeler.modeling.distributions import log_normal_share
from callpath_modeler.modeling.mixture.candidates import Candidates
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import (
    LogPriors,
    Posterior,
    fitted_values,
    log_probability_of_all,
    posterior_in_numpy,
    values_at_points,
)
from callpath_modeler.modeling.mixture.regressions import InterceptPenalty, likelihood
from callpath_modeler.modeling.mixture.residuals import large_misfits, log_residuals
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    ScaledRows,
    error_unit,
    relative_weights,
)
from callpath_modeler.modeling.mixture.screening import smoothed
from callpath_modeler.modeling.products import NOTHING, Product
from callpath_modeler.modeling.several.catalogue import cost_of


class AdditiveTerms(Struct, frozen=True):
    """Terms of sums over K points in D parameters.

    Attributes
    ----------
    codes : for each parameter, [H] shapes
    log_share : for each parameter, [H] log prior of each shape among these
    levels : [D, K] number of the value that each parameter has at each point
    axes : [S + 1, D] whether a shape depends on a parameter; the last entry stands for no shape
    """

    codes: tuple[IntArray, ...]
    log_share: tuple[FloatArray, ...]
    levels: IntArray
    axes: BoolArray


def additive_terms(hypotheses: Hypotheses, points: FloatArray) -> AdditiveTerms | None:
    """Return the terms of sums over `points` [K, D]; None if D is less than three."""
    fans = hypotheses.fans
    if points.ndim == 1 or points.shape[1] < FEWEST_IN_SUMS or fans is None:
        return None
    count, shapes = (
        points.shape[1],
        [each for each in hypotheses.shapes if isinstance(each, Product)],
    )
    axes = np.zeros((len(shapes) + 1, count), dtype=np.bool_)
    axes[:-1] = _axes(shapes)
    codes = tuple(fans.terms[axes[fans.terms, axis]] for axis in range(count))
    plain = [
        np.array([2.0 ** -cost_of(shapes[code].factors[axis]) for code in its.tolist()])
        for axis, its in enumerate(codes)
    ]
    return AdditiveTerms(
        codes, tuple(np.log(each / each.sum()) for each in plain), fans.levels, axes
    )


def _axes(shapes: Sequence[Product]) -> list[list[bool]]:
    """Return whether shapes depend on parameters, [S, D]; each factor is compared once."""
    every = {id(factor): factor for shape in shapes for factor in shape.factors}
    varies = {name: factor != NOTHING for name, factor in every.items()}
    return [[varies[id(factor)] for factor in shape.factors] for shape in shapes]


@dataclass(frozen=True, slots=True)
class AdditiveFits:
    """C sums of some rows under P deviations with L drifts.

    Attributes
    ----------
    row, residual : [C] row of each sum; its residual without a drift, per degree of freedom
    codes : [C, D] shapes, -1 = none
    log_prior : [C] log prior
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
    def joined(cls, parts: Sequence[AdditiveFits]) -> AdditiveFits:
        """Return the sums of all parts."""
        names = "row", "residual", "codes", "log_prior"
        columns = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        others = "log_evidence", "coefficients", "covariance"
        last = (np.concatenate([getattr(part, name) for part in parts], -1) for name in others)
        return cls(*columns, *last)

    def take(self, there: BoolArray, place: IntArray) -> AdditiveFits:
        """Return the sums marked by `there`; rows get the number in `place`."""
        return AdditiveFits(
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
        return np.asarray(np.logaddexp.reduce(of_each, axis=0) + self.log_prior)

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
        return posterior_in_numpy(found, data, ways, replace(beliefs, hypotheses=self.log_prior))


def largest_of_each(row: IntArray, number: FloatArray, count: int) -> FloatArray:
    """Return the largest number of each row, [count]."""
    found = np.full(count, -np.inf)
    np.maximum.at(found, row, number)
    return found


def fit_additive(
    row: int,
    data: ScaledRows,
    fitted: FloatArray,
    sums: AdditiveTerms,
    hypotheses: Hypotheses,
    ways: Deviations,
) -> AdditiveFits | None:
    """Return the sums of the only row of `data`; None if it varies with too few parameters."""
    unit = error_unit(data, fitted)
    weights = np.concatenate([relative_weights(data, unit, drift) for drift in ways.drifts])
    near = _nearest(data, weights[0], sums, hypotheses)
    parts = []
    count = len(sums.codes)
    told = [axis for axis in range(count) if len(near[axis])]
    for used in range(FEWEST_IN_SUMS, len(told) + 1):
        for axes in combinations(told, used):
            places = np.array(list(product(*(near[axis] for axis in axes))), dtype=np.intp)
            codes = np.stack([sums.codes[a][k] for a, k in zip(axes, places.T, strict=True)], 1)
            shares = [sums.log_share[a][k] for a, k in zip(axes, places.T, strict=True)]
            log_prior = np.log(PRIOR_OF_SUMS) + np.sum(shares, axis=0)
            part = _regressed(row, data, unit[0], weights, np.sort(codes, axis=1), hypotheses, ways)
            parts.append(replace(part, log_prior=log_prior))
    return AdditiveFits.joined(parts) if parts else None


def _nearest(
    data: ScaledRows, weights: FloatArray, sums: AdditiveTerms, hypotheses: Hypotheses
) -> list[IntArray]:
    """Return the terms of each parameter that are closest, together with functions of the others.

    A parameter that did not vary where the row has values has no terms.
    """
    root, found = np.sqrt(weights), []
    levels = [each[:, None] == np.arange(each.max() + 1) for each in sums.levels]
    freedom, values = max(float(data.used[0]) - 2, 1.0), data.values[0] * root
    for axis, codes in enumerate(sums.codes):
        others = np.concatenate([each for k, each in enumerate(levels) if k != axis], axis=1)
        base, size, _ = np.linalg.svd(others * root[:, None], full_matrices=False)
        base = base[:, size > 1e-9 * size[0]]
        terms = hypotheses.table[codes].T * root[:, None]
        raw = (terms**2).sum(axis=0)
        terms = terms - base @ (base.T @ terms)
        left = values - base @ (base.T @ values)
        square, along = (terms**2).sum(axis=0), np.maximum(terms.T @ left, 0.0)
        varies = square > VARIES * raw
        residual = left @ left - np.where(varies, along**2 / np.where(varies, square, 1.0), 0.0)
        misfit = np.maximum(residual, 0.0) / freedom + data.variance[0]
        order = np.argsort(freedom / 2 * np.log(misfit) - sums.log_share[axis])
        found.append(order[varies[order]][:TRIED])
    return found


def _regressed(
    row: int,
    data: ScaledRows,
    unit: FloatArray,
    weights: FloatArray,
    codes: IntArray,
    hypotheses: Hypotheses,
    ways: Deviations,
) -> AdditiveFits:
    """Return regressions of a row on sums of the shapes `codes` [C, m], under all drifts [L, K]."""
    values, shapes = data.values[0], hypotheses.table[codes].swapaxes(1, 2)
    design = np.concatenate([np.ones((*shapes.shape[:2], 1)), shapes], axis=2)
    normal = np.einsum("cki,lk,ckj->lcij", design, weights, design, optimize=True)
    right = np.einsum("cki,lk->lci", design, weights * values)
    whole, forced = _solved(normal, right, 0), _solved(normal, right, 1)
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
    size = codes.shape[1] + free
    evidence = _evidence(numbers, inverse, log_det, size, free, np.sqrt(point))
    log_evidence = np.empty((len(ways.deviation), len(codes)))
    for k, drift in enumerate(ways.drift_of):
        variance = data.variance + ways.deviation[k] ** 2
        of_first = np.log(ways.drifts[drift].of_first) / 2
        freedom = np.maximum(used - size, 0.0)
        log_evidence[k] = evidence[drift] - of_first
        log_evidence[k] += likelihood(residual[drift], variance, data.dof, freedom)
    log_evidence[:, used[0] <= size] = -np.inf
    return _wide(row, point, codes, log_evidence, numbers, inverse, len(data.points.T))


def _solved(
    normal: FloatArray, right: FloatArray, first: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the solution of the normal equations; the `first` coefficients are zero.

    It consists of the coefficients [L, C, q], the inverse, and the logarithm of the determinant.
    """
    part = normal[..., first:, first:]
    diagonal = np.einsum("...ii->...i", part)
    # A small addition to the diagonal keeps equations solvable that are singular by rounding.
    part = part + SINGULAR * diagonal[..., None] * np.eye(part.shape[-1])
    inverse, numbers = np.zeros_like(normal), np.zeros_like(right)
    inverse[..., first:, first:] = np.linalg.inv(part)
    numbers[..., first:] = np.einsum("...ij,...j->...i", inverse, right)[..., first:]
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
    positive = (numbers[0, :, 1:] > NO_PART * level[0, :, None]).all(axis=1)
    return np.where(positive, found, -np.inf)


def _wide(
    row: int,
    point: FloatArray,
    codes: IntArray,
    log_evidence: FloatArray,
    numbers: FloatArray,
    inverse: FloatArray,
    most: int,
) -> AdditiveFits:
    """Return sums with the columns of sums of `most` terms."""
    count, terms = codes.shape
    shapes = np.full((count, most), -1, dtype=np.intp)
    shapes[:, :terms] = codes
    whole = np.zeros((*numbers.shape[:2], 1 + most))
    whole[..., : 1 + terms] = numbers
    square = np.zeros((*whole.shape, 1 + most))
    square[..., : 1 + terms, : 1 + terms] = inverse
    upper = square[..., *np.triu_indices(1 + most)]
    return AdditiveFits(
        np.full(count, row),
        point,
        shapes,
        np.zeros(count),
        log_evidence,
        whole.swapaxes(1, 2),
        upper.swapaxes(1, 2),
    )


class AdditiveCandidates(Struct, frozen=True):
    """Posterior of some rows that includes sums of more than two terms.

    Attributes
    ----------
    rows : [n] numbers of the rows
    found : posterior with M candidates of these rows and coefficients [1 + D, M]
    codes : [M, D] shapes of the candidates, -1 = none
    """

    rows: IntArray
    found: Posterior
    codes: IntArray

    def fitted(self, hypotheses: Hypotheses) -> FloatArray:
        """Return the mean of the models of each row at the points, [n, K]."""
        return values_at_points(self.found, self.codes, hypotheses)


def with_additive_models(
    found: Posterior,
    data: ScaledRows,
    sums: AdditiveTerms | None,
    hypotheses: Hypotheses,
    ways: Deviations,
    beliefs: LogPriors,
) -> AdditiveCandidates | None:
    """Return the posterior of rows that depend on three parameters or more, sums included.

    The result is None without sums, or if no sum matters.
    """
    if sums is None:
        return None
    many = sums.axes[hypotheses.codes(found.chosen)].any(axis=1).sum(axis=1) >= FEWEST_IN_SUMS
    asked = np.bincount(found.row, found.weight * many, len(found.variance)) > ASKED
    rows = np.flatnonzero(asked)
    if not rows.size:
        return None
    fitted = smoothed(data.take(rows), fitted_values(found.repeated(rows), hypotheses))
    rows, fitted, parts = _tried(rows, fitted, data, sums, hypotheses, ways)
    if not rows.size:
        return None
    some, their, tried = data.take(rows), found.repeated(rows), AdditiveFits.joined(parts)
    log_sum = tried.log_probability(beliefs)
    variance = -largest_of_each(tried.row, -tried.residual, len(rows))
    log_others = log_probability_of_all(their, some, fitted, variance, hypotheses, ways, beliefs)
    top = np.maximum(log_others, largest_of_each(tried.row, log_sum, len(rows)))
    weight = np.exp(log_sum - top[tried.row])
    whole = np.bincount(tried.row, weight, len(rows)) + np.exp(log_others - top)
    weight /= whole[tried.row]
    share = np.asarray(np.bincount(tried.row, weight, len(rows)), dtype=np.float64)
    matters = np.flatnonzero(share > MATTERS)
    if not matters.size:
        return None
    place = np.full(len(rows), -1)
    place[matters] = np.arange(len(matters))
    few = tried.take((weight > NEGLIGIBLE) & (place[tried.row] >= 0), place)
    believed = few.believed(some.take(matters), ways, beliefs)
    return _together(
        rows[matters], their.repeated(matters), believed, few, share[matters], hypotheses
    )


def _tried(
    rows: IntArray,
    fitted: FloatArray,
    data: ScaledRows,
    sums: AdditiveTerms,
    hypotheses: Hypotheses,
    ways: Deviations,
) -> tuple[IntArray, FloatArray, list[AdditiveFits]]:
    """Return the rows that may follow a sum, their `fitted` values [n, K], and the sums of each."""
    told, parts = list[int](), list[AdditiveFits]()
    for k, row in enumerate(rows):
        one = data.take(np.array([row]))
        part = fit_additive(len(parts), one, fitted[k : k + 1], sums, hypotheses, ways)
        if part is not None:
            told.append(k)
            parts.append(part)
    return rows[told], fitted[told], parts


def _together(
    rows: IntArray,
    others: Posterior,
    believed: Posterior,
    few: AdditiveFits,
    share: FloatArray,
    hypotheses: Hypotheses,
) -> AdditiveCandidates:
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
    return AdditiveCandidates(
        rows, found, np.concatenate([codes, few.codes[believed.chosen]])[order]
    )
