"""The classic method: one hypothesis per row, with its coefficients and their covariances.

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, Int16Array, IntArray
from callpath_modeler.modeling.classic_search import (
    CONSTANT,
    EDGE,
    WITH_CONSTANT,
    WITHOUT_CONSTANT,
    Basis,
    PureError,
    Solution,
    WeightedRows,
    floored,
    solve,
)
from callpath_modeler.modeling.constants.noise import EXACT
from callpath_modeler.modeling.constants.outcome import (
    EXACT_MISFIT,
    FAR_BEYOND_NOISE,
    MISFIT,
    NOISY_SPREAD,
)
from callpath_modeler.modeling.constants.several import (
    CLASSIC_ALTERNATIVES,
    CLASSIC_CHUNK,
    EXCLUDED,
    KEEP_CONSTANT,
    USUAL_DOF,
    USUAL_SPREAD,
)
from callpath_modeler.modeling.model_columns import MIN_POINTS, FitStatus, MapLike
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.repetitions import ClassicCentre, Repetitions, looks_exact, summarise
from callpath_modeler.modeling.shapes import Shapes
from callpath_modeler.modeling.term_refinement import (
    Choice,
    choose,
    coefficient_count,
    constant_stands,
)
from callpath_modeler.modeling.terms import SearchSpace


@dataclass(frozen=True, slots=True)
class Estimate:
    """Final coefficients of n rows, in the units of `WeightedRows` and `Basis`.

    Attributes
    ----------
    terms : ndarray [n, T]
        Positions in the basis, then -1.
    form : ndarray [n]
        One of the forms of `search`.
    coefficients : ndarray [n, T + 1]
        Constant first; 0 = unused.
    inverse : ndarray [n, T + 1, T + 1]
        The covariance is this matrix times the relative variance.
    rss, cv : ndarray [n]
        Relative sums of squares.
    """

    terms: IntArray
    form: Int8Array
    coefficients: FloatArray
    inverse: FloatArray
    rss: FloatArray
    cv: FloatArray


@dataclass(frozen=True, slots=True)
class RunnersUp:
    """Alternatives of n rows, best first.

    Attributes
    ----------
    terms : ndarray [n, A]
        Position of the only term in the basis; -1 for the constant.
    coefficients : ndarray [n, A, 2]
        Constant and slope, in the units of `WeightedRows` and `Basis`.
    weight : ndarray [n, A + 1]
        Akaike weights of the chosen model and then of the alternatives.
    """

    terms: IntArray
    coefficients: FloatArray
    weight: FloatArray


def estimate(rows: WeightedRows, basis: Basis, choice: Choice) -> Estimate:
    """Return the coefficients of chosen hypotheses, with weights from the fit.

    Parameters
    ----------
    rows : WeightedRows
        n rows.
    basis : Basis
        The terms.
    choice : Choice
        A hypothesis per row.

    Returns
    -------
    Estimate
        Coefficients that satisfy the sign constraints.
    """
    count, width = choice.terms.shape
    result = Estimate(
        choice.terms,
        choice.form.copy(),
        np.zeros((count, width + 1)),
        np.zeros((count, width + 1, width + 1)),
        np.zeros(count),
        np.zeros(count),
    )
    used = (choice.terms >= 0).sum(axis=1)
    _drop_constants(result, rows, basis, used)
    for form in (CONSTANT, WITH_CONSTANT, WITHOUT_CONSTANT, EDGE):
        for size in range(width + 1):
            row = np.flatnonzero((result.form == form) & (used == size))
            if row.size:
                _solve_group(result, row, rows.take(row), basis, (form, size))
    return result


def _drop_constants(result: Estimate, rows: WeightedRows, basis: Basis, used: IntArray) -> None:
    """Remove the constants that do not pay from models, in place."""
    for size in range(1, result.terms.shape[1] + 1):
        row = np.flatnonzero((result.form == WITH_CONSTANT) & (used == size))
        if not row.size:
            continue
        some = rows.take(row)
        full = solve(_design(result.terms[row, :size], WITH_CONSTANT, basis), some)
        bare = solve(_design(result.terms[row, :size], WITHOUT_CONSTANT, basis), some)
        left = floored(full.rss, some.points)
        ratio = (floored(bare.rss, some.points) - left) / left * (some.points - size - 1)
        drop = (ratio < KEEP_CONSTANT) & (bare.coefficients > 0).all(axis=1)
        result.form[row[drop]] = WITHOUT_CONSTANT


def _design(terms: IntArray, form: int, basis: Basis) -> FloatArray:
    """Return the columns of the models of one form, [n, K, q]."""
    count, points = len(terms), basis.values.shape[1]
    ones = np.ones((count, points, 1))
    if form == CONSTANT:
        return ones
    columns = np.swapaxes(basis.values[terms], 1, 2)
    if form == EDGE:
        return np.asarray(basis.reference[terms][:, None, :] - columns)
    return np.concatenate([ones, columns], axis=2) if form == WITH_CONSTANT else columns


def _solve_group(
    result: Estimate, row: IntArray, rows: WeightedRows, basis: Basis, kind: tuple[int, int]
) -> None:
    """Estimate, in place, the rows of one form and one number of terms."""
    form, size = kind
    terms = result.terms[row, :size]
    design = _design(terms, form, basis)
    first = solve(design, rows)
    again = solve(design, rows.reweighted(_weights(first.fitted, rows)))
    fine = _feasible(again, terms, form, basis)
    start = 0 if form in (CONSTANT, WITH_CONSTANT) else 1
    coefficients = np.where(fine[:, None], again.coefficients, first.coefficients)
    inverse = np.where(fine[:, None, None], again.inverse, first.inverse)
    if form == EDGE:
        # c (x_ref - x) is one coefficient; written out it is a constant and a negative slope.
        spread = np.concatenate([basis.reference[terms], -np.ones_like(coefficients)], axis=1)
        coefficients = coefficients * spread
        inverse = inverse * spread[:, :, None] * spread[:, None, :]
        start = 0
    end = start + coefficients.shape[1]
    result.coefficients[row, start:end] = coefficients
    result.inverse[row, start:end, start:end] = inverse
    result.rss[row] = np.where(fine, again.rss, first.rss)
    result.cv[row] = np.where(fine, again.cv, first.cv)


def _weights(fitted: FloatArray, rows: WeightedRows) -> FloatArray:
    """Return relative weights from the fit, within a factor of 3 of those from the values."""
    floor = 1 / np.sqrt(np.where(rows.w > 0, rows.w, 1.0))
    return np.asarray(1 / np.clip(fitted, floor / 3, floor * 3) ** 2)


def _feasible(solution: Solution, terms: IntArray, form: int, basis: Basis) -> BoolArray:
    """Return which solutions still satisfy the sign constraints."""
    numbers = solution.coefficients
    if form == CONSTANT:
        return np.ones(len(numbers), dtype=np.bool_)
    if form in (WITHOUT_CONSTANT, EDGE):
        return np.asarray((numbers > 0).all(axis=1))
    saturating = basis.decreasing[terms[:, 0]] & (numbers[:, 1] < 0) & (terms.shape[1] == 1)
    start = numbers[:, 0] + (numbers[:, 1:] * basis.reference[terms]).sum(axis=1)
    signs = (numbers[:, 1:] > 0).all(axis=1)
    return np.where(saturating, start >= 0, signs & constant_stands(numbers, terms, basis))


def runners_up(
    rows: WeightedRows, choice: Choice, final: Estimate, pure: PureError, count: int
) -> RunnersUp:
    """Return the other hypotheses, ranked by the corrected Akaike criterion.

    Parameters
    ----------
    rows : WeightedRows
        n rows.
    choice : Choice
        Choice with all one-term hypotheses.
    final : Estimate
        The chosen models.
    pure : PureError
        Noise from repetitions; used where the chosen model leaves nothing unexplained.
    count : int
        Number of alternatives to keep.

    Returns
    -------
    RunnersUp
        Weight 0 where a row has fewer.
    """
    one = choice.one
    size = coefficient_count(final.form, final.terms)
    extra = np.where(pure.unexplained(final.rss, rows.points - size), 0.0, pure.dof)
    own = _criterion(choice.rss, size, rows.points, extra, pure.variance)
    forms = 1.0 + (one.form == WITH_CONSTANT)
    rest = _criterion(one.rss.T, forms.T, rows.points, extra, pure.variance).T
    none = _criterion(choice.constant_rss, 1.0, rows.points, extra, pure.variance)
    everything = np.concatenate([rest, none[:, None]], axis=1)
    single = (final.terms >= 0).sum(axis=1) <= 1
    taken = np.where(final.form == CONSTANT, rest.shape[1], final.terms[:, 0])
    row = np.arange(len(own))
    everything[row[single], taken[single]] = np.inf
    count = min(count, everything.shape[1])
    top = _kept(everything, own, final.form == CONSTANT, count)
    order = np.argsort(np.take_along_axis(everything, top, axis=1), axis=1, kind="stable")
    top = np.take_along_axis(top, order, axis=1)
    criterion = np.concatenate([own[:, None], np.take_along_axis(everything, top, axis=1)], axis=1)
    weight = np.exp(-0.5 * (criterion - criterion.min(axis=1, keepdims=True)))
    weight /= weight.sum(axis=1, keepdims=True)
    inside = np.minimum(top, rest.shape[1] - 1)
    is_constant = (top == rest.shape[1])[..., None]
    numbers = np.stack(
        [one.constant[row[:, None], inside], one.slope[row[:, None], inside]], axis=2
    )
    # A hypothesis without feasible coefficients must not contribute to a prediction.
    absent = ~np.isfinite(np.take_along_axis(everything, top, axis=1))
    numbers[absent] = 0.0
    flat = np.stack([np.tile(choice.constant[:, None], count), np.zeros(top.shape)], axis=2)
    return RunnersUp(
        np.where(is_constant[..., 0] | absent, -1, top),
        np.where(is_constant, flat, numbers),
        weight,
    )


def _kept(everything: FloatArray, own: FloatArray, flat: BoolArray, count: int) -> IntArray:
    """Return the alternatives to keep: the best, and the slowest and fastest that are not excluded.

    Many neighbours in growth often fit equally well; the extremes show their range. A constant is
    not among the extremes, because the test against growth has decided already.
    """
    best = np.minimum(own, everything.min(axis=1))
    likely = (everything <= best[:, None] + EXCLUDED) & ~flat[:, None]
    row = np.flatnonzero(likely.any(axis=1))
    sort = everything.copy()
    if count >= 3:
        # The position of a term is its growth; the constant, last, is never an extreme here.
        inside = likely[row, :-1]
        some = inside.any(axis=1)
        row, inside = row[some], inside[some]
        sort[row, inside.argmax(axis=1)] = -np.inf
        sort[row, inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)] = -np.inf
        sort[row, everything[row].argmin(axis=1)] = -np.inf
    return np.argpartition(sort, count - 1, axis=1)[:, :count]


def _criterion(
    rss: FloatArray,
    size: FloatArray | float,
    points: FloatArray,
    extra: FloatArray,
    variance: FloatArray,
) -> FloatArray:
    """Return Akaike's criterion, corrected for few observations, repetitions included."""
    seen = points + extra
    total = floored(rss, points) + extra * variance
    parameters = np.asarray(size) + 1.0
    correction = 2 * parameters * (parameters + 1) / np.maximum(seen - parameters - 1, 1.0)
    return np.asarray(seen * np.log(total / seen) + 2 * parameters + correction)


