"""Columns of the models of rows, made from their posterior, and the status of other rows.

See docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, Int16Array, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling.constants.limits import MOST_SHAPES
from callpath_modeler.modeling.constants.outcome import (
    AGREES,
    ALTERNATIVES,
    COARSE,
    FAR_APART,
    FAR_BEYOND_NOISE,
    MISFIT,
    MOST_DRIFT,
    NOISY_SPREAD,
    PARALLEL,
    PREDICTED,
    ROUNDING,
    TAILS,
    TIED,
)
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.posterior import Posterior, far_values
from callpath_modeler.modeling.mixture.residuals import MisfitBaseline
from callpath_modeler.modeling.mixture.scaled_rows import RepetitionStats, ScaledRows, floor_of
from callpath_modeler.modeling.model_columns import (
    FitStatus,
    numbers_of_root,
    roots,
    with_more_terms,
)
from callpath_modeler.modeling.products import Shape
from callpath_modeler.modeling.repetitions import looks_exact

Columns = dict[str, npt.NDArray[Any]]


_PER_AGREED = 4 / AGREES
"""Cells per unit of log prediction; the hypotheses in a cell, often hundreds, are compared as one.

A cell is a quarter of the difference above.
"""


def empty_columns(count: int, places: int, terms: int = 2) -> Columns:
    """Return the columns of `count` rows before any fit, with up to `terms` terms per model.

    `places` is the number of places in `far_tables`. Products of all terms of three parameters have
    large numbers.
    """
    numbers, others = np.full(count, np.nan), max(places - 1, 1) * ALTERNATIVES
    code = np.int16 if terms == 2 else np.int32
    return {
        "terms": np.full((count, terms), -1, dtype=code),
        "coefficients": np.tile([np.nan, *[0.0] * terms], (count, 1)),
        "covariance": np.zeros((count, 0, 0)),
        "spread": np.zeros(count),
        "drift": np.zeros(count),
        "dof": np.zeros(count),
        "cv_error": numbers,
        "r2": numbers.copy(),
        "adjusted_r2": numbers.copy(),
        "rss": numbers.copy(),
        "noise": numbers.copy(),
        "status": np.zeros(count, dtype=np.int8),
        "used": np.zeros(count, dtype=np.int16),
        "since": np.zeros(count),
        "before": np.full(count, -1, dtype=np.int16),
        "before_coefficients": np.zeros((count, 2)),
        "low_p": numbers.copy(),
        "high_p": numbers.copy(),
        "weight": np.zeros(count),
        "alternative_terms": np.full((count, others, terms), -1, dtype=code),
        "alternative_coefficients": np.zeros((count, others, 1 + terms)),
        "alternative_weight": np.zeros((count, others), dtype=np.float32),
        "unit": np.ones(count),
        "root": np.zeros((count, 1 + others, numbers_of_root(terms)), dtype=np.float32),
    }


def with_room_for_terms(columns: Columns, terms: int) -> Columns:
    """Return the columns with room for `terms` terms per model."""
    more = terms - columns["terms"].shape[1]
    if not more:
        return columns
    found = dict(columns)
    for name in ("terms", "alternative_terms"):
        found[name] = _padded(columns[name].astype(np.int32), more, -1)
    for name in ("coefficients", "alternative_coefficients"):
        found[name] = _padded(columns[name], more, 0)
    found["root"] = with_more_terms(columns["root"], terms)
    return found


def _padded(column: npt.NDArray[Any], more: int, value: int) -> npt.NDArray[Any]:
    return np.pad(column, [(0, 0)] * (column.ndim - 1) + [(0, more)], constant_values=value)


def only_used(columns: Columns, shape_of: Callable[[int], Shape]) -> list[Shape]:
    """Return the shapes that occur in models, and renumber the codes in `columns` to match.

    Few of thousands of products occur in models, and each one costs time when models are evaluated.
    `shape_of` returns the shape of a code; two codes may have the same shape.
    """
    names = "terms", "alternative_terms", "before"
    used = np.unique(np.concatenate([np.unique(columns[name]) for name in names]))
    if len(used) > MOST_SHAPES:
        _leave_out_rare_shapes(columns, used)
        used = np.unique(np.concatenate([np.unique(columns[name]) for name in names]))
    # The code -1 stands for no shape.
    shapes = {code: shape_of(code) for code in used.tolist() if code >= 0}
    place = {shape: k for k, shape in enumerate(dict.fromkeys(shapes.values()))}
    number = np.array([place[shapes[code]] if code >= 0 else -1 for code in used.tolist()])
    for name in names:
        columns[name] = number[np.searchsorted(used, columns[name])].astype(np.int16)
    return list(place)


def _leave_out_rare_shapes(columns: Columns, used: IntArray) -> None:
    """Replace the laws with rare shapes by the most probable law of their row without any.

    Columns of models can count `MOST_SHAPES` shapes, which thousands of call paths in several
    parameters may exceed. `used` are the codes in ascending order.
    """
    codes, numbers = (
        np.concatenate([columns[name][:, None], columns[f"alternative_{name}"]], axis=1)
        for name in ("terms", "coefficients")
    )
    weight = np.column_stack([columns["weight"], columns["alternative_weight"]])
    place = np.searchsorted(used, codes)
    share = np.bincount(place.ravel(), np.repeat(weight.ravel(), codes.shape[2]), len(used))
    # The shapes of the models themselves come first.
    share += len(weight) * np.bincount(place[:, 0].ravel(), minlength=len(used))
    share[used < 0] = np.inf
    kept = np.zeros(len(used), dtype=np.bool_)
    kept[np.argsort(-share, kind="stable")[:MOST_SHAPES]] = True
    there: BoolArray = np.all(kept[place], axis=2)
    left = np.where(there, weight, 0.0)
    best = left.argmax(axis=1)
    if np.any((left.max(axis=1) == 0) & ~there[:, 0]):
        raise UsageError(
            f"the models have more than {MOST_SHAPES} different products of terms",
            hint="model fewer call paths at once, or use fewer exponents",
        )
    row, which = np.nonzero(~there)
    codes[row, which], numbers[row, which] = codes[row, best[row]], numbers[row, best[row]]
    columns["root"][row, which] = columns["root"][row, best[row]]
    columns["terms"], columns["alternative_terms"] = codes[:, 0], codes[:, 1:]
    columns["coefficients"], columns["alternative_coefficients"] = numbers[:, 0], numbers[:, 1:]


def write_models(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: ScaledRows,
    unit: FloatArray,
    hypotheses: Hypotheses,
    far: FloatArray,
    baseline: MisfitBaseline,
) -> None:
    """Write the models of some rows into their columns, in the unit of the metric.

    `far` [F, S + 1] holds the shapes far beyond the points, as returned by `far_tables`.
    """
    kernels().write_models(columns, rows, found, data, unit, hypotheses, far, baseline)


class ShapeColumns(Struct, frozen=True):
    """S shapes of models as numbers, and one more entry that stands for no shape.

    Attributes
    ----------
    code : [S + 1] number of each shape in the columns of models; -1 = no shape
    scale : [S + 1] largest magnitude of each shape at the points
    table : [S + 1, K] each shape at each point, scaled to a largest magnitude of 1
    breaks : [S + 1] whether a shape is a break
    far : [F, S + 1] shapes far beyond the points, as returned by `far_tables`
    outside : [H] whether each hypothesis is outside the model class
    """

    code: IntArray
    scale: FloatArray
    table: FloatArray
    breaks: BoolArray
    far: FloatArray
    outside: BoolArray

    @classmethod
    def of(cls, hypotheses: Hypotheses, far: FloatArray) -> Self:
        """Return the shapes of hypotheses."""
        return cls(
            np.append(np.arange(len(hypotheses.shapes)), -1),
            np.append(hypotheses.scale, 1.0),
            hypotheses.table_and_none,
            hypotheses.breaks,
            far,
            hypotheses.outside,
        )


def write_spread(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: ScaledRows,
    unit: FloatArray,
) -> None:
    """Write the units of rows, and the variance of measurements about their models."""
    columns["unit"][rows] = unit
    columns["spread"][rows] = np.sqrt(found.variance)
    columns["drift"][rows] = np.minimum(found.drift, MOST_DRIFT)
    columns["dof"][rows] = data.dof


def write_found(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    codes: IntArray,
    data: ScaledRows,
    unit: FloatArray,
    shapes: ShapeColumns,
    baseline: MisfitBaseline,
    shown: BoolArray | None = None,
) -> None:
    """Write models as `write_models` does, of any shapes `codes` [M, T], -1 = none.

    The model is one of the candidates marked by `shown` [M]; None = all are.
    """
    write_spread(columns, rows, found, data, unit)
    kept, weight = _kept(found, [far_values(found, codes, each) for each in shapes.far], shown)
    there = weight > 0
    codes = codes[kept]
    # A term with a coefficient of zero is dropped, because its shape would suggest growth.
    scaled = found.coefficients[:, kept]
    scaled = np.where(there & (np.abs(scaled) > ROUNDING * data.least[:, None]), scaled, 0.0)
    scaled = np.ascontiguousarray(scaled.transpose(1, 2, 0))
    codes = np.where(scaled[..., 1:] != 0, codes, -1)
    factor = np.concatenate([np.ones((*codes.shape[:2], 1)), 1 / shapes.scale[codes]], axis=2)
    factor *= unit[:, None, None]
    numbers = scaled * factor
    columns["terms"][rows] = shapes.code[codes[:, 0]]
    columns["coefficients"][rows] = numbers[:, 0]
    columns["weight"][rows] = weight[:, 0]
    others = kept.shape[1] - 1
    columns["alternative_terms"][rows, :others] = shapes.code[codes[:, 1:]]
    columns["alternative_coefficients"][rows, :others] = numbers[:, 1:]
    columns["root"][rows, : 1 + others] = roots(found.covariance[:, kept]) * there[..., None]
    columns["alternative_weight"][rows, :others] = weight[:, 1:]
    _write_quality(columns, rows, scaled[:, 0], codes[:, 0], data, shapes)
    broken = np.bincount(found.row, found.weight * shapes.outside[found.chosen], len(rows)) > 0.5
    broken |= shapes.breaks[codes[:, 0]].any(axis=1)
    columns["status"][rows] = _status(columns, rows, found, broken, data, unit, baseline)


def _kept(
    found: Posterior,
    far: Sequence[FloatArray],
    shown: BoolArray | None = None,
) -> tuple[IntArray, FloatArray]:
    """Return the candidates that represent all, the model first, [n, 1 + A], and their weights.

    The model minimises the expected loss at the first place far beyond the points. At each other
    place (at the first one, if it is the only one) up to seven alternatives represent all
    candidates except the model.
    """
    logs = [logarithms(each) for each in far]
    if shown is None:
        first = minimum_expected_loss(found, logs[0], np.lexsort((logs[0], found.row)))
    else:
        its = np.flatnonzero(shown)
        few = structs.replace(found, row=found.row[its], weight=found.weight[its])
        first = its[minimum_expected_loss(few, logs[0][its], np.lexsort((logs[0][its], few.row)))]
    rest = found.weight.copy()
    rest[first] = 0.0
    others = [_quantile_representatives(found, each, rest) for each in logs[1:] or logs]
    kept = np.concatenate([first[:, None], *(stands for stands, _ in others)], axis=1)
    weight = np.concatenate([found.weight[first, None], *(share for _, share in others)], axis=1)
    # Negligible candidates were left out before, so weights sum to less than 1.
    return kept, weight / weight[:, : 1 + ALTERNATIVES].sum(axis=1, keepdims=True)


def logarithms(far: FloatArray) -> FloatArray:
    """Return the logarithms of predictions, equal for predictions that differ only by rounding.

    A sum with a constant of zero predicts the same as its term alone. The order of both decides
    which candidates each represents, so it must not depend on the last bit.
    """
    return np.asarray((np.log(np.clip(far, *PREDICTED)) + COARSE) - COARSE)


def _quantile_representatives(
    found: Posterior, log: FloatArray, rest: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return candidates that represent the others far beyond the points, and their weights, [n, A].

    Candidates with the weights `rest` [M] are ordered by their log predictions there, `log` [M],
    and divided into parts. The most probable candidate of each part gets the weight of the part.
    """
    rows = len(found.variance)
    order = np.lexsort((log, found.row))
    ordered, row = rest[order], found.row
    running = ordered.cumsum()
    end = np.cumsum(np.bincount(row, minlength=rows)) - 1
    before = np.concatenate([[0.0], running[end[:-1]]])
    whole = running[end] - before
    middle = (running - ordered / 2 - before[row]) / np.where(whole > 0, whole, 1.0)[row]
    part = row * ALTERNATIVES + np.searchsorted(TAILS, middle)
    size = rows * ALTERNATIVES
    share: FloatArray = np.bincount(part, ordered, size).reshape(rows, -1).astype(np.float64)
    stands = order[_most_probable(part, ordered, size)].reshape(rows, -1)
    by_weight = np.argsort(-share, axis=1, kind="stable")
    every = np.arange(rows)[:, None]
    return stands[every, by_weight], share[every, by_weight]


