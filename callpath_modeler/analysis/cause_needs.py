"""The numbers behind the causes of growth: times, noise, requirements and delays."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct, structs

from callpath_modeler import modeling
from callpath_modeler.analysis.data_quality import wrapped_from
from callpath_modeler.analysis.ideals import scaling_over
from callpath_modeler.analysis.predict import predicted_values
from callpath_modeler.analysis.spent_delays import SpentDelays
from callpath_modeler.analysis.waiting import parts_of
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth
from callpath_modeler.modeling.distributions import normal_quantile
from callpath_modeler.modeling.mixture.scaled_rows import (
    Pool,
    RepetitionStats,
    degrees_of_freedom,
    pooled,
    profile_of,
    repetition_stats,
    row_spread,
)
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric, Reduction

CONSTANT = Growth(Fraction(0), 0)
UNREPEATED = 0.05
"""Relative error of a time without repetitions."""
_LEAST_ERROR = 0.003
"""Smallest relative error of a time: clocks and calls of the measurement disturb it."""
_FAR = 1024.0
"""Multiple of the largest scale that stands for infinity."""
_CHUNK = 65_536
"""Number of call paths whose repetitions are in memory together."""

_MOSTLY = 0.5
"""Part of the waiting that computation has to cause before it is named."""

_POOLS: WeakKeyDictionary[Fitted, Pool] = WeakKeyDictionary()
"""Noise of repetitions by models: a browser asks for one call path after the other."""


class Amounts(Struct, frozen=True, eq=False):
    """One quantity of n call paths at K points and at the target.

    Attributes
    ----------
    values : [n, K + 1] SI base units; 0 = did not occur; the last column is the target
    error : [n] relative standard error of the last column, of its logarithm
    scatter : [n, K] standard error of the values at the points; None = they are exact
    """

    values: FloatArray
    error: FloatArray
    scatter: FloatArray | None = None

    def take(self, places: IntArray) -> Amounts:
        """Return the amounts of some call paths."""
        scatter = None if self.scatter is None else self.scatter[places]
        return Amounts(self.values[places], self.error[places], scatter)

    def spread(self, places: IntArray, count: int) -> Amounts:
        """Return amounts of `count` call paths, with these at some places and zero elsewhere."""
        values, error = np.zeros((count, self.values.shape[1])), np.zeros(count)
        values[places], error[places] = self.values, self.error
        if self.scatter is None:
            return Amounts(values, error)
        scatter = np.zeros((count, self.scatter.shape[1]))
        scatter[places] = self.scatter
        return Amounts(values, error, scatter)


class Need(Struct, frozen=True, eq=False):
    """A requirement metric of n call paths.

    Attributes
    ----------
    metric : visits, bytes or operations
    amounts : its values
    growth : [n] growth of its models; None = no model
    parameter : name of the parameter of the models
    """

    metric: Metric
    amounts: Amounts
    growth: tuple[Growth | None, ...]
    parameter: str

    def growth_text(self, place: int, *, pretty: bool = False) -> str:
        """Return the growth of a call path in O notation; "-" = no model."""
        growth = self.growth[place]
        return "-" if growth is None else growth.text(self.parameter, pretty=pretty)


class Needs(Struct, frozen=True, eq=False):
    """Times and requirements of n call paths.

    Attributes
    ----------
    rows : [n] call paths
    parameter : name of the parameter
    points : [K + 1] values of the parameter; the last one is the target
    processes : [K + 1] numbers of processes
    ideal : [K + 1] factor that makes times with perfect scaling constant
    time : [n, K] centre of the repetitions, seconds; 0 = did not occur
    at_target : [n] time at the target by its own model, or as measured there; NaN = no model
    error : [n, K] relative standard error of the times; inf = no value
    mean, largest : [n, K] mean and largest time of the processes; NaN = not known
    ratio_error : [n, K] relative standard error of largest over mean; NaN = not known
    ratio_scatter : [n] relative standard deviation of this ratio in one run; NaN = not known
    found : the requirements, each above zero for at least one call path
    delay, beside : [n] delays by computation, and the time beside them, seconds; None = not known
    source : [n] call path with the largest part of the growth of the delay; -1 = none
    """

    rows: IntArray
    parameter: str
    points: FloatArray
    processes: FloatArray
    ideal: FloatArray
    time: FloatArray
    at_target: FloatArray
    error: FloatArray
    mean: FloatArray
    largest: FloatArray
    ratio_error: FloatArray
    ratio_scatter: FloatArray
    found: tuple[Need, ...]
    delay: Amounts | None
    beside: Amounts | None
    source: IntArray

    def delays_mostly(self, k: int) -> bool:
        """Return whether the delay by one computation is most of a time at the target."""
        if self.delay is None or self.beside is None or self.source[k] < 0:
            return False
        delay, beside = self.delay.values[k, -1], self.beside.values[k, -1]
        return bool(delay >= _MOSTLY * (delay + beside))

    def take(self, places: IntArray) -> Needs:
        """Return the needs of some of the call paths."""
        found = tuple(
            structs.replace(
                each,
                amounts=each.amounts.take(places),
                growth=tuple(each.growth[k] for k in places.tolist()),
            )
            for each in self.found
            if each.amounts.values[places].any()
        )
        return structs.replace(
            self,
            rows=self.rows[places],
            time=self.time[places],
            at_target=self.at_target[places],
            error=self.error[places],
            mean=self.mean[places],
            largest=self.largest[places],
            ratio_error=self.ratio_error[places],
            ratio_scatter=self.ratio_scatter[places],
            found=found,
            delay=None if self.delay is None else self.delay.take(places),
            beside=None if self.beside is None else self.beside.take(places),
            source=self.source[places],
        )

    def wrapped(self) -> list[tuple[Metric, float] | None]:
        """Return the first wrapped counter of each call path, and from which point, [n]."""
        found: list[tuple[Metric, float] | None] = [None] * len(self.rows)
        for need in reversed(self.found):
            since = wrapped_from(self.points[:-1], need.amounts.values[:, :-1])
            for place in np.flatnonzero(since >= 0).tolist():
                found[place] = need.metric, float(self.points[since[place]])
        return found

    def filled(self, places: IntArray, part: Needs) -> Needs:
        """Return these needs with the requirements and sources of some call paths."""
        count = len(self.rows)
        found = []
        for each in part.found:
            growth: list[Growth | None] = [None] * count
            for place, its in zip(places.tolist(), each.growth, strict=True):
                growth[place] = its
            amounts = each.amounts.spread(places, count)
            found.append(structs.replace(each, amounts=amounts, growth=tuple(growth)))
        source = self.source.copy()
        source[places] = part.source
        delay, beside = (
            None if each is None else each.spread(places, count)
            for each in (part.delay, part.beside)
        )
        return structs.replace(self, found=tuple(found), delay=delay, beside=beside, source=source)


def target_of(fitted: Fitted, target: float) -> float:
    """Return a finite target: infinity is far beyond the largest scale."""
    return target if np.isfinite(target) else _FAR * float(fitted.points[-1])


def times_of(fitted: Fitted, target: float, rows: Sequence[int] | IntArray) -> Needs:
    """Return the times of some call paths, without requirements and delays.

    Parameters
    ----------
    fitted : models of a time that adds up over call paths
    target : value of the parameter, may be infinite
    rows : [n] call paths
    """
    chosen = np.asarray(rows, np.intp)
    at = target_of(fitted, target)
    points = np.append(fitted.points, at)
    processes = _processes(fitted, at)
    strong = scaling_over(fitted.experiment, fitted.parameter) is Scaling.STRONG
    ideal = points / points[0] if strong else np.ones_like(points)
    time, error = _times(fitted, chosen)
    mean, largest, ratio_error, ratio_scatter = _over_processes(fitted, chosen)
    nothing = np.full(len(chosen), -1, np.intp)
    return Needs(
        *(chosen, fitted.parameter, points, processes, ideal, time, _at(fitted, chosen, at), error),
        *(mean, largest, ratio_error, ratio_scatter, (), None, None, nothing),
    )


def with_needs(times: Needs, fitted: Fitted) -> Needs:
    """Return times of call paths with their requirements and delays.

    Parameters
    ----------
    times : result of `times_of` for the same models
    fitted : models of a time
    """
    at = float(times.points[-1])
    found = _needs(fitted, times.rows, at)
    times = structs.replace(times, found=found)
    spent = SpentDelays.of(fitted)
    place = np.searchsorted(spent.rows, times.rows)
    known = place < len(spent.rows)
    known[known] = spent.rows[place[known]] == times.rows[known]
    waiting = np.flatnonzero(known)
    if not len(waiting):
        return times
    source = np.full(len(times.rows), -1, np.intp)
    source[waiting] = spent.source[place[waiting]]
    delay, beside = (
        each.spread(waiting, len(times.rows)) for each in _delays(fitted, spent, place[waiting], at)
    )
    return structs.replace(times, delay=delay, beside=beside, source=source)


def _processes(fitted: Fitted, target: float) -> FloatArray:
    """Return numbers of processes at the points and at a target; 1 = not known."""
    if fitted.parameter == "p":
        return np.append(fitted.points, target)
    of_run = fitted.line.settings([fitted.parameter])[:, 0]
    counts = np.array([max(1, run.extent.processes) for run in fitted.line.runs], float)
    known = [float(np.median(counts[of_run == point])) for point in fitted.points]
    return np.array([*known, known[-1]])


def _times(fitted: Fitted, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return centres [n, K] and their relative errors [n, K]; inf = no value."""
    noise = _pool(fitted).noise(_repetitions(fitted, rows), 1.0)
    time = np.nan_to_num(fitted.measured[rows])
    known = noise.is_known
    level = np.sqrt(noise.variance) if known else np.full(len(rows), UNREPEATED)
    level = np.maximum(level, _LEAST_ERROR)
    weight = noise.weight if known else np.ones_like(time)
    # The expected size replaces the measured one, so that points which are low by chance do not
    # weigh more.
    expected = fitted.models.take(rows).values(fitted.points)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.clip(expected / time, 0.5, 2.0), nan=1.0)
        error = level[:, None] / np.sqrt(weight) * ratio
    return time, np.where((time > 0) & (weight > 0), error, np.inf)