Columns = dict[str, npt.NDArray[Any]]


def fit_classic(
    points: FloatArray,
    y: FloatArray,
    *,
    space: SearchSpace,
    folds: int | None,
    aggregate: ClassicCentre,
    confidence: float,
    each: MapLike = map,
) -> Models:
    """Return models with one hypothesis per row, chosen by cross-validation.

    Parameters
    ----------
    points : ndarray [K]
        Points, ascending.
    y : ndarray [n, K, R]
        Values; NaN = missing.
    space, folds, aggregate, confidence, each
        As for `fit`, which checks them.

    Raises
    ------
    ValueError
        If no term of the space fits the points.
    """
    basis, codes = _basis(space, points)
    setting = _Setting(points, basis, codes, folds, aggregate, confidence, space.max_terms)
    parts = (y[start : start + CLASSIC_CHUNK] for start in range(0, max(len(y), 1), CLASSIC_CHUNK))
    chunks = list(each(partial(_fit_chunk, setting), parts))
    return Models(
        space=space,
        shapes=Shapes(space.terms),
        method="classic",
        aggregate=aggregate,
        points=points,
        confidence=confidence,
        correlation=0.0,
        odd_scale=None,
        grain=0.0,
        **joined(chunks),
    )


@dataclass(frozen=True, slots=True)
class _Setting:
    points: FloatArray
    basis: Basis
    codes: Int16Array
    folds: int | None
    aggregate: ClassicCentre
    confidence: float
    max_terms: int


