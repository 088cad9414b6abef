"""Models of all rows of one metric by the mixture method.

A row is one call path. Noise and priors are learnt from some of the rows; then each row is
modelled separately. See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.learning import CHUNK
from callpath_modeler.modeling.constants.limits import HEAP
from callpath_modeler.modeling.constants.outcome import FAR
from callpath_modeler.modeling.empirical_bayes import FittedPriors, estimate_priors, rows_per_chunk
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.mixture.candidate_selection import select_candidates
from callpath_modeler.modeling.mixture.continuation import widen, with_next_steps
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.outcome import (
    Columns,
    ShapeColumns,
    empty_columns,
    fill_status,
    only_used,
    row_status,
    with_room_for_terms,
    write_found,
    write_models,
)
from callpath_modeler.modeling.mixture.posterior import LogPriors, Posterior, posterior
from callpath_modeler.modeling.mixture.repetition_noise import repetition_stats
from callpath_modeler.modeling.mixture.rival_laws import (
    costly_pairs,
    costly_short_rows,
    last_values,
    with_ends_of_growth,
    with_rival_laws,
)
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    ScaledRows,
    SortedValues,
    data_of,
)
from callpath_modeler.modeling.mixture.segments import with_laws_beyond
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.noise import Centre
from callpath_modeler.modeling.parallel_map import MapLike
from callpath_modeler.modeling.several.sums_of_products import FittedSums
from callpath_modeler.modeling.shapes import Shapes
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.terms import SearchSpace


def fit_mixture(
    points: FloatArray,
    y: FloatArray,
    *,
    space: SearchSpace,
    aggregate: Centre,
    confidence: float,
    priors: FittedPriors | None = None,
    each: MapLike = map,
) -> Models:
    """Return the models of all rows; every hypothesis of every row gets a probability.

    Parameters
    ----------
    points : ndarray [K] or [K, D]
        Points in any order.
    y : ndarray [n, K, R]
        Values; NaN = missing.
    space, aggregate, confidence, priors, each
        As for `fit`, which checks them.

    Raises
    ------
    ValueError
        If no term of the space fits the points, or the priors belong to other points.
    """
    several = points.ndim > 1
    values = SortedValues.by_point(points, y)
    setting = priors or learn_priors(points, y, space, aggregate)
    if not np.array_equal(setting.points, points[values.order]):
        raise ValueError("the priors belong to other points")
    known, far = setting.hypotheses, setting.far
    columns = empty_columns(len(y), len(far), setting.terms)
    parts = list(values.chunks(rows_per_chunk(known, CHUNK, kernels().most_together)))
    chunks = each(partial(_modelled, setting), map(values.__getitem__, parts))
    for part, chunk in zip(parts, chunks, strict=True):
        for name, column in chunk.items():
            columns[name][part] = column
    models: Callable[..., Models] = partial(
        Models,
        space=space,
        shapes=Shapes(only_used(columns, setting.shape)) if several else known.shapes,
        method="mixture",
        aggregate=setting.how,
        points=setting.points,
        confidence=confidence,
        correlation=setting.in_common,
        odd_scale=setting.odd_scale,
    )
    if not several:
        _add_rival_laws(columns, values, setting, models)
    return models(**columns)


def learn_priors(
    points: FloatArray, y: FloatArray, space: SearchSpace, aggregate: Centre
) -> FittedPriors:
    """Return noise and priors, learnt from rows [n, K, R] at points in any order."""
    values = SortedValues.by_point(points, y)
    return estimate_priors(points[values.order], values, space, aggregate)


def _modelled(setting: FittedPriors, ordered: FloatArray) -> Columns:
    """Return the models of some rows [n, K, R] of `SortedValues`, each fitted separately."""
    points, known = setting.points, setting.hypotheses
    columns, reps = (
        empty_columns(len(ordered), len(setting.far)),
        repetition_stats(ordered, setting.how),
    )
    status = row_status(ordered, reps)
    fill_status(columns, points, reps, status)
    usable = np.flatnonzero(status == FitStatus.OK)
    if usable.size:
        noise = setting.noise(reps if len(usable) == len(ordered) else reps.take(usable))
        columns["noise"][usable] = noise.spread
        data, unit = data_of(points, noise)
        found = _fit(data, known, setting.ways, setting.beliefs)
        write_models(columns, usable, found, data, unit, known, setting.far, setting.baseline)
        columns = with_room_for_terms(columns, setting.terms)
        _write_sums(columns, usable, found, data, unit, setting)
        _write_laws_beyond(columns, usable, found, data, unit, setting)
        if points.ndim == 1:
            widen(columns, usable, data, unit, known)
            with_next_steps(columns, usable, data, unit, known)
        columns["spread"] = np.hypot(columns["spread"], setting.off)
    return with_room_for_terms(columns, setting.terms)


def _add_rival_laws(
    columns: Columns,
    values: SortedValues,
    setting: FittedPriors,
    models: Callable[..., Models],
) -> None:
    """Add laws that fit as well as the models of costly call paths to their alternatives."""
    points, known = setting.points, setting.hypotheses
    rows = costly_short_rows(columns, values, setting.cost, known.shapes, points)
    if rows.size:
        its = models(**{name: column[rows] for name, column in columns.items()})
        band = its.predict(points[-1:] ** 2 / points[-2])
        with_ends_of_growth(columns, rows, last_values(values)[rows], band)
    rows = costly_pairs(columns, values, setting.cost, known.shapes, points)
    if not rows.size:
        return
    data, unit = data_of(points, setting.noise(repetition_stats(values[rows], setting.how)))
    its = models(**{name: column[rows] for name, column in columns.items()})
    band = its.predict(FAR * points[-1:])
    with_rival_laws(columns, rows, data, unit, known, its.space, band)


def _write_sums(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: ScaledRows,
    unit: FloatArray,
    setting: FittedPriors,
) -> None:
    """Replace the models of rows that may be sums of products of three parameters or more."""
    space, known = setting.sums, setting.hypotheses
    sums = FittedSums.of(found, data, space, known, setting.ways)
    more = None if sums is None else sums.candidates(found, known, setting.ways, setting.beliefs)
    if space is None or more is None:
        return
    its = more.rows
    codes, shapes = space.columns(more.codes, known, setting.far)
    write_found(
        columns, rows[its], more.found, codes, data.take(its), unit[its], shapes, setting.baseline
    )


def _write_laws_beyond(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: ScaledRows,
    unit: FloatArray,
    setting: FittedPriors,
) -> None:
    """Replace the models of rows that follow another law beyond a change point."""
    known = setting.hypotheses
    laws = with_laws_beyond(
        found, data, known, setting.ways, setting.beliefs, noise_known=setting.pool.is_known
    )
    if laws is None:
        return
    its, units = rows[laws.rows], unit[laws.rows]
    write_found(
        columns,
        its,
        laws.found,
        laws.codes,
        laws.data,
        units,
        ShapeColumns.of(known, setting.far),
        setting.baseline,
        laws.shown,
    )
    columns["used"][its] = laws.data.used
    columns["since"][its] = laws.since
    columns["before"][its] = laws.before
    scale = np.append(known.scale, 1.0)[laws.before]
    columns["before_coefficients"][its] = laws.before_coefficients * units[:, None]
    columns["before_coefficients"][its, 1] /= scale


def _fit(
    data: ScaledRows, hypotheses: Hypotheses, ways: Deviations, beliefs: LogPriors
) -> Posterior:
    """Return the posterior of the rows of `data`.

    Rows that are equal in their own units are fitted once; counts are often multiples of each
    other.
    """
    np.empty(HEAP, dtype=np.uint8)
    first, like = data.distinct()
    if len(first) < len(like):
        few = data.take(first)
        found = select_candidates(few, hypotheses, ways, beliefs)
        return posterior(found, few, ways, beliefs).repeated(like)
    return posterior(select_candidates(data, hypotheses, ways, beliefs), data, ways, beliefs)