def minimum_expected_loss(found: Posterior, log: FloatArray, order: IntArray) -> IntArray:
    """Return the model of each row, [n]: the candidate with the smallest expected loss.

    Let d_hk be the difference between the log predictions of h and k, `log` [M] of `logarithms`.
    The model minimises ``sum over k of P(k) log(0.05 + d_hk)``. This is the expected number of
    digits of the error if another candidate is true. Hypotheses with nearly equal predictions are
    one law in several forms. The most probable one near the best prediction is the model. `order`
    sorts by row and prediction.
    """
    rows, row, ordered = len(found.variance), found.row[order], log[order]
    lowest = ordered[np.searchsorted(row, np.arange(rows)).clip(max=len(row) - 1)]
    part = np.floor((ordered - lowest[row]) * _PER_AGREED)
    new = np.concatenate([[True], (np.diff(row) != 0) | (np.diff(part) != 0)])
    first = np.flatnonzero(new)
    row, place, weight = row[first], ordered[first], np.add.reduceat(found.weight[order], first)
    close = weight * np.log(FAR_APART / AGREES)
    for apart in range(1, int(np.bincount(row).max())):
        one = np.flatnonzero(row[apart:] == row[:-apart])
        other = one + apart
        each = np.log(FAR_APART / (AGREES + place[other] - place[one]))
        close[one] += weight[other] * each
        close[other] += weight[one] * each
    centre = place[_most_probable(row, close, rows)]
    near = np.abs(log - centre[found.row]) <= AGREES
    return _most_probable(found.row, np.where(near, found.weight, 0.0), rows)