def _basis(space: SearchSpace, points: FloatArray) -> tuple[Basis, Int16Array]:
    """Return the terms that fit the points, evaluated, and their codes in the space."""
    usable = [
        (code, term, first)
        for code, (term, first) in enumerate(zip(space.terms, space.first_class, strict=True))
        if points[0] >= 1 or not term.log
    ]
    if not usable:
        raise ValueError(
            "all terms of the search space have logarithms, which are negative below 1"
        )
    basis = Basis.at(
        points,
        [term.growth for _, term, _ in usable],
        np.array([first for _, _, first in usable]),
    )
    return basis, np.array([code for code, _, _ in usable], dtype=np.int16)


def _fit_chunk(setting: _Setting, y: FloatArray) -> Columns:
    infinite = np.isinf(y).any(axis=(1, 2))
    reps = summarise(np.where(np.isinf(y), np.nan, y), setting.aggregate, setting.confidence)
    present = reps.counts > 0
    used = present.sum(axis=1)
    centre_ = np.where(present, reps.centre, 0.0)
    status = np.full(len(y), FitStatus.OK, dtype=np.int8)
    status[(centre_ == 0).all(axis=1)] = FitStatus.ZERO
    status[(centre_ < 0).any(axis=1)] = FitStatus.NEGATIVE
    status[used < MIN_POINTS["classic"]] = FitStatus.TOO_FEW_POINTS
    status[infinite] = FitStatus.NON_FINITE
    columns = _empty(len(y), status, reps, setting)
    row = np.flatnonzero(status == FitStatus.OK)
    if row.size:
        _fit_rows(columns, row, reps, setting)
    return columns


