"""Advice on the next run: the effect of one more setting on the band at a target.

The result of a run is not known in advance, but the mixture of models gives its probability
distribution. So outcomes are drawn from it, models are made with each outcome as if it had been
measured, and the bands of the total at the target are compared. This is a preposterior analysis
(Raiffa, Schlaifer: *Applied statistical decision theory*, 1961).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.predict import predicted_values, total_of
from callpath_modeler.analysis.run_time import predicted_run_time
from callpath_modeler.analysis.scales import power_of
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError, check_type
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models
from callpath_modeler.modeling.distributions import normal_share
from callpath_modeler.profile.runs import target_of, targets_of
from callpath_modeler.units import setting_text

_OUTCOMES, _OUTCOMES_OF_SURFACES = 16, 8
"""Outcomes of each run that are drawn; models in several parameters take half a second each."""
_ROWS, _ROWS_OF_SURFACES = 1000, 50
"""Call paths that outcomes are drawn for: the costliest at the target, by the ends of bands."""
_MOST = 6
"""Largest number of settings that are tried in several parameters."""
_STEPS = 2.0, 4.0, 8.0, 16.0
"""Scales that are asked about, in multiples of the largest that was run."""
_SEED = 20
_ALIKE = 0.15
"""Relative difference of logarithms of two expected bands that sixteen outcomes do not show.