def _pool(fitted: Fitted) -> Pool:
    """Return the noise of repetitions of all call paths."""
    if fitted not in _POOLS:
        of_run = fitted.line.settings([fitted.parameter])[:, 0]
        is_repeated = len(np.unique(of_run)) < len(of_run)
        count = len(fitted.experiment.tree) if is_repeated else 0
        parts = [_repetitions(fitted, slice(0, 0))]
        for start in range(0, count, _CHUNK):
            part = _repetitions(fitted, slice(start, start + _CHUNK))
            # Rows without repetitions tell nothing, and there may be 10^6.
            parts.append(part.take(np.flatnonzero(degrees_of_freedom(part).any(axis=1))))
        columns = ("centre", "count", "squares")
        told = RepetitionStats(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in columns)
        )
        _POOLS[fitted] = pooled(*row_spread(told), profile_of(told))
    return _POOLS[fitted]


def _repetitions(fitted: Fitted, rows: IntArray | slice) -> RepetitionStats:
    """Return the statistics of the repetitions of some call paths at the points."""
    points, runs = fitted.line.by_point(fitted.metric.name, fitted.parameter, rows=rows)
    return repetition_stats(runs[:, np.isin(points, fitted.points)], fitted.models.aggregate)


def _at(fitted: Fitted, rows: IntArray, target: float) -> FloatArray:
    """Return the times at the target, [n]."""
    here = np.flatnonzero(fitted.points == target)
    if len(here) and fitted.held == fitted.measured_at:
        return np.asarray(fitted.measured[rows, here[0]])
    return predicted_values(fitted, target)[rows]