def _empty(count: int, status: Int8Array, reps: Repetitions, setting: _Setting) -> Columns:
    """Return the columns of a chunk before any fit."""
    present = reps.counts > 0
    zero = (status == FitStatus.ZERO)[:, None]
    return {
        "terms": np.full((count, 1), -1, dtype=np.int16),
        "coefficients": np.where(zero, 0.0, [[np.nan, 0.0]]),
        "covariance": np.zeros((count, 2, 2)),
        "spread": np.zeros(count),
        "drift": np.zeros(count),
        "dof": np.zeros(count),
        "cv_error": np.where(zero[:, 0], 0.0, np.nan),
        "r2": np.where(zero[:, 0], 1.0, np.nan),
        "adjusted_r2": np.where(zero[:, 0], 1.0, np.nan),
        "rss": np.where(zero[:, 0], 0.0, np.nan),
        "noise": reps.spread.copy(),
        "status": status,
        "used": present.sum(axis=1).astype(np.int16),
        "since": np.zeros(count),
        "before": np.full(count, -1, dtype=np.int16),
        "before_coefficients": np.zeros((count, 2)),
        "low_p": np.where(present, setting.points, np.inf).min(axis=1),
        "high_p": np.where(present, setting.points, -np.inf).max(axis=1),
        "weight": np.where(zero[:, 0], 1.0, 0.0),
        "alternative_terms": np.full((count, CLASSIC_ALTERNATIVES, 1), -1, dtype=np.int16),
        "alternative_coefficients": np.zeros((count, CLASSIC_ALTERNATIVES, 2)),
        "alternative_weight": np.zeros((count, CLASSIC_ALTERNATIVES)),
        "unit": np.ones(count),
        "root": np.zeros((count, 0, 6), dtype=np.float32),
    }


def _fit_rows(columns: Columns, row: IntArray, reps: Repetitions, setting: _Setting) -> None:
    """Fit some rows of a chunk and write them into its columns."""
    present = reps.counts[row] > 0
    values = np.where(present, reps.centre[row], 0.0)
    unit = values.max(axis=1)
    rows = WeightedRows.relative(values / unit[:, None], present, setting.folds)
    known = reps.dof[row] > 0
    pure = PureError(
        np.where(known, np.maximum(reps.centre_variance[row], EXACT**2), 1.0), reps.dof[row]
    )
    exact = looks_exact(setting.points, values, reps.spread[row], reps.dof[row])
    choice = choose(rows, setting.basis, pure, exact, setting.max_terms)
    final = estimate(rows, setting.basis, choice)
    others = runners_up(rows, choice, final, pure, CLASSIC_ALTERNATIVES)
    size = coefficient_count(final.form, final.terms)
    freedom = np.maximum(rows.points - size, 1.0)
    spread, dof = _spread(final.rss, freedom, rows.points, pure, exact)
    columns["status"][row] = _status(final, rows, pure, reps.spread[row], exact)
    columns["spread"][row], columns["dof"][row] = spread, dof
    columns["cv_error"][row] = np.sqrt(final.cv / rows.points)
    # The weights are those of the final residuals, except for the last iteration.
    left = np.where(choice.constant_rss > 0, final.rss / np.maximum(choice.constant_rss, 1e-300), 0)
    columns["r2"][row] = np.clip(1 - left, 0.0, 1.0)
    columns["adjusted_r2"][row] = 1 - (1 - columns["r2"][row]) * (rows.points - 1) / freedom
    columns["rss"][row] = final.rss
    columns["weight"][row] = others.weight[:, 0]
    columns["alternative_weight"][row, : others.terms.shape[1]] = others.weight[:, 1:]
    _write_models(columns, row, unit, final, spread, setting)
    count = others.terms.shape[1]
    codes, scale = _coded(others.terms, setting)
    columns["alternative_terms"][row, :count, 0] = codes
    numbers = others.coefficients * unit[:, None, None]
    numbers[..., 1] /= scale
    columns["alternative_coefficients"][row, :count] = numbers


