"""Profiles of some of the processes, or of groups of processes.

`GroupedProfile` stands between a reader and the rest: it computes the values of call paths from the
values of single threads. Groups become the outermost level of the call tree. The values of a group
are means over all processes of the run, to which the processes of other groups contribute zero. So
values of groups add up to the values without groups, and one ranking holds the call paths of all
groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, Float32Array, FloatArray, Int64Array, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree
from callpath_modeler.profile.schema import (
    GROUP,
    DeclaredMetric,
    Extent,
    MetricStatus,
    Reduction,
    Region,
)
from callpath_modeler.readers.base import PlacedSource, ProfileSource, Reduced, ThreadSource
from callpath_modeler.readers.process_groups import ProcessTimes, RankCondition, groups_of_processes
from callpath_modeler.readers.reductions import Columns, Fold, Reducer
from callpath_modeler.readers.threads import fold_of, with_longest_threads

AUTO = "auto"
"""Value of ``--split-ranks`` that finds the groups."""
OTHERS = "other ranks"
"""Name of the group of processes that no condition selects."""

_HELD = 1 << 28
"""Memory for the values of call paths that are read in one pass, in bytes."""
_FEATURES = 64
"""Largest number of call paths whose times describe the behaviour of a process."""
_ADDING = frozenset({Reduction.MEAN, Reduction.SUM})


class ProcessSelection(Struct, frozen=True):
    """Processes whose values are used, and their groups.

    Attributes
    ----------
    ranks : condition that selects the processes; None = all
    conditions : conditions of groups; a process belongs to the first one that it fulfils
    auto : find the groups; see `with_found_groups`
    names : names of the groups in `found`
    found : group of each process of a run, by the name of the run; it replaces `conditions`
    """

    ranks: RankCondition | None = None
    conditions: tuple[RankCondition, ...] = ()
    auto: bool = False
    names: tuple[str, ...] = ()
    found: Mapping[str, IntArray] = msgspec.field(default_factory=dict)

    def with_found_groups(self, runs: Mapping[str, ProcessTimes]) -> ProcessSelection:
        """Return the selection with groups of processes that behave differently.

        Parameters
        ----------
        runs : times of processes, by the name of the run

        Raises
        ------
        DataError
            If there are no groups.
        """
        order = sorted(runs, key=lambda name: len(runs[name].values))
        groups = groups_of_processes([runs[name] for name in order])
        if groups is None:
            raise DataError(
                "--split-ranks auto finds no groups: no processes behave differently in all runs",
                hint="omit it, or give a condition: --split-ranks 'rank == 0'",
            )
        found = dict(zip(order, groups.labels, strict=True))
        return structs.replace(self, names=groups.names, found=found)

    def of(self, source: ProfileSource, name: str, reduction: Reduction) -> GroupedProfile:
        """Return the selected processes of a run.

        Raises
        ------
        DataError
            If the profile has no values of single threads, or no process is selected.
        UsageError
            If groups do not add up with this reduction.
        """
        if not isinstance(source, ThreadSource):
            raise DataError(
                f"{name}: the profile has no values of single processes",
                hint="omit --ranks and --split-ranks, or measure with Score-P, HPCToolkit or TAU",
            )
        processes = source.extent.processes
        chosen = np.full(processes, True) if self.ranks is None else fulfilling(self.ranks, source)
        if not chosen.any():
            raise DataError(
                f"{name}: --ranks {self.ranks and self.ranks.text!r} selects none of its "
                f"{processes} processes",
                hint="ranks are numbered from 0 to p - 1",
            )
        if not (self.conditions or self.found):
            return GroupedProfile(source, np.where(chosen, 0, -1), ())
        if reduction not in _ADDING:
            raise UsageError(
                f"--split-ranks does not apply to --locations {reduction}: only means and sums of "
                "groups add up",
                hint="--locations mean",
            )
        group, names = self._groups(name, source)
        return GroupedProfile(source, np.where(chosen, group, -1), names)

    def _groups(self, name: str, source: ProfileSource) -> tuple[IntArray, tuple[str, ...]]:
        if name in self.found:
            return self.found[name], self.names
        group = np.full(source.extent.processes, len(self.conditions), np.intp)
        for k, condition in reversed([*enumerate(self.conditions)]):
            group[fulfilling(condition, source)] = k
        return group, (*(condition.text for condition in self.conditions), OTHERS)


def fulfilling(condition: RankCondition, source: ProfileSource) -> BoolArray:
    """Return which processes of a profile fulfil a condition on their MPI ranks, [processes].

    Without known ranks from 0 to p - 1, the numbers of the processes are their ranks.
    """
    processes = source.extent.processes
    found = condition.of(processes)
    if isinstance(source, PlacedSource):
        ranks = source.placement().ranks
        if np.array_equal(np.sort(ranks), np.arange(processes)):
            return found[ranks]
    return found


class GroupedProfile:
    """The selected processes of a profile: a `ProfileSource`.

    Parameters
    ----------
    source : a profile with values of single threads
    group : [processes] number of the group of each process; negative = the process is not used
    names : names of the groups; empty = there is one group, and the call tree is unchanged
    """

    def __init__(self, source: ProfileSource, group: IntArray, names: Sequence[str]) -> None:
        self._source, self._group, self._names = source, group, tuple(names)
        self._used = [k for k in range(len(names)) if (group == k).any()] if names else [0]
        self.call_tree = _under_groups(source.call_tree, [names[k] for k in self._used if names])

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """The metrics of the profile; only additive ones of threads have values."""
        return [_of_threads(each) for each in self._source.metrics]

    @property
    def extent(self) -> Extent:
        """Number of processes, threads and nodes of the run, selected or not."""
        return self._source.extent

    @property
    def metadata(self) -> Mapping[str, str]:
        """Further entries of the profile."""
        return self._source.metadata

    def findings(self) -> Sequence[Finding]:
        """Return the findings of the profile."""
        return self._source.findings()

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path of each group.

        The profile is read once for each block of call paths, so memory does not grow with it.

        Parameters
        ----------
        metric, over_locations : as in `ProfileSource.reduce`

        Raises
        ------
        KeyError
            If the metric cannot be read.
        InputError
            If the file cannot be read.
        """
        declared = next(each for each in self._source.metrics if each.metric.name == metric)
        fold, paths = fold_of(declared), len(self._source.call_tree)
        reducers = None
        for rows, block, process in self._blocks(metric, paths):
            if reducers is None:
                columns = self._with_longest(process, fold)
                reducers = [self._reducer(k, columns, paths, fold, over_locations)
                            for k in (*self._used, None)]  # fmt: skip
            for reducer in reducers:
                reducer.add(rows, block)
                reducer.add_to_total(block)
        assert reducers is not None, "a profile has call paths"
        whole = reducers[-1]
        is_run_time = declared.metric.can_be_run_time
        run_time = whole.largest_total() if is_run_time else float("nan")
        if not self._names:
            found = reducers[0]
            return Reduced(found.values, found.total(), found.imbalance, run_time)
        counts = np.array([(self._group == k).sum() for k in self._used])
        shares = counts / (self._group >= 0).sum()
        weights = shares if over_locations is Reduction.MEAN else np.ones(len(shares))
        parts = [w * reducer.values for w, reducer in zip(weights, reducers, strict=False)]
        exclusive = np.concatenate([np.append(0.0, part) for part in parts])
        uneven = None if whole.imbalance is None else _imbalance(reducers[:-1], shares)
        return Reduced(exclusive, whole.total(), uneven, run_time)

    def _blocks(self, metric: str, paths: int) -> Iterator[tuple[Int64Array, FloatArray, IntArray]]:
        """Yield rows, values [rows, threads] and the process of each thread."""
        assert isinstance(self._source, ThreadSource), "checked by ProcessSelection"
        extent = self._source.extent
        step = max(1, _HELD // (8 * max(1, extent.processes) * max(1, extent.threads)))
        for first in range(0, paths, step):
            rows = np.arange(first, min(first + step, paths))
            group = np.full(paths, -1, np.intp)
            group[rows] = np.arange(len(rows))
            sums = self._source.sums_of_threads(metric, group, len(rows))
            yield rows, sums.values, sums.process

    def _with_longest(self, process: IntArray, fold: Fold) -> Columns:
        """Return the threads of all processes, with the longest ones if `fold` needs them."""
        assert isinstance(self._source, ThreadSource), "checked by ProcessSelection"
        columns = Columns.of(process)
        if fold is not Fold.LONGEST:
            return columns
        paths = len(self._source.call_tree)
        return with_longest_threads(columns, self._source, self._source.metrics, paths)

    def _reducer(
        self, group: int | None, columns: Columns, paths: int, fold: Fold, reduction: Reduction
    ) -> Reducer:
        """Return the reducer of a group; None = all selected processes."""
        is_used = self._group >= 0 if group is None else self._group == group
        return Reducer(paths, columns.of_processes(is_used), fold, reduction)


def _of_threads(declared: DeclaredMetric) -> DeclaredMetric:
    """Return a metric, unsupported if it has no values of threads that add up."""
    reason = "" if declared.metric.additive else "it does not add up over call paths"
    if declared.metric.is_on_gpu_streams:
        reason = "it has values of GPU streams, not of single threads"
    if not reason or declared.status is not MetricStatus.DATA:
        return declared
    note = f"{reason}, so processes cannot be selected"
    return structs.replace(declared, status=MetricStatus.UNSUPPORTED, note=note)


def _under_groups(tree: CallTree, names: Sequence[str]) -> CallTree:
    """Return one copy of a call tree below each group; without groups, the tree itself."""
    if not names:
        return tree
    first, count = len(tree.regions), len(tree)
    parents, regions, notes, lines = [], [], [], []
    for k in range(len(names)):
        head = k * (count + 1)
        below = np.where(tree.parent == ROOT, head, tree.parent + head + 1)
        parents.append(np.append(ROOT, below))
        regions.append(np.append(first + k, tree.region))
        notes.append(np.append(0, tree.annotation))
        lines.append(np.append(NO_LINE, tree.site))
    return CallTree.from_parents(
        np.concatenate(parents),
        np.concatenate(regions),
        (*tree.regions, *(Region(name, role=GROUP) for name in names)),
        np.concatenate(notes),
        tree.annotations,
        np.concatenate(lines) if tree.has_sites else None,
    )


def _imbalance(reducers: Sequence[Reducer], shares: FloatArray) -> Float32Array:
    """Return the largest over the mean of all processes, [call paths with groups].

    Parameters
    ----------
    reducers : one for each group
    shares : [groups] fraction of the processes in each group; the others contribute zero
    """
    found = []
    for reducer, share in zip(reducers, shares.tolist(), strict=True):
        own = reducer.imbalance
        if own is None:  # a group of one process
            own = np.where(reducer.values > 0, 1.0, np.nan).astype(np.float32)
        found += [np.full(1, np.nan, np.float32), own / np.float32(share)]
    return np.concatenate(found)


def process_times(source: ProfileSource, metric: str) -> ProcessTimes:
    """Return the times of all processes in the costliest call paths.

    Raises
    ------
    DataError
        If the profile has no values of single threads.
    """
    if not isinstance(source, ThreadSource):
        raise DataError(
            "the profile has no values of single processes",
            hint="omit --split-ranks auto, or measure with Score-P, HPCToolkit or TAU",
        )
    tree = source.call_tree
    mean: FloatArray = np.nan_to_num(source.reduce(metric, Reduction.MEAN).exclusive)
    rows = np.sort(np.argsort(-mean, kind="stable")[:_FEATURES])
    group = np.full(len(tree), -1, np.intp)
    group[rows] = np.arange(len(rows))
    sums = source.sums_of_threads(metric, group, len(rows))
    columns = with_longest_threads(Columns.of(sums.process), source, source.metrics, len(tree))
    names = tuple(tree.path(int(row)) for row in rows)
    return ProcessTimes(names, columns.fold(sums.values, Fold.LONGEST).T, float(mean.sum()))
