"""A pass over the stored rows of one metric, which several workers may share."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from callpath_modeler.profile.schema import MetricStatus, Reduction
from callpath_modeler.readers.base import Workers
from callpath_modeler.readers.reductions import BlockSink, Fold, PartOfReduction, Reducer
from cpmodel_scorep import stream
from cpmodel_scorep.definitions import MetricKind
from cpmodel_scorep.metrics import StoredMetric
from cpmodel_scorep.rows import Section, reordered, sections_of, take

if TYPE_CHECKING:
    from cpmodel_scorep.profile import CubeProfile

OpenAgain = Callable[[Path], AbstractContextManager["CubeProfile"]]
"""Function that opens a file, and can be pickled."""


class MetricPass:
    """A pass over the stored rows of a metric. It keeps no state, so threads may share it.

    Attributes
    ----------
    sections : all sections of the rows, in order
    """

    def __init__(self, profile: CubeProfile, stored: StoredMetric) -> None:
        rows = profile.rows(stored.declared.metric.name)
        order = profile.layout.enumeration(stored.order)
        self._profile, self._stored = profile, stored
        self._families: stream.Families | None = None
        if stored.additive and stored.kind is MetricKind.INCLUSIVE:
            if stored.order is not MetricKind.INCLUSIVE:
                by_family = profile.layout.enumeration(MetricKind.INCLUSIVE)
                rows, order = reordered(rows, order, by_family), by_family
            self._families = stream.Families.of(rows, profile.layout, order)
        self._rows = rows
        self._place = profile.layout.rows[order[rows.numbers]]
        self._visits = _visits(profile) if stored.fold is Fold.MIN and not stored.additive else None
        self.sections = sections_of(rows, self._families.begins if self._families else None)

    def reduce_to(self, reducer: Reducer) -> None:
        """Reduce all rows in this thread."""
        for section in self.sections:
            self._reduce_section(reducer, section)
            reducer.end_section()

    def add_to(self, sink: BlockSink) -> None:
        """Add all exclusive values of an additive metric to `sink`, as one section."""
        self._add_section(sink, (0, len(self._place)))

    def share(
        self, reducer: Reducer, reduction: Reduction, workers: Workers, open_again: OpenAgain
    ) -> None:
        """Reduce all rows in parts, which workers do."""
        count = min(workers.parts, len(self.sections))
        bounds = np.linspace(0, len(self.sections), count + 1).astype(int).tolist()
        parts = [self.sections[a:b] for a, b in pairwise(bounds)]
        for part in workers.each(SharedPass(self, reduction, open_again), parts):
            reducer.join(part)

    def part(self, sections: Sequence[Section], reduction: Reduction) -> PartOfReduction:
        """Return the reduction of some neighbouring sections."""
        reducer = self._profile.reducer(self._stored, reduction)
        totals: list[FloatArray] = []
        for section in sections:
            self._reduce_section(reducer, section)
            total = reducer.end_section()
            if total is not None:
                totals.append(total)
        return reducer.part(totals)

    def reopened_by(self, open_again: OpenAgain) -> tuple[OpenAgain, Path, str]:
        """Return what a process on another node needs to make this pass.

        Raises
        ------
        pickle.PicklingError
            If the process could not read parts of the file without unpacking all of it.
        """
        if not self._profile.container.is_direct:
            raise pickle.PicklingError("the file is read as a whole")
        return open_again, self._profile.container.path, self._stored.declared.metric.name

    def _reduce_section(self, reducer: Reducer, section: Section) -> None:
        if self._stored.additive:
            self._add_section(reducer, section)
            return
        for at, block in stream.stored(self._rows, self._place, section):
            reducer.mark_missing(block)
            if self._stored.fold is Fold.MIN:
                # The minimum over no visits is stored as zero.
                reached = block if self._visits is None else self._visits(at)
                np.copyto(block, np.nan, where=reached == 0)
            reducer.add_raw(at, block)

    def _add_section(self, sink: BlockSink, section: Section) -> None:
        if self._families is None:
            stream.reduce_stored(self._rows, self._place, sink, section)
        else:
            stream.reduce_families(self._rows, self._families, sink, section)


class SharedPass:
    """A part of a pass, made by a thread, or by a process that opens the file again."""

    def __init__(self, whole: MetricPass, reduction: Reduction, open_again: OpenAgain) -> None:
        self._whole, self._reduction, self._open_again = whole, reduction, open_again

    def __call__(self, sections: Sequence[Section]) -> PartOfReduction:
        """Return the reduction of some neighbouring sections."""
        return self._whole.part(sections, self._reduction)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path of the file instead of the file."""
        return partial, (_part, *self._whole.reopened_by(self._open_again), self._reduction)


def _part(
    open_again: OpenAgain,
    path: Path,
    metric: str,
    reduction: Reduction,
    sections: Sequence[Section],
) -> PartOfReduction:
    """Return the reduction of some sections of a file that another process has open, too."""
    with open_again(path) as profile:
        return MetricPass(profile, profile.stored[metric]).part(sections, reduction)


def _visits(profile: CubeProfile) -> Callable[[Int64Array], FloatArray] | None:
    """Return a function for the visits of call paths, [k x columns]; None = unknown."""
    visits = profile.stored.get("visits")
    if visits is None or visits.status is not MetricStatus.DATA or not visits.additive:
        return None
    rows = profile.rows("visits")
    order = profile.layout.enumeration(visits.order)
    stored_at = np.full(len(profile.call_tree) + 1, -1, np.intp)
    stored_at[profile.layout.rows[order[rows.numbers]]] = np.arange(len(rows.numbers))

    def of(at: Int64Array) -> FloatArray:
        place = stored_at[at]
        known = np.flatnonzero(place >= 0)
        known = known[np.argsort(place[known])]
        if np.array_equal(known, np.arange(len(at))):
            return take(rows, place)
        found = np.zeros((len(at), rows.columns))
        found[known] = take(rows, place[known])
        return found

    return of