Of such scales, the largest is run, because the outcomes assume that a law of the models goes on.
After the same core-hours, the mean error of 36 cuts of sorts is .73 with this rule, .84 without it,
and .95 with the next power of two (`benchmarks/next_runs.py`).
"""
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class NextRun:
    """One more setting, and its effect on the band of the total at the target.

    Attributes
    ----------
    setting : value of each parameter, by name
    scale : value of the parameter of the models
    time : predicted run time, per process
    core_hours : predicted cost of all its repetitions; NaN = the number of processes is not known,
        or the metric is no time
    apart : ratio of the ends of the band after this run: the median over the drawn outcomes
    least, most : the same ratio for the outcomes that narrow the band most and least
    gain : part of the width of the band, on a logarithmic scale, that the run removes; below zero
        = the band becomes wider
    """

    setting: Mapping[str, float]
    scale: float
    time: float
    core_hours: float
    apart: float
    least: float
    most: float
    gain: float

    @property
    def gain_per_core_hour(self) -> float:
        """Gain over the cost; NaN = the cost is not known."""
        return self.gain / self.core_hours if self.core_hours > 0 else math.nan


@dataclass(frozen=True, slots=True)
class Advice:
    """Settings to measure next, with their effect on the band at a target.

    Attributes
    ----------
    target : the target
    value, low, high : total at the target with its band, from the present runs, SI base units
    repetitions : number of runs of each setting that are assumed
    outcomes : number of outcomes of each run that were drawn
    runs : the settings that were tried, cheapest first
    """

    target: float
    value: float
    low: float
    high: float
    repetitions: int
    outcomes: int
    runs: tuple[NextRun, ...]

    def best(self, core_hours: float = math.inf, goal: float = 1.0) -> NextRun | None:
        """Return the setting to run next; None = no run is affordable.

        This is the cheapest setting that is expected to reach the goal. If there is none, it is
        the affordable setting with the narrowest expected band: the error at the target after the
        same core-hours is smaller than with cheap runs. Without a budget, it is the setting with
        the largest gain per core-hour, which reaches a goal with fewer core-hours.

        Parameters
        ----------
        core_hours : the budget: largest cost of all its repetitions; inf = there is none
        goal : ratio of the ends of the band that is narrow enough
        """
        affordable = [run for run in self.runs if not run.core_hours > core_hours]
        enough = [run for run in affordable if run.apart <= goal]
        if enough:
            return enough[0]
        useful = [run for run in affordable if run.gain_per_core_hour > 0]
        if math.isinf(core_hours) and useful:
            return max(useful, key=lambda run: run.gain_per_core_hour)
        narrowest = min((run.apart for run in affordable), default=1.0) ** (1 + _ALIKE)
        alike = [run for run in affordable if run.apart <= narrowest]
        return max(alike or affordable, key=lambda run: run.scale, default=None)

    @property
    def apart(self) -> float:
        """Upper end of the band over its lower end."""
        return self.high / self.low


def advise(
    fitted: Fitted,
    target: float,
    scales: Sequence[float] = (),
    progress: Callable[[int, int], None] | None = None,
    *,
    repetitions: int | None = None,
    measured_too: bool = False,
) -> Advice:
    """Return the effect of one more run on the band of the total at a target.

    Parameters
    ----------
    fitted : models of an additive metric, by the mixture method. The other parameters of models in
        several have their values at the target
    target : a finite scale
    scales : scales to try; by default multiples of the largest one, below the target. They are
        cubes or squares if all measured scales are. With several parameters, the default also
        varies the others, and they are at the measured values nearest to the target for `scales`
    progress : called with the number of settings that are done, and of all settings
    repetitions : number of runs of each setting; None = as many as at the measured ones
    measured_too : accept scales that were run; their runs are further repetitions

    Returns
    -------
    Advice
        Band of the total at the target after one more run at each setting, in SI base units.

    Raises
    ------
    DataError
        If there is no setting between the largest run and the target, the models are classic, or
        the total is not above zero.
    UsageError
        If the target or a scale is not positive and finite, or if a scale was already run.

    References
    ----------
    Raiffa, Schlaifer: Applied statistical decision theory (1961), preposterior analysis.
    """
    _check(fitted)
    target = _finite(target)
    given = np.size(scales) > 0
    chosen = _given(fitted, scales, measured_too) if given else _settings(fitted, target)
    if not chosen:
        largest = {name: fitted.measured_range(name)[1] for name in fitted.parameters}
        raise DataError(
            f"there is no scale between the largest run, {setting_text(largest)}, and the target",
            hint="ask about a larger one with --target",
        )
    rows = np.flatnonzero(fitted.modelled)
    most = _ROWS if fitted.surface is None else _ROWS_OF_SURFACES
    high = fitted.models.take(rows).predict([target]).high[:, 0]
    rows = rows[np.argsort(-high, kind="stable")[:most]]
    present = _Runs.of(fitted, rows)
    _, low, high_end = _band(fitted.models.take(rows), target)
    value = float(np.nansum(predicted_values(fitted, target)[rows]))
    if not low > 0:
        raise DataError(
            f"{fitted.metric.name} may be nothing at the target: no band to narrow",
            hint="see `cpmodel rank`, or measure with a finer clock",
        )
    at_target = fitted.at(target)
    outcomes = _OUTCOMES if fitted.surface is None else _OUTCOMES_OF_SURFACES
    repetitions = repetitions or present.values.shape[2]
    found = []
    for done, each in enumerate(chosen, start=1):
        found.append(
            _tried(fitted, present, each, at_target, high_end / low, outcomes, repetitions)
        )
        if progress is not None:
            progress(done, len(chosen))
    found.sort(key=lambda run: (np.nan_to_num(run.core_hours, nan=run.time), run.scale))
    return Advice(target, value, low, high_end, repetitions, outcomes, tuple(found))


def band_at(fitted: Fitted, target: float) -> tuple[float, float, float]:
    """Return the total at a target with the ends of its band, as `advise` compares them."""
    rows = np.flatnonzero(fitted.modelled)
    _, low, high = _band(fitted.models.take(rows), target)
    return float(np.nansum(predicted_values(fitted, target)[rows])), low, high


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Measurements of n rows, and their models.

    Attributes
    ----------
    names : the D parameters of the models, in their order
    axis : position of the parameter of the advice
    points : [K, D] measured settings
    values : [n, K, R] measured values
    models : models in all parameters
    """

    names: tuple[str, ...]
    axis: int
    points: FloatArray
    values: FloatArray
    models: Models

    @classmethod
    def of(cls, fitted: Fitted, rows: IntArray) -> _Runs:
        """Return the measurements of some rows of an experiment."""
        names = fitted.parameters
        points, values = fitted.experiment.by_setting(fitted.metric.name, names)
        measured = ~np.isnan(values).all(axis=(0, 2))
        axis = names.index(fitted.parameter)
        models = fitted.whole.take(rows)
        return cls(names, axis, points[measured], values[rows][:, measured], models)

    def line(self, setting: Mapping[str, float]) -> tuple[Models, float]:
        """Return models along the parameter through a setting, and its value there."""
        at = [setting[name] for name in self.names]
        if len(at) == 1:
            return self.models, at[0]
        along, _ = modeling.slice_with_line_models(
            self.models, self.axis, at, self.points, self.values
        )
        return along, at[self.axis]

    def with_run(self, setting: Mapping[str, float], outcome: FloatArray) -> _Runs:
        """Return the measurements and their new models with more runs at one setting."""
        at = np.array([setting[name] for name in self.names])
        is_there = (self.points == at).all(axis=1)
        points = self.points if is_there.any() else np.concatenate([self.points, at[None]])
        more = np.full((len(self.values), len(points), outcome.shape[1]), np.nan)
        more[:, np.flatnonzero(is_there)[0] if is_there.any() else -1] = outcome
        present = np.full((len(self.values), len(points), self.values.shape[2]), np.nan)
        present[:, : len(self.points)] = self.values
        # Values are to the left; all columns have a value at some setting.
        values = np.concatenate([present, more], axis=2)
        values = np.take_along_axis(values, np.isnan(values).argsort(axis=2, kind="stable"), axis=2)
        values = values[:, :, : int((~np.isnan(values)).sum(axis=2).max())]
        order = np.lexsort(points.T[::-1])
        points, values = points[order], values[:, order]
        models = modeling.fit(
            points if len(self.names) > 1 else points[:, 0],
            values,
            space=self.models.space,
            aggregate=self.models.aggregate,
            confidence=self.models.confidence,
        )
        return _Runs(self.names, self.axis, points, values, models)


