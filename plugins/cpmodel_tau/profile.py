"""Opened TAU profile: values per call path, reduced over threads and processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import PurePosixPath

import numpy as np
from msgspec import structs

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array, IntArray
from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import InputError
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import (
    PROGRAM,
    DeclaredMetric,
    Extent,
    Metric,
    MetricStatus,
    Placement,
    Reduction,
    Region,
)
from callpath_modeler.readers.base import Reduced, ThreadSums
from callpath_modeler.readers.reductions import Columns, Reducer
from callpath_modeler.readers.threads import (
    GroupSums,
    fold_of,
    note_invalid,
    result_of,
    run_time_metric,
    with_longest_threads,
)
from callpath_modeler.units import counted
from cpmodel_tau.measurements import (
    COPY_OR_MEASURE,
    NONE,
    ROUNDING,
    Measurements,
    TimerValues,
    is_derived,
    is_time,
    layout_of,
)

_MICROSECONDS = 1e-6
_VISITS = "visits"
_WALL_CLOCK = ("TIME", "GET_TIME_OF_DAY", "P_WALL_CLOCK_TIME", "LINUX_TIMERS", "CLOCK_GETTIME")
_BLOCK = 1 << 22
"""Number of values that are reduced together."""
_MOST_METADATA, _LONGEST_METADATA = 500, 2000
_SEVERAL_ROOTS = 1e-6
"""Relative excess of exclusive values over inclusive ones that implies several roots."""


class TauProfile:
    """Timers of one run, as a call tree or flat."""

    def __init__(self, measurements: Measurements, subject: str) -> None:
        self._measurements = measurements
        self._notices = Notices(subject)
        locations = measurements.locations
        processes = {location[:2]: None for location in locations}
        number = {process: k for k, process in enumerate(processes)}
        self._columns = Columns.of(np.array([number[at[:2]] for at in locations], np.intp))
        self._metrics = _metrics(measurements.metrics)
        self._of_all_threads = ""
        name = run_time_metric(self.metrics)
        if self._columns.threads > 1 and name:
            self._of_all_threads = Metric(name, "s").of_all_threads().name
            self._metrics[self._of_all_threads] = self._metrics[name]
        first = measurements.values(measurements.metrics[0])
        self._layout = layout_of(measurements.timers, first, len(locations))
        if not len(self._layout.tree):
            raise InputError(f"{subject}: the profile has no timer", hint=COPY_OR_MEASURE)
        self._idle_row = self._add_idle_threads(first)
        self._note_layout()
        self._note_missing({location.node for location in locations}, len(processes))

    @property
    def call_tree(self) -> CallTree:
        """Return the call paths of all threads."""
        return self._layout.tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Return the durations, the counters, and the number of calls."""
        found = []
        for name, metric in self._metrics.items():
            note = "ParaProf computed it from others" if metric and is_derived(metric) else ""
            unit = "s" if is_time(metric) else "1"
            status = MetricStatus.DERIVED if note else MetricStatus.DATA
            about = "calls" if not metric else printable(metric)
            declared = DeclaredMetric(Metric(name, unit, about), status, note)
            if name == self._of_all_threads:
                whole = replace(declared.metric, name=declared.metric.of_threads)
                declared = structs.replace(declared, metric=whole.of_all_threads())
            found.append(declared)
        return found

    @property
    def extent(self) -> Extent:
        """Return the processes, threads, and nodes if each process states its host."""
        columns = self._columns
        return Extent(columns.processes, columns.threads, self._measurements.hosts)

    @property
    def metadata(self) -> Mapping[str, str]:
        """Return the metadata of the first thread."""
        stated = list(self._measurements.metadata.items())[:_MOST_METADATA]
        found = {key: text[:_LONGEST_METADATA] for key, text in stated if key and text}
        found["creator"] = f"TAU {found.get('TAU Version', '')}".strip()
        program = found.get("Executable", "")
        if program:
            found["program"] = PurePosixPath(program).name
        if "Command Line" in found:
            found["command line"] = found["Command Line"]
        return found

    def findings(self) -> Sequence[Finding]:
        """Return the findings until now."""
        return self._notices.findings()

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path; for times, the value of the longest thread.

        A process without the call path counts as zero.

        Raises
        ------
        KeyError
            If the metric does not exist, or ParaProf computed it from others.
        """
        written, values, column = self._stored(metric)
        factor = _MICROSECONDS if is_time(written) else 1.0
        declared = next(each for each in self.metrics if each.metric.name == metric)
        is_longest = declared.metric.can_be_run_time
        columns = self._with_longest if is_longest else self._columns
        reducer = Reducer(len(self.call_tree), columns, fold_of(declared), over_locations)
        total = np.zeros((1, self._columns.stored))
        for rows, block in self._blocks(values, column):
            scaled = block * factor
            reducer.mark_missing(scaled)
            total += np.nansum(scaled, axis=0)
            reducer.add(rows, scaled)
        if written:
            total = self._totals(values, total[0], factor)[np.newaxis]
        reducer.add_to_total(total)
        note_invalid(self._notices, metric, reducer.noticed, self.call_tree)
        return result_of(reducer, declared, self._notices, self.call_tree)

    def sums_of_threads(self, metric: str, group: IntArray, groups: int) -> ThreadSums:
        """Return sums of exclusive values over groups of call paths, for each thread.

        Raises
        ------
        KeyError
            If the metric does not exist, or ParaProf computed it from others.
        """
        written, values, column = self._stored(metric)
        sums = GroupSums(self._columns, group, groups)
        for rows, block in self._blocks(values, column):
            sums.mark_missing(block)
            sums.add(rows, block)
        note_invalid(self._notices, metric, sums.noticed, self.call_tree)
        return sums.result(_MICROSECONDS if is_time(written) else 1.0)

    def placement(self) -> Placement:
        """Return the ranks of the processes, and the hosts that they state."""
        measurements = self._measurements
        processes = list(dict.fromkeys(location[:2] for location in measurements.locations))
        hosts = {location[:2]: host for location, host in measurements.host_of.items()}
        ranks = np.array([node for node, _ in processes], np.intp)
        # Processes with several contexts have no ranks of their own.
        return Placement.stated(ranks, tuple(hosts.get(each, "") for each in processes))

    def _add_idle_threads(self, values: TimerValues) -> int:
        """Add a call path for the time of workers outside of all timers; `NONE` = there is none.

        TAU measures the time of a worker from its beginning to its end. Without a timer, it waits
        for its master.

        Parameters
        ----------
        values : values of the first metric
        """
        tree = self._layout.tree
        of_program = self._layout.adds_to[values.timer] == 0
        workers = of_program & self._is_worker[values.location] & (values.exclusive > 0)
        if tree.name(0) != PROGRAM or tree.end[0] < len(tree) or not workers.any():
            return NONE
        regions = (*tree.regions, Region("<idle thread>", paradigm="pthread"))
        extended = CallTree.from_parents(
            np.append(tree.parent, 0), np.append(tree.region, len(regions) - 1), regions
        )
        self._layout = replace(self._layout, tree=extended)
        return len(tree)

    @cached_property
    def _is_worker(self) -> BoolArray:
        """Whether each location is another thread than the first one of its process."""
        process, column = self._columns.threads_in_order
        is_worker = np.zeros(self._columns.stored, np.bool_)
        is_worker[column] = np.diff(process, prepend=-1) == 0
        return is_worker

    @cached_property
    def _with_longest(self) -> Columns:
        """The threads of each process, with the longest one."""
        return with_longest_threads(self._columns, self, self.metrics, len(self.call_tree))

    def _stored(self, metric: str) -> tuple[str, TimerValues, FloatArray]:
        """Return the name of a metric in the files ("" = calls), all its values, and one column."""
        written = self._metrics[metric]
        if is_derived(written):
            raise KeyError(metric)
        values = self._measurements.values(written or self._measurements.metrics[0])
        return written, values, values.exclusive if written else values.calls

    def _blocks(
        self, values: TimerValues, column: FloatArray
    ) -> Iterator[tuple[Int64Array, FloatArray]]:
        """Yield rows of the call tree with their values, [rows x locations]."""
        layout, width = self._layout, self._columns.stored
        added, taken = layout.adds_to[values.timer], layout.taken_from[values.timer]
        plus, minus = np.flatnonzero(added != NONE), np.flatnonzero(taken != NONE)
        row = np.concatenate([added[plus], taken[minus]])
        location = values.location[np.concatenate([plus, minus])]
        value = np.concatenate([column[plus], -column[minus]])
        if self._idle_row != NONE:
            row[(row == 0) & self._is_worker[location]] = self._idle_row
        order = np.argsort(row, kind="stable")
        row, location, value = row[order], location[order], value[order]
        step = max(1, _BLOCK // width)
        for begin in range(0, len(layout.tree), step):
            end = min(begin + step, len(layout.tree))
            part = slice(*np.searchsorted(row, (begin, end)).tolist())
            block = np.zeros((end - begin, width))
            size = np.zeros_like(block)
            at = row[part] - begin, location[part]
            with np.errstate(all="ignore"):
                np.add.at(block, at, value[part])
                np.add.at(size, at, np.abs(value[part]))
                block[np.abs(block) <= ROUNDING * size] = 0.0
            yield np.arange(begin, end), block

    def _totals(self, values: TimerValues, parts: FloatArray, factor: float) -> FloatArray:
        """Return the inclusive value of the program in each location.

        Parameters
        ----------
        parts : [locations] sum of the exclusive values
        """
        layout = self._layout
        is_root = layout.roots[values.timer]
        at, inclusive = values.location[is_root], values.inclusive[is_root] * factor
        total = np.zeros(self._columns.stored)
        if layout.is_flat:
            # The functions without callers are unknown, so the program is the largest one.
            np.fmax.at(total, at, inclusive)
            return np.where(parts > total * (1 + _SEVERAL_ROOTS), parts, total)
        with np.errstate(all="ignore"):
            np.add.at(total, at, inclusive)
        return np.where(np.bincount(at, minlength=len(total)) > 0, total, parts)

    def _note_layout(self) -> None:
        layout = self._layout
        if layout.cut:
            what = counted(layout.cut, "call path")
            self._notices.note("CPM151", f"the callers of {what} are unknown", layout.cut)
        if layout.repeated:
            what = counted(layout.repeated, "timer")
            message = f"{what} of samples, parameters or call sites repeat the time of others"
            self._notices.note("CPM152", message, layout.repeated)

    def _note_missing(self, nodes: set[int], processes: int) -> None:
        missing = max(nodes) + 1 - len(nodes)
        if missing > 0 and min(nodes) >= 0:
            message = f"{missing} of {max(nodes) + 1} processes have no profile; p = {processes}"
            self._notices.note("CPM132", message, missing)


def _metrics(written: Sequence[str]) -> dict[str, str]:
    """Return TAU's name of each metric, "" for the number of calls."""
    found: dict[str, str] = {}
    for name in written:
        is_clock = "time" not in found and name.upper() in _WALL_CLOCK
        spelled = "time" if is_clock else printable(name)
        if spelled in found:
            spelled = f"{spelled} ({len(found)})"
        found[spelled] = name
    return found | {_VISITS: ""}
