"""Models along one parameter: slices of models in several, and models of the runs along that line.

**Slices.** With all parameters but one held at values, a product of factors becomes a number times
a term of the remaining parameter, or a constant. Coefficients and their covariances follow
linearly. See docs/explanation/several-parameters.md, 'Slices'.

**Runs along one parameter.** If no run was made at the held values, the nearest run of that scale
is moved there. Its values are multiplied by the ratio of the surface at both places. An error in
the shape of the surface along the line cancels in that ratio, so the line keeps the shape that the
other runs measured.

**Both together.** Measurements at one value of a parameter often deviate alike from a law in
several parameters, because placements, networks and protocols belong to a scale. A surface counts
these measurements as independent evidence. Anything that shared work hides is hidden at all values.
Runs along one parameter have few points, so the bands of their models are wide. See
docs/explanation/several-parameters.md, 'Runs along one parameter'.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import BoolArray, FloatArray, Int16Array, IntArray
from callpath_modeler.modeling.constants.hypotheses import (
    AS_CLOSE,
    AS_CLOSE_UNREPEATED,
    DEVIATES,
    DOUBT,
)
from callpath_modeler.modeling.constants.noise import EXACT_VARIANCE
from callpath_modeler.modeling.constants.several import LEAST_SUM, RATIOS_TOGETHER
from callpath_modeler.modeling.distributions import Mixture, Prediction
from callpath_modeler.modeling.fitting import centre, default_space, fit, learn
from callpath_modeler.modeling.model_columns import (
    MIN_POINTS,
    column_names,
    covariances,
    rescaled,
    roots_of,
)
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.products import NOTHING, Product, Shape
from callpath_modeler.modeling.shapes import Shapes, doublings, peaks


def slice_along(models: Models, axis: int, at: npt.ArrayLike) -> Models:
    """Return models along one parameter, with all other parameters held at values.

    Parameters
    ----------
    models : Models
        Models in D parameters.
    axis : int
        The parameter that is left.
    at : array_like [D]
        Values of all parameters, above zero and finite; that of `axis` has no effect.

    Returns
    -------
    Models
        Models in one parameter, over its distinct values. At each target they predict the same as
        `models`. The deviation of measurements grows with the distance between held and measured
        values.

    Raises
    ------
    ValueError
        If `models` has one parameter, or the values are not as described.
    """
    if models.points.ndim == 1:
        raise ValueError("models in one parameter have nothing to hold")
    count = models.points.shape[1]
    held = np.array(at, dtype=np.float64)
    if held.shape != (count,) or not 0 <= axis < count:
        raise ValueError(f"expected an axis and values of {count} parameters")
    held[axis] = 1.0
    if not (np.isfinite(held) & (held > 0)).all():
        raise ValueError("values of held parameters must be finite and above zero")
    terms, code, factor = _split(models, axis, held)
    codes, numbers, covariance, weight = _hypotheses(models, axis)
    change, kept = _change(code[codes], factor[codes])
    numbers = np.einsum("ncij,ncj->nci", change, numbers)
    covariance = change @ covariance @ change.swapaxes(-1, -2)
    codes_left: Int16Array = np.where(numbers[..., 1:] != 0, kept, -1).astype(np.int16)
    points = np.unique(models.points[:, axis])
    spread = np.sqrt(models.spread**2 + models.drift * _distance(models.points, axis, held))
    return replace(
        models,
        shapes=terms,
        points=points,
        terms=codes_left[:, 0],
        coefficients=numbers[:, 0],
        spread=spread,
        low_p=np.full(len(models), points[0]),
        high_p=np.full(len(models), points[-1]),
        alternative_terms=codes_left[:, 1:],
        alternative_coefficients=numbers[:, 1:],
        alternative_weight=weight[:, 1:].astype(models.alternative_weight.dtype),
        root=roots_of(covariance, codes_left, peaks(terms.table(points))).astype(np.float32),
    )


def _hypotheses(models: Models, axis: int) -> tuple[Int16Array, FloatArray, FloatArray, FloatArray]:
    """Return the hypotheses of slices along one parameter, the models themselves first.

    Returns
    -------
    codes, coefficients, covariance, weight : [n, C, T], [n, C, 1 + T], [n, C, 1 + T, 1 + T] in the
        unit of the rows, and [n, C]
    """
    # Each parameter has separate alternatives.
    size = models.alternative_weight.shape[1] // models.points.shape[1]
    others = slice(axis * size, (axis + 1) * size)
    codes = np.concatenate([models.terms[:, None], models.alternative_terms[:, others]], axis=1)
    numbers = np.concatenate(
        [models.coefficients[:, None], models.alternative_coefficients[:, others]], axis=1
    )
    root = np.concatenate([models.root[:, :1], models.root[:, 1:][:, others]], axis=1)
    weight = np.concatenate([models.weight[:, None], models.alternative_weight[:, others]], axis=1)
    covariance = covariances(root, codes, peaks(models.shapes.table(models.points)))
    return codes, numbers, covariance, weight.astype(np.float64)


def ratio_of_sums(models: Models, axis: int, here: FloatArray, there: FloatArray) -> Prediction:
    """Return the ratios of the sums of all predictions here to the sums there, with bands.

    A hypothesis and the errors of its coefficients affect both sums, so a part of them cancels. The
    band holds the ratio of the laws. It does not include the noise of measurements.

    Parameters
    ----------
    models : n models in D parameters, of the mixture method
    axis : the parameter along which hypotheses are compared
    here, there : [m, D] settings

    Returns
    -------
    Prediction
        Value, low and high, each [m]; NaN where a sum has no number.
    """
    codes, numbers, covariance, weight = _hypotheses(models, axis)
    weight = weight / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    # Unused slots have no numbers.
    numbers = np.where(weight[..., None] > 0, numbers, 0.0)
    covariance = np.where(weight[..., None, None] > 0, covariance, 0.0)
    covariance *= models.unit[:, None, None, None] ** 2
    at_once = max(1, RATIOS_TOGETHER // numbers.size)
    found = [
        _ratios(models, (codes, numbers, covariance, weight), here[block], there[block])
        for block in (slice(first, first + at_once) for first in range(0, len(here), at_once))
    ]
    return Prediction(*np.concatenate(found, axis=1))


def _ratios(
    models: Models,
    hypotheses: tuple[Int16Array, FloatArray, FloatArray, FloatArray],
    here: FloatArray,
    there: FloatArray,
) -> FloatArray:
    """Return values, lower and upper ends of the ratios of `ratio_of_sums`, [3, m]."""
    codes, numbers, covariance, weight = hypotheses
    designs, sums, parts, drift = [], [], [], np.zeros(1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for settings in (here, there):
            shapes = models.shapes.table(settings)[codes]
            design = np.concatenate([np.ones_like(shapes[:, :, :1]), shapes], axis=2)
            each = np.einsum("ncj,ncjm->ncm", numbers, design)
            sums.append(each[:, 0].sum(axis=0))
            parts.append((sums[-1] + each - each[:, :1]) / sums[-1])
            designs.append(design / sums[-1])
            share = each[:, :1] / sums[-1]
            drift = drift + _beyond(models.points, settings) * share**2
        gradient = designs[0] - designs[1]
        variance = np.einsum("ncjm,ncjk,nckm->ncm", gradient, covariance, gradient)
        variance += models.drift[:, None, None] * drift
        centre = np.maximum(parts[0], LEAST_SUM) / np.maximum(parts[1], LEAST_SUM)
        spread = np.sqrt(np.maximum(variance, 0.0))
        tail = (1 - models.confidence) / 2
        ends = np.log(Mixture(centre, spread, spread, weight).quantiles([tail, 1 - tail]))
        value = sums[0] / sums[1]
        below, above = np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0)
        low, high = (
            value * np.exp(sign * np.sqrt((end**2).sum(axis=0)))
            for sign, end in ((-1, below), (1, above))
        )
    return np.stack([value, low, high])


def _beyond(points: FloatArray, settings: FloatArray) -> FloatArray:
    """Return the distance of settings outside of the measured range, in doublings, [m]."""
    low, high = points.min(axis=0), points.max(axis=0)
    outside = np.maximum(np.maximum(settings / high, low / settings), 1.0)
    return np.asarray(np.log2(outside).sum(axis=1))


def _split(models: Models, axis: int, held: FloatArray) -> tuple[Shapes, IntArray, FloatArray]:
    """Return the remaining factors, and for each product its remaining factor and a number.

    The factor is -1 if the product does not depend on the remaining parameter. The last entry
    stands for no product.
    """
    products = [shape for shape in models.shapes if isinstance(shape, Product)]
    left = [shape.factors[axis] for shape in products]
    terms = Shapes.of(factor for factor in left if factor != NOTHING)
    number = {term: code for code, term in enumerate(terms)}
    code = np.array([*(number.get(term, -1) for term in left), -1], dtype=np.intp)
    rest = [
        Product((*shape.factors[:axis], NOTHING, *shape.factors[axis + 1 :])) for shape in products
    ]
    factor = np.array([*(float(shape(held[None])[0]) for shape in rest), 0.0])
    return terms, code, factor


def _change(code: IntArray, factor: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the linear map of the coefficients, [n, C, 3, 1 + T], and the terms of the new ones.

    In sums of more than two terms, at most one term depends on the parameter.
    """
    first, second = code[..., 0], code[..., 1]
    rest = code[..., 2:].max(axis=-1, initial=-1)
    # The rest of a pair comes first if the other is a constant now, or the same term.
    one = (first < 0) | (second < 0) | (first == second)
    swap = ~one & (first > second)
    slot = np.zeros(code.shape, dtype=np.intp)
    slot[..., 0] = np.where(first < 0, 0, np.where(swap, 2, 1))
    slot[..., 1] = np.where(second < 0, 0, np.where(one | swap, 1, 2))
    slot[..., 2:] = np.where(code[..., 2:] < 0, 0, 1)
    change = np.zeros((*code.shape[:-1], 3, 1 + code.shape[-1]))
    change[..., 0, 0] = 1.0
    for old in range(code.shape[-1]):
        for new in range(3):
            change[..., new, old + 1] += np.where(slot[..., old] == new, factor[..., old], 0.0)
    kept = np.full((*code.shape[:-1], 2), -1, dtype=np.intp)
    only = np.maximum(np.maximum(first, second), rest)
    kept[..., 0] = np.where(one | swap, np.where(one, only, second), first)
    kept[..., 1] = np.where(one, -1, np.maximum(first, second))
    return change, kept


