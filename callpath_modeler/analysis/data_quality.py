"""Quality of data and models: repetitions, slow runs, wrapped counters, missing models.

A rule of thumb of the field: the 95 % confidence interval of a mean, by Student's t, should lie
within 5 % of the mean. The rule applies to call paths that carry cost. The worst call path of a
point decides.

An error that all call paths of a run share, such as a slow node or another job on the machine, does
not average out over call paths. It distorts models. So findings name such runs. Two states of a
machine make two groups of run times, and the mean is the time of no run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from callpath_modeler import modeling
from callpath_modeler.analysis.excess_work import CARRIES_COST
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import MODELS, Finding
from callpath_modeler.modeling import FitStatus, Models
from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import Rows
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.runs import worker_parameter
from callpath_modeler.profile.schema import Metric
from callpath_modeler.units import counted, parameter_value, percent, setting_text, significant

RANGE = 2.0**32
"""Number of values of a counter of 32 bits."""
_NEAR = 0.02
"""Largest relative distance between the law and a value with whole ranges added."""
_MOST = 8
"""Largest number of ranges. With more of them, any value has the law nearby by chance."""
_BEFORE = 2
"""Number of points that a power law needs."""
_LEAST_BEFORE = 2.0**20
"""Smallest value before the fall. From smaller ones, no power goes beyond the range at once."""
_LEAST = 4
"""Number of points that must lie on the law, with few ranges added."""


def wrapped_from(points: FloatArray, values: FloatArray) -> IntArray:
    """Return the point from which each counter is wrapped.

    A wrapped counter falls, but rose as a power of the parameter before. A multiple of 2^32 brings
    its values back to that power.

    Parameters
    ----------
    points : [K] positive, ascending
    values : [n, K] counts of one run, or means over runs and processes; NaN or 0 = not known

    Returns
    -------
    [n]
        Column of the first wrapped value; -1 = none.
    """
    found = np.full(len(values), -1, np.intp)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(_BEFORE, len(points)):
            before = values[:, k - 1]
            falls = (values[:, k] < before) & (before >= _LEAST_BEFORE) & (before < RANGE)
            rows = np.flatnonzero(falls & (found < 0))
            found[rows[_are_wrapped(points, values[rows], k)]] = k
    return found


def _are_wrapped(points: FloatArray, values: FloatArray, k: int) -> BoolArray:
    """Return whether the law of the points before `k` holds at all points, [n]."""
    log_x, log_y = np.log(points), np.log(values)
    slope = (log_y[:, k - 1] - log_y[:, 0]) / (log_x[k - 1] - log_x[0])
    law = values[:, :1] * np.exp(slope[:, None] * (log_x - log_x[0]))
    ranges = np.maximum(np.round((law - values) / RANGE), 0)
    ranges[:, :k] = 0
    # At a single scale, a range brings many values close to the law.
    near = abs((values + ranges * RANGE) / law - 1) <= _NEAR
    told = (near & (ranges <= _MOST)).sum(axis=1) >= _LEAST
    holds = (near | (ranges > _MOST)).all(axis=1) & (values < RANGE).all(axis=1)
    return np.asarray((ranges[:, k] >= 1) & told & holds)


RECOMMENDED_POINTS = 5
"""Recommended number of points of a model."""


def findings_of_parameters(experiment: Experiment, parameters: tuple[str, ...]) -> list[Finding]:
    """Return findings about parameters that change together with the modelled ones."""
    others = [other for other in experiment.parameters if other.name not in parameters]
    main = parameters[0]
    return [
        Finding(
            "CPM116",
            other.name,
            f"{len(other.values)} values over those of {main}; targets are values of {main}, "
            f"and of {other.name} with --parameter {shell_word(other.name)}",
        )
        for other in others
    ]


def findings_of_models(
    models: Models,
    points: FloatArray,
    parameters: tuple[str, ...],
    centres: FloatArray,
) -> list[Finding]:
    """Return findings about call paths without a model, and about the choice of runs.

    Parameters
    ----------
    models : n models
    points : [K, D] settings, of parameters in this order
    parameters : [D] names
    centres : [n, K] measured centres
    """
    total, since = np.nansum(centres), modeling.changes_since(models)
    found = []
    for code, status, words in (
        ("CPM201", FitStatus.TOO_FEW_POINTS, "measured at too few points"),
        ("CPM202", FitStatus.OUTSIDE, "whose values are farther from each model than the noise"),
        ("CPM203", FitStatus.NOISY, "whose repetitions differ more than their scales"),
    ):
        # A call path without own values, such as the root of parts of a total, needs no model.
        rows = (models.status == status) & ~np.isnan(centres).all(axis=1)
        if status is FitStatus.OUTSIDE:
            rows &= since == 0
        if rows.any():
            share = percent(np.nansum(centres[rows]) / total if total > 0 else 0.0)
            count = int(rows.sum())
            message = f"{counted(count, 'call path')}, {share} of the cost of all scales, {words}"
            found.append(Finding(code, MODELS, message, count))
    # Work that doubles with each further process does not exist: another cause bends the curve.
    if worker_parameter(parameters) is None:
        found += _exponentials(models, parameters[0], centres)
    if since.any():
        found.append(_change_points(since, parameters[0], np.nan_to_num(centres)))
    for parameter, column in zip(parameters, points.T, strict=True):
        if (count := len(np.unique(column))) < RECOMMENDED_POINTS:
            found.append(Finding("CPM204", MODELS, f"{counted(count, 'point')} of {parameter}"))
    if len(parameters) > 1 and _vary_one_at_a_time(points):
        largest = setting_text(dict(zip(parameters, points.max(axis=0).tolist(), strict=True)))
        message = f"whether they add up or multiply is assumed; a run at {largest} would tell"
        found.append(Finding("CPM207", MODELS, message))
    if models.odd_scale is not None:
        odd, factor = models.odd_scale
        held = {name: at for name, at in zip(parameters, odd, strict=True) if at is not None}
        where, times = setting_text(held), significant(factor)
        message = f"at {where} nearly all call paths are {times} times what the other scales say"
        found.append(Finding("CPM208", MODELS, message))
    return found


def findings_of_counters(
    metric: Metric, points: FloatArray, parameters: tuple[str, ...], centres: FloatArray
) -> list[Finding]:
    """Return a finding about counters that are wrapped; arguments as in `findings_of_models`."""
    if len(parameters) > 1 or not metric.is_requirement:
        return []
    since = wrapped_from(points[:, 0], centres)
    if (since < 0).all():
        return []
    count, first = int((since >= 0).sum()), int(since[since >= 0].min())
    where = setting_text({parameters[0]: float(points[first, 0])})
    message = f"{counted(count, 'call path')} of {metric.name}, from {where} on"
    return [Finding("CPM215", MODELS, message, count)]


def _exponentials(models: Models, parameter: str, centres: FloatArray) -> list[Finding]:
    """Return a finding about the most expensive call path that an exponential fits far better."""
    better = modeling.better_exponentials(models, centres)
    if better is None:
        return []
    cost = np.nan_to_num(centres).sum(axis=1)
    worst = int(np.argmax(cost[better.rows]))
    share = percent(cost[better.rows].sum() / cost.sum() if cost.sum() > 0 else 0.0)
    term = better.terms[worst].text(parameter)
    off = percent(better.error[worst], 1)
    off_model = better.error_of_model[worst]
    of_model = percent(off_model, 1) if off_model <= 1 else "more than 100 %"
    count = len(better.rows)
    message = (
        f"{counted(count, 'call path')}, {share} of the cost of all scales; {term} is off by "
        f"{off}, the model by {of_model}"
    )
    return [Finding("CPM210", MODELS, message, count)]


def _change_points(since: FloatArray, parameter: str, centres: FloatArray) -> Finding:
    """Return a finding about the change point with most of the cost, with the scales beyond it.

    `since` [call paths] is 0 for call paths without one; `centres` is [call paths, K].
    """
    rows = since > 0
    cost = centres.sum(axis=1)
    places = np.unique(since[rows])
    at = places[np.argmax([cost[since == place].sum() for place in places])]
    share = percent(cost[rows].sum() / cost.sum() if cost.sum() > 0 else 0.0)
    where = shell_word(f"{parameter}>={at:.17g}")
    most = "most of it " * (len(places) > 1)
    message = (
        f"{counted(int(rows.sum()), 'call path')}, {share} of the cost of all scales, {most}from "
        f"{setting_text({parameter: float(at)})} on; select these scales with --where {where}"
    )
    return Finding("CPM209", MODELS, message, int(rows.sum()))


def _vary_one_at_a_time(points: FloatArray) -> bool:
    """Return True if no point of [K, D] has two parameters at unusual values."""
    apart = np.zeros(len(points), dtype=np.intp)
    for column in points.T:
        values, which, count = np.unique(column, return_inverse=True, return_counts=True)
        if len(values) > 1:
            apart += which.ravel() != count.argmax()
    return bool((apart <= 1).all())


CONFIDENCE = 0.95
WITHIN = 0.05

_NAMED = 3
"""Settings that a finding names; it counts the others."""

_MOST_REPETITIONS = 1000
"""Largest number of repetitions that is written as a number."""

_SLOWER = 0.05
_NEARLY_ALL = 0.9
_ENOUGH = 20
"""Smallest number of call paths: 18 of 20 are slower by chance in one of 5,000 runs."""

_LOOKED_AT = 1000
"""Largest number of call paths that judge a run; more would not change the result."""


_APART = 4, 12.0, 3.0
"""Smallest number of runs, distance of groups of so few, relative to the wider one, and least one.

