"""Identification of the program of profiles, and recognition of weak or strong scaling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.metric_values import MetricValues
from callpath_modeler.profile.parameter_line import worker_parameter
from callpath_modeler.profile.runs import Run
from callpath_modeler.profile.schema import PROGRAM, Reduction
from callpath_modeler.units import counted

_SAME_PROGRAM = 0.5
"""Smallest share of functions of the smaller program that the other one has as well."""

_MOST = 4
"""Maximum number of programs in an error."""

AS_TOLD = "as told"
"""Reason for a scaling that the user gave."""

_STRONG_SLOPE = -0.5
"""Midpoint between constant computation per worker (weak, 0) and 1/p (strong, -1)."""
_DOUBTFUL_SLOPE = -0.2
"""Slope below which computation may be shared work, so that bytes and counts decide."""
_FEWEST = 3
"""Fewest points of a slope."""
_ROWS = 1 << 14
"""Number of call paths whose values are in work together, so that they stay in the cache."""


class _Read(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def tree(self) -> CallTree: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


def refuse_several_programs(runs: Sequence[_Read]) -> None:
    """Raise an error if profiles are of several programs.

    Programs are distinguished by the names of their own functions. The name of the executable is
    not compared, because it often contains the number of processes.

    Raises
    ------
    UsageError
        If there are several programs. The error lists them with their runs, and explains how to
        choose one.
    """
    trees = {id(run.tree): run.tree for run in runs}
    if len(trees) < 2:
        return
    functions = {key: _own_functions(tree) for key, tree in trees.items()}
    groups: list[tuple[frozenset[str], list[_Read]]] = []
    for run in runs:
        names = functions[id(run.tree)]
        for known, members in groups:
            if _are_of_one(names, known):
                members.append(run)
                break
        else:
            groups.append((names, [run]))
    if len(groups) < 2:
        return
    groups.sort(key=lambda group: -len(group[1]))
    listed = "; ".join(
        f"{_program(of[0])} in {counted(len(of), 'run')} (first {of[0].name})"
        for _, of in groups[:_MOST]
    )
    more = f"; {len(groups) - _MOST} more" if len(groups) > _MOST else ""
    raise UsageError(
        f"profiles of {len(groups)} programs: {listed}{more}",
        hint=_choice([of for _, of in groups]),
    )


def _choice(groups: Sequence[Sequence[_Read]]) -> str:
    """Return the hint how to choose a program: by a unique name, or else by its files."""
    names = [{_program(run) for run in group} for group in groups]
    others = {name for of in names[1:] for name in of}
    first = _program(groups[0][0])
    plain = not set(first) & set(",<>=!") and "program" in groups[0][0].metadata
    if plain and len(names[0]) == 1 and first not in others:
        chosen = shell_word(f"program={first}")
        return f"choose one, e.g. --where {chosen}, or give the files of one program"
    return "give the files or the directory of one program"


def of_one_program(one: CallTree, other: CallTree) -> bool:
    """Return whether two call trees are of one program, as in `refuse_several_programs`."""
    return _are_of_one(_own_functions(one), _own_functions(other))


def _are_of_one(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _SAME_PROGRAM * min(len(one), len(other))


def _own_functions(tree: CallTree) -> frozenset[str]:
    return frozenset(
        region.common_name
        for region in tree.regions
        if region.is_own and region.role != "artificial" and region.name != PROGRAM
    )


def _program(run: _Read) -> str:
    return run.metadata.get("program") or "unnamed"


def with_scaling_of(experiment: Experiment) -> Experiment:
    """Return an experiment with the scaling of its own runs, unless the user gave the scaling."""
    if experiment.scaling_reason == AS_TOLD:
        return experiment
    scaling, reason = recognise_scaling(
        experiment.tree, experiment.columns, experiment.runs, experiment.reduction
    )
    return replace(experiment, scaling=scaling, scaling_reason=reason)


def recognise_scaling(
    tree: CallTree, columns: Mapping[str, MetricValues], runs: Sequence[Run], reduction: Reduction
) -> tuple[Scaling, str]:
    """Return weak or strong scaling, from the change of the computation per worker.

    Workers are processes. If the number of processes is constant or unknown, they are threads, or
    else nodes. Each function of the program itself contributes the slope of log time over log p,
    where p is the number of workers. The weighted median decides; the weight is the time at the
    smallest scale. Some data are excluded:

    - communication, because it may grow under strong scaling
    - functions that do not occur at every scale
    - scales beyond the one with the smallest time of a function, because shared work may grow again

    The fastest repetition represents its point. Means over processes are used, because maxima grow
    with imbalance. If times decrease, but more slowly than shared work would, or if no time was
    measured, bytes and counts decide.

    Returns
    -------
    scaling : Scaling
        Weak or strong.
    reason : str
        The reason, in words.
    """
    timed = [v for v in columns.values() if v.metric.can_be_run_time]
    workers = _varying_workers(runs)
    why = _undecided(runs, workers, reduction)
    if why:
        return Scaling.WEAK, f"assumed: {why}"
    chosen = _longest_series(runs, workers)
    of_run = np.array([runs[i].parameters[workers] for i in chosen])
    is_sum = reduction is Reduction.SUM and workers == "p"
    own = np.array([region.call_class.computes for region in tree.regions])
    work = own[tree.region]

    def slope_of(values: MetricValues, rows: BoolArray) -> float:
        means = values.means(reduction)
        pieces = (
            means[part][rows[part]][:, chosen]
            for part in (slice(at, at + _ROWS) for at in range(0, len(means), _ROWS))
        )
        return _median_slope(pieces, of_run, is_sum=is_sum)

    slope, said = float("nan"), "no time measured"
    if timed:
        slope = slope_of(timed[0], work)
        if np.isnan(slope):
            return Scaling.WEAK, "assumed: no computation measured at every scale"
        per_process = " per process" if workers == "p" else ""
        said = f"computation{per_process} goes as {_power(slope, workers)}"
        if not _STRONG_SLOPE <= slope < _DOUBTFUL_SLOPE:
            return (Scaling.STRONG if slope < _STRONG_SLOPE else Scaling.WEAK), said
    # Memory contention may slow shared work down, but it does not change volumes.
    of_bytes = np.ones(len(work), bool)
    needs = [v for v in columns.values() if v.metric.is_requirement or not timed]
    for each in (values for values in needs if values.metric.additive):
        volume = slope_of(each, of_bytes if each.metric.unit == "B" else work)
        if volume < _STRONG_SLOPE:
            return Scaling.STRONG, f"{said}, {each.metric.name} as {_power(volume, workers)}"
    return Scaling.WEAK, said if timed else f"assumed: {said}"


def _varying_workers(runs: Sequence[Run]) -> str:
    """Return the parameter that counts the workers of the runs."""
    names = runs[0].parameters
    varying = [name for name in names if len({run.parameters[name] for run in runs}) > 1]
    return worker_parameter(varying) or worker_parameter(names) or "p"


def _undecided(runs: Sequence[Run], workers: str, reduction: Reduction) -> str:
    """Return the reason why the runs do not determine the scaling; "" = they do."""
    if reduction is Reduction.IMBALANCE:
        return "imbalances do not show it"
    if workers not in runs[0].parameters:
        return "the number of processes is unknown"
    counts = {runs[i].parameters[workers] for i in _longest_series(runs, workers)}
    if len(counts) < 2:
        return f"{workers} does not vary"
    return f"{workers} is not positive" if min(counts) <= 0 else ""


def _power(slope: float, workers: str) -> str:
    # Adding zero to a rounded slope removes the sign of "-0.00".
    return f"{workers}^{round(slope, 2) + 0.0:.2f}"


def _median_slope(pieces: Iterable[FloatArray], of_run: FloatArray, *, is_sum: bool) -> float:
    """Return the weighted median of the slopes of call paths; NaN = none occurs at every scale.

    `pieces` are the values of some call paths, [k, runs].
    """
    processes = np.unique(of_run)
    slopes, weights = [np.empty(0)], [np.empty(0)]
    for work in pieces:
        least = np.stack([work[:, of_run == p].min(axis=1) for p in processes], axis=1)
        if is_sum:
            least = least / processes
        least = least[(least > 0).all(axis=1)]
        slopes.append(_slopes(np.log(processes), np.log(least)))
        weights.append(least[:, 0])
    slope, weight = np.concatenate(slopes), np.concatenate(weights)
    if not len(slope):
        return float("nan")
    order = np.argsort(slope)
    votes = np.cumsum(weight[order])
    return float(slope[order][np.searchsorted(votes, votes[-1] / 2)])


def _slopes(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the slopes of rows `y` [n, K] over `x` [K], each up to its minimum, [n].

    If the minimum is before the third point, the slope covers all points, because two points are
    noise.
    """
    last = y.argmin(axis=1)
    there = (np.arange(len(x)) <= last[:, None]) | (last < _FEWEST - 1)[:, None]
    count = there.sum(axis=1, keepdims=True)
    away = np.where(there, x - (there * x).sum(axis=1, keepdims=True) / count, 0.0)
    return np.asarray((away * y).sum(axis=1) / (away**2).sum(axis=1))


def _longest_series(runs: Sequence[Run], workers: str) -> list[int]:
    """Return the runs at the setting of the other parameters that has the most scales.

    Runs of several problem sizes at the same scale do not determine a slope together. Of settings
    with equally many scales, the largest values are used, because they compute most. If each scale
    has its own size, all runs are one series.
    """
    settings: dict[tuple[float, ...], set[float]] = {}
    of_run = []
    for run in runs:
        others = tuple(value for name, value in run.parameters.items() if name != workers)
        settings.setdefault(others, set()).add(run.parameters[workers])
        of_run.append(others)
    best = max(settings, key=lambda others: (len(settings[others]), others))
    if len(settings[best]) < 2:
        return list(range(len(runs)))
    return [i for i, others in enumerate(of_run) if others == best]
