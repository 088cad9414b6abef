"""One opened Cube profile."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import (
    DeclaredMetric,
    Extent,
    MetricStatus,
    Placement,
    Reduction,
)
from callpath_modeler.readers.base import Reduced, ThreadSums, Workers
from callpath_modeler.readers.reductions import BlockSink, Columns, Fold, PartOfReduction, Reducer
from callpath_modeler.readers.threads import (
    GroupSums,
    no_threads,
    result_of,
    run_time_metric,
    with_longest_threads,
)
from cpmodel_scorep import anchor, stream
from cpmodel_scorep.container import ANCHOR, Container
from cpmodel_scorep.definitions import Definitions, MetricKind, columns_of, columns_of_streams
from cpmodel_scorep.metrics import ProfileNotices, StoredMetric, declare
from cpmodel_scorep.rows import (
    Index,
    InMemoryRows,
    Section,
    StoredRows,
    blocks,
    open_rows,
    read_index,
    split,
    take,
)
from cpmodel_scorep.stream import MetricPass, visits_of
from cpmodel_scorep.tree import TreeLayout

OpenAgain = Callable[[Path], AbstractContextManager["CubeProfile"]]
"""Function that opens a file, and can be pickled."""


class CubeProfile:
    """An opened Cube profile."""

    def __init__(
        self,
        container: Container,
        definitions: Definitions,
        layout: TreeLayout,
        *,
        held: Mapping[int, InMemoryRows] | None,
        repaired: bool,
    ) -> None:
        self.container = container
        self.definitions = definitions
        self.layout = layout
        self.columns = columns_of(definitions.locations)
        self._streams = columns_of_streams(definitions.locations)
        self._held = held
        self._shared: tuple[Workers, OpenAgain] | None = None
        self._notices = ProfileNotices(str(container.path))
        self.stored = declare(definitions, container, held, self._notices)
        self._add_sums_of_threads()
        self._add_metrics_of_streams()
        self._notices.of_definitions(
            container, definitions, self.layout, self.metrics, repaired=repaired
        )

    @property
    def call_tree(self) -> CallTree:
        """Return the call paths, without detached tasks."""
        return self.layout.tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Return all metrics that the profile declares, and then those of GPU streams."""
        return [stored.declared for stored in self.stored.values()]

    @property
    def extent(self) -> Extent:
        """Return the number of processes, threads and nodes."""
        columns, locations = self.columns, self.definitions.locations
        threads = columns.threads if locations.are_threads else 0
        return Extent(columns.processes, threads, locations.nodes)

    @property
    def metadata(self) -> Mapping[str, str]:
        """Return the creator, Cube version, program, arguments and machine, if they are known."""
        attributes = self.definitions.attributes
        program = self.layout.program
        known = {
            "creator": attributes.get("Creator", ""),
            "cube version": attributes.get("Cube Version") or attributes.get("version", ""),
            "program": program.name if program else "",
            "command line": program.mangled if program else "",
            "machine": ", ".join(sorted(self.definitions.locations.machines)),
        }
        return {key: value for key, value in known.items() if value}

    def findings(self) -> Sequence[Finding]:
        """Return the findings of opening the profile and of all reads until now."""
        return self._notices.findings()

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path. The file is read as a stream.

        Raises
        ------
        KeyError
            If the metric does not exist or has no values.
        InputError
            If the file cannot be read.
        """
        stored = self._readable(metric)
        reducer = self.reducer(stored, over_locations)
        if stored.status is MetricStatus.DATA:
            whole = self.metric_pass(stored)
            if self._shared is None:
                whole.reduce_all(reducer)
            else:
                workers, open_again = self._shared
                part_of = SharedPass(self, whole, over_locations, open_again)
                for part in workers.each(part_of, whole.parts(workers.parts)):
                    reducer.join(part)
            self._note_counter(stored, reducer)
        self._notices.of_values(stored, reducer.noticed, self.call_tree)
        return result_of(reducer, stored.declared, self._notices, self.call_tree, stored.scale)

    def inclusive(self, metric: str, over_locations: Reduction) -> FloatArray:
        """Return one inclusive value per call path, as stored if the metric cannot be summed.

        Errors are as for `reduce`.
        """
        stored = self._readable(metric)
        reducer = self.reducer(stored, over_locations, absent=0.0)
        if stored.status is MetricStatus.DATA:
            rows, order = self.rows(metric), self.layout.enumeration(stored.order)
            if stored.kind is MetricKind.EXCLUSIVE and stored.additive:
                stream.reduce_subtrees(rows, self.layout, order, reducer)
            else:
                for at, block in stream.stored(rows, self.layout.rows[order[rows.numbers]]):
                    reducer.mark_missing(block)
                    reducer.add_raw(at, block)
        return reducer.values * _scale(stored, over_locations)

    def sums_of_threads(self, metric: str, group: IntArray, groups: int) -> ThreadSums:
        """Return sums of exclusive values over groups of call paths, for each thread.

        The file is read as a stream. Errors are as for `reduce`.

        Raises
        ------
        DataError
            If the columns of the profile are statistics over threads, or the metric has values of
            GPU streams.
        """
        stored = self._readable(metric)
        if stored.on_gpu:
            raise no_threads(metric)
        locations = self.definitions.locations
        if not locations.are_threads:
            raise DataError(
                "its columns are statistics over threads, not single threads",
                hint="measure with SCOREP_PROFILING_FORMAT=default",
            )
        sums = GroupSums(self.columns, group, groups)
        if stored.status is MetricStatus.DATA:
            self.metric_pass(stored).add_all(sums)
            self._note_counter(stored, sums)
        self._notices.of_values(stored, sums.noticed, self.call_tree)
        return sums.result(stored.scale)

    def placement(self) -> Placement:
        """Return ranks, compute nodes and topologies; the definitions are read again.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        if self._held is None:
            text = self.container.content(self.container.members[ANCHOR])
        else:
            text, _ = split(self.container.content(self.container.members[""]))
        readable = anchor.readable(text, str(self.container.path))
        from cpmodel_scorep.placement import placement_of

        return placement_of(readable, self.definitions.locations)

    def per_location(self, metric: str, inclusive: bool) -> FloatArray:
        """Return all measured values, [call paths x locations in order of their ids].

        The whole metric is in memory. The values are meant for comparisons, so negative values and
        noise are not corrected. Errors are as for `reduce`.
        """
        stored = self._readable(metric)
        values = np.zeros((len(self.call_tree), self.columns.stored))
        if stored.status is MetricStatus.DATA:
            rows, order = self.rows(metric), self.layout.enumeration(stored.order)
            for at, block in stream.stored(rows, self.layout.rows[order[rows.numbers]]):
                values[at] = block
        if stored.additive and stored.kind is MetricKind.INCLUSIVE and not inclusive:
            parent = self.call_tree.parent
            called = np.flatnonzero(parent >= 0)
            below = np.zeros_like(values)
            np.add.at(below, parent[called], values[called])
            values -= below
        elif stored.additive and stored.kind is MetricKind.EXCLUSIVE and inclusive:
            values = self.call_tree.inclusive(values)
        return values * stored.scale

    def rows(self, metric: str) -> StoredRows:
        """Return the stored rows of a metric with status DATA; each call opens them again."""
        stored = self.stored[metric]
        if self._held is not None:
            return self._held[stored.number]
        index = self.index(stored)
        rows = open_rows(
            self.container, index, stored.members[1], stored.dtype, self.columns.stored
        )
        if rows.missing:
            self._notices.of_missing(stored, rows.missing)
        return rows

    def index(self, stored: StoredMetric) -> Index:
        """Return the index of the stored rows of a metric."""
        return read_index(self.container, stored.members[0], len(self.layout.parents))

    def share_between(self, workers: Workers, open_again: OpenAgain) -> None:
        """Make `reduce` give parts of its work to workers.

        Parameters
        ----------
        workers : threads of this process, or processes, also on other nodes
        open_again : function with which other processes open the file
        """
        self._shared = workers, open_again

    def metric_pass(self, stored: StoredMetric) -> MetricPass:
        """Return a pass over the rows of a metric with status DATA."""
        rows, visits = self.rows(stored.declared.metric.name), None
        counts = self.stored.get("visits")
        are_known = counts is not None and counts.status is MetricStatus.DATA and counts.additive
        if stored.fold is Fold.MIN and counts is not None and are_known:
            order = self.layout.enumeration(counts.order)
            visits = visits_of(self.rows("visits"), self.layout, order)
        return MetricPass(rows, self.layout, stored, visits)

    def reducer(
        self,
        stored: StoredMetric,
        reduction: Reduction,
        absent: float | None = None,
        columns: Columns | None = None,
    ) -> Reducer:
        """Return an empty reducer of a metric.

        Parameters
        ----------
        absent : value of call paths without a row; None = zero, or NaN for a minimum
        columns : result of `columns_for`, if it is known already
        """
        if absent is None:
            absent = np.nan if stored.fold is Fold.MIN and not stored.additive else 0.0
        fold = Fold.LONGEST if self._is_of_longest(stored) else stored.fold
        known = self.columns_for(stored) if columns is None else columns
        return Reducer(len(self.call_tree), known, fold, reduction, absent=absent)

    def columns_for(self, stored: StoredMetric) -> Columns:
        """Return the columns of the values of a metric."""
        if self._is_of_longest(stored):
            return self._with_longest
        return self._streams if stored.on_gpu and self._streams else self.columns

    def _is_of_longest(self, stored: StoredMetric) -> bool:
        """Return whether a metric of a process is that of its longest thread."""
        are_threads = self.definitions.locations.are_threads
        return are_threads and stored.declared.metric.can_be_run_time

    @cached_property
    def _with_longest(self) -> Columns:
        """The threads of each process, with the longest one."""
        return with_longest_threads(self.columns, self, self.metrics, len(self.call_tree))

    def _note_counter(self, stored: StoredMetric, sink: BlockSink) -> None:
        if stored.kind is MetricKind.INCLUSIVE and stored.is_counter:
            self._notices.of_counter(stored, sink.noticed.stored_negative)

    def _readable(self, metric: str) -> StoredMetric:
        stored = self.stored[metric]
        if not stored.status.is_readable:
            raise KeyError(metric)
        return stored

    def _add_sums_of_threads(self) -> None:
        """Add the sums over threads of the time that decides which thread is longest."""
        name = run_time_metric(self.metrics)
        if name and self.columns.threads > 1 and self.definitions.locations.are_threads:
            stored = self.stored[name]
            declared = stored.declared.of_all_threads()
            self.stored[declared.metric.name] = structs.replace(
                stored, declared=declared, fold=Fold.SUM
            )

    def _add_metrics_of_streams(self) -> None:
        """Add a metric of GPU streams for each metric that is not zero on all of them."""
        for stored in [*self.stored.values()]:
            if stored.status is not MetricStatus.DATA or not self._is_used_by_streams(stored):
                continue
            of_streams = stored.of_streams()
            name = of_streams.declared.metric.name
            if name in self.stored:
                self._notices.note("CPM118", f"metric {name}", about=name)
            else:
                self.stored[name] = of_streams

    def _is_used_by_streams(self, stored: StoredMetric) -> bool:
        """Return whether a metric with values is not zero on all GPU streams of processes."""
        if self._streams is None or stored.declared.metric.is_of_all_threads:
            return False
        columns = self._streams.used
        try:
            rows = self.rows(stored.declared.metric.name)
            if stored.kind is MetricKind.INCLUSIVE and stored.additive:
                # The values of roots include all others.
                path = self.layout.enumeration(stored.order)[rows.numbers]
                roots = take(rows, np.flatnonzero(self.layout.parents[path] < 0))
                return bool(roots[:, columns].any())
            return any(bool(block[:, columns].any()) for _, _, block in blocks(rows))
        except InputError:
            # Whoever reads the metric gets this error.
            return True