def _tried(
    fitted: Fitted,
    present: _Runs,
    setting: Mapping[str, float],
    target: Mapping[str, float],
    apart: float,
    count: int,
    repetitions: int,
) -> NextRun:
    """Return the effect of a run.

    Parameters
    ----------
    apart : ratio of the ends of the present band
    count : number of outcomes to draw
    repetitions : number of runs in each outcome
    """
    models, scale = present.line(setting)
    drawn = np.random.default_rng(_SEED)
    outcomes = [_outcome(models, scale, repetitions, drawn) for _ in range(count)]
    ratios = []
    for outcome in outcomes:
        _, low, high = _band(*present.with_run(setting, outcome).line(target))
        ratios.append(high / low if low > 0 else np.inf)
    time, _, _ = predicted_run_time(fitted.holding(setting), scale)
    processes = setting.get("p", fitted.experiment.constants.get("p", math.nan))
    is_run_time = fitted.metric.can_be_run_time
    hours = repetitions * processes * time / _SECONDS_PER_HOUR if is_run_time else math.nan
    after = float(np.median(ratios))
    gain = 1 - math.log(after) / math.log(apart) if apart > 1 else 0.0
    return NextRun(dict(setting), scale, time, hours, after, min(ratios), max(ratios), gain)


def _check(fitted: Fitted) -> None:
    """Raise an error for models without probabilities or without a total above zero."""
    check_type(fitted, Fitted, "fitted")
    if fitted.models.method == "classic":
        raise DataError(
            "models of the classic method do not say how probable each outcome of a run is",
            hint="give the profiles, or a store of `cpmodel fit --method mixture`",
        )
    if not fitted.metric.additive:
        raise DataError(
            f"{fitted.metric.name} does not add up over call paths: it has no total",
            hint="advice is about the run time",
        )


def _finite(target: float) -> float:
    found = target_of(target)
    if np.isinf(found):
        raise UsageError("--advise: growth alone has no band", hint="--target with a number")
    return found


def _given(fitted: Fitted, scales: Sequence[float], measured_too: bool) -> list[dict[str, float]]:
    """Return the settings at the given scales, if none of them was run or measured ones count."""
    measured = _Measured(fitted)
    chosen = []
    for scale in targets_of(scales).tolist():
        setting = {**measured.nearest, fitted.parameter: scale}
        if np.isinf(scale) or (measured.has(setting) and not measured_too):
            raise UsageError(
                f"no run to advise at {setting_text(setting)}", hint="scales that were not run yet"
            )
        chosen.append(setting)
    return chosen