def _coded(terms: IntArray, setting: _Setting) -> tuple[Int16Array, FloatArray]:
    """Return positions in the basis as codes of the space, and the scales of the basis."""
    unused = terms < 0
    codes = np.where(unused, -1, setting.codes[terms]).astype(np.int16)
    return codes, np.where(unused, 1.0, setting.basis.scale[terms])


def _write_models(
    columns: Columns,
    row: IntArray,
    unit: FloatArray,
    final: Estimate,
    spread: FloatArray,
    setting: _Setting,
) -> None:
    """Write coefficients in the unit of the metric, as wide as the largest model."""
    width = max(1, int((final.terms >= 0).sum(axis=1).max()))
    codes, scale = _coded(final.terms[:, :width], setting)
    factor = unit[:, None] / np.concatenate([np.ones((len(row), 1)), scale], axis=1)
    inverse = final.inverse[:, : width + 1, : width + 1]
    covariance = inverse * (spread[:, None, None] ** 2) * factor[:, :, None] * factor[:, None, :]
    for name, values, fill in (
        ("terms", codes, -1),
        ("coefficients", final.coefficients[:, : width + 1] * factor, 0.0),
        ("covariance", covariance, 0.0),
    ):
        columns[name] = _widened(columns[name], values.shape[1:], fill)
        columns[name][row] = values


def _spread(
    rss: FloatArray,
    freedom: FloatArray,
    points: FloatArray,
    pure: PureError,
    exact: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the relative standard deviation of a centre about its model, and degrees of freedom.

    The residuals of the best of many hypotheses are too small, because it was chosen for them.
    Without repetitions, an assumed noise counts in addition to the residuals.
    """
    residual = np.maximum(rss, points * EXACT**2)
    blind = (pure.dof == 0) & ~exact
    believed = (residual + USUAL_DOF * USUAL_SPREAD**2) / (freedom + USUAL_DOF)
    variance = np.where(blind, believed, residual / freedom)
    known = (pure.dof > 0) & ~pure.unexplained(rss, freedom)
    larger = np.where(pure.dof > 0, np.maximum(variance, pure.variance), variance)
    return np.sqrt(larger), freedom + np.where(known, pure.dof, blind * USUAL_DOF)


def _status(
    final: Estimate,
    rows: WeightedRows,
    pure: PureError,
    noise: FloatArray,
    exact: BoolArray,
) -> Int8Array:
    """Return the status of each fitted row."""
    misfit = np.sqrt(final.rss / rows.points)
    freedom = np.maximum(rows.points - coefficient_count(final.form, final.terms), 1.0)
    least = np.where(pure.dof > 0, pure.variance, np.inf)
    beyond = np.sqrt(final.rss / freedom) > FAR_BEYOND_NOISE * np.sqrt(least)
    outside = np.where(exact, misfit > EXACT_MISFIT, beyond & (misfit > MISFIT))
    flat = final.form == CONSTANT
    status = np.where(flat, FitStatus.CONSTANT, FitStatus.OK)
    noisy = flat & (np.nan_to_num(noise) > NOISY_SPREAD)
    status = np.where(outside, FitStatus.OUTSIDE, status)
    return np.where(noisy, FitStatus.NOISY, status).astype(np.int8)


def _widened(column: npt.NDArray[Any], shape: tuple[int, ...], fill: float) -> npt.NDArray[Any]:
    """Return a column with room for longer models."""
    if column.shape[1:] == shape:
        return column
    wide = np.full((len(column), *shape), fill, dtype=column.dtype)
    wide[tuple(slice(0, size) for size in column.shape)] = column
    return wide


def joined(chunks: list[Columns]) -> Columns:
    """Return the columns of all chunks together, as wide as the widest."""
    joined: Columns = {}
    for name in tuple(chunks[0]):
        parts = [chunk.pop(name) for chunk in chunks]
        shape = tuple(max(sizes) for sizes in zip(*(part.shape[1:] for part in parts), strict=True))
        fill = -1 if name in ("terms", "alternative_terms") else 0
        joined[name] = np.concatenate([_widened(part, shape, fill) for part in parts])
    return joined
