"""Models beyond the last point: bands of single runs, staircases, and laws that fit as well.

Without repetitions the noise is unknown, and a law may fit closely by chance. The last two points,
continued with a power law, give a second opinion about the next scale. In programs that were
measured once, predictions were off by more where the two opinions differed more. See
docs/explanation/noise-and-bands.md, 'Prediction and band'.

Levels of a tree, blocks of a process and iterations stay the same over several scales and then
change by a step. A law that fits such values exactly does so by chance, and does not predict the
next step. So there are two more hypotheses: the last value stays, or the last step is repeated at
each further scale. See docs/explanation/noise-and-bands.md, 'Whole numbers'.

Two growing terms of similar size at the largest scales look like other pairs of terms. If the
values do not decide between them, the prior does, and the band only holds what the prior prefers.
So the models of costly call paths with two growing terms are compared with all sums of up to two
powers once more, without the prior. See docs/explanation/noise-and-bands.md, 'Laws that fit as
well'.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import DEVIATES
from callpath_modeler.modeling.constants.outcome import (
    COSTLY,
    ENDS_SHARE,
    FAR,
    LAST_DIGIT,
    MOST_DRIFT,
    NEXT_STEP_SHARE,
    REPEATED,
    RIDGE,
    RIVAL_BEYOND,
    RIVAL_MISFIT,
    RIVAL_SHARE,
    SHORT,
)
from callpath_modeler.modeling.distributions import Prediction
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.row_models import Columns, add_alternatives
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows, SortedValues, floor_of
from callpath_modeler.modeling.repetitions import centred
from callpath_modeler.modeling.shapes import Shapes, evaluate
from callpath_modeler.modeling.terms import SearchSpace, Term


def widen(
    columns: Columns, rows: IntArray, data: ScaledRows, unit: FloatArray, hypotheses: Hypotheses
) -> None:
    """Increase the drift of single runs until bands reach the continuation of the last two points.

    Parameters
    ----------
    columns : columns of the models of all rows; `drift` grows
    rows : [n] numbers of the rows of `data`
    data : the rows that were fitted
    unit : [n] unit of each of them
    hypotheses : hypotheses with the shapes of the models
    """
    single = np.isnan(columns["noise"][rows]) & (columns["spread"][rows] > LAST_DIGIT)
    its = np.flatnonzero(single)
    there = (data.weight[its] > 0) & (data.values[its] > 0)
    enough = there.sum(axis=1) >= 2
    its, there = its[enough], there[enough]
    before, last = np.argsort(there, axis=1, kind="stable")[:, -2:].T
    every, some = np.arange(len(its)), rows[its]
    with np.errstate(divide="ignore"):
        log = np.log(data.values[its] * unit[its, None])
    ahead = 2 * log[every, last] - log[every, before]
    step = data.points[last] / data.points[before]
    target = data.points[last] * step
    places, which = np.unique(target, return_inverse=True)
    terms, numbers = columns["terms"][some], columns["coefficients"][some]
    predicted = evaluate(hypotheses.shapes, terms, numbers, places)[every, which]
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.log(predicted) - ahead
    beyond_noise = distance**2 - columns["spread"][some] ** 2
    beyond_noise = np.where(np.isfinite(beyond_noise), np.maximum(beyond_noise, 0.0), 0.0)
    more = (1 / DEVIATES) ** 2 * beyond_noise / np.log2(step)
    columns["drift"][some] = np.minimum(columns["drift"][some] + more, MOST_DRIFT)


_LOGARITHM = Term(Fraction(0), 1)
"""Term of a step at each further scale."""


def with_next_steps(
    columns: Columns, rows: IntArray, data: ScaledRows, unit: FloatArray, hypotheses: Hypotheses
) -> None:
    """Replace the two least probable alternatives of staircases by the two hypotheses.

    Parameters
    ----------
    columns : columns of the models of all rows; `weight` and the columns of alternatives change
    rows : [n] numbers of the rows of `data`
    data : the rows that were fitted, in one parameter
    unit : [n] unit of each of them
    hypotheses : hypotheses with the shapes of the models
    """
    logarithm = next((k for k, each in enumerate(hypotheses.shapes) if each == _LOGARITHM), None)
    its = _staircases(data)
    if logarithm is None or not its.size:
        return
    points, values = data.points, data.values[its] * unit[its, None]
    last, step = values[:, -1], _last_step(values)
    per_doubling = step / np.log2(points[-1] / points[-2])
    # Repeated steps downwards must stay above zero; otherwise there is one more, in proportion.
    repeated = last + REPEATED * step > 0
    next_one, stays = np.zeros((2, len(its), 2))
    next_one[:, 0] = np.where(
        repeated, last - per_doubling * np.log2(points[-1]), last**2 / np.maximum(last - step, last)
    )
    next_one[:, 1] = np.where(repeated, per_doubling, 0.0)
    stays[:, 0] = last
    terms = np.full((len(its), 2, 1), -1)
    terms[:, 1, 0] = np.where(repeated, logarithm, -1)
    numbers = np.stack([stays, next_one], axis=1)
    add_alternatives(columns, rows[its], terms, numbers, NEXT_STEP_SHARE)


def _staircases(data: ScaledRows) -> IntArray:
    """Return the rows of small whole numbers that change in one direction and are due for a step.

    A step is due where the last value lasted as long as the one before, give or take one scale. The
    length of the first value is not known, since smaller scales may have it as well.
    """
    steps = np.diff(data.values, axis=1)
    tread = np.abs(steps) <= np.sqrt(data.rounding)[:, None]
    rises, falls = (steps > 0) & ~tread, (steps < 0) & ~tread
    one_way = rises.any(axis=1) != falls.any(axis=1)
    whole = (data.rounding > 0) & (data.weight > 0).all(axis=1) & (data.values > 0).all(axis=1)
    # Lengths from the last point on; a step before the first point ends the first value.
    backwards = np.column_stack([~tread[:, ::-1], np.ones(len(tread), dtype=np.bool_)])
    last = np.argmax(backwards, axis=1)
    backwards[np.arange(len(tread)), last] = False
    before = np.argmax(backwards, axis=1) - last
    is_first = last + before == tread.shape[1]
    is_due = (before <= last + 2) & (is_first | (last <= before))
    return np.flatnonzero(whole & one_way & tread.any(axis=1) & is_due)


def _last_step(values: FloatArray) -> FloatArray:
    """Return the last change of each row, [n]."""
    steps = np.diff(values, axis=1)
    last = steps.shape[1] - 1 - np.argmax(steps[:, ::-1] != 0, axis=1)
    return np.asarray(steps[np.arange(len(steps)), last])


def costly_pairs(
    columns: Columns, values: SortedValues, cost: float, shapes: Shapes, points: FloatArray
) -> IntArray:
    """Return the rows of costly call paths whose models have two growing terms.

    The value of a costly row, at the largest point or at `FAR` times this point, is at least
    `COSTLY` of the cost of the application.

    Parameters
    ----------
    columns : columns of the models of all rows
    values : values of all rows
    cost : cost of the application at the largest point
    shapes : shapes of the models
    points : [K] points, ascending
    """
    pairs = shapes.grows[columns["terms"]].sum(axis=1) == 2
    pairs &= (columns["since"] == 0) & (columns["spread"] > LAST_DIGIT)
    if not pairs.any():
        return np.flatnonzero(pairs)
    return np.flatnonzero(pairs & _is_costly(columns, values, cost, shapes, points))


def last_values(values: SortedValues) -> FloatArray:
    """Return means at the largest point, [n]; NaN = none."""
    return np.asarray(centred(values.y[:, values.order[-1:]], "mean")[:, 0])


def _is_costly(
    columns: Columns, values: SortedValues, cost: float, shapes: Shapes, points: FloatArray
) -> BoolArray:
    """Return whether rows make up `COSTLY` of the cost, at the largest point or far beyond."""
    terms, numbers = columns["terms"], columns["coefficients"]
    far = evaluate(shapes, terms, numbers, FAR * points[-1:])[:, 0]
    return np.asarray(np.fmax(last_values(values), far) >= COSTLY * cost)


def costly_short_rows(
    columns: Columns, values: SortedValues, cost: float, shapes: Shapes, points: FloatArray
) -> IntArray:
    """Return the rows of costly call paths that grow and have only three points, as above."""
    grows = shapes.grows[columns["terms"]].any(axis=1)
    grows &= (columns["used"] == SHORT) & (columns["spread"] > LAST_DIGIT)
    if not grows.any():
        return np.flatnonzero(grows)
    return np.flatnonzero(grows & _is_costly(columns, values, cost, shapes, points))


def with_ends_of_growth(
    columns: Columns, rows: IntArray, last: FloatArray, band: Prediction
) -> None:
    """Add the law that growth ends at the largest point, unless the values decide the law.

    Three points say nothing about a further one: a power and a constant pass through them.

    Parameters
    ----------
    columns : columns of the models of all rows; `weight` and the columns of alternatives change
    rows : [n] numbers of rows, from `costly_short_rows`
    last : [n] values at the largest point; NaN = none
    band : predictions one step beyond the largest point, [n, 1]
    """
    value, low = band.value[:, 0], band.low[:, 0]
    is_open = np.flatnonzero((low > last) & (value > RIVAL_BEYOND * low))
    if is_open.size:
        terms = np.full((len(is_open), 1, 1), -1)
        numbers = np.zeros((len(is_open), 1, 2))
        numbers[:, 0, 0] = last[is_open]
        add_alternatives(columns, rows[is_open], terms, numbers, ENDS_SHARE)


def with_rival_laws(
    columns: Columns,
    rows: IntArray,
    data: ScaledRows,
    unit: FloatArray,
    hypotheses: Hypotheses,
    space: SearchSpace,
    band: Prediction,
) -> None:
    """Add the laws that predict most and least among those that fit as well, if beyond the band.

    Parameters
    ----------
    columns : columns of the models of all rows; `weight` and the columns of alternatives change
    rows : [n] numbers of the rows of `data`, from `costly_pairs`
    data : the rows that were fitted, in one parameter
    unit : [n] unit of each of them
    hypotheses : hypotheses with the shapes of the models
    space : search space, whose powers are compared
    band : predictions at `FAR` times the largest point, [n, 1]
    """
    sums = _Sums.of(hypotheses, space, float(data.points[-1]))
    fits = _fitted(data, sums)
    model = _misfit_of_models(columns, rows, data, unit, hypotheses)
    least = np.minimum(fits.misfit.min(axis=1, initial=np.inf), model)
    most = least + RIVAL_MISFIT * columns["spread"][rows] ** 2
    fits_as_well = fits.misfit <= most[:, None]
    low, high = (end[:, 0] / unit for end in (band.low, band.high))
    for is_beyond, sign in (
        (fits_as_well & (fits.far < low[:, None] / RIVAL_BEYOND), -1),
        (fits_as_well & (fits.far > high[:, None] * RIVAL_BEYOND), 1),
    ):
        its = np.flatnonzero(is_beyond.any(axis=1))
        if its.size:
            best = np.argmax(np.where(is_beyond, sign * fits.far, -np.inf)[its], axis=1)
            numbers = sums.in_parameter(fits.coefficients[its, best], best) * unit[its, None]
            terms = sums.codes[best, None]
            add_alternatives(columns, rows[its], terms, numbers[:, None], RIVAL_SHARE)


class _Sums(Struct, frozen=True):
    """All sums of one or two growing powers, with and without a constant.

    Attributes
    ----------
    codes : [L, 2] codes of the shapes of the powers; -1 = none
    exponents : [L, 3] exponents, that of the constant first
    used : [L, 3] whether a sum has the constant and the powers
    largest : the largest point; powers are relative to it
    """

    codes: IntArray
    exponents: FloatArray
    used: BoolArray
    largest: float

    @classmethod
    def of(cls, hypotheses: Hypotheses, space: SearchSpace, largest: float) -> _Sums:
        """Return the sums of the powers of a search space that have a shape."""
        chosen = {Term(each, 0): float(each) for each in space.exponents if each > 0}
        powers = [(k, chosen[each]) for k, each in enumerate(hypotheses.shapes) if each in chosen]
        every = chain(combinations(powers, 1), combinations(powers, 2))
        padded = [(*each, *[(-1, 0.0)] * (2 - len(each))) for each in every]
        table = np.array([[*zip(*each, strict=True)] for each in padded]).reshape(-1, 2, 2)
        codes, exponents = table[:, 0].astype(np.intp), table[:, 1]
        there = codes >= 0
        return cls(
            np.concatenate([codes, codes]),
            np.pad(np.concatenate([exponents, exponents]), [(0, 0), (1, 0)]),
            np.column_stack([np.repeat([False, True], len(codes)), np.concatenate([there, there])]),
            largest,
        )

    def at(self, relative: FloatArray) -> FloatArray:
        """Return the powers at multiples [m] of the largest point, [L, 3, m]; 0 = not used."""
        values = relative ** self.exponents[..., None]
        return np.where(self.used[..., None], values, 0.0)

    def in_parameter(self, coefficients: FloatArray, which: IntArray) -> FloatArray:
        """Return coefficients [n, 3] of sums [n] for powers of the parameter itself."""
        return np.asarray(coefficients / self.largest ** self.exponents[which])


class _Fits(Struct, frozen=True):
    """Fits of L sums to n rows, in units of the rows.

    Attributes
    ----------
    coefficients : [n, L, 3] coefficients of powers relative to the largest point
    misfit : [n, L] sums of squares of relative errors; infinite if a coefficient is not positive
    far : [n, L] predictions at `FAR` times the largest point
    """

    coefficients: FloatArray
    misfit: FloatArray
    far: FloatArray


def _fitted(data: ScaledRows, sums: _Sums) -> _Fits:
    """Return the fits of sums by least squares of relative errors."""
    table = sums.at(data.points / sums.largest)
    per_value = _per_value(data)
    wanted = per_value * data.values
    square = np.einsum("nk,lak,lbk->nlab", per_value**2, table, table, optimize=True)
    right = np.einsum("nk,lak->nla", per_value * wanted, table, optimize=True)
    # A term that a sum does not have gets a coefficient of zero.
    size = np.sqrt(np.einsum("nlaa->nla", square)) + ~sums.used
    square = square / (size[..., None] * size[..., None, :]) + RIDGE * np.eye(3)
    numbers = np.linalg.solve(square, (right / size)[..., None])[..., 0] / size
    misfit = (wanted**2).sum(axis=1)[:, None] - (numbers * right).sum(axis=2)
    possible = ((numbers > 0) | ~sums.used).all(axis=2)
    possible &= data.used[:, None] >= sums.used.sum(axis=1)
    misfit = np.where(possible, np.maximum(misfit, 0.0), np.inf)
    far = np.einsum("nla,la->nl", numbers, sums.at(np.array([FAR]))[..., 0])
    return _Fits(numbers, misfit, far)


def _per_value(data: ScaledRows) -> FloatArray:
    """Return the factors that make errors relative and weighted, [n, K]; 0 without a value."""
    return np.asarray(np.sqrt(data.weight) / np.maximum(data.values, floor_of(data)))


def _misfit_of_models(
    columns: Columns, rows: IntArray, data: ScaledRows, unit: FloatArray, hypotheses: Hypotheses
) -> FloatArray:
    """Return the sums of squares of relative errors of models, [n]."""
    terms, numbers = columns["terms"][rows], columns["coefficients"][rows]
    values = evaluate(hypotheses.shapes, terms, numbers, data.points) / unit[:, None]
    errors = _per_value(data) * (values - data.values)
    return np.asarray((errors**2).sum(axis=1))