The distance falls with the square of the number of runs. Repetitions of one state, with normal,
exponential, half-normal or log-normal noise, are two groups in less than 1 % of the settings.
"""


class Shortage(Struct, frozen=True):
    """A point with too few repetitions.

    Attributes
    ----------
    setting : values of the varying parameters
    made : number of repetitions
    needed : number of repetitions that the rule requires, at the present scatter
    row : the call path with the widest interval
    within : half the width of its interval, as fraction of its mean
    """

    setting: tuple[float, ...]
    made: int
    needed: int
    row: int
    within: float


def shortages(experiment: Experiment, metric: str | None = None) -> list[Shortage]:
    """Return the points with too few repetitions; points with a single run cannot be judged.

    Parameters
    ----------
    metric : name of the metric; None = the first duration
    """
    values = experiment.values(metric)
    reach = _reach(np.arange(2, _MOST_REPETITIONS + 1))
    found = []
    for setting, runs in experiment.runs_by_setting().items():
        at_point = values[:, runs]
        rows = _costly(at_point, additive=experiment.metric(metric).additive)
        made = (~np.isnan(at_point[rows])).sum(axis=1)
        rows, made = rows[made > 1], made[made > 1]
        if not len(rows):
            continue
        spread = np.nanstd(at_point[rows], axis=1, ddof=1) / np.nanmean(at_point[rows], axis=1)
        width = _reach(made) * spread
        worst = int(np.argmax(width))
        if width[worst] > WITHIN:
            needed = int(np.searchsorted(-reach * spread[worst], -WITHIN)) + 2
            found.append(
                Shortage(setting, int(made[worst]), needed, int(rows[worst]), float(width[worst]))
            )
    return found


class SlowRun(Struct, frozen=True):
    """A run in which nearly all call paths took longer than in its repetitions.

    Attributes
    ----------
    run : number of the run
    longer : relative increase, the median over call paths, against the median of the repetitions
    share : fraction of the call paths that took longer
    """

    run: int
    longer: float
    share: float


def slow_runs(experiment: Experiment, metric: str | None = None) -> list[SlowRun]:
    """Return runs in which nine of ten call paths took longer, by 5 % or more in the median.

    A judged run has at least two repetitions, and 20 call paths that take time in all of them.

    Parameters
    ----------
    metric : name of the metric; None = the first duration. Runs are slow in times only
    """
    if not experiment.metric(metric).is_time:
        return []
    values, found = experiment.values(metric), []
    for runs in experiment.runs_by_setting().values():
        at_point = values[:, runs]
        rows = np.flatnonzero((at_point > 0).all(axis=1))
        if len(runs) < 3 or len(rows) < _ENOUGH:
            continue
        some = at_point[rows[:: len(rows) // _LOOKED_AT + 1]]
        others = _medians_of_others(some)
        for place, run in enumerate(runs):
            ratio = some[:, place] / others[:, place]
            longer, share = float(np.median(ratio)) - 1, float((ratio > 1).mean())
            if longer >= _SLOWER and share >= _NEARLY_ALL:
                found.append(SlowRun(int(run), longer, share))
    return found


class RunGroups(Struct, frozen=True):
    """Repetitions of one setting in two groups.

    Attributes
    ----------
    slow, fast : numbers of the runs
    longer : relative increase of the mean run time from the fast to the slow runs
    """

    slow: tuple[int, ...]
    fast: tuple[int, ...]
    longer: float


def run_groups(experiment: Experiment, metric: str | None = None) -> list[RunGroups]:
    """Return the settings whose run times are in two groups that lie far apart.

    A group has at least two runs, and the distance of the groups is at least 5 %.

    Parameters
    ----------
    metric : name of the metric; None = the first duration. Only run times are in groups
    """
    chosen = experiment.metric(metric)
    if not (chosen.is_time and chosen.additive):
        return []
    program = experiment.of_program(chosen.name)
    values = (experiment if program is None else program).values(chosen.name)
    times, found = np.nansum(values, axis=0), []
    for runs in experiment.runs_by_setting().values():
        order = np.array(runs)[np.argsort(times[runs], kind="stable")]
        first = _second_group(times[order])
        if first:
            fast, slow = order[:first], order[first:]
            longer = float(times[slow].mean() / times[fast].mean()) - 1
            found.append(RunGroups(tuple(slow.tolist()), tuple(fast.tolist()), longer))
    return found


def _second_group(times: FloatArray) -> int:
    """Return the place of the first time of the second group, in ascending order; 0 = no groups."""
    if len(times) < _APART[0] or not times[0] > 0:
        return 0
    logs = np.log(times)
    places = np.arange(2, len(times) - 1)
    within = np.maximum(logs[places - 1] - logs[0], logs[-1] - logs[places])
    apart = logs[places] - logs[places - 1]
    fewest, factor, least = _APART
    factor = max(factor * (fewest / len(times)) ** 2, least)
    best = int(np.argmax(apart - factor * within))
    is_apart = apart[best] >= max(np.log1p(_SLOWER), factor * within[best])
    return int(places[best]) if is_apart else 0


def _medians_of_others(values: FloatArray) -> FloatArray:
    """Return for each value [k, R] the median of the other values in its row."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(values.shape[1])[np.newaxis], axis=1)
    count = values.shape[1] - 1
    # Without one value, all values from its rank on are one place further up.
    low, high = (
        np.take_along_axis(ordered, place + (rank <= place), axis=1)
        for place in ((count - 1) // 2, count // 2)
    )
    return np.asarray(low if count % 2 else (low + high) / 2)


def _costly(values: FloatArray, *, additive: bool) -> Rows:
    """Return the rows that carry cost, from values [call paths, repetitions]."""
    present = ~np.isnan(values)
    mean = np.nansum(values, axis=1) / np.maximum(present.sum(axis=1), 1)
    least = CARRIES_COST * mean.sum() if additive else 0.0
    return np.flatnonzero((mean > 0) & (mean >= least))


def _reach(number: Rows) -> FloatArray:
    """Return half the width of an interval in standard deviations, for a number of repetitions."""
    freedom = np.asarray(number - 1, np.float64)
    return student_quantile(freedom, 0.5 + CONFIDENCE / 2) / np.sqrt(number)


def repetition_findings(experiment: Experiment, metric: str | None = None) -> list[Finding]:
    """Return findings about missing repetitions, slow runs, and repetitions in two groups."""
    return [
        *_too_few(experiment, metric),
        *_slower(experiment, metric),
        *_in_groups(experiment, metric),
    ]


def _in_groups(experiment: Experiment, metric: str | None) -> list[Finding]:
    """Return one finding about the settings whose repetitions are in two groups."""
    groups = sorted(run_groups(experiment, metric), key=lambda each: -each.longer)
    if not groups:
        return []
    each = [
        f"{', '.join(experiment.runs[run].source for run in one.slow)} by {percent(one.longer)}, "
        f"{len(one.slow)} of {len(one.slow) + len(one.fast)} runs"
        for one in groups
    ]
    message = f"longer than the other repetitions: {'; '.join(each)}"
    return [Finding("CPM185", experiment.metric(metric).name, message, len(groups))]


def _slower(experiment: Experiment, metric: str | None) -> list[Finding]:
    """Return one finding about the runs that were slower as a whole, the slowest first."""
    slow = sorted(slow_runs(experiment, metric), key=lambda run: -run.longer)
    if not slow:
        return []
    runs = "; ".join(
        f"{experiment.runs[one.run].source} by {percent(one.longer)}"
        f" ({percent(one.share)} of call paths)"
        for one in slow
    )
    message = f"longer than repetitions: {runs}"
    return [Finding("CPM136", experiment.metric(metric).name, message, len(slow))]


def _listed(names: Sequence[str], settings: Sequence[tuple[float, ...]]) -> str:
    """Return the first settings as text, with the number of the others."""
    shown, more = settings[:_NAMED], len(settings) - _NAMED
    first, *others = (setting_text(dict(zip(names, each, strict=True))) for each in shown)
    if len(names) == 1:
        others = [parameter_value(value) for (value,) in shown[1:]]
    rest = f" and {counted(more, 'other')}" if more > 0 else ""
    return (", " if len(names) == 1 else " and ").join([first, *others]) + rest


def _too_few(experiment: Experiment, metric: str | None) -> list[Finding]:
    """Return one finding about missing repetitions."""
    short = shortages(experiment, metric)
    if not short:
        return []
    worst = max(short, key=lambda shortage: shortage.within)
    names = [parameter.name for parameter in experiment.parameters]

    path = "/".join(short_name(name) for name in experiment.tree.names(worst.row))
    place = f" at {setting_text(dict(zip(names, worst.setting, strict=True)))}" if names else ""
    amounts: dict[str, list[tuple[float, ...]]] = {}
    for shortage in short:
        add = shortage.needed - shortage.made
        amount = f"{add}" if shortage.needed <= _MOST_REPETITIONS else f"over {_MOST_REPETITIONS}"
        amounts.setdefault(amount, []).append(shortage.setting)
    missing = "; ".join(
        f"{amount} at {_listed(names, settings)}" if names else amount
        for amount, settings in amounts.items()
    )
    message = (
        f"the mean of {path}{place} may be off by {percent(worst.within)}; runs to add: {missing}"
    )
    return [Finding("CPM134", experiment.metric(metric).name, message, len(short))]
