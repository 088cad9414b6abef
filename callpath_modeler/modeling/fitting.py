"""Models of measurements: arrays in, arrays out.

A row is one call path. Noise and priors are learnt from some of the rows; then each row is
modelled separately. See docs/explanation/modeling.md, 'The method in one page'.

See docs/explanation/modeling.md, 'The method in one page'.

See docs/explanation/hypotheses.md, 'Hypotheses'.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import CONFIDENCE
from callpath_modeler.modeling.constants.hypotheses import (
    BETTER,
    FEWEST_FOR_THREE,
    MISSED,
    POWERS,
    RATES,
    VARIES,
)
from callpath_modeler.modeling.constants.limits import (
    HEAP,
    MOST_PARAMETERS,
    MOST_POINTS,
    MOST_TOGETHER,
    ROWS_TOGETHER,
)
from callpath_modeler.modeling.constants.noise import CHUNK
from callpath_modeler.modeling.constants.outcome import FAR
from callpath_modeler.modeling.empirical_bayes import FittedPriors, estimate_priors, rows_per_chunk
from callpath_modeler.modeling.mixture.beyond_the_data import (
    costly_pairs,
    costly_short_rows,
    last_values,
    widen,
    with_ends_of_growth,
    with_next_steps,
    with_rival_laws,
)
from callpath_modeler.modeling.mixture.candidate_selection import select_candidates
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.posterior import LogPriors, Posterior, posterior
from callpath_modeler.modeling.mixture.row_models import (
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
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    ScaledRows,
    SortedValues,
    data_of,
    repetition_stats,
)
from callpath_modeler.modeling.mixture.segments import with_laws_beyond
from callpath_modeler.modeling.model_columns import METHODS, FitStatus, MapLike
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.repetitions import CENTRES, Centre, centred
from callpath_modeler.modeling.shapes import Shapes
from callpath_modeler.modeling.terms import (
    CLASSIC_SPACE,
    DEFAULT_SPACE,
    JOINT_SPACE,
    SearchSpace,
    Term,
)

Method = Literal["mixture", "classic"]


_CLASSIC_CENTRES = ("median", "mean", "min")
"""Centres that the classic method supports."""


def fit(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    method: Method = "mixture",
    space: SearchSpace | None = None,
    folds: int | None = None,
    aggregate: Centre = "mean",
    confidence: float = CONFIDENCE,
    priors: FittedPriors | None = None,
    each: MapLike = map,
) -> Models:
    """Return a model of every row.

    Parameters
    ----------
    p : array_like [K] or [K, D]
        Points: distinct values of the parameter above zero, in any order; or of 2 to 5 parameters,
        which the classic method does not support.
    y : array_like [n, K, R]
        Values, in the unit of the metric, with repetitions along the last axis; NaN = missing.
    method : {'mixture', 'classic'}
        Give every hypothesis a probability, with noise and priors learnt from all rows; or choose
        one hypothesis per row by cross-validation and term refinement.
    space : SearchSpace, optional
        Terms of the models; by default those of the method. Terms with logarithms are left out if a
        point is below 1, since they are negative there.
    folds : int, optional
        Folds of the cross-validation of the classic method, point k (in order of p) in fold k
        modulo `folds`; None = leave one out.
    aggregate : {'mean', 'median', 'trimmed', 'midrange', 'first-quartile', 'min'}
        The centre of repetitions. Only means add up over rows. The classic method supports mean,
        median and min.
    confidence : float
        Confidence of the bands, between 0 and 1.
    priors : FittedPriors, optional
        What `learn` returns for other rows with the same points, space and centre. The models of
        the rows then do not depend on each other. None = learn from the rows; the classic method
        learns nothing.
    each : MapLike
        Map over parts of the rows; it has no effect on the models.

    Returns
    -------
    Models
        One model per row, in order, with an outcome in ``status``.

    Raises
    ------
    ValueError
        If shapes, points or settings are not as described.
    """
    points, values = _checked(p, y, confidence)
    if method not in METHODS:
        raise ValueError(f"method is {method!r}; expected one of {', '.join(METHODS)}")
    if aggregate not in CENTRES:
        raise ValueError(f"aggregate is {aggregate!r}; expected one of {', '.join(CENTRES)}")
    chosen = space or default_space(method, several=points.ndim > 1)
    if method == "classic":
        if points.ndim > 1:
            raise ValueError("the classic method models one parameter")
        from callpath_modeler.modeling.classic_fit import fit_classic

        if aggregate not in _CLASSIC_CENTRES:
            raise ValueError(
                f"the classic method does not support {aggregate}; use mean, median or min"
            )
        if folds is not None and not 2 <= folds <= len(points):
            raise ValueError(f"{folds} folds; expected 2 to {len(points)}, the number of points")
        order = np.argsort(points)
        return fit_classic(
            points[order],
            # The order of points and repetitions must not affect the rounding of sums.
            np.sort(values[:, order], axis=2),
            space=chosen,
            folds=folds,
            aggregate=aggregate,  # type: ignore[arg-type] # checked above
            confidence=confidence,
            each=each,
        )

    if folds is not None:
        raise ValueError("folds are an option of the classic method only")
    return fit_mixture(
        points,
        values,
        space=chosen,
        aggregate=aggregate,
        confidence=confidence,
        priors=priors,
        each=each,
    )


def learn(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    method: Method = "mixture",
    space: SearchSpace | None = None,
    aggregate: Centre = "mean",
) -> FittedPriors | None:
    """Return noise and priors that are learnt from some rows, for the models of others.

    Parameters
    ----------
    p, y, method, space, aggregate
        As for `fit`.

    Returns
    -------
    FittedPriors or None
        None for the classic method, which learns nothing.

    Raises
    ------
    ValueError
        If shapes, points or settings are not as described.
    """
    points, values = _checked(p, y)
    if method == "classic":
        return None

    chosen = space or default_space(method, several=points.ndim > 1)
    return learn_priors(points, values, chosen, aggregate)


def default_space(method: Method, *, several: bool = False) -> SearchSpace:
    """Return the default search space of a method."""
    if method == "classic":
        return CLASSIC_SPACE
    return JOINT_SPACE if several else DEFAULT_SPACE


def centre(y: npt.ArrayLike, aggregate: Centre = "mean") -> FloatArray:
    """Return one value per point from its repetitions, as `fit` does.

    Parameters
    ----------
    y : array_like [n, K, R]
        Values; NaN = missing.
    aggregate : {'mean', 'median', 'trimmed', 'midrange', 'first-quartile', 'min'}
        The centre; ``Models.aggregate`` names the one that was modelled.

    Returns
    -------
    ndarray [n, K]
        NaN where no repetition has a value.
    """
    return centred(np.asarray(y, dtype=np.float64), aggregate)


def _checked(
    p: npt.ArrayLike, y: npt.ArrayLike, confidence: float = CONFIDENCE
) -> tuple[FloatArray, FloatArray]:
    points = np.array(p, dtype=np.float64)
    values = np.asarray(y, dtype=np.float64)
    if points.ndim not in (1, 2) or not points.size or not _usable(points).all():
        raise ValueError("points must be a list of finite numbers above zero")
    if points.ndim > 1 and not 2 <= points.shape[1] <= MOST_PARAMETERS:
        raise ValueError(f"points in several parameters need 2 to {MOST_PARAMETERS}")
    if len(points) > MOST_POINTS:
        raise ValueError(f"{len(points)} points; a model can use at most {MOST_POINTS}")
    if len(np.unique(points, axis=0)) != len(points):
        raise ValueError("points must differ; repetitions go along the last axis of the values")
    if values.ndim != 3 or values.shape[1] != len(points) or values.shape[2] == 0:
        raise ValueError(
            f"values have shape {values.shape}; expected (rows, {len(points)}, repetitions)"
        )
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected a number between 0 and 1")
    return points, values


def _usable(points: FloatArray) -> BoolArray:
    return np.asarray(np.isfinite(points) & (points > 0))


class Exponentials(Struct, frozen=True):
    """Exponentials that fit some rows far better than their models.

    Attributes
    ----------
    rows : [r] numbers of the rows
    terms : exponential of each row
    error, error_of_model : [r] relative errors (root mean square) of both
    """

    rows: IntArray
    terms: tuple[Term, ...]
    error: FloatArray
    error_of_model: FloatArray


def better_exponentials(models: Models, centres: FloatArray) -> Exponentials | None:
    """Return exponentials that fit far better than models without any, or None.

    Each exponential is tried alone and with a constant that is not negative, where values at three
    points in a row at least double. Errors are per degree of freedom, so that models with more
    coefficients have no advantage.

    Parameters
    ----------
    models : n models in one parameter
    centres : [n, K] measured values at `Models.points`; NaN = missing
    """
    if models.points.ndim > 1 or models.space.exponential:
        return None
    points, there = models.points, centres > 0
    used = there.sum(axis=1)
    # Done in place, because these columns of all rows are the largest memory of making models.
    relative = models.values(points)
    np.divide(relative, centres, out=relative, where=there)
    relative -= 1
    relative[~there] = 0.0
    of_model = _errors(relative, used, models)
    asked = (
        _doubles(centres)
        & (of_model > MISSED)
        & (used >= FEWEST_FOR_THREE)
        & (used == (~np.isnan(centres)).sum(axis=1))
    )
    rows = np.flatnonzero(asked & (models.status < FitStatus.TOO_FEW_POINTS))
    terms = [Term(Fraction(power), 0, rate) for rate in RATES for power in POWERS]
    with np.errstate(over="ignore"):
        table = np.array([term(points) for term in terms])
    finite = np.isfinite(table).all(axis=1)
    terms = [term for term, is_finite in zip(terms, finite.tolist(), strict=True) if is_finite]
    if not rows.size or not terms:
        return None
    best, least = np.empty(len(rows), np.intp), np.empty(len(rows))
    for start in range(0, len(rows), ROWS_TOGETHER):
        part = slice(start, start + ROWS_TOGETHER)
        error = _of_terms(centres[rows[part]], there[rows[part]], table[finite])
        best[part] = error.argmin(axis=1)
        least[part] = error.min(axis=1)
    far = np.flatnonzero(BETTER * least < of_model[rows])
    if not far.size:
        return None
    chosen = tuple(terms[k] for k in best[far].tolist())
    return Exponentials(rows[far], chosen, least[far], of_model[rows[far]])


def _doubles(centres: FloatArray) -> BoolArray:
    """Return whether values at least double at two steps in a row, [n]."""
    is_double = centres[:, 1:] >= 2 * centres[:, :-1]
    return np.asarray((is_double[:, 1:] & is_double[:, :-1]).any(axis=1))


def _errors(relative: FloatArray, used: npt.NDArray[np.integer], models: Models) -> FloatArray:
    """Return the error of each model per degree of freedom, [n]; `relative` is overwritten."""
    size = (models.coefficients != 0).sum(axis=1)
    np.nan_to_num(relative, copy=False)
    squares = np.square(relative, out=relative).sum(axis=1)
    return np.asarray(np.sqrt(squares / np.maximum(used - size, 1)))


def _of_terms(values: FloatArray, there: BoolArray, table: FloatArray) -> FloatArray:
    """Return the relative error of each term, alone or with a constant, [r, T]; the smaller one."""
    table = table / table.max(axis=1, keepdims=True)
    per_value = np.where(there, 1 / np.where(there, values, 1.0), 0.0)
    used = there.sum(axis=1)[:, None]
    # All columns are relative to the values, which become 1.
    one = there.astype(np.float64)
    x = per_value[:, None] * table
    xx, xy = (x * x).sum(axis=2), (x * one[:, None]).sum(axis=2)
    cc, cy = (per_value**2).sum(axis=1)[:, None], (per_value * one).sum(axis=1)[:, None]
    cx = (x * per_value[:, None]).sum(axis=2)
    alone = np.sqrt(np.maximum(used - xy**2 / xx, 0.0) / (used - 1))
    left = xx * cc - cx**2
    differs = left > VARIES * xx * cc
    left = np.where(differs, left, 1.0)
    slope, constant = (xy * cc - cy * cx) / left, (cy * xx - xy * cx) / left
    residual = np.maximum(used - slope * xy - constant * cy, 0.0)
    both = np.sqrt(residual / (used - 2))
    is_sum = differs & (slope > 0) & (constant > 0)
    return np.asarray(np.where(is_sum, np.minimum(both, alone), alone))


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
    parts = list(values.chunks(rows_per_chunk(known, CHUNK, MOST_TOGETHER)))
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
        grain=setting.grain / _repetitions(y),
    )
    if not several:
        _add_rival_laws(columns, values, setting, models)
    return models(**columns)


def _repetitions(y: FloatArray) -> float:
    """Return the usual number of repetitions of a point."""
    counts = (~np.isnan(y[:CHUNK])).sum(axis=2)
    return float(np.median(counts[counts > 0])) if counts.any() else 1.0


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
    if space is None:
        return
    # Series of one or two parameters need none of this.
    from callpath_modeler.modeling.sums_of_products import FittedSums

    sums = FittedSums.of(found, data, space, known, setting.ways)
    more = None if sums is None else sums.candidates(found, known, setting.ways, setting.beliefs)
    if more is None:
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
