"""Opened Caliper profile: values per call path, reduced over processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import DataError, InputError
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree
from callpath_modeler.profile.groups import LineCosts
from callpath_modeler.profile.schema import (
    COMPUTED,
    PROGRAM,
    DeclaredMetric,
    Extent,
    MetricStatus,
    Placement,
    Reduction,
)
from callpath_modeler.readers.base import Reduced, ThreadSums
from callpath_modeler.readers.paths import exclusive_of, tree_of_nodes
from callpath_modeler.readers.reductions import (
    Columns,
    Fold,
    Noticed,
    imbalance,
    is_plain,
    statistic,
    statistic_of_present,
)
from callpath_modeler.readers.threads import note_others, run_time_metric
from callpath_modeler.support.input_limits import InputLimits, Work
from callpath_modeler.units import decimal_of
from cpmodel_caliper.contents import Contents, SourcePlace
from cpmodel_caliper.metrics import (
    ProcessMaxima,
    RecordLocations,
    Stored,
    processes_of_averages,
    stored_metrics,
)

_PROCESSES = ("mpi.world.size", "jobsize", "num_procs", "numprocs", "mpi.size")
_THREADS = ("threads", "num_threads", "numthreads", "omp_num_threads", "omp.num_threads")
_NODES = ("numhosts", "num_nodes")
_INPUTS = ("problem_size", "InputSize", "input_size", "ProblemSize")
"""Usual names of the problem size in metadata."""
_LONG = frozenset({"libraries", "hostlist"})
_PRINTED = 1e-6
"""Relative rounding: Caliper writes six digits, which limits differences of inclusive values."""


class CaliperProfile:
    """Records of one run, with a call tree below an artificial program root.

    The root has the values outside all regions.
    """

    def __init__(self, contents: Contents, subject: str) -> None:
        self._contents = contents
        self._subject = subject
        self._notices = Notices(subject)
        self._ranks = sorted({rank for rank in contents.rank if rank is not None})
        self._per_process = None not in contents.rank
        if self._ranks and not self._per_process:
            self._per_process = True
            self._leave_out_others()
        self._places = RecordLocations(contents, self._ranks, per_process=self._per_process)
        found = stored_metrics(contents, per_process=self._per_process)
        if not any(stored.inclusive for stored in found):
            # An inclusive value contains that of all records below it, whether they wait or not.
            contents.move_waits()
        self._tree, self._row_of = _tree(contents)
        self._stored = {stored.metric.name: stored for stored in found}
        self._add_sums_of_threads()
        # A metric is a table of all call paths and all processes.
        cells = len(self._tree) * self._places.columns * max(1, len(self._stored))
        InputLimits.of(Path(subject)).check(Work.CELLS, cells, "record fewer processes in one file")
        self._set_aside_other_flavours()
        self._extent = self._told_extent()
        self._refuse_what_tells_nothing()

    @property
    def call_tree(self) -> CallTree:
        """Return the call paths."""
        return self._tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Return the metrics: times first, then other quantities that can be summed."""
        ordered = sorted(
            self._stored.values(),
            key=lambda stored: (not stored.metric.is_time, stored.metric.name != "time"),
        )
        return [
            DeclaredMetric(
                stored.metric,
                MetricStatus.UNSUPPORTED if stored.note else MetricStatus.DATA,
                stored.note,
            )
            for stored in ordered
        ]

    @property
    def extent(self) -> Extent:
        """Return the processes, threads and nodes in the metadata."""
        return self._extent

    @property
    def metadata(self) -> Mapping[str, str]:
        """Return the metadata of the run."""
        told = self._contents.globals
        known = {key: value for key, value in told.items() if key not in _LONG and value}
        version = told.get("cali.caliper.version", "")
        known["creator"] = f"Caliper {version}".strip()
        program = told.get("executablepath") or told.get("cmdline", "").strip("[]").split(",")[0]
        if program:
            known["program"] = PurePosixPath(program).name
        return known

    @property
    def parameters(self) -> Mapping[str, float]:
        """Return the problem size if the metadata have it under a usual name."""
        told = {key: _number(self._contents.globals.get(key, "")) for key in _INPUTS}
        return {key: value for key, value in told.items() if value is not None}

    @property
    def reductions(self) -> Sequence[Reduction]:
        """Return all reductions if there are values per process, else the ones that sums allow."""
        if any(self._is_summed(stored) for stored in self._stored.values()):
            return (Reduction.MEAN, Reduction.SUM)
        complete = max(1, len(self._ranks)) == self._extent.processes
        return COMPUTED if complete else (Reduction.MEAN,)

    def findings(self) -> Sequence[Finding]:
        """Return the findings until now."""
        return self._notices.findings()

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        A mean is the sum over processes divided by their number, so processes without the call path
        count as zero.

        Raises
        ------
        KeyError
            If the metric does not exist or cannot be used.
        """
        stored = self._stored[metric]
        if stored.note:
            raise KeyError(metric)
        exclusive, of_threads = self._exclusive(stored)
        values, reduced = self._statistic(stored, exclusive, over_locations)
        total = self._folded(stored, of_threads)
        run_time = self._run_time(stored, of_threads)
        self._note_others(stored, exclusive, float(of_threads.max()))
        if over_locations is Reduction.MEAN and self._is_summed(stored):
            maxima = self._maxima(stored)
            uneven = None if maxima is None else maxima.imbalance(reduced)
            return Reduced(reduced, float(total[0]) / self._extent.processes, uneven, run_time)
        with np.errstate(all="ignore"):
            whole = float(statistic(total[np.newaxis], over_locations)[0])
        uneven = None
        if values.shape[1] > 1 and over_locations is not Reduction.IMBALANCE:
            missing = not is_plain(values)
            uneven = imbalance(values, reduced, over_locations, missing=missing).astype(np.float32)
        return Reduced(reduced, whole, uneven, run_time)

    def _note_others(self, stored: Stored, exclusive: FloatArray, longest: float) -> None:
        """Note the call paths that only other threads than the longest ones run."""
        if not stored.metric.can_be_run_time or self._columns.threads == 1:
            return
        others = np.flatnonzero(~(self._folded(stored, exclusive) > 0).any(axis=1))
        noticed = Noticed()
        noticed.add_others(others, np.fmax.reduce(exclusive[others], axis=1))
        note_others(self._notices, stored.metric.name, noticed, self._tree, longest)

    def _statistic(
        self, stored: Stored, values: FloatArray, over_locations: Reduction
    ) -> tuple[FloatArray, FloatArray]:
        """Return values of processes, [n, processes], and their statistic, [n].

        Parameters
        ----------
        values : [n, threads]
        """
        values = self._folded(stored, values)
        if over_locations is Reduction.MEAN and self._is_summed(stored):
            return values, values[:, 0] / self._extent.processes
        with np.errstate(all="ignore"):
            if is_plain(values):
                return values, statistic(values, over_locations)
            return values, statistic_of_present(values, over_locations)

    def _folded(self, stored: Stored, values: FloatArray) -> FloatArray:
        """Return values per process, [..., processes], from values per thread."""
        fold = Fold.LONGEST if stored.metric.can_be_run_time else Fold.SUM
        folded = self._columns.fold(values.reshape(-1, values.shape[-1]), fold)
        return folded.reshape(*values.shape[:-1], self._columns.processes)

    @cached_property
    def _columns(self) -> Columns:
        """The threads of each process, with the longest one."""
        columns = Columns.of(self._places.process)
        name = run_time_metric(self.metrics)
        if columns.threads == 1 or not name:
            return columns
        return columns.with_longest(self._exclusive(self._stored[name])[0].sum(axis=0))

    def line_costs(self, metric: str, over_locations: Reduction) -> LineCosts:
        """Return the exclusive values of the lines of samples, for each call path.

        Inclusive values have no lines.

        Raises
        ------
        KeyError
            If the metric does not exist or cannot be used.
        """
        stored = self._stored[metric]
        if stored.note:
            raise KeyError(metric)
        places = {} if stored.inclusive else self._contents.places
        rows = self._row_of[np.array(self._contents.node, np.intp)]
        numbers: dict[tuple[int, SourcePlace], int] = {}
        line_of = np.full(len(rows), -1, np.intp)
        for record, place in places.items():
            line_of[record] = numbers.setdefault((int(rows[record]), place), len(numbers))
        column = self._contents.columns[stored.attribute]
        records, values = np.array(column.records, np.intp), np.array(column.values)
        known = (line_of[records] >= 0) & np.isfinite(values)
        table = np.zeros((len(numbers), self._places.columns))
        at = line_of[records[known]], self._places.of(records[known])
        np.add.at(table, at, values[known] * stored.factor)
        _, exclusive = self._statistic(stored, np.maximum(table, 0.0), over_locations)
        files = {place.file: 0 for _, place in numbers}
        files = {name: number for number, name in enumerate(files)}
        return LineCosts(
            np.array([row for row, _ in numbers], np.intp),
            np.array([files[place.file] for _, place in numbers], np.intp),
            np.array([place.line for _, place in numbers], np.intp),
            tuple(files),
            exclusive,
        )

    def sums_of_threads(self, metric: str, group: IntArray, groups: int) -> ThreadSums:
        """Return sums of exclusive values over groups of call paths, for each thread.

        Raises
        ------
        KeyError
            If the metric does not exist or cannot be used.
        DataError
            If the file does not state the process of a value, or lacks processes.
        """
        stored = self._stored[metric]
        if stored.note:
            raise KeyError(metric)
        if self._is_summed(stored):
            raise DataError(
                "its values are sums over processes",
                hint="write one file per process, e.g. CALI_CONFIG=hatchet-region-profile",
            )
        if max(1, len(self._ranks)) != self._extent.processes:
            missing = self._extent.processes - max(1, len(self._ranks))
            raise DataError(
                f"{missing} of {self._extent.processes} processes have no values",
                hint="give a file with the values of all processes",
            )
        values, _ = self._exclusive(stored)
        known = group >= 0
        sums = np.zeros((groups, values.shape[1]))
        np.add.at(sums, group[known], np.nan_to_num(values[known]))
        return ThreadSums(sums, self._places.process)

    def placement(self) -> Placement:
        """Return the MPI ranks of the processes with values."""
        unknown = Placement.unknown(self._extent.processes)
        if len(self._ranks) != self._extent.processes:
            return unknown
        return Placement(np.array(self._ranks, np.intp), unknown.nodes)

    def _run_time(self, stored: Stored, total: FloatArray) -> float:
        """Return the time of the slowest process, from totals [threads]; NaN = unknown."""
        if not stored.metric.can_be_run_time:
            return float("nan")
        if self._is_summed(stored):
            maxima = self._maxima(stored)
            return float("nan") if maxima is None else maxima.run_time
        complete = max(1, len(self._ranks)) == self._extent.processes
        return float(total.max()) if complete else float("nan")

    def _maxima(self, stored: Stored) -> ProcessMaxima | None:
        """Return maxima over processes beside sums of a duration; None = there are none."""
        if not stored.metric.is_time:
            return None
        return ProcessMaxima.of(self._contents, stored, self._tree, self._row_of)

    def _is_summed(self, stored: Stored) -> bool:
        return stored.summed and not self._per_process

    def _exclusive(self, stored: Stored) -> tuple[FloatArray, FloatArray]:
        """Return values, [call paths x threads], or sums over processes, and totals, [threads]."""
        table = self._table(stored)
        if stored.inclusive:
            # The value of the root is its own measurement, and not a sum of callees.
            own, table[0] = np.nan_to_num(table[0]), np.nan
            exclusive, total = exclusive_of(self._tree, table)
            exclusive[0], total = own, total + own
            callees = np.bincount(self._tree.parent[1:], minlength=len(self._tree))
            bound = _PRINTED * (1 + callees[:, np.newaxis] + np.abs(np.nan_to_num(table)))
            exclusive = np.nan_to_num(exclusive, nan=0.0)
        else:
            exclusive, bound = table, np.zeros_like(table)
            total = np.nansum(exclusive, axis=0)
        below = exclusive < -bound
        if below.any():
            count, lowest = int(below.sum()), float(exclusive.min())
            name = stored.metric.name
            self._notices.note("CPM105", f"{name}, down to {lowest:.3g}", count, about=name)
        # Values that rounding made negative remain in the sum, so that the total cost is unchanged.
        total = total - np.where((exclusive < 0) & ~below, exclusive, 0.0).sum(axis=0)
        return np.maximum(exclusive, 0.0), total

    def _table(self, stored: Stored) -> FloatArray:
        """Return values as stored; without a record they are zero, or NaN for inclusive values."""
        column = self._contents.columns[stored.attribute]
        records = np.array(column.records, np.intp)
        values = np.array(column.values) * stored.factor
        endless = ~np.isfinite(values)
        if endless.any():
            count, name = int(endless.sum()), stored.metric.name
            self._notices.note("CPM117", f"{name}: {count} values", count, about=name)
            records, values = records[~endless], values[~endless]
        row = self._row_of[np.array(self._contents.node, np.intp)[records]]
        place = self._places.of(records)
        table = np.zeros((len(self._tree), self._places.columns))
        with np.errstate(over="ignore"):
            np.add.at(table, (row, place), values)
        table = np.nan_to_num(table, posinf=0.0, neginf=0.0)
        if stored.inclusive:
            measured = np.zeros(table.shape, np.bool_)
            measured[row, place] = True
            table[~measured] = np.nan
        return table

    def _add_sums_of_threads(self) -> None:
        """Add the sums over threads of the time that decides which thread is longest."""
        name = run_time_metric(self.metrics)
        if name and self._places.threads > 1:
            stored = self._stored[name]
            metric = stored.metric.of_all_threads()
            self._stored[metric.name] = replace(stored, metric=metric)

    def _set_aside_other_flavours(self) -> None:
        """Exclude metrics that are not sums over processes if other metrics are."""
        if any(self._is_summed(stored) for stored in self._stored.values()):
            for name, stored in self._stored.items():
                if not stored.summed and not stored.note:
                    note = (
                        "not a sum over processes; the file does not state the process of a value"
                    )
                    self._stored[name] = replace(stored, note=note)

    def _leave_out_others(self) -> None:
        """Exclude records without a rank if other records have one."""
        others = self._contents.rank.count(None)
        self._notices.note("CPM103", f"{others} records have no MPI rank", others)
        known = np.array([rank is not None for rank in self._contents.rank])
        for column in self._contents.columns.values():
            kept = [k for k, record in enumerate(column.records) if known[record]]
            column.records = [column.records[k] for k in kept]
            column.values = [column.values[k] for k in kept]

    def _told_extent(self) -> Extent:
        told = self._contents.globals
        processes = _count(told, _PROCESSES) or len(self._ranks)
        if not processes and not any(stored.summed for stored in self._stored.values()):
            processes = 1
        if not processes:
            processes = self._counted_by_averages()
        threads = _count(told, _THREADS) or self._places.threads
        return Extent(processes, threads, _count(told, _NODES))

    def _counted_by_averages(self) -> int:
        """Return the number of processes by sums and averages; 0 = unknown."""
        if self._contents.is_cut:
            return 0
        summed = [stored.attribute for stored in self._stored.values() if stored.summed]
        processes = max((processes_of_averages(self._contents, name) for name in summed), default=0)
        if processes > 1:
            message = f"{processes} processes, which is the largest sum divided by its average"
            self._notices.note("CPM161", message)
        return processes

    def _refuse_what_tells_nothing(self) -> None:
        if not any(not stored.note for stored in self._stored.values()):
            notes = "; ".join(f"{s.attribute}: {s.note}" for s in self._stored.values())
            raise InputError(
                f"{self._subject}: the file has no times or counts that can be summed"
                + (f" ({notes})" if notes else ""),
                hint="record a region profile, e.g. CALI_CONFIG=spot or hatchet-region-profile",
            )
        if not self._extent.processes:
            raise InputError(
                f"{self._subject}: the values are sums over an unknown number of processes",
                hint="the file is cut off before its metadata, or they lack mpi.world.size",
            )
        if len(self._ranks) > self._extent.processes:
            raise InputError(
                f"{self._subject}: {len(self._ranks)} ranks have values, but the run had "
                f"{self._extent.processes}",
                hint="check whether two files were joined",
            )
        if self._per_process and len(self._ranks) < self._extent.processes:
            missing = self._extent.processes - len(self._ranks)
            message = f"{missing} of {self._extent.processes} ranks have no record and are excluded"
            self._notices.note("CPM132", message, missing)


def _tree(contents: Contents) -> tuple[CallTree, IntArray]:
    """Return the tree of all call paths with a record, and the row of each node; `ROOT` is last."""
    needed = np.zeros(len(contents.names), np.bool_)
    for node in set(contents.node):
        while node != ROOT and not needed[node]:
            needed[node] = True
            node = contents.callers[node]  # noqa: PLW2901 - up to the root
    kept = np.flatnonzero(needed)
    place = np.full(len(needed) + 1, ROOT, np.intp)
    place[kept] = np.arange(1, len(kept) + 1)
    # The program is the first node, and the caller of all regions without a caller.
    callers = [ROOT, *np.maximum(place[[contents.callers[node] for node in kept]], 0).tolist()]
    names = [PROGRAM, *(contents.names[node] for node in kept)]
    sites = [NO_LINE, *(contents.sites[node] for node in kept)]
    has_sites = max(sites) > NO_LINE
    tree, row_of = tree_of_nodes(callers, names, sites if has_sites else None, contents.files)
    rows = np.zeros(len(place), np.intp)
    rows[kept] = row_of[place[kept]]
    return tree, rows


def _number(text: str) -> float | None:
    try:
        value = decimal_of(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _count(told: Mapping[str, str], keys: Sequence[str]) -> int:
    for key in keys:
        value = _number(told.get(key, ""))
        if value is not None and 0 < value < 1e9 and value == int(value):
            return int(value)
    return 0