def _distance(points: FloatArray, axis: int, held: FloatArray) -> float:
    """Return the distance of held values outside of the measured ones, in doublings."""
    others = [other for other in range(points.shape[1]) if other != axis]
    return float(_beyond(points[:, others], held[None, others])[0])


@dataclass(frozen=True, slots=True)
class LineRuns:
    """Values along one parameter at held values of the others, measured there or moved there.

    Attributes
    ----------
    points : [K] all measured values of the parameter, ascending
    values : [n, K, R] values; NaN = missing
    error : [n] relative standard deviation that moving adds at the largest moved scale; NaN = not
        known, 0 = no run was moved
    all_moved : whether no run was made at the held values
    """

    points: FloatArray
    values: FloatArray
    error: FloatArray
    all_moved: bool


@dataclass(frozen=True, slots=True)
class _Sources:
    """Settings from which the scales of a line come.

    Attributes
    ----------
    scales : [K] values of the parameter
    nearest, second : [K] nearest setting and the next one; -1 = there is no next one
    away : [K] doublings from the nearest setting to the held values
    apart : [K] doublings between both settings
    """

    scales: FloatArray
    nearest: IntArray
    second: IntArray
    away: FloatArray
    apart: FloatArray


def runs_along(
    surface: Models, axis: int, at: FloatArray, points: FloatArray, values: FloatArray
) -> LineRuns:
    """Return the runs along one parameter, completed by moved runs.

    Parameters
    ----------
    surface : n models in D parameters
    axis : the parameter
    at : [D] values of all parameters; that of `axis` has no effect
    points, values : [K, D] settings, and [n, K, R] values measured there
    """
    sources = _sources(points, axis, at)
    found = values[:, sources.nearest].copy()
    moved = np.flatnonzero(sources.away > 0)
    if not moved.size:
        return LineRuns(sources.scales, found, np.zeros(len(values)), all_moved=False)
    there = np.repeat(at[None], len(moved), axis=0)
    there[:, axis] = sources.scales[moved]
    with np.errstate(over="ignore"):
        found[:, moved] *= _ratio(surface, points[sources.nearest[moved]], there)[..., None]
    found[np.isinf(found)] = np.nan
    error = _error(surface, sources, moved, points, values)
    return LineRuns(sources.scales, found, error, all_moved=len(moved) == len(sources.scales))


