"""Slices of models in several parameters, combined with models of the runs along the same line.

Measurements at one value of a parameter often deviate alike from a law in several parameters,
because placements, networks and protocols belong to a scale. A surface counts these measurements as
independent evidence. Anything that shared work hides is hidden at all values. Runs along one
parameter have few points, so the bands of their models are wide. See
docs/explanation/several-parameters.md, 'Runs along one parameter'.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.constants.lines import AS_CLOSE, AS_CLOSE_UNREPEATED, DEVIATES, DOUBT
from callpath_modeler.modeling.constants.noise import EXACT_VARIANCE
from callpath_modeler.modeling.evaluation import doublings, peaks
from callpath_modeler.modeling.fitting import centre, default_space, fit, learn
from callpath_modeler.modeling.lines.line_runs import runs_along
from callpath_modeler.modeling.lines.slices import slice_along
from callpath_modeler.modeling.model_columns import MIN_POINTS, column_names
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.roots import rescaled
from callpath_modeler.modeling.shapes import Shapes

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
    """Return both models over the shapes of both, and over `points`."""
    shapes = Shapes.of([*models.shapes, *others.shapes])
    peak = peaks(shapes.table(points))
    ours, theirs = (_over(each, shapes, peak, points) for each in (models, others))
    return ours, theirs


def _over(models: Models, shapes: Shapes, peak: FloatArray, points: FloatArray) -> Models:
    """Return models over more shapes, which have the peaks [S + 1] at `points`."""
    codes = np.concatenate([models.terms[:, None], models.alternative_terms], axis=1)
    number = {shape: code for code, shape in enumerate(shapes)}
    place = np.array([*(number[shape] for shape in models.shapes), -1], dtype=np.int16)
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