class _Measured:
    """The measured settings of an experiment, and the one nearest to a target."""

    def __init__(self, fitted: Fitted) -> None:
        self._settings = fitted.whole.points.reshape(len(fitted.whole.points), -1)
        self._names = fitted.parameters
        self.nearest = {fitted.parameter: float(fitted.points[-1]), **fitted.measured_at}

    def has(self, setting: Mapping[str, float]) -> bool:
        """Return whether a setting was measured."""
        at = [setting[name] for name in self._names]
        return bool((self._settings == at).all(axis=1).any())

    def values(self, name: str) -> FloatArray:
        """Return the measured values of a parameter, ascending."""
        return np.unique(self._settings[:, self._names.index(name)])


def _settings(fitted: Fitted, target: float) -> list[dict[str, float]]:
    """Return settings to run, which were not measured.

    With one parameter, these are multiples of the largest scale. With several, they are, from the
    measured setting nearest to the target: the first steps of the main parameter; that step at the
    smallest value of each other one, where runs are cheap; the first step of each other parameter,
    up to its value at the target; and the first steps of all parameters together.
    """
    measured, main = _Measured(fitted), fitted.parameter
    base, at = measured.nearest, fitted.at(target)
    steps = between(measured.values(main), target)
    found = [{**base, main: value} for value in steps]
    if fitted.surface is None:
        return found
    others = [name for name in fitted.parameters if name != main]
    first = {main: steps[0]} if steps else {}
    beside = []
    for name in others:
        values = measured.values(name)
        beyond = [*between(values, at[name]), at[name]]
        if beyond[0] > values[-1]:
            first[name] = beyond[0]
            beside.append({**base, name: beyond[0]})
        if steps:
            beside.append({**base, main: steps[0], name: float(values[0])})
    found = [base, *found[:2], {**base, **first}, *beside, *found[2:]]
    distinct = {tuple(each.values()): each for each in found if not measured.has(each)}
    return list(distinct.values())[:_MOST]


def between(points: FloatArray, target: float) -> list[float]:
    """Return scales to run, above all `points` and below the target, ascending.

    They are whole numbers, or cubes or squares, if the points are.
    """
    power = power_of(points)
    wanted = points[-1] * np.array(_STEPS)
    if power is not None:
        wanted = np.round(wanted ** (1 / power)) ** power
    return sorted({float(each) for each in wanted if points[-1] < each < target})


def _outcome(
    models: Models, scale: float, repetitions: int, drawn: np.random.Generator
) -> FloatArray:
    """Draw what a run may measure, [n, R].

    Call paths are wrong alike as far as their errors are known to be.
    """
    mixture = models.mixture([scale])
    centre, below, above = (each[..., 0] for each in (mixture.centre, mixture.below, mixture.above))
    alike = models.correlation
    own = np.sqrt(1 - alike) * drawn.standard_normal(len(models))
    rank = normal_share(np.sqrt(alike) * drawn.standard_normal() + own)
    order = np.argsort(centre, axis=1)
    running = np.take_along_axis(mixture.weight, order, axis=1).cumsum(axis=1)
    place = (running < (rank * running[:, -1])[:, None]).sum(axis=1)
    true = np.take_along_axis(order, place[:, None], axis=1)
    level, less, more = (
        np.take_along_axis(each, true, axis=1)[:, 0] for each in (centre, below, above)
    )
    off = drawn.standard_normal(len(models))
    noise = np.nan_to_num(models.noise)[:, None] * drawn.standard_normal((len(models), repetitions))
    noise -= noise.mean(axis=1, keepdims=True)
    return np.asarray(
        (level * np.exp(off * np.where(off < 0, less, more)))[:, None] * np.exp(noise)
    )


def _band(models: Models, target: float) -> tuple[float, float, float]:
    """Return value, low and high of the sum of rows at the target."""
    modelled = ~np.isnan(models.coefficients[:, 0])
    value, low, high = total_of(models.take(modelled), np.array([target]))
    return float(value[0]), float(low[0]), float(high[0])
