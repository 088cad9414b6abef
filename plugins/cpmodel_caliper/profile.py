"""One opened Caliper profile: values per call path, reduced over processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import InputError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import (
    COMPUTED,
    PROGRAM,
    DeclaredMetric,
    Extent,
    MetricStatus,
    Reduction,
)
from callpath_modeler.readers.base import Reduced
from callpath_modeler.readers.paths import exclusive_of, tree_of_nodes
from callpath_modeler.readers.reductions import imbalance, is_plain, statistic, statistic_of_present
from cpmodel_caliper.contents import Contents
from cpmodel_caliper.metrics import Stored, stored_metrics
from cpmodel_caliper.processes import processes_of_averages
from cpmodel_caliper.record_locations import RecordLocations
from cpmodel_caliper.slowest_process import run_time_of_maxima

_Array = NDArray[np.float64]

_PROCESSES = ("mpi.world.size", "jobsize", "num_procs", "numprocs", "mpi.size")
_THREADS = ("threads", "num_threads", "numthreads", "omp_num_threads", "omp.num_threads")
_NODES = ("numhosts", "num_nodes")
_INPUTS = ("problem_size", "InputSize", "input_size", "ProblemSize")
"""Names under which programs tell the size of their problem."""
_LONG = frozenset({"libraries", "hostlist"})
_PRINTED = 1e-6
"""Caliper writes six digits: differences of inclusive values are uncertain by as much."""


class CaliperProfile:
    """Records of one run, along a call tree below an artificial program root.

    The root holds what happened in no region.
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
        self._tree, self._row_of = _tree(contents)
        found = stored_metrics(contents, per_process=self._per_process)
        self._stored = {stored.metric.name: stored for stored in found}
        self._set_aside_other_flavours()
        self._extent = self._told_extent()
        self._refuse_what_tells_nothing()

    @property
    def call_tree(self) -> CallTree:
        """The call paths."""
        return self._tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Times first, then what else can be added up."""
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
        """Processes, threads and nodes as the metadata tell."""
        return self._extent

    @property
    def metadata(self) -> Mapping[str, str]:
        """All that the run says of itself."""
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
        """The size of the problem, where it is told under a usual name."""
        told = {key: _number(self._contents.globals.get(key, "")) for key in _INPUTS}
        return {key: value for key, value in told.items() if value is not None}

    @property
    def reductions(self) -> Sequence[Reduction]:
        """All where each process has values of its own; else what sums can give."""
        if any(self._is_summed(stored) for stored in self._stored.values()):
            return (Reduction.MEAN, Reduction.SUM)
        complete = max(1, len(self._ranks)) == self._extent.processes
        return COMPUTED if complete else (Reduction.MEAN,)

    def findings(self) -> Sequence[Finding]:
        """Return what was noticed so far."""
        return self._notices.findings()

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        Means are sums over processes divided by their number: a process that never was in a call
        path counts as zero.

        Raises
        ------
        KeyError
            If there is no such metric, or nothing can be read of it.
        """
        stored = self._stored[metric]
        if stored.note:
            raise KeyError(metric)
        is_time = stored.metric.is_time
        values, total = (
            self._places.folded(array, slowest=is_time) for array in self._exclusive(stored)
        )
        run_time = self._run_time(stored, total)
        if over_locations is Reduction.MEAN and self._is_summed(stored):
            share = 1 / self._extent.processes
            return Reduced(values[:, 0] * share, float(total[0]) * share, run_time=run_time)
        with np.errstate(all="ignore"):
            reduced = statistic(values, over_locations)
            if not is_plain(values):
                reduced = statistic_of_present(values, over_locations)
            whole = float(statistic(total[np.newaxis], over_locations)[0])
        uneven = None
        if values.shape[1] > 1 and over_locations is not Reduction.IMBALANCE:
            missing = not is_plain(values)
            uneven = imbalance(values, reduced, over_locations, missing=missing).astype(np.float32)
        return Reduced(reduced, whole, uneven, run_time)

    def _run_time(self, stored: Stored, total: _Array) -> float:
        """Return the time of the slowest process; NaN where the file does not tell it."""
        if not stored.metric.is_time:
            return float("nan")
        if self._is_summed(stored):
            return run_time_of_maxima(self._contents, stored, self._tree, self._row_of)
        complete = max(1, len(self._ranks)) == self._extent.processes
        return float(total.max()) if complete else float("nan")

    def _is_summed(self, stored: Stored) -> bool:
        return stored.summed and not self._per_process

    def _exclusive(self, stored: Stored) -> tuple[_Array, _Array]:
        """Return values [call paths x threads] or sums of processes, and totals [threads]."""
        table = self._table(stored)
        if stored.inclusive:
            # The root was measured by itself: it is nobody's sum.
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
        # What rounding has put below zero stays in the sum, so that cost is conserved.
        total = total - np.where((exclusive < 0) & ~below, exclusive, 0.0).sum(axis=0)
        return np.maximum(exclusive, 0.0), total

    def _table(self, stored: Stored) -> _Array:
        """Return values as stored: zero, or NaN for inclusive ones, where there is no record."""
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

    def _set_aside_other_flavours(self) -> None:
        """Where some metrics are sums over processes, those that are not say too little."""
        if any(self._is_summed(stored) for stored in self._stored.values()):
            for name, stored in self._stored.items():
                if not stored.summed and not stored.note:
                    note = "no sum over processes: whose value it is, the file does not tell"
                    self._stored[name] = replace(stored, note=note)

    def _leave_out_others(self) -> None:
        """Drop records of no rank from a file whose other records have one."""
        others = self._contents.rank.count(None)
        self._notices.note("CPM103", f"{others} records tell no MPI rank", others)
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
        """Return the number of processes that sums and averages tell; 0 where they do not."""
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
                f"{self._subject}: holds no times or counts that can be added up"
                + (f" ({notes})" if notes else ""),
                hint="record a region profile, e.g. CALI_CONFIG=spot or hatchet-region-profile",
            )
        if not self._extent.processes:
            raise InputError(
                f"{self._subject}: holds sums over processes, and not how many there were",
                hint="the metadata come last: the file is cut short, or lacks mpi.world.size",
            )
        if len(self._ranks) > self._extent.processes:
            raise InputError(
                f"{self._subject}: {len(self._ranks)} ranks have values, but the run had "
                f"{self._extent.processes}",
                hint="were two files joined?",
            )
        if self._per_process and len(self._ranks) < self._extent.processes:
            missing = self._extent.processes - len(self._ranks)
            message = f"{missing} of {self._extent.processes} ranks have no record: left out"
            self._notices.note("CPM132", message, missing)


def _tree(contents: Contents) -> tuple[CallTree, NDArray[np.intp]]:
    """Return the tree of all call paths with a record, and the row of each node; of `ROOT` last."""
    needed = np.zeros(len(contents.names), np.bool_)
    for node in set(contents.node):
        while node != ROOT and not needed[node]:
            needed[node] = True
            node = contents.callers[node]  # noqa: PLW2901 - up to the root
    kept = np.flatnonzero(needed)
    place = np.full(len(needed) + 1, ROOT, np.intp)
    place[kept] = np.arange(1, len(kept) + 1)
    # The program is the first node, and the caller of what nobody calls.
    callers = [ROOT, *np.maximum(place[[contents.callers[node] for node in kept]], 0).tolist()]
    names = [PROGRAM, *(contents.names[node] for node in kept)]
    tree, row_of = tree_of_nodes(callers, names)
    rows = np.zeros(len(place), np.intp)
    rows[kept] = row_of[place[kept]]
    return tree, rows


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _count(told: Mapping[str, str], keys: Sequence[str]) -> int:
    for key in keys:
        value = _number(told.get(key, ""))
        if value is not None and 0 < value < 1e9 and value == int(value):
            return int(value)
    return 0