def _over_processes(
    fitted: Fitted, rows: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean and largest times of the processes, and errors and scatter of their ratio."""
    line, name = fitted.line, fitted.metric.name
    known = line.columns[name].imbalance
    if known is None or line.reduction not in {Reduction.MAX, Reduction.MEAN, Reduction.SUM}:
        nothing = np.full((len(rows), len(fitted.points)), np.nan)
        return nothing, nothing, nothing, nothing[:, 0]
    _, ratio, error, scatter = cube_of(fitted, known[rows].astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        error = error / ratio
    mean, largest = (fitted.means_of(each) for each in line.means_and_maxima(name, rows))
    return mean, largest, error, scatter


def amounts_at(
    fitted: Fitted, runs: FloatArray, target: float
) -> tuple[Amounts, tuple[Growth | None, ...]]:
    """Return a quantity at the points and, by its own models, at a target.

    Parameters
    ----------
    fitted : models of the time, whose points count
    runs : [n, K, R] values of the quantity; NaN = did not occur
    target : value of the parameter

    Returns
    -------
    Amounts, tuple of Growth or None
        The values, and the growth of each model; None = no model.
    """
    if not len(runs):
        return Amounts(np.zeros((0, len(fitted.points) + 1)), np.zeros(0)), ()
    made = modeling.fit(fitted.points, runs)
    centres = np.nan_to_num(modeling.centre(runs, made.aggregate))
    with_model = ~np.isnan(made.coefficients[:, 0])
    here = np.flatnonzero(fitted.points == target)
    if len(here):
        last, error = centres[:, here[0]], np.zeros(len(runs))
    else:
        said = made.predict(np.array([target]))
        last = np.where(with_model, said.value[:, 0], centres[:, -1])
        reach = float(normal_quantile(0.5 + made.confidence / 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = np.log(said.high[:, 0] / np.maximum(said.low[:, 0], last / 10)) / (2 * reach)
        error = np.where(with_model, np.nan_to_num(np.clip(wide, 0, 2)), 1.0)
    ranks = made.growth_rank().tolist()
    growths = tuple(made.shapes.growths[rank] if rank >= 0 else None for rank in ranks)
    return Amounts(np.column_stack([centres, last]), error), growths


def _needs(fitted: Fitted, rows: IntArray, target: float) -> tuple[Need, ...]:
    """Return the requirements of call paths that are not zero in all of them."""
    metrics, cubes = [], []
    for name, column in fitted.line.columns.items():
        if not column.metric.is_requirement:
            continue
        points, runs = fitted.line.by_point(name, fitted.parameter, rows=rows)
        here = np.isin(points, fitted.points)
        runs = runs[:, here]
        if here.sum() == len(fitted.points) and np.nan_to_num(runs).any():
            metrics.append(column.metric)
            cubes.append(runs)
    if not cubes:
        return ()
    # One call makes the models of all metrics, because it costs as much as those of many rows.
    most = max(runs.shape[2] for runs in cubes)
    stacked = np.concatenate(
        [
            np.pad(runs, ((0, 0), (0, 0), (0, most - runs.shape[2])), constant_values=np.nan)
            for runs in cubes
        ]
    )
    used = np.nan_to_num(stacked).any(axis=(1, 2))
    values, error = np.zeros((len(stacked), len(fitted.points) + 1)), np.zeros(len(stacked))
    growth: list[Growth | None] = [None] * len(stacked)
    first = stacked[:, :1, :1]
    steady = used & ((stacked == first) | np.isnan(stacked)).all(axis=(1, 2))
    steady &= ~np.isnan(stacked).all(axis=2).any(axis=1)
    values[steady] = first[steady, :, 0]
    varies = np.flatnonzero(used & ~steady)
    of_varying, its = amounts_at(fitted, stacked[varies], target)
    values[varies], error[varies] = of_varying.values, of_varying.error
    for place in np.flatnonzero(steady).tolist():
        growth[place] = CONSTANT
    for place, one in zip(varies.tolist(), its, strict=True):
        growth[place] = one
    count, found = len(rows), []
    for k, metric in enumerate(metrics):
        part = slice(k * count, (k + 1) * count)
        amounts = Amounts(values[part], error[part])
        found.append(Need(metric, amounts, tuple(growth[part]), fitted.parameter))
    return tuple(found)


def _delays(
    fitted: Fitted, spent: SpentDelays, places: IntArray, target: float
) -> tuple[Amounts, Amounts]:
    """Return the delays that call paths wait for, and their time beside these.

    Parameters
    ----------
    places : [n] the call paths, as places in `spent`
    """
    ahead = parts_of(fitted, spent, places, np.array([target]))
    here = fitted.points == target
    found = []
    for runs, at_target, variance in (
        (spent.delay[places], ahead.delay, ahead.of_delay),
        (spent.rest[places], ahead.rest, ahead.of_rest),
    ):
        _, centre, scatter, _ = cube_of(fitted, runs)
        values = np.nan_to_num(centre)
        error = np.zeros(len(places)) if here.any() else np.sqrt(variance[:, 0])
        last = values[:, here] if here.any() else at_target
        found.append(Amounts(np.column_stack([values, last]), error, scatter))
    return found[0], found[1]


def cube_of(
    fitted: Fitted, values: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return values [n, runs] by point, their means and errors, and the scatter of one run.

    Returns
    -------
    cube : [n, K, R] values; NaN = no such run
    centre, error : [n, K] means of repetitions, and their standard errors
    scatter : [n] relative standard deviation of one value
    """
    cube = fitted.repetitions_of(values)
    of_run = fitted.line.settings([fitted.parameter])[:, 0]
    count = (of_run == fitted.points[:, None]).sum(axis=1).astype(float)
    centre = fitted.means_of(values)
    freedom = max(float((count - 1).sum()), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.nan_to_num(cube / centre[..., None] - 1)
    relative = np.sqrt((away**2).sum(axis=(1, 2)) / freedom)
    relative = np.where(count.max() > 1, relative, UNREPEATED)
    error = relative[:, None] * np.nan_to_num(centre) / np.sqrt(count)
    return cube, centre, error, relative