def _most_probable(group: IntArray, weight: FloatArray, count: int) -> IntArray:
    """Return the entry with the largest weight in each of `count` groups, [count]; 0 in empty ones.

    Of equal entries it is the first, so that rounding does not choose.
    """
    best = np.zeros(count)
    np.maximum.at(best, group, weight)
    where = np.flatnonzero(weight * (1 + TIED) >= best[group])[::-1]
    found = np.zeros(count, dtype=np.intp)
    found[group[where]] = where
    return found


def _write_quality(
    columns: Columns,
    rows: IntArray,
    numbers: FloatArray,
    codes: IntArray,
    data: ScaledRows,
    shapes: ShapeColumns,
) -> None:
    """Write the relative residuals of the models at the points, and the measures made of them."""
    table = shapes.table.T
    used, values = (data.weight > 0).T, data.values.T
    # Errors are relative; a point without a value has none.
    per_value = np.where(used, 1 / np.maximum(values, floor_of(data).T), 0.0)
    design = [per_value, *(per_value * table[:, code] for code in codes.T)]
    model = sum(number * column for number, column in zip(numbers.T, design, strict=True))
    relative = per_value * values
    residual = relative - model
    about = relative - per_value * (per_value.sum(axis=0) / (per_value**2).sum(axis=0))
    rss, total = (residual**2).sum(axis=0), (about**2).sum(axis=0)
    points, size = used.sum(axis=0), (numbers != 0).sum(axis=1)
    left_out = residual / np.maximum(1 - _leverage(design, numbers.T != 0), 1e-6)
    columns["rss"][rows] = rss
    columns["cv_error"][rows] = np.sqrt((left_out**2).sum(axis=0) / points)
    r2 = np.clip(1 - np.where(total > 0, rss / np.where(total > 0, total, 1.0), 0.0), 0.0, 1.0)
    columns["r2"][rows] = r2
    columns["adjusted_r2"][rows] = 1 - (1 - r2) * (points - 1) / np.maximum(points - size, 1)


