"""Weak or strong scaling: stated by profiles, or recognised from times and counts of the runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.balance import FALLS, Purpose, WorkShares, purposes, work_shares
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.runs import Run, worker_parameter
from callpath_modeler.profile.schema import CAMEL, GROUP, Reduction
from callpath_modeler.units import parameter_value, percent

_KINDS = {"strong": Scaling.STRONG, "weak": Scaling.WEAK}
_LETTERS = re.compile(r"[a-z]+")
_SIZES = frozenset(
    {"size", "sizes", "elements", "elems", "cells", "points", "atoms", "particles", "bodies", "dof",
     "dofs", "unknowns", "rows", "grid", "mesh", "zones", "problem", "work", "n", "items", "edges",
     "vertices", "samples", "sites"}
)  # fmt: skip
_TOTAL = frozenset({"total", "global", "overall", "whole", "all"})
_INPUT = frozenset({"input"})
_OWN = frozenset({"local", "per"})
_NO_SIZES = frozenset(
    {"world", "comm", "job", "jobsize", "block", "message", "msg", "cache", "memory", "mem", "page",
     "datatype", "type", "buffer", "chunk", "stack", "heap", "line", "communicator", "pool", "file",
     "window", "font", "step", "steps", "time"}
)  # fmt: skip
_SAME = 0.02
"""Largest relative difference of sizes that are the same, such as after rounding."""
_GROWTHS = (1.0, 0.5, 1 / 3)
"""Powers of the number of workers at which sizes of 1, 2 and 3 dimensions grow or fall."""
_RANGE = 2.0
"""Smallest ratio of the largest to the smallest size that changes with the number of workers."""


class Statement(Struct, frozen=True):
    """A kind of scaling that the runs state.

    Attributes
    ----------
    kind : weak or strong
    reason : the statement, such as ``scalability = strong``
    is_explicit : the statement is about the scaling; otherwise, it is a name, or a size whose
        meaning is likely, and it only decides if nothing else does
    is_name : the statement is a word in the names of the runs
    """

    kind: Scaling
    reason: str
    is_explicit: bool = False
    is_name: bool = False


def stated_scaling(runs: Sequence[Run]) -> Statement | None:
    """Return the kind of scaling that the runs state; None = they state none, or several."""
    if not runs:
        return None
    by_key = {key: [run.metadata.get(key, "") for run in runs] for key in _keys(runs)}
    said = [each for key, values in by_key.items() if (each := _in_words(key, values))]
    if said:
        return _agreed(said)
    by_size = _by_sizes(runs, by_key)
    explicit = [each for each in by_size if each.is_explicit]
    if explicit:
        return _agreed(explicit)
    return _agreed(by_size) or _by_name(runs)


def _keys(runs: Sequence[Run]) -> list[str]:
    """Return the metadata keys of all runs."""
    return list(dict.fromkeys(key for run in runs for key in run.metadata))


def _agreed(found: Sequence[Statement]) -> Statement | None:
    """Return the first statement if all are of one kind."""
    return found[0] if len({each.kind for each in found}) == 1 else None


def _words(text: str) -> list[str]:
    return _LETTERS.findall(CAMEL.sub(" ", text).lower())


def _in_words(key: str, values: Sequence[str]) -> Statement | None:
    """Return the kind that an entry such as ``scalability = strong`` names in every run."""
    if not any(word.startswith(("scal", "weak", "strong")) for word in _words(key)):
        return None
    kinds = {_kind_in(value) for value in values if value}
    if len(kinds) != 1 or None in kinds:
        return None
    shown = next(value for value in values if value)
    return Statement(kinds.pop() or Scaling.WEAK, f"{key} = {shown}", is_explicit=True)


def _kind_in(text: str) -> Scaling | None:
    """Return the kind whose word a text contains; None = none, or both."""
    found = {_KINDS[word] for word in _words(text) if word in _KINDS}
    return found.pop() if len(found) == 1 else None


def _by_name(runs: Sequence[Run]) -> Statement | None:
    """Return the kind whose word the names of all runs contain."""
    names = [PurePath(run.source) for run in runs]
    kinds = {_kind_in(" ".join(name.parts[-3:])) for name in names}
    kind = kinds.pop() if len(kinds) == 1 else None
    return Statement(kind, f"the names of the runs say {kind}", is_name=True) if kind else None


def _workers(runs: Sequence[Run]) -> FloatArray | None:
    """Return the varying number of workers of each run; None = it is not known."""
    names = runs[0].parameters
    varying = [name for name in names if len({run.parameters[name] for run in runs}) > 1]
    name = worker_parameter(varying)
    if name is None:
        return None
    found = np.array([run.parameters[name] for run in runs])
    return found if found.min() > 0 else None


def _numbers(values: Sequence[str]) -> FloatArray | None:
    """Return entries as numbers; None = one is none, or not above zero."""
    try:
        found = np.array([float(value) for value in values])
    except ValueError:
        return None
    return found if np.isfinite(found).all() and found.min() > 0 else None


def _by_sizes(runs: Sequence[Run], by_key: Mapping[str, Sequence[str]]) -> list[Statement]:
    """Return the kinds that sizes in metadata and parameters tell."""
    workers = _workers(runs)
    if workers is None:
        return []
    columns = {name: [str(run.parameters[name]) for run in runs] for name in runs[0].parameters}
    found = []
    for name, texts in {**by_key, **columns}.items():
        values = _numbers(texts)
        each = None if values is None else _by_size(name, values, workers)
        found += [] if each is None else [each]
    return found


def _by_size(name: str, values: FloatArray, workers: FloatArray) -> Statement | None:
    """Return the kind that a size tells by its change with the number of workers."""
    words = {*_words(name)}
    if not words & _SIZES or words & _NO_SIZES or worker_parameter([name]) is not None:
        return None
    if np.allclose(values, values[0], rtol=_SAME):
        return _by_constant(name, words, float(values[0]))
    if values.max() < _RANGE * values.min() or (values == workers).all():
        return None
    for power in _GROWTHS:
        for sign, kind in ((1, Scaling.WEAK), (-1, Scaling.STRONG)):
            ratio = values / workers ** (sign * power)
            if np.allclose(ratio, ratio[0], rtol=_SAME):
                how = "grows" if sign > 0 else "falls"
                return Statement(kind, f"{name} {how} with the number of workers", is_explicit=True)
    return None


def _by_constant(name: str, words: set[str], value: float) -> Statement | None:
    """Return the kind that a constant size tells; None = the name does not tell its meaning."""
    said = f"{name} = {parameter_value(value)} at every scale"
    if words & _OWN:
        return Statement(Scaling.WEAK, said, is_explicit=True)
    if words & _TOTAL:
        return Statement(Scaling.STRONG, said, is_explicit=True)
    if words & _INPUT:
        return Statement(Scaling.STRONG, said)
    return None


AS_TOLD = "as told"
"""Reason for a scaling that the user gave."""
UNCLEAR, CONTRADICTED = "CPM156", "CPM157"
"""Findings about the kind of scaling."""

_MUCH = 0.4
"""Smallest share of the computation that falls as 1/p under strong scaling; the rest is serial."""
_LITTLE = 0.15
"""Largest share of the computation that falls under weak scaling, such as work on one process."""
_LEAST_WEAK = -0.3
"""Smallest slope of weak scaling, if one process with more work makes means fall."""
_HALF = 0.5
"""Largest share of the computation that tells nothing under weak scaling."""
_ENOUGH = 0.1
"""Share of the computation from which on the call paths below the frame decide alone."""
_ROWS = 1 << 14
"""Number of call paths whose values are in work together, so that they stay in the cache."""


class ScalingKind(NamedTuple):
    """A kind of scaling, and the reason in words."""

    kind: Scaling
    reason: str


def with_scaling_of(experiment: Experiment) -> Experiment:
    """Return an experiment with the scaling of its own runs, unless the user gave the scaling.

    If some runs of an experiment do not show their scaling, they keep that of all its runs.
    """
    found = ScalingKind(experiment.scaling, experiment.scaling_reason)
    if found.reason != AS_TOLD:
        own = recognise_scaling(
            experiment.tree, experiment.columns, experiment.runs, experiment.reduction
        )
        found = found if own.kind is Scaling.UNCLEAR else own
    return with_scaling(experiment, found)


def with_scaling(experiment: Experiment, found: ScalingKind) -> Experiment:
    """Return an experiment with a kind of scaling, and with the findings about this kind."""
    others = [each for each in experiment.findings if each.code not in {UNCLEAR, CONTRADICTED}]
    findings = (*others, *_findings(found, stated_scaling(experiment.runs)))
    return replace(experiment, scaling=found.kind, scaling_reason=found.reason, findings=findings)


def _findings(found: ScalingKind, stated: Statement | None) -> list[Finding]:
    """Return whether the kind is unclear, and whether it contradicts what the profiles state."""
    if found.kind is Scaling.UNCLEAR:
        return [Finding(UNCLEAR, "scaling", found.reason)]
    if stated is None or stated.kind is found.kind or not stated.is_explicit:
        return []
    said = f"{found.kind} ({found.reason}), but the profiles state {stated.reason}"
    return [Finding(CONTRADICTED, "scaling", said)]


def recognise_scaling(
    tree: CallTree, columns: Mapping[str, MetricValues], runs: Sequence[Run], reduction: Reduction
) -> ScalingKind:
    """Return weak or strong scaling, or that the kind is unclear.

    Workers are processes. If their number is constant or unknown, they are cores, GPUs, threads or
    nodes. The first evidence that tells the kind decides:

    1. metadata that state it, a constant total size, or a constant size per process
    2. the time of the computation
    3. exact counts: volumes of shared work fall, even if memory slows the work down
    4. names of runs with the word *weak* or *strong*, and a constant size of the input

    Times are judged call path by call path: under strong scaling, shared work falls as 1/p, and
    serial work is constant. Communication, start-up, input and output have no vote. The program's
    own frame has one only if it falls. Groups of processes add up to the program.

    Returns
    -------
    ScalingKind
        Weak, strong or unclear, and the reason in words.
    """
    workers = _varying_workers(runs)
    why = _undecided(runs, workers, reduction)
    chosen = list(range(len(runs))) if why else _longest_series(runs, workers)
    stated = stated_scaling([runs[i] for i in chosen])
    if stated is not None and stated.is_explicit:
        return ScalingKind(stated.kind, stated.reason)
    if why:
        return ScalingKind(Scaling.WEAK, f"assumed: {why}")
    return _measured(_Series(tree, runs, chosen, workers, reduction), columns, stated)


def _measured(
    series: _Series, columns: Mapping[str, MetricValues], stated: Statement | None
) -> ScalingKind:
    """Return the kind that times tell, or else counts, or else a likely statement."""
    timed = [v for v in columns.values() if v.metric.can_be_run_time]
    found = series.of_time(timed[0]) if timed else None
    if found is not None and found.kind is not Scaling.UNCLEAR:
        if stated is None or stated.kind is found.kind or stated.is_name:
            return found
        return ScalingKind(Scaling.UNCLEAR, f"{found.reason}, but {stated.reason}")
    said = "no time measured" if found is None else found.reason
    needs = [v for v in columns.values() if v.metric.is_requirement or not timed]
    for each in (values for values in needs if values.metric.additive):
        slope = series.of_count(each)
        if slope < FALLS:
            of_count = f"{said}, {each.metric.name} as {series.power(slope)}"
            return ScalingKind(Scaling.STRONG, of_count)
    if stated is not None:
        return ScalingKind(stated.kind, f"{said}; {stated.reason}")
    return found or ScalingKind(Scaling.WEAK, f"assumed: {said}")


class _Series:
    """The runs that show the scaling."""

    def __init__(
        self,
        tree: CallTree,
        runs: Sequence[Run],
        chosen: Sequence[int],
        workers: str,
        reduction: Reduction,
    ) -> None:
        self._chosen, self._workers, self._reduction = np.array(chosen), workers, reduction
        self._of_run = np.array([runs[i].parameters[workers] for i in chosen])
        self._scales = np.unique(self._of_run)
        is_sum = reduction is Reduction.SUM and workers == "p"
        self._divisor = self._scales if is_sum else np.ones(len(self._scales))
        self._purpose = purposes(tree)
        self._joined = _without_groups(tree)

    def power(self, slope: float) -> str:
        """Return a slope as a power of the number of workers."""
        # Adding zero to a rounded slope removes the sign of "-0.00".
        return f"{self._workers}^{round(slope, 2) + 0.0:.2f}"

    def of_time(self, values: MetricValues) -> ScalingKind:
        """Return the kind that the computation tells."""
        rows, shares = self._shares(values, self._purpose != Purpose.OTHER)
        if not len(shares):
            return ScalingKind(Scaling.WEAK, "assumed: no computation measured at every scale")
        purpose = self._purpose[rows]
        frame = (purpose == Purpose.FRAME) & (shares.slope < FALLS)
        kernels = shares.of((purpose == Purpose.KERNEL) | frame)
        if kernels.total < _ENOUGH * shares.total:
            whole = self._kind(shares)
            kind = self._kind(kernels).kind if len(kernels) else whole.kind
            return whole if kind is whole.kind else ScalingKind(Scaling.UNCLEAR, whole.reason)
        return self._kind(kernels)

    def of_count(self, values: MetricValues) -> float:
        """Return the median slope of a count; NaN = no call path has it at every scale."""
        is_volume = values.metric.unit == "B"
        chosen = np.ones(len(self._purpose), np.bool_) if is_volume else self._purpose > 0
        return self._shares(values, chosen)[1].median_slope

    def _kind(self, shares: WorkShares) -> ScalingKind:
        """Return the kind that the trends of computation tell."""
        slope, falling = shares.median_slope, shares.share(shares.falls)
        firm, undecided = shares.share(shares.firm), shares.share(shares.is_open)
        per_process = " per process" if self._workers == "p" else ""
        of_slope = f"computation{per_process} goes as {self.power(slope)}"
        where = f"{self._workers} = {parameter_value(self._scales[0])}"
        of_share = f"{percent(falling)} of the computation at {where} falls as 1/{self._workers}"
        if falling > _MUCH:
            return ScalingKind(Scaling.STRONG, of_slope if slope < FALLS else of_share)
        if firm > _LITTLE and slope > FALLS:
            return ScalingKind(Scaling.UNCLEAR, f"only {of_share}")
        is_weak = slope >= _LEAST_WEAK and firm <= _LITTLE and undecided <= _HALF
        return ScalingKind(Scaling.WEAK if is_weak else Scaling.UNCLEAR, of_slope)

    def _shares(self, values: MetricValues, chosen: BoolArray) -> tuple[IntArray, WorkShares]:
        """Return the trends of call paths with values at every scale, and their rows.

        The fastest repetition represents its point. Means over processes are used, because maxima
        grow with imbalance.
        """
        means, largest = values.means(self._reduction), _maxima(values, self._reduction)
        if self._joined is not None:
            means = _over_groups(means, self._joined, np.add)
            largest = _over_groups(largest, self._joined, np.maximum)
            chosen = chosen & (self._joined == np.arange(len(chosen)))
        rows, parts = [np.empty(0, np.intp)], [WorkShares.none()]
        for at in range(0, len(means), _ROWS):
            here = at + np.flatnonzero(chosen[at : at + _ROWS])
            least = self._least(means[here])
            there = (least > 0).all(axis=1)
            rows.append(here[there])
            here, least = here[there], least[there]
            slowest = self._at(means[here], -1).max(axis=1) / self._divisor[-1]
            parts.append(work_shares(self._scales, least, self._least(largest[here]), slowest))
        return np.concatenate(rows), WorkShares.joined(parts)

    def _least(self, means: FloatArray) -> FloatArray:
        """Return the values per worker of the fastest repetition of each scale, [n, scales]."""
        each = range(len(self._scales))
        least: FloatArray = np.stack([self._at(means, k).min(axis=1) for k in each], axis=1)
        return least / self._divisor

    def _at(self, means: FloatArray, scale: int) -> FloatArray:
        """Return the values of the repetitions of one scale, [n, repetitions]."""
        of_scale: FloatArray = means[:, self._chosen[self._of_run == self._scales[scale]]]
        return of_scale


def _without_groups(tree: CallTree) -> IntArray | None:
    """Return the first call path of the same names in any group of processes, [n].

    None = the processes are not divided into groups.
    """
    is_group = np.array([region.role == GROUP for region in tree.regions], np.bool_)[tree.region]
    if not is_group.any():
        return None
    first = np.arange(len(tree))
    known: dict[tuple[int, int, int], int] = {}
    for row, caller in enumerate(tree.parent.tolist()):
        if not is_group[row]:
            top = ROOT if caller == ROOT or is_group[caller] else int(first[caller])
            name = (top, int(tree.region[row]), int(tree.annotation[row]))
            first[row] = known.setdefault(name, row)
    return first


def _maxima(values: MetricValues, reduction: Reduction) -> FloatArray:
    """Return maxima over processes, [call paths, runs]; if they are not known, the means."""
    if values.imbalance is None or reduction not in {Reduction.MEAN, Reduction.MAX}:
        return values.means(reduction)
    if reduction is Reduction.MAX:
        return values.exclusive
    return values.exclusive * np.nan_to_num(values.imbalance, nan=1.0)


def _over_groups(values: FloatArray, joined: IntArray, combine: np.ufunc) -> FloatArray:
    """Return the sums or maxima of values of joined call paths; NaN = none of them occurred."""
    there = ~np.isnan(values)
    found, occurred = np.zeros_like(values), np.zeros(values.shape, np.bool_)
    combine.at(found, joined, np.where(there, values, 0.0))
    np.logical_or.at(occurred, joined, there)
    found[~occurred] = np.nan
    return found


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
