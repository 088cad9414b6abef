"""Recognition of weak or strong scaling from statements, times and counts of the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.metric_values import MetricValues
from callpath_modeler.profile.parameter_line import worker_parameter
from callpath_modeler.profile.runs import Run
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.profile.stated_scaling import Statement, stated_scaling
from callpath_modeler.profile.work_shares import (
    FALLS,
    GROUP,
    Purpose,
    WorkShares,
    purposes,
    work_shares,
)
from callpath_modeler.units import parameter_value, percent

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