def _sources(points: FloatArray, axis: int, at: FloatArray) -> _Sources:
    """Return the settings nearest to the held values at each scale; of ties, the larger."""
    place = np.log2(np.delete(points, axis, axis=1))
    away = np.abs(place - np.log2(np.delete(at, axis))).sum(axis=1)
    order = np.lexsort([*-place.T[::-1], np.round(away, 9)])
    scales, of_scale = np.unique(points[:, axis], return_inverse=True)
    ranked = [order[of_scale.ravel()[order] == k] for k in range(len(scales))]
    nearest = np.array([each[0] for each in ranked], dtype=np.intp)
    second = np.array([each[1] if len(each) > 1 else -1 for each in ranked], dtype=np.intp)
    apart = np.abs(place[nearest] - place[second]).sum(axis=1)
    return _Sources(scales, nearest, second, np.round(away[nearest], 9), apart)


def _ratio(surface: Models, here: FloatArray, there: FloatArray) -> FloatArray:
    """Return the ratio of the predictions of a surface at other settings to those here, [n, m].

    It is 1 where the surface predicts zero at the measured settings.
    """
    before, after = surface.values(here), surface.values(there)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.where(before > 0, after / before, 1.0)
    return np.asarray(np.where(np.isfinite(found), found, np.nan))


