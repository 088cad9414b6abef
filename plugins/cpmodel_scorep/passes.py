"""A pass over the stored rows of one metric, which several threads may share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from callpath_modeler.readers.reductions import BlockSink, Fold, PartOfReduction, Reducer
from cpmodel_scorep import stream
from cpmodel_scorep.definitions import MetricKind
from cpmodel_scorep.metrics import StoredMetric
from cpmodel_scorep.rows import Section, StoredRows, reordered, sections_of, take
from cpmodel_scorep.tree import TreeLayout

Visits = Callable[[Int64Array], FloatArray]
"""Function that returns the visits of call paths [k], by row in the call tree, [k x columns]."""


class MetricPass:
    """A pass over the stored rows of a metric. It keeps no state, so threads may share it.

    Attributes
    ----------
    stored : the metric
    sections : all sections of the rows, in order
    """

    def __init__(
        self, rows: StoredRows, layout: TreeLayout, stored: StoredMetric, visits: Visits | None
    ) -> None:
        order = layout.enumeration(stored.order)
        self.stored, self._visits = stored, visits
        self._families: stream.Families | None = None
        if stored.additive and stored.kind is MetricKind.INCLUSIVE:
            if stored.order is not MetricKind.INCLUSIVE:
                by_family = layout.enumeration(MetricKind.INCLUSIVE)
                rows, order = reordered(rows, order, by_family), by_family
            self._families = stream.Families.of(rows, layout, order)
            self._place = self._families.place
            self.sections = sections_of(rows, self._families.begins)
        else:
            self._place = layout.rows[order[rows.numbers]]
            self.sections = sections_of(rows)
        self._rows = rows

    def reduce_all(self, reducer: Reducer) -> None:
        """Reduce all rows."""
        for section in self.sections:
            self._reduce(reducer, section)
            reducer.end_section()

    def add_all(self, sink: BlockSink) -> None:
        """Add all exclusive values of an additive metric to `sink`, as one section."""
        self._add(sink, (0, len(self._place)))

    def parts(self, count: int) -> list[list[Section]]:
        """Return all sections in at most `count` parts of neighbouring ones."""
        bounds = np.linspace(0, len(self.sections), min(count, len(self.sections)) + 1)
        return [self.sections[first:stop] for first, stop in pairwise(bounds.astype(int).tolist())]

    def part(self, sections: Sequence[Section], reducer: Reducer) -> PartOfReduction:
        """Return the reduction of neighbouring sections by an empty `reducer`."""
        totals: list[FloatArray] = []
        for section in sections:
            self._reduce(reducer, section)
            total = reducer.end_section()
            if total is not None:
                totals.append(total)
        return reducer.part(totals)

    def _reduce(self, reducer: Reducer, section: Section) -> None:
        if self.stored.additive:
            self._add(reducer, section)
            return
        for at, block in stream.stored(self._rows, self._place, section):
            reducer.mark_missing(block)
            if self.stored.fold is Fold.MIN:
                # The minimum over no visits is stored as zero.
                reached = block if self._visits is None else self._visits(at)
                np.copyto(block, np.nan, where=reached == 0)
            reducer.add_raw(at, block)

    def _add(self, sink: BlockSink, section: Section) -> None:
        if self._families is None:
            stream.reduce_stored(self._rows, self._place, sink, section)
        else:
            stream.reduce_families(self._rows, self._families, sink, section)


def visits_of(rows: StoredRows, layout: TreeLayout, order: Int64Array) -> Visits:
    """Return a function for the visits of call paths.

    Parameters
    ----------
    rows : stored rows of the visits
    order : defined call path of each row number, see `TreeLayout.enumeration`
    """
    stored_at = np.full(len(layout.tree) + 1, -1, np.intp)
    stored_at[layout.rows[order[rows.numbers]]] = np.arange(len(rows.numbers))

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
