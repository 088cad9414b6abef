"""Data quality findings of a Cube profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callpath_modeler.diagnostics import Notices
from callpath_modeler.printable import shortened
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import MetricStatus
from callpath_modeler.readers.base import CREATOR_OF_MODELS
from callpath_modeler.readers.noticed import Noticed
from callpath_modeler.readers.threads import note_streams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callpath_modeler.profile.schema import DeclaredMetric
    from cpmodel_scorep.container import Container
    from cpmodel_scorep.definitions import Definitions, Locations
    from cpmodel_scorep.metrics import StoredMetric
    from cpmodel_scorep.tree import TreeLayout


class ProfileNotices(Notices):
    """Collector of the findings of a Cube profile."""

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self._is_measured = True

    def of_definitions(
        self,
        container: Container,
        definitions: Definitions,
        layout: TreeLayout,
        metrics: Sequence[DeclaredMetric],
        *,
        repaired: bool,
    ) -> None:
        """Add findings about the definitions."""
        locations = definitions.locations
        if definitions.attributes.get("Creator", "").startswith(CREATOR_OF_MODELS):
            self._is_measured = False
            target = shortened(definitions.attributes.get("Target", "a target"))
            self.note("CPM180", f"models of {target}")
        if container.resynchronised:
            self.note("CPM124", "members are not where the headers say")
        if repaired:
            self.note("CPM111", "the definitions are not well-formed XML")
        self._of_locations(locations, metrics)
        if not locations.are_threads:
            names = ", ".join(sorted(locations.names)[:4])
            self.note("CPM108", f"the columns are named {names}")
        if layout.detached:
            self.note("CPM109", f"{layout.detached} call paths of tasks", layout.detached)
        regions = layout.tree.regions
        if any(region.name == "COLLAPSE" for region in regions):
            self.note("CPM106", "calls below the depth limit are merged into COLLAPSE")
        if definitions.attributes.get("CLUSTERING", "OFF").upper() in {"ON", "TRUE", "1"}:
            self.note("CPM120", "iterations are numbered by cluster")
        self._of_metrics(metrics)

    def _of_locations(self, locations: Locations, metrics: Sequence[DeclaredMetric]) -> None:
        streams = locations.streams
        owned = streams & (locations.process_of_streams >= 0)
        others = ~streams & (locations.process_of_threads < 0)
        has_metrics = any(metric.metric.is_on_gpu_streams for metric in metrics)
        note_streams(
            self,
            int(owned.sum()) if has_metrics else 0,
            unowned=int((streams & ~owned).sum()),
            others=int(others.sum()),
        )

    def _of_metrics(self, metrics: Sequence[DeclaredMetric]) -> None:
        unreadable = [
            metric.metric.name
            for metric in metrics
            if metric.status in {MetricStatus.DERIVED, MetricStatus.UNSUPPORTED}
        ]
        if unreadable:
            names = ", ".join(unreadable[:4]) + (", ..." if len(unreadable) > 4 else "")
            self.note("CPM107", names, len(unreadable))
        if any(metric.metric.unit == "ticks" for metric in metrics):
            self.note("CPM108", "time is in ticks of an unknown clock", about="time")

    def of_missing(self, stored: StoredMetric, rows: int) -> None:
        """Add a finding about rows that are in the index but not in the file."""
        name = stored.declared.metric.name
        self.note("CPM103", f"{name}: {rows} rows are cut off", rows, about=name)

    def of_counter(self, stored: StoredMetric, values: int) -> None:
        """Add a finding about values of an unsigned counter that are below zero."""
        if values:
            name = stored.declared.metric.name
            self.note("CPM104", f"{name}: {values} values", values, about=name)

    def of_values(self, stored: StoredMetric, noticed: Noticed, tree: CallTree) -> None:
        """Add findings about the values of a reduced metric."""
        name = stored.declared.metric.name
        if noticed.not_finite:
            count = noticed.not_finite
            self.note("CPM117", f"{name}: {count} values", count, about=name)
        # Lost costs of superlinear call paths are below zero.
        if not noticed.negative or not self._is_measured:
            return
        if stored.is_counter and stored.kind.value != "INCLUSIVE":
            self.of_counter(stored, noticed.negative)
            return
        path = tree.path(noticed.worst_row)
        message = f"{name}: {noticed.negative} values, the lowest {noticed.worst:.3g} in {path}"
        self.note("CPM105", message, noticed.negative, about=name)
