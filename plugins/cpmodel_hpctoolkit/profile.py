"""One opened database as a profile, whatever its version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.diagnostics import Finding, Notices
from callpath_modeler.errors import InputError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import DeclaredMetric, Extent, MetricStatus, Reduction
from callpath_modeler.readers.base import Reduced
from callpath_modeler.readers.reductions import Fold, Noticed
from cpmodel_hpctoolkit.binary import COPY_IT_AGAIN
from cpmodel_hpctoolkit.locations import Location, LocationSet
from cpmodel_hpctoolkit.metrics import Measure, StoredMetric, declare
from cpmodel_hpctoolkit.reduce import clear, reduce_processes

_PRINTED = 1e-4
"""Sums in XML have six digits, and each location's value was rounded before it was added."""


class Exclusive(NamedTuple):
    """What one location, or all of them together, measured.

    Attributes
    ----------
    values : [call paths]
    noise : how far rounding may lead below zero, [call paths] or one for all
    total : inclusive value of the whole program
    """

    values: NDArray[np.float64]
    noise: NDArray[np.float64] | float
    total: float


class Database(Protocol):
    """An open database."""

    @property
    def path(self) -> Path:
        """Where it is."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """What it says of the run."""
        ...

    @property
    def tree(self) -> CallTree:
        """The call paths."""
        ...

    @property
    def places(self) -> LocationSet:
        """The locations; none where only sums over them are stored."""
        ...

    @property
    def measures(self) -> Sequence[Measure]:
        """The metrics."""
        ...

    def of_location(self, measure: Measure, location: Location) -> Exclusive:
        """Return what one location measured."""
        ...

    def of_all(self, measure: Measure) -> Exclusive | None:
        """Return the sum over all locations, or None if it is not stored."""
        ...

    def stored_total(self, measure: Measure) -> float | None:
        """Return the value of the whole program in all locations, or None if it is not stored."""
        ...


class HpctoolkitProfile:
    """One opened database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.stored = declare(database.measures)
        self._notices = Notices(str(database.path))
        streams = sum(len(process) for process in database.places.streams)
        if streams and any(stored.measure.on_gpu for stored in self.stored.values()):
            message = f"{streams} GPU streams, whose values are metrics of their own"
            self._notices.note("CPM110", message, streams)

    @property
    def call_tree(self) -> CallTree:
        """The call paths: functions, without the loops and lines between them."""
        return self.database.tree

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Every metric of the database, the run time first."""
        return [stored.declared for stored in self.stored.values()]

    @property
    def extent(self) -> Extent:
        """Processes, threads and nodes of the run; streams of accelerators do not count."""
        return self.database.places.extent

    @property
    def metadata(self) -> Mapping[str, str]:
        """Creator, version of the database, and title."""
        return self.database.metadata

    def findings(self) -> Sequence[Finding]:
        """Return what was noticed in opening the database and in all reads so far."""
        return self._notices.findings()

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        Sums and means of counts come from the stored sum over all locations. Everything else
        reads the locations one after another; durations do so for the run time as well.

        Raises
        ------
        KeyError
            If there is no such metric.
        InputError
            If a file turns out to be unreadable.
        """
        stored = self.stored[metric]
        if stored.declared.status is MetricStatus.ABSENT:
            return self._nothing(over_locations)
        noticed = Noticed()
        found = self._reduced(stored, over_locations, noticed)
        self._note(metric, noticed)
        # The imbalance is a ratio: it has no unit that could be converted.
        scale = 1.0 if over_locations is Reduction.IMBALANCE else stored.scale
        run_time = found.run_time * stored.scale
        if stored.measure.on_gpu:
            run_time = float("nan")
        return Reduced(found.exclusive * scale, found.total * scale, found.imbalance, run_time)

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

        whole: dict[Location, float] = {}
        lost = 0

        def read(location: Location) -> tuple[NDArray[np.float64], float]:
            found = self.database.of_location(measure, location)
            nonlocal lost
            lost += abs(float(found.values.sum()) - found.total) > _PRINTED * abs(found.total)
            clear(found.values, found.noise, noticed)
            whole[location] = found.total
            return found.values, found.total

        paths = len(self.call_tree)
        reduced = reduce_processes(processes, read, paths, stored.fold, reduction)
        if lost:
            message = f"{measure.name}: in {lost} locations call paths do not add up to the total"
            self._notices.note("CPM114", message, lost, about=measure.name)
        if not places.streams:
            self._require_all(measure, sum(whole.values()))
        return reduced

    def _require_all(self, measure: Measure, found: float) -> None:
        """Refuse values of locations that are not the stored sum: some of them were lost."""
        stored = self.database.stored_total(measure)
        if stored is not None and abs(found - stored) > _PRINTED * abs(stored):
            raise InputError(
                f"{self.database.path}: {measure.name} of all processes and threads is {found:g}, "
                f"stored as their sum is {stored:g}",
                hint=COPY_IT_AGAIN,
            )

    def _is_sum(self, stored: StoredMetric, reduction: Reduction) -> bool:
        """Tell whether a statistic follows from the sum over all locations."""
        name = stored.measure.name
        if any(o.measure.on_gpu and o.measure.name == name for o in self.stored.values()):
            return False
        # The slowest process is found only where locations are read: it tells the run time.
        summed = stored.fold is Fold.SUM or not self.database.places.threads
        return reduction in {Reduction.SUM, Reduction.MEAN} and summed

    def _from_sum(self, of_all: Exclusive, reduction: Reduction, noticed: Noticed) -> Reduced:
        clear(of_all.values, of_all.noise, noticed)
        if reduction is Reduction.SUM:
            return Reduced(of_all.values, of_all.total)
        processes = max(1, self.extent.processes)
        return Reduced(of_all.values / processes, of_all.total / processes)

    def _note(self, metric: str, noticed: Noticed) -> None:
        if noticed.not_finite:
            count = noticed.not_finite
            self._notices.note("CPM117", f"{metric}: {count} values", count, about=metric)
        if noticed.negative:
            path = self.call_tree.path(noticed.worst_row)
            message = (
                f"{metric}: {noticed.negative} values, the lowest {noticed.worst:.3g} in {path}"
            )
            self._notices.note("CPM105", message, noticed.negative, about=metric)


class SummedProfile(HpctoolkitProfile):
    """A database that holds nothing but sums over all processes and threads."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._notices.note("CPM126", "values of single processes are not stored")

    @property
    def reductions(self) -> Sequence[Reduction]:
        """Sums, and means where the number of processes is known."""
        mean = (Reduction.MEAN,) if self.extent.processes else ()
        return (*mean, Reduction.SUM)

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        Raises
        ------
        KeyError
            If there is no such metric.
        ValueError
            If `over_locations` is none of `reductions`.
        """
        if over_locations not in self.reductions:
            raise ValueError(f"no {over_locations} of sums over processes")
        return super().reduce(metric, over_locations)


def profile_of(database: Database) -> HpctoolkitProfile:
    """Return the profile of an open database."""
    return HpctoolkitProfile(database) if database.places.threads else SummedProfile(database)