def _leverage(design: list[FloatArray], used: BoolArray) -> FloatArray:
    """Return the leverage of each point on its own prediction, [K, n].

    It comes from the Gram-Schmidt process on the columns [K, n] of `design` that are `used`, [q,
    n].
    """
    hat, basis = np.zeros_like(design[0]), list[FloatArray]()
    for column, there in zip(design, used, strict=True):
        left = column * there
        size = (left**2).sum(axis=0)
        for other in basis:
            left = left - other * (other * left).sum(axis=0)
        square = (left**2).sum(axis=0)
        # A rest that is only rounding has no direction.
        tells = square > PARALLEL * size
        left = left * (tells / np.sqrt(np.where(tells, square, 1.0)))
        hat += left**2
        basis.append(left)
    return np.minimum(hat, 1.0)


def _status(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    broken: BoolArray,
    data: ScaledRows,
    unit: FloatArray,
    baseline: MisfitBaseline,
) -> Int8Array:
    """Return the status of each row; those marked by `broken` [n] follow a break."""
    noise, spread = np.sqrt(data.variance), np.sqrt(found.variance)
    beyond = (spread > FAR_BEYOND_NOISE * noise) & (spread > MISFIT)
    repeated = ~np.isnan(columns["noise"][rows])
    spread_, dof = columns["noise"][rows], np.where(repeated, 1.0, 0.0)
    first = data.points if data.points.ndim == 1 else data.points[:, 0]
    exact = looks_exact(first, data.values * unit[:, None], spread_, dof)
    points = np.maximum((data.weight > 0).sum(axis=1), 1)
    misfit = np.sqrt(columns["rss"][rows] / points)
    # With few points the prior determines the deviation, so the residual has to show it, too.
    size = 1 + (columns["terms"][rows] >= 0).sum(axis=1)
    left = np.sqrt(columns["rss"][rows] / np.maximum(points - size, 1))
    beyond &= left > FAR_BEYOND_NOISE * noise
    beyond = np.where(repeated, beyond, left > baseline.most)
    outside = broken | beyond | (exact & (misfit > baseline.exactly(data)))
    flat = (columns["terms"][rows] < 0).all(axis=1)
    status = np.where(flat, FitStatus.CONSTANT, FitStatus.OK)
    status = np.where(outside, FitStatus.OUTSIDE, status)
    noisy = flat & (np.nan_to_num(columns["noise"][rows]) > NOISY_SPREAD)
    return np.where(noisy, FitStatus.NOISY, status).astype(np.int8)


