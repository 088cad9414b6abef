"""Whether profiles belong to one program, and how its problem grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment, MetricValues, Run, Scaling
from callpath_modeler.profile.schema import PROGRAM, Reduction
from callpath_modeler.units import counted

FloatArray = npt.NDArray[np.float64]

_SAME_PROGRAM = 0.5
"""Smallest share of the smaller program's function names that both must have."""

_MOST = 4
"""So many programs are listed."""

AS_TOLD = "as told"
"""The reason for a scaling that the user gave."""

_STRONG_SLOPE = -0.5
"""Half-way between constant computation per process (weak, 0) and 1/p (strong, -1)."""
_DOUBTFUL_SLOPE = -0.2
"""Computation that falls faster than this may be shared work: bytes and counts decide."""
_FEWEST = 3
"""Points that tell a slope."""


class _Read(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def tree(self) -> CallTree: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


def refuse_several_programs(runs: Sequence[_Read]) -> None:
    """Refuse profiles of several programs.

    Programs are told apart by the names of their own functions, not by the executable's name,
    which often carries the number of processes.

    Raises
    ------
    UsageError
        With the programs, how many runs each of them has, and how to choose one.
    """
    trees = {id(run.tree): run.tree for run in runs}
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
    """Say how to choose one program: by its name, if no other program is called the same."""
    names = [{_program(run) for run in group} for group in groups]
    others = {name for of in names[1:] for name in of}
    first = _program(groups[0][0])
    plain = not set(first) & set(",<>=!") and "program" in groups[0][0].metadata
    if plain and len(names[0]) == 1 and first not in others:
        chosen = shell_word(f"program={first}")
        return f"choose one, e.g. --where {chosen}, or give the files of one program"
    return "give the files or the directory of one program"


def of_one_program(one: CallTree, other: CallTree) -> bool:
    """Tell whether two call trees are of one program, as `refuse_several_programs` does."""
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
    """Return an experiment of runs chosen from others, which may scale in another way."""
    if experiment.scaling_reason == AS_TOLD:
        return experiment
    scaling, reason = recognise_scaling(
        experiment.tree, experiment.columns, experiment.runs, experiment.reduction
    )
    return replace(experiment, scaling=scaling, scaling_reason=reason)


def recognise_scaling(
    tree: CallTree, columns: Mapping[str, MetricValues], runs: Sequence[Run], reduction: Reduction
) -> tuple[Scaling, str]:
    """Tell weak from strong scaling by how the computation per process changes with p.

    Each function of the program itself votes with its slope of log time over log p, weighted
    by its time at the smallest scale; the weighted median decides. Communication has no vote: it
    may well grow under strong scaling; nor has what appears at large scale only, nor scales beyond
    that at which a function takes least: what was shared may grow again. The least disturbed
    repetition speaks for its point. Means over processes are compared: maxima grow with imbalance.
    Where times fall by less than shared work would, but fall, bytes and counts decide.

    Returns
    -------
    scaling, and the reason in words
    """
    timed = [v for v in columns.values() if v.metric.is_time and v.metric.additive]
    why = _undecided(timed, runs, reduction)
    if why:
        return Scaling.WEAK, f"assumed: {why}"
    chosen = _longest_series(runs)
    of_run = np.array([runs[i].parameters["p"] for i in chosen])
    own = np.array([region.computes for region in tree.regions])
    work = own[tree.region]

    def slope_of(values: MetricValues, rows: npt.NDArray[np.bool_]) -> float:
        return _median_slope(values.means(reduction)[rows][:, chosen], of_run, reduction)

    slope = slope_of(timed[0], work)
    if np.isnan(slope):
        return Scaling.WEAK, "assumed: no computation measured at every scale"
    said = f"computation per process goes as {_power(slope)}"
    if not _STRONG_SLOPE <= slope < _DOUBTFUL_SLOPE:
        return (Scaling.STRONG if slope < _STRONG_SLOPE else Scaling.WEAK), said
    # Work that is shared may be slowed down by a full memory: volumes are not.
    of_bytes = np.ones(len(work), bool)
    needs = [values for values in columns.values() if values.metric.is_requirement]
    volumes = [slope_of(each, of_bytes if each.metric.unit == "B" else work) for each in needs]
    for each, volume in zip(needs, volumes, strict=True):
        if volume < _STRONG_SLOPE:
            return Scaling.STRONG, f"{said}, {each.metric.name} as {_power(volume)}"
    return Scaling.WEAK, said


def _undecided(timed: Sequence[MetricValues], runs: Sequence[Run], reduction: Reduction) -> str:
    """Say why scaling cannot be told from the runs; nothing where it can."""
    if reduction is Reduction.IMBALANCE:
        return "imbalances do not tell"
    if "p" not in runs[0].parameters:
        return "the number of processes is unknown"
    processes = {runs[i].parameters["p"] for i in _longest_series(runs)}
    if not timed:
        return "no time measured"
    if len(processes) < 2:
        return "p does not vary"
    return "p is not positive" if min(processes) <= 0 else ""


def _power(slope: float) -> str:
    # Adding zero to a rounded slope takes the sign off "-0.00".
    return f"p^{round(slope, 2) + 0.0:.2f}"


def _median_slope(work: FloatArray, of_run: FloatArray, reduction: Reduction) -> float:
    """Return the weighted median of the slopes of call paths; NaN where none is at every scale."""
    processes = np.unique(of_run)
    least = np.stack([work[:, of_run == p].min(axis=1) for p in processes], axis=1)
    if reduction is Reduction.SUM:
        least = least / processes
    least = least[(least > 0).all(axis=1)]
    if not len(least):
        return float("nan")
    slopes = _slopes(np.log(processes), np.log(least))
    order = np.argsort(slopes)
    votes = np.cumsum(least[order, 0])
    return float(slopes[order][np.searchsorted(votes, votes[-1] / 2)])


def _slopes(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the slopes of rows `y` [n, K] over `x` [K], up to where each is least, [n].

    Those of rows that are least before the third are over all: two points are noise.
    """
    last = y.argmin(axis=1)
    there = (np.arange(len(x)) <= last[:, None]) | (last < _FEWEST - 1)[:, None]
    count = there.sum(axis=1, keepdims=True)
    away = np.where(there, x - (there * x).sum(axis=1, keepdims=True) / count, 0.0)
    return np.asarray((away * y).sum(axis=1) / (away**2).sum(axis=1))


def _longest_series(runs: Sequence[Run]) -> list[int]:
    """Return the runs of the setting of all other parameters that has most scales.

    Runs of several problem sizes at the same p tell nothing together; the largest ones compute
    most, and are what is ranked. Where each p has its own size, all runs are one series.
    """
    settings: dict[tuple[float, ...], set[float]] = {}
    of_run = []
    for run in runs:
        others = tuple(value for name, value in run.parameters.items() if name != "p")
        settings.setdefault(others, set()).add(run.parameters["p"])
        of_run.append(others)
    best = max(settings, key=lambda others: (len(settings[others]), others))
    if len(settings[best]) < 2:
        return list(range(len(runs)))
    return [i for i, others in enumerate(of_run) if others == best]
