"""Profile of an opened database of any version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import DataError, InputError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import LineCosts
from callpath_modeler.profile.schema import (
    DeclaredMetric,
    Extent,
    MetricStatus,
    Placement,
    Reduction,
)
from callpath_modeler.readers.base import Reduced, ThreadSums
from callpath_modeler.readers.reductions import Columns, Fold, Noticed
from callpath_modeler.readers.threads import (
    no_threads,
    note_invalid,
    note_others,
    note_streams,
    run_time_metric,
    with_longest_threads,
)
from cpmodel_hpctoolkit.binary import COPY_IT_AGAIN
from cpmodel_hpctoolkit.contexts import STATEMENT, Detail, Layout
from cpmodel_hpctoolkit.names import Location, LocationSet, Measure, StoredMetric, declare
from cpmodel_hpctoolkit.reduce import Column, clear, reduce_processes

_PRINTED = 1e-4
"""Relative rounding: sums in XML have six digits, and their terms were rounded before."""


class Exclusive(NamedTuple):
    """Values of one location, or of all together.

    Attributes
    ----------
    column : the values
    noise : maximum size of negative values by rounding, one per value or one for all
    total : inclusive value of the whole program
    """

    column: Column
    noise: FloatArray | float
    total: float


class Database(ABC):
    """An open database.

    Attributes
    ----------
    path : its directory
    detail : what the call tree has besides functions
    metadata : creator, version and title
    is_mean : whether the values are those of a typical process instead of sums
    places : locations; if the database has only sums over them, at most one
    measures : metrics; parts from accelerator streams are metrics of their own
    """

    places: LocationSet
    measures: Sequence[Measure]

    def __init__(self, path: Path, detail: Detail, version: str, title: str) -> None:
        self.path, self.detail, self.is_mean = path, detail, False
        known = {"creator": "HPCToolkit", "database version": version, "program": title}
        self.metadata = {key: value for key, value in known.items() if value}

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """Return the call paths with their contexts; a `cached_property`."""

    def detailed(self, detail: Detail) -> Self:
        """Return the same database with another call tree."""
        other = copy(self)
        other.detail = detail
        other.__dict__.pop("layout", None)
        return other

    def scales(self) -> Mapping[int, Database]:
        """Return the database of each number of processes, if it has runs of several."""
        return {}

    @abstractmethod
    def of_location(self, measure: Measure, location: Location) -> Exclusive:
        """Return the values of one location."""

    @abstractmethod
    def of_all(self, measure: Measure) -> Exclusive | None:
        """Return the sum over all locations; None = not stored."""

    @abstractmethod
    def stored_total(self, measure: Measure) -> float | None:
        """Return the value of the whole program over all locations; None = not stored."""


class HpctoolkitProfile:
    """An opened database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.stored = declare(database.measures)
        self._add_sums_of_threads()
        self._notices = Notices(str(database.path))
        streams = sum(len(process) for process in database.places.streams)
        if streams and any(stored.measure.on_gpu for stored in self.stored.values()):
            note_streams(self._notices, streams)

    def _add_sums_of_threads(self) -> None:
        """Add the sums over threads of the time that decides which thread is longest."""
        name = run_time_metric(self.metrics)
        if name and any(len(threads) > 1 for threads in self.database.places.threads):
            declared = self.stored[name].declared.of_all_threads()
            self.stored[declared.metric.name] = replace(self.stored[name], declared=declared)

    def with_call_sites(self) -> HpctoolkitProfile:
        """Return the same profile, in which calls from several lines are several call paths."""
        detail = replace(self.database.detail, call_sites=True)
        return profile_of(self.database.detailed(detail))

    @property
    def call_tree(self) -> CallTree:
        """Return the call paths: functions, without the loops and lines between them."""
        return self.database.layout.tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Return all metrics of the database, the run time first."""
        return [stored.declared for stored in self.stored.values()]

    @property
    def extent(self) -> Extent:
        """Return the number of processes, threads and nodes, without accelerator streams."""
        return self.database.places.extent

    @property
    def metadata(self) -> Mapping[str, str]:
        """Return the creator, version and title of the database."""
        return self.database.metadata

    def findings(self) -> Sequence[Finding]:
        """Return the findings of opening the database and of all reads until now."""
        return self._notices.findings()

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        Sums and means of counts use the stored sum over all locations. Other statistics, and
        durations, read one location after the other.

        Raises
        ------
        KeyError
            If the metric does not exist.
        InputError
            If a file cannot be read.
        """
        stored = self.stored[metric]
        if stored.declared.status is MetricStatus.ABSENT:
            return self._nothing(over_locations)
        noticed = Noticed()
        found = self._reduced(stored, over_locations, noticed)
        note_invalid(self._notices, metric, noticed, self.call_tree)
        # Imbalance is a ratio, so it has no unit to convert.
        scale = 1.0 if over_locations is Reduction.IMBALANCE else stored.scale
        if not np.isnan(found.run_time):
            note_others(self._notices, metric, noticed, self.call_tree, found.run_time)
        run_time = found.run_time * stored.scale
        if stored.measure.on_gpu:
            run_time = float("nan")
        return Reduced(found.exclusive * scale, found.total * scale, found.imbalance, run_time)

    def sums_of_threads(self, metric: str, group: IntArray, groups: int) -> ThreadSums:
        """Return sums of exclusive values over groups of call paths, for each thread.

        One location after the other is read. A metric of accelerators has no threads.

        Raises
        ------
        KeyError
            If the metric does not exist.
        InputError
            If a file cannot be read.
        DataError
            If values of single threads are not stored.
        """
        stored = self.stored[metric]
        processes = self.database.places.threads
        if stored.measure.on_gpu:
            raise no_threads(metric)
        if not processes:
            raise DataError(
                "it has no values of single threads",
                hint="give hpcprof-mpi the option --metric-db yes, or use a current hpcprof",
            )
        process = np.repeat(np.arange(len(processes)), [len(threads) for threads in processes])
        sums = np.zeros((groups, len(process)))
        if stored.declared.status is MetricStatus.ABSENT:
            return ThreadSums(sums, process)
        known, noticed = group >= 0, Noticed()
        for column, location in enumerate(place for threads in processes for place in threads):
            found = self.database.of_location(stored.measure, location)
            clear(found.column, found.noise, noticed)
            values = found.column.of_all(len(group))
            sums[:, column] = np.bincount(group[known], np.nan_to_num(values[known]), groups)
        note_invalid(self._notices, metric, noticed, self.call_tree)
        sums *= stored.scale
        return ThreadSums(sums, process)

    def line_costs(self, metric: str, over_locations: Reduction) -> LineCosts:
        """Return the exclusive values of the lines of each call path.

        Raises
        ------
        KeyError
            If the metric does not exist.
        InputError
            If a file cannot be read.
        """
        finer = self.database.detailed(replace(self.database.detail, lines=True))
        tree = finer.layout.tree
        row = np.full(len(tree), -1, np.intp)
        row[finer.layout.row] = self.database.layout.row
        is_line = np.array([region.role == STATEMENT for region in tree.regions])[tree.region]
        values = profile_of(finer).reduce(metric, over_locations).exclusive
        chosen = np.flatnonzero(is_line & (values != 0))
        return LineCosts(
            row[chosen],
            tree.region[chosen],
            tree.site[chosen],
            tuple(region.file for region in tree.regions),
            values[chosen],
        )

    def placement(self) -> Placement:
        """Return the ranks in the database, and the identifiers of compute nodes."""
        first = [threads[0] for threads in self.database.places.threads]
        ranks = np.array([place.rank for place in first], np.intp)
        return Placement.stated(ranks, tuple(place.node for place in first))

    def _nothing(self, reduction: Reduction) -> Reduced:
        value = np.nan if reduction is Reduction.IMBALANCE else 0.0
        return Reduced(np.full(len(self.call_tree), value), value)

    def _reduced(self, stored: StoredMetric, reduction: Reduction, noticed: Noticed) -> Reduced:
        measure, places = stored.measure, self.database.places
        processes = places.streams if measure.on_gpu else places.threads
        if self._is_sum(stored, reduction):
            of_all = self.database.of_all(measure)
            if of_all is not None:
                return self._from_sum(of_all, reduction, noticed)
        if not processes:
            return self._nothing(reduction)

        whole: dict[Location, float] = {}
        lost = 0

        def read(location: Location) -> tuple[Column, float]:
            found = self.database.of_location(measure, location)
            nonlocal lost
            lost += abs(float(found.column.values.sum()) - found.total) > _PRINTED * abs(
                found.total
            )
            clear(found.column, found.noise, noticed)
            whole[location] = found.total
            return found.column, found.total

        paths = len(self.call_tree)
        longest = self._longest if stored.fold is Fold.LONGEST else ()
        has_others = bool(longest) and places.extent.threads > 1
        reduced = reduce_processes(
            *(processes, read, paths, stored.fold, reduction, longest),
            noticed if has_others else None,
        )
        if lost:
            message = f"{measure.name}: in {lost} locations call paths do not add up to the total"
            self._notices.note("CPM114", message, lost, about=measure.name)
        if not places.streams:
            self._require_all(measure, sum(whole.values()))
        return reduced

    @cached_property
    def _longest(self) -> Sequence[int]:
        """Number of the longest thread of each process, in the order of its threads."""
        processes = self.database.places.threads
        number = np.repeat(np.arange(len(processes)), [len(threads) for threads in processes])
        columns = with_longest_threads(
            Columns.of(number), self, self.metrics, len(self.call_tree)
        ).longest
        if columns is None:
            return [0] * len(processes)
        begins = np.searchsorted(number, np.arange(len(processes)))
        return [int(thread) for thread in columns - begins]

    def _require_all(self, measure: Measure, found: float) -> None:
        """Raise an error if values of locations do not add up to the stored sum."""
        stored = self.database.stored_total(measure)
        if stored is not None and abs(found - stored) > _PRINTED * abs(stored):
            raise InputError(
                f"{self.database.path}: {measure.name} of all processes and threads is {found:g}, "
                f"stored as their sum is {stored:g}",
                hint=COPY_IT_AGAIN,
            )

    def _is_sum(self, stored: StoredMetric, reduction: Reduction) -> bool:
        """Return whether a statistic follows from the sum over all locations."""
        name = stored.measure.name
        if any(o.measure.on_gpu and o.measure.name == name for o in self.stored.values()):
            return False
        # The run time is the one of the slowest process, which requires reading the locations.
        summed = stored.fold is Fold.SUM or not self.database.places.threads
        return reduction in {Reduction.SUM, Reduction.MEAN} and summed

    def _from_sum(self, of_all: Exclusive, reduction: Reduction, noticed: Noticed) -> Reduced:
        clear(of_all.column, of_all.noise, noticed)
        values = of_all.column.of_all(len(self.call_tree))
        if reduction is Reduction.SUM:
            return Reduced(values, of_all.total)
        processes = max(1, self.extent.processes)
        return Reduced(values / processes, of_all.total / processes)


class SummedProfile(HpctoolkitProfile):
    """A database that has only sums over all processes and threads, or a typical process."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        if not database.is_mean:
            self._notices.note("CPM126", "values of single processes are not stored")

    @property
    def reductions(self) -> Sequence[Reduction]:
        """Return what is stored: the mean, or sum, with mean for a known number of processes."""
        if self.database.is_mean:
            return (Reduction.MEAN,)
        mean = (Reduction.MEAN,) if self.extent.processes else ()
        return (*mean, Reduction.SUM)

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        Raises
        ------
        KeyError
            If the metric does not exist.
        ValueError
            If `over_locations` is not in `reductions`.
        """
        is_mean = self.database.is_mean
        if over_locations not in self.reductions:
            stored = "means" if is_mean else "sums"
            raise ValueError(f"{over_locations} cannot be computed from {stored} over processes")
        # The value of a typical process is its own sum.
        return super().reduce(metric, Reduction.SUM if is_mean else over_locations)


def profile_of(database: Database) -> HpctoolkitProfile:
    """Return the profile of an open database."""
    if database.is_mean or not database.places.threads:
        return SummedProfile(database)
    return HpctoolkitProfile(database)