def row_status(y: FloatArray, reps: RepetitionStats) -> Int8Array:
    """Return the status of rows that cannot be modelled, [n]; all others are OK for now."""
    result: Int8Array = kernels().row_status(y, reps)
    return result


def fill_status(
    columns: Columns, points: FloatArray, reps: RepetitionStats, status: Int8Array
) -> None:
    """Write the columns that do not need a model."""
    columns["status"][:] = status
    first = points if points.ndim == 1 else points[:, 0]
    columns["used"][:], low, high = point_counts(reps.count, first)
    if points.ndim == 1:
        columns["low_p"][:], columns["high_p"][:] = low, high
    zero = status == FitStatus.ZERO
    columns["coefficients"][zero] = 0.0
    columns["weight"][zero] = 1.0
    for name, number in (("cv_error", 0.0), ("rss", 0.0), ("r2", 1.0), ("adjusted_r2", 1.0)):
        columns[name][zero] = number


def point_counts(
    count: FloatArray, points: FloatArray
) -> tuple[Int16Array, FloatArray, FloatArray]:
    """Return the number of points with a value, the smallest and the largest of them, each [n]."""
    result: tuple[Int16Array, FloatArray, FloatArray] = kernels().point_counts(count, points)
    return result


def add_alternatives(
    columns: Columns, rows: IntArray, terms: IntArray, numbers: FloatArray, share: float
) -> None:
    """Replace the least probable alternatives of some rows by further laws.

    Parameters
    ----------
    columns : columns of the models of all rows; `weight` and the columns of alternatives change
    rows : [n] numbers of the rows
    terms : [n, M, T] codes of the shapes of M laws; -1 = none
    numbers : [n, M, 1 + T] their coefficients, in the unit of the metric
    share : probability of each law; the others share the rest in proportion
    """
    count, last = terms.shape[1], slice(-terms.shape[1], None)
    weight = np.column_stack([columns["weight"][rows], columns["alternative_weight"][rows]])
    weight[:, last] = 0.0
    weight *= ((1 - count * share) / weight.sum(axis=1))[:, None]
    weight[:, last] = share
    columns["weight"][rows] = weight[:, 0]
    codes, its = columns["alternative_terms"][rows], columns["alternative_coefficients"][rows]
    root = columns["root"][rows]
    codes[:, last], its[:, last], root[:, last] = -1, 0.0, 0.0
    codes[:, last, : terms.shape[2]] = terms
    its[:, last, : numbers.shape[2]] = numbers
    order = np.argsort(-weight[:, 1:], axis=1, kind="stable")
    every = np.arange(len(rows))[:, None]
    columns["alternative_weight"][rows] = weight[:, 1:][every, order]
    columns["alternative_terms"][rows] = codes[every, order]
    columns["alternative_coefficients"][rows] = its[every, order]
    root[:, 1:] = root[:, 1:][every, order]
    columns["root"][rows] = root