def _error(
    surface: Models, sources: _Sources, moved: IntArray, points: FloatArray, values: FloatArray
) -> FloatArray:
    """Return the error that moving adds at the largest moved scale, [n]; NaN = not known.

    The two nearest runs of each moved scale are moved onto each other. The variance beyond noise,
    per doubling between them, grows in proportion to the distance from the held values.
    """
    both = moved[sources.second[moved] >= 0]
    if not both.size:
        return np.full(len(values), np.nan)
    one, other = sources.nearest[both], sources.second[both]
    measured = [centre(values[:, each], surface.aggregate) for each in (one, other)]
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.log(measured[1] * _ratio(surface, points[other], points[one]) / measured[0])
        count = sum(1 / np.isfinite(values[:, each]).sum(axis=2) for each in (one, other))
        # A call path that is missing at a scale is NaN here and has no weight below.
        noise = np.nan_to_num(surface.noise)[:, None] ** 2 * count
    known = np.isfinite(off)
    variance = np.where(known, off**2 - noise, 0.0) / sources.apart[both]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = variance.sum(axis=1) / known.sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(mean, 0.0) * sources.away[moved].max()))


Column = npt.NDArray[Any]


_EXACT = 2 * EXACT_VARIANCE**0.5
"""Largest deviation from a surface of values that follow it exactly and leave no doubt."""