class SharedPass:
    """A part of a pass, made by a thread, or by a process that opens the file again."""

    def __init__(
        self, profile: CubeProfile, whole: MetricPass, reduction: Reduction, open_again: OpenAgain
    ) -> None:
        self._profile, self._whole = profile, whole
        self._reduction, self._open_again = reduction, open_again
        # One pass finds the longest threads for all parts.
        self._columns = profile.columns_for(whole.stored)

    def __call__(self, sections: Sequence[Section]) -> PartOfReduction:
        """Return the reduction of neighbouring sections."""
        stored = self._whole.stored
        reducer = self._profile.reducer(stored, self._reduction, columns=self._columns)
        return self._whole.part(sections, reducer)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path of the file instead of the file.

        Raises
        ------
        pickle.PicklingError
            If the other process would have to unpack all of the file.
        """
        container, metric = self._profile.container, self._whole.stored.declared.metric.name
        if not container.is_direct:
            raise pickle.PicklingError("the file is read as a whole")
        return partial, (
            *(_part, self._open_again, container.path, metric, self._reduction),
            self._columns,
        )


def _part(
    open_again: OpenAgain,
    path: Path,
    metric: str,
    reduction: Reduction,
    columns: Columns,
    sections: Sequence[Section],
) -> PartOfReduction:
    """Return the reduction of some sections of a file that another process has open, too."""
    with open_again(path) as profile:
        whole = profile.metric_pass(profile.stored[metric])
        return whole.part(sections, profile.reducer(whole.stored, reduction, columns=columns))


def _scale(stored: StoredMetric, reduction: Reduction) -> float:
    # Imbalance is a ratio, so it has no unit to convert.
    return 1.0 if reduction is Reduction.IMBALANCE else stored.scale
