"""Number of repetitions, runs that were slower as a whole, and repetitions in two groups.

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

from callpath_modeler.analysis.excess import CARRIES_COST
from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import Rows
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.units import parameter_value, percent, setting_text

CONFIDENCE = 0.95
WITHIN = 0.05

_NAMED = 3
"""Settings that a finding names; it counts the others."""

_MOST = 1000
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
    reach = _reach(np.arange(2, _MOST + 1))
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
    rest = [f"{more} more"] if more > 0 else []
    return (", " if len(names) == 1 else " and ").join([first, *others, *rest])


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
        amount = f"{add}" if shortage.needed <= _MOST else f"over {_MOST}"
        amounts.setdefault(amount, []).append(shortage.setting)
    missing = "; ".join(
        f"{amount} at {_listed(names, settings)}" if names else amount
        for amount, settings in amounts.items()
    )
    message = f"{percent(worst.within)} at worst ({path}{place}); to add: {missing}"
    return [Finding("CPM134", experiment.metric(metric).name, message, len(short))]