def slice_with_line_models(
    surface: Models,
    axis: int,
    at: npt.ArrayLike,
    points: FloatArray,
    values: FloatArray,
    beside: FloatArray | None = None,
) -> tuple[Models, BoolArray]:
    """Return models along one parameter, from the surface or from the runs along that line.

    Parameters
    ----------
    surface : n models in D parameters, of the mixture method
    axis : the parameter that is left
    at : [D] values of all parameters; that of `axis` has no effect
    points, values : [K, D] settings, and [n, K, R] values measured there
    beside : [m, K', R] values of other rows along this line, as returned by `runs_along`; noise and
        priors of the runs are learnt from them; None = from `values`

    Returns
    -------
    Models
        Models in one parameter, over all its measured values. Models of the surface and of the runs
        are alternatives of each other.
    ndarray [n] of bool
        Whether a model comes from the runs, because that is closer to the measurements.
    """
    models = slice_along(surface, axis, at)
    runs = runs_along(surface, axis, np.array(at, dtype=np.float64), points, values)
    # The main parameter has the terms of models in one parameter, unless the user chose others.
    usual = axis == 0 and surface.space == default_space("mixture", several=True)
    space = None if usual else surface.space
    teachers = runs.values if beside is None else beside
    priors = learn(runs.points, teachers, space=space, aggregate=surface.aggregate)
    lines = fit(
        runs.points,
        runs.values,
        space=space,
        aggregate=surface.aggregate,
        confidence=surface.confidence,
        priors=priors,
    )
    lines = replace(lines, spread=np.hypot(lines.spread, np.nan_to_num(runs.error)))
    told = ~np.isnan(lines.spread) & ~(models.spread <= _EXACT)
    deviating = _deviating(models, runs.values)
    measured = centre(runs.values, surface.aggregate)
    of_lines, of_slices = (
        distance_to_measurements(each, runs.points, measured) for each in (lines, models)
    )
    closer = told & ~np.isnan(runs.error) & _closer(of_lines, of_slices, deviating)
    if runs.all_moved:
        # The surface moved all of these runs, so they are no evidence against it.
        closer[:] = False
    doubt = np.where(told & ~closer, _doubts(models, deviating, runs.points), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        other = DOUBT * np.clip(np.nan_to_num(of_lines / of_slices), 0.0, 1.0) ** 2
    found = with_alternatives(models, lines, doubt)
    lines = with_alternatives(lines, models, np.where(closer, other, 0.0))
    return with_rows_from(found, lines, closer), closer


def _deviating(models: Models, values: FloatArray) -> FloatArray:
    """Return the part of the variance about models beyond the noise, [n]; NaN = not known."""
    there = np.isfinite(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        repetitions = there.sum(axis=(1, 2)) / there.any(axis=2).sum(axis=1)
        return np.asarray(1 - models.noise**2 / repetitions / models.spread**2)


def _closer(of_lines: FloatArray, of_slices: FloatArray, deviating: FloatArray) -> BoolArray:
    """Return where models of the runs are so much closer that they replace slices, [n]."""
    known = (deviating > DEVIATES) & (of_lines * AS_CLOSE < of_slices)
    unknown = np.isnan(deviating) & (of_lines * AS_CLOSE_UNREPEATED < of_slices)
    return np.asarray(known | unknown)


def _doubts(models: Models, deviating: FloatArray, points: FloatArray) -> FloatArray:
    """Return the probability of the alternatives to each slice, [n].

    It grows with the part of the variance about the slice beyond the noise, since deviations may
    belong to scales. Three points cannot distinguish these from a law. It also grows with the power
    of 1/p that the slice falls with, since anything hidden by shared work is hidden at all values
    of the other parameters.
    """
    sure = ~np.isnan(deviating) & (len(points) > MIN_POINTS["mixture"])
    first, last = models.values(points[[0, -1]]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        falls = np.log(first / last) / np.log(points[-1] / points[0])
    most = np.maximum(np.where(sure, deviating, 1.0), np.nan_to_num(falls))
    return np.asarray(DOUBT * np.clip(most, 0.0, 1.0))


def distance_to_measurements(
    models: Models, points: FloatArray, measured: FloatArray
) -> FloatArray:
    """Return the distance of models from the measurements, [n], as a relative standard deviation.

    It is the larger of the standard deviation of the model and the observed one. A surface that is
    close to most of its points may be far from those with one value of some parameters. Models of
    these points alone say little about the errors that few points leave.

    Parameters
    ----------
    models : n models in one parameter
    points : [K] points
    measured : [n, K] values above zero; other values are missing
    """
    there = measured > 0
    # Small scales may follow other laws.
    weight = there / (1 + doublings(points))
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.where(there, np.log(models.values(points) / measured), 0.0)
        seen = np.sqrt((weight * away**2).sum(axis=1) / weight.sum(axis=1))
    return np.asarray(np.fmax(models.spread, seen))


def with_rows_from(models: Models, others: Models, rows: BoolArray) -> Models:
    """Return `models` with the rows marked by `rows` [n] from `others`, over the points of these.

    Both are of the mixture method.
    """
    ours, theirs = _alike(models, others, others.points)
    columns: dict[str, Any] = {}
    for name in column_names():
        its, other = getattr(ours, name), getattr(theirs, name)
        columns[name] = _where(rows, _with_room(other, its), _with_room(its, other))
    return replace(ours, **columns)


def rows_replaced(models: Models, others: Models, rows: IntArray) -> Models:
    """Return `models` with the rows of `others` at the places `rows` [m].

    Both are of the mixture method, over the same points, with as many terms and alternatives.
    """
    ours, theirs = _alike(models, others, models.points)
    columns: dict[str, Any] = {}
    for name in column_names():
        column = getattr(ours, name).copy()
        column[rows] = getattr(theirs, name)
        columns[name] = column
    return replace(ours, **columns)


def with_alternatives(models: Models, others: Models, share: FloatArray) -> Models:
    """Return `models` with the hypotheses of `others` among the alternatives.

    Both are of the mixture method. The number of alternatives is the sum of the alternatives of
    both and the models of `others`.

    Parameters
    ----------
    models : n models
    others : n other models
    share : [n] probability that `others` are right, below 1; 0 leaves a row as it is
    """
    ours, theirs = _alike(models, others, models.points)
    own = (1 - share)[:, None]
    weight = np.concatenate(
        [
            own * ours.alternative_weight,
            (1 - own) * np.column_stack([theirs.weight, theirs.alternative_weight]),
        ],
        axis=1,
    )
    best = np.argsort(-weight, axis=1, kind="stable")
    unit = (theirs.unit / np.where(ours.unit > 0, ours.unit, 1.0))[:, None, None]

    def in_order(*columns: Column) -> Column:
        every = np.concatenate(columns, axis=1)
        return np.take_along_axis(every, best.reshape(*best.shape, *[1] * (every.ndim - 2)), axis=1)

    columns: dict[str, Any] = {
        "weight": own[:, 0] * ours.weight,
        "alternative_weight": in_order(weight),
        "alternative_terms": in_order(
            ours.alternative_terms, theirs.terms[:, None], theirs.alternative_terms
        ),
        "alternative_coefficients": in_order(
            ours.alternative_coefficients,
            theirs.coefficients[:, None],
            theirs.alternative_coefficients,
        ),
        "root": np.concatenate(
            [ours.root[:, :1], in_order(ours.root[:, 1:], unit * theirs.root)], axis=1
        ),
        "spread": np.sqrt((1 - share) * ours.spread**2 + share * theirs.spread**2),
        "drift": (1 - share) * ours.drift + share * theirs.drift,
    }
    there = share > 0
    for name, column in columns.items():
        known = _with_room(getattr(ours, name), column)
        columns[name] = _where(there, column, known).astype(known.dtype)
    return replace(ours, **columns)


def _with_room(column: Column, larger: Column) -> Column:
    """Return a column with as many alternatives as a larger one; the added ones are empty."""
    if column.ndim == 1 or column.shape[1] >= larger.shape[1]:
        return column
    more = larger.shape[1] - column.shape[1]
    none = -1 if column.dtype.kind == "i" else 0
    return np.pad(column, [(0, 0), (0, more), *[(0, 0)] * (column.ndim - 2)], constant_values=none)


def _where(rows: BoolArray, some: Column, others: Column) -> Column:
    """Return the rows of `some` that are marked by `rows`, and else those of `others`."""
    return np.where(rows.reshape(-1, *[1] * (some.ndim - 1)), some, others)


def _alike(models: Models, others: Models, points: FloatArray) -> tuple[Models, Models]:
    """Return both models over the shapes that both use, and over `points`."""
    shapes = Shapes.of([*_used(models), *_used(others)])
    peak = peaks(shapes.table(points))
    ours, theirs = (_over(each, shapes, peak, points) for each in (models, others))
    return ours, theirs


def _used(models: Models) -> list[Shape]:
    """Return the shapes of the terms of models; a search knows many more."""
    columns = models.terms, models.before, models.alternative_terms
    codes = np.unique(np.concatenate([column.ravel() for column in columns]))
    return [models.shapes[code] for code in codes.tolist() if code >= 0]


def _over(models: Models, shapes: Shapes, peak: FloatArray, points: FloatArray) -> Models:
    """Return models over other shapes, which have the peaks [S + 1] at `points`."""
    codes = np.concatenate([models.terms[:, None], models.alternative_terms], axis=1)
    number = {shape: code for code, shape in enumerate(shapes)}
    place = np.array([*(number.get(shape, -1) for shape in models.shapes), -1], dtype=np.int16)
    before = peaks(models.shapes.table(models.points))
    return replace(
        models,
        shapes=shapes,
        points=points,
        terms=place[models.terms],
        before=place[models.before],
        alternative_terms=place[models.alternative_terms],
        root=rescaled(models.root, codes, before, peak[place]),
    )
