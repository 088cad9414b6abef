"""All rows of one metric together: noise and habits are learnt, then each row is modelled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.mixture.candidates import Candidates, candidates
from callpath_modeler.modeling.mixture.data import Data, data_of
from callpath_modeler.modeling.mixture.deviations import Deviations, deviations
from callpath_modeler.modeling.mixture.facts import row_status, write_facts
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses, hypotheses
from callpath_modeler.modeling.mixture.learn import learn
from callpath_modeler.modeling.mixture.outcome import (
    FAR,
    Columns,
    empty_columns,
    only_used,
    widened,
    write_found,
    write_models,
)
from callpath_modeler.modeling.mixture.posterior import (
    Beliefs,
    Posterior,
    far_tables,
    fitted_values,
    posterior,
)
from callpath_modeler.modeling.mixture.residuals import error_correlation, noise_by_scale
from callpath_modeler.modeling.mixture.screen import Chosen, screen, smoothed
from callpath_modeler.modeling.mixture.spread import (
    Noise,
    Pool,
    Within,
    pooled,
    profile_of,
    row_spread,
    within,
)
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.noise import Aggregate, Centre, relative_efficiency
from callpath_modeler.modeling.parts import Map
from callpath_modeler.modeling.several.hypotheses import joint_hypotheses
from callpath_modeler.modeling.several.sums import with_sums
from callpath_modeler.modeling.several.tried import Sums, sums_of
from callpath_modeler.modeling.shapes import Shapes
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.terms import SearchSpace

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_CHUNK = 2048
_MOST_HYPOTHESES = 2_000_000
_MOST_COMPILED = 8_000_000
"""Of rows that are taken together; the compiled library writes down few of them."""
_HEAP = 2**24
"""Bytes. An allocator that gives pages back as soon as they are free spends an eighth of the time
on having them again; one that has seen a block as large come and go keeps what is smaller."""

_OFF = 3.0
_OF_ONE_LAW = 0.2
"""Errors of call paths that follow one law beyond the hypotheses are as correlated at most."""

_SAMPLE = 500
"""Rows that habits are learnt from: of all sizes, evenly."""

_LOOKS_AT_SCALES = 2
"""How often errors tell how noise grows: models that took noise for growth err too little."""


@dataclass(frozen=True, slots=True)
class _Values:
    """Values `y` [n, K, R] as they are modelled: some rows at a time, since all are many bytes.

    Points are in `order`.
    """

    y: FloatArray
    order: IntArray

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: IntArray | slice) -> FloatArray:
        wanted = self.y[rows]
        return wanted if (np.diff(self.order) == 1).all() else wanted[:, self.order]

    def chunks(self, size: int) -> Iterator[slice]:
        return (slice(start, start + size) for start in range(0, len(self), size))


def fit_mixture(
    points: FloatArray,
    y: FloatArray,
    *,
    space: SearchSpace,
    aggregate: Aggregate,
    confidence: float,
    beside: int = 0,
    each: Map = map,
) -> Models:
    """Give every hypothesis of every row a probability.

    Parameters
    ----------
    points : ndarray [K] or [K, D]
        In any order.
    y : ndarray [n, K, R]
        Values, NaN = missing.
    space, aggregate, confidence, beside, each
        As for `fit`, which checks them.

    Raises
    ------
    ValueError
        If no term of the space fits the points.
    """
    several = points.ndim > 1
    values = _Values(y, np.lexsort(points.reshape(len(points), -1).T[::-1]))
    setting = _learnt(points[values.order], values, space, aggregate)
    known, far = setting.known, setting.far
    columns = empty_columns(len(y), len(far), setting.terms)
    together = _MOST_COMPILED if compiled() else _MOST_HYPOTHESES
    parts = list(values.chunks(_at_once(known, _CHUNK, together)))
    # Parts stay as they are: whoever is asked about, the last digits are the same.
    parts = [part for part in parts if part.stop > beside]
    chunks = each(partial(_modelled, setting), map(values.__getitem__, parts))
    for part, chunk in zip(parts, chunks, strict=True):
        for name, column in chunk.items():
            columns[name][part] = column
    made = Models(
        space=space,
        shapes=Shapes(only_used(columns, known.shapes) if several else known.shapes),
        method="mixture",
        aggregate=setting.how,
        points=setting.points,
        confidence=confidence,
        correlation=setting.correlation,
        **columns,
    )
    return made.take(np.arange(beside, len(made))) if beside else made


@dataclass(frozen=True, slots=True)
class _Setting:
    """What the models of all rows are made with."""

    points: FloatArray
    pool: Pool
    how: Centre
    efficiency: float
    correlation: float
    known: Hypotheses
    ways: Deviations
    beliefs: Beliefs
    far: FloatArray
    sums: Sums | None

    @property
    def terms(self) -> int:
        """How many terms a model may have."""
        return 2 if self.sums is None else len(self.sums.codes)


def centre_of_models(
    points: FloatArray, y: FloatArray, *, space: SearchSpace, aggregate: Aggregate
) -> Centre:
    """Return the centre of repetitions that `fit_mixture` makes models of, but make none."""
    values = _Values(y, np.lexsort(points.reshape(len(points), -1).T[::-1]))
    return _learnt(points[values.order], values, space, aggregate).how


def _learnt(
    points: FloatArray, values: _Values, space: SearchSpace, aggregate: Aggregate
) -> _Setting:
    """Learn noise and habits from some of the rows, and choose the centre of repetitions."""
    known = joint_hypotheses(space, points) if points.ndim > 1 else hypotheses(space, points)
    y, reps, pool = _overview(values, _at_once(known, _SAMPLE))
    ways = deviations(points, noise_known=pool.known)
    before, far = Beliefs(known.log_prior, ways.log_prior), far_tables(points, known, FAR)
    sums = sums_of(known, points) if space.max_terms > 1 else None
    how: Centre = "mean" if aggregate == "auto" else aggregate
    setting = _Setting(points, pool, how, 1.0, 0.0, known, ways, before, far, sums)
    if not len(y):
        return setting
    seen = _first_models(setting, reps)
    correlation = error_correlation(seen.data, seen.fitted, noise_known=pool.known)
    setting = replace(setting, correlation=correlation)
    for _ in range(_LOOKS_AT_SCALES if points.ndim == 1 and not pool.known else 0):
        profile = noise_by_scale(seen.data, seen.fitted, correlation)
        if np.array_equal(profile, setting.pool.profile):
            break
        setting = replace(setting, pool=replace(pool, profile=profile))
        seen = _first_models(setting, reps)
    how, efficiency = _centre(y, seen.noise, seen.fitted * seen.unit[:, None], aggregate)
    data, found, beliefs = seen.data, seen.found, seen.beliefs
    if how != "mean":
        data = _positive(points, y, setting.pool, how, efficiency)
        found = _looked_at(data, known, ways, before)
    if how != "mean" or correlation > 0:
        beliefs = _beliefs(found, len(data.values), known, before, correlation)
    return replace(setting, how=how, efficiency=efficiency, beliefs=beliefs)


@dataclass(frozen=True, slots=True)
class _Seen:
    """First models of some rows, of the means of their repetitions."""

    noise: Noise
    data: Data
    unit: FloatArray
    found: Candidates
    beliefs: Beliefs
    fitted: FloatArray


def _first_models(setting: _Setting, reps: Within) -> _Seen:
    """Model the means of some rows by what is believed before, and by what they say together."""
    known, ways, before = setting.known, setting.ways, setting.beliefs
    noise = setting.pool.noise(reps, 1.0)
    data, unit = data_of(setting.points, noise)
    found = _looked_at(data, known, ways, before)
    beliefs = _beliefs(found, len(unit), known, before, setting.correlation)
    of_rows = posterior(found, data, ways, beliefs)
    fitted = _fitted(of_rows, data, setting.sums, known, ways, beliefs)
    return _Seen(noise, data, unit, found, beliefs, fitted)


def _fitted(
    found: Posterior,
    data: Data,
    sums: Sums | None,
    known: Hypotheses,
    ways: Deviations,
    beliefs: Beliefs,
) -> FloatArray:
    """Return what is believed of some rows at the points, [n, K], sums of many terms among it.

    Laws that two terms miss are missed alike by all rows that follow them, which is no matter of
    runs.
    """
    fitted = fitted_values(found, known)
    more = with_sums(found, data, sums, known, ways, beliefs)
    if more is not None:
        fitted[more.rows] = more.fitted(known)
    return fitted


def _modelled(setting: _Setting, ordered: FloatArray) -> Columns:
    """Model some rows [n, K, R] of `_Values`, each by itself."""
    points, known = setting.points, setting.known
    columns, reps = empty_columns(len(ordered), len(setting.far)), within(ordered, setting.how)
    status = row_status(ordered, reps)
    write_facts(columns, points, reps, status)
    usable = np.flatnonzero(status == FitStatus.OK)
    if usable.size:
        noise = setting.pool.noise(reps.take(usable), setting.efficiency)
        columns["noise"][usable] = noise.spread
        data, unit = data_of(points, noise)
        found = _fit(data, known, setting.ways, setting.beliefs)
        write_models(columns, usable, found, data, unit, known, setting.far)
        columns = widened(columns, setting.terms)
        _write_sums(columns, usable, found, data, unit, setting)
    return widened(columns, setting.terms)


def _write_sums(
    columns: Columns,
    rows: IntArray,
    found: Posterior,
    data: Data,
    unit: FloatArray,
    setting: _Setting,
) -> None:
    """Write the models of rows again that may be sums of more than two terms."""
    more = with_sums(found, data, setting.sums, setting.known, setting.ways, setting.beliefs)
    if more is None:
        return
    its, known, far = more.rows, setting.known, setting.far
    write_found(columns, rows[its], more.found, more.codes, data.take(its), unit[its], known, far)


def _at_once(known: Hypotheses, most: int, hypotheses: int = _MOST_HYPOTHESES) -> int:
    """Return how many rows of `most` to take together: many hypotheses need much memory."""
    return max(16, min(most, hypotheses // known.compared))


def _overview(values: _Values, count: int) -> tuple[FloatArray, Within, Pool]:
    """Look at the means of all rows: choose `count` to learn from at most, and pool the noise.

    Returns the chosen rows, their means, and the noise. The rows are of all sizes, evenly; the same
    ones whatever the order of rows.
    """
    raw, dof, size, digest = np.zeros((4, len(values)))
    usable = np.zeros(len(values), dtype=bool)
    for part in values.chunks(_CHUNK):
        ordered = values[part]
        reps = within(ordered, "mean")
        usable[part] = row_status(ordered, reps) == FitStatus.OK
        raw[part], dof[part], size[part] = row_spread(reps)
        with np.errstate(over="ignore"):
            numbers = np.sqrt(np.arange(2.0, 2 + len(values.order)))
            digest[part] = np.nan_to_num(reps.centre) @ numbers
    rows = np.flatnonzero(usable)
    order = np.argsort(size[rows])
    if not np.diff(size[rows[order]]).all():
        order = np.lexsort((digest[rows], size[rows]))
    some = values[rows[order[:: max(-(-len(order) // count), 1)]]]
    means = within(some, "mean")
    return some, means, pooled(raw[rows], dof[rows], size[rows], profile_of(means))


def _centre(
    y: FloatArray, means: Noise, fitted: FloatArray, aggregate: Aggregate
) -> tuple[Centre, float]:
    """Choose the centre of repetitions by the noise of some rows about models of means."""
    if y.shape[2] < 3:
        return ("mean" if aggregate == "auto" else aggregate), 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = y / fitted[:, :, None]
        # Where the model is off by more than noise, residuals are not noise.
        off = np.abs(means.centre / fitted - 1) > _OFF * np.sqrt(means.variance)[:, None]
    ratio[off] = np.nan
    return relative_efficiency(ratio[np.isfinite(ratio) & (ratio > 0)], y.shape[2], aggregate)


def _positive(
    points: FloatArray, y: FloatArray, pool: Pool, how: Centre, efficiency: float
) -> Data:
    """Return those of some rows whose centres can be fitted.

    A centre may be zero, or below, where the mean is not.
    """
    reps = within(y, how)
    usable = (np.nan_to_num(reps.centre) >= 0).all(axis=1) & (row_spread(reps)[2] > 0)
    return data_of(points, pool.noise(reps.take(np.flatnonzero(usable)), efficiency))[0]


def _beliefs(
    found: Candidates, rows: int, known: Hypotheses, before: Beliefs, correlation: float = 0.0
) -> Beliefs:
    """Learn from some rows what to believe of all; those whose errors are correlated say less."""
    if not rows:
        return before
    of_runs = max(0.0, correlation - _OF_ONE_LAW) / (1 - _OF_ONE_LAW)
    count_as_one = 1 + (rows - 1) * of_runs
    return Beliefs(*learn(found, known, before.hypotheses, before.deviations, count_as_one))


def _fit(data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs) -> Posterior:
    """Fit rows: what is worth a look is looked at, with the errors that it says there are.

    Counts are often multiples of each other; those that are need to be fitted once.
    """
    np.empty(_HEAP, dtype=np.uint8)
    first, like = data.distinct()
    if len(first) < len(like):
        few = data.take(first)
        found = _looked_at(few, known, ways, beliefs)
        return posterior(found, few, ways, beliefs).repeated(like)
    return posterior(_looked_at(data, known, ways, beliefs), data, ways, beliefs)


def _looked_at(data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs) -> Candidates:
    """Look at what is worth it of each row, by what is believed."""
    return candidates(data, _chosen(data, known, ways, beliefs), known, ways)


def _chosen(data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs) -> Chosen:
    """Choose what is worth a look, and the values that weights are made of.

    Where measurements scatter about any model these take a fit; for it drifts do not matter.
    """
    chosen = screen(data, known, beliefs.hypotheses, ways.extremes)
    rows = chosen.scattered
    if not rows.size:
        return chosen
    some, steady = data.take(rows), ways.steady()
    few = Beliefs(beliefs.hypotheses, beliefs.deviations[: len(steady.deviation)])
    found = posterior(candidates(some, chosen.take(rows), known, steady), some, steady, few)
    fitted = chosen.fitted.copy()
    fitted[rows] = smoothed(some, fitted_values(found, known))
    return replace(chosen, fitted=fitted)
