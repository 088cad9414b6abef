"""Status, kind and units of the metrics that a profile declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.diagnostics import Notices
from callpath_modeler.printable import shortened
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import DeclaredMetric, Metric, MetricStatus, base_unit
from callpath_modeler.readers.base import CREATOR_OF_MODELS
from callpath_modeler.readers.reductions import Fold, Noticed
from callpath_modeler.readers.threads import note_invalid, note_streams
from cpmodel_scorep.container import Container, Member
from cpmodel_scorep.definitions import Definitions, MetricDefinition, MetricKind
from cpmodel_scorep.rows import InMemoryRows, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cpmodel_scorep.definitions import Locations
    from cpmodel_scorep.tree import TreeLayout


_EMPTY_INDEX, _EMPTY_DATA = 22, 11

_NEVER_ZERO = frozenset({"time", "visits"})
"""Metrics that are positive in every run: if all values are zero, the data were lost."""


_DURATIONS = frozenset(
    {"time", "min_time", "max_time", "wall_time", "walltime", "runtime", "wall clock time"}
)
_DOUBLE = np.dtype("f8")
_REAL = frozenset({"", "DOUBLE", "FLOAT", "MINDOUBLE", "MAXDOUBLE", "TAU_ATOMIC"})
"""Types of times in seconds. Integers without a unit may also be nanoseconds."""


class StoredMetric(Struct, frozen=True):
    """A metric and the layout of its values in the file.

    Attributes
    ----------
    declared : metric as users see it
    number : id
    order : order of the rows
    kind : meaning of the values
    dtype : stored type
    fold : reduction from threads to a process
    scale : factor from stored values to base units
    is_counter : whether values are unsigned 64-bit counters, which may have wrapped below zero
    members : index and data; () = no values in members
    on_gpu : whether the values are the ones of GPU streams
    """

    declared: DeclaredMetric
    number: int
    order: MetricKind
    kind: MetricKind
    dtype: np.dtype[np.generic]
    fold: Fold
    scale: float
    is_counter: bool
    members: tuple[Member, ...]
    on_gpu: bool = False

    def of_streams(self) -> StoredMetric:
        """Return the metric of the values on GPU streams, which are in the same rows."""
        fold = Fold.SUM if self.additive else self.fold
        declared = self.declared.on_gpu_streams()
        return structs.replace(self, declared=declared, fold=fold, on_gpu=True)

    @property
    def status(self) -> MetricStatus:
        """Return what the profile contains of the metric."""
        return self.declared.status

    @property
    def additive(self) -> bool:
        """Return whether values can be summed along the call tree."""
        return self.declared.metric.additive


def declare(
    definitions: Definitions,
    container: Container,
    held: Mapping[int, InMemoryRows] | None,
    notices: Notices,
) -> dict[str, StoredMetric]:
    """Return every metric by name; if two have one name, the first."""
    stored: dict[str, StoredMetric] = {}
    for definition in definitions.metrics:
        if definition.name in stored:
            message = f"metric {definition.name} is defined more than once"
            notices.note("CPM118", message, about=definition.name)
            continue
        stored[definition.name] = _declare(
            definition, container, held, are_threads=definitions.locations.are_threads
        )
    return stored


def _declare(
    definition: MetricDefinition,
    container: Container,
    held: Mapping[int, InMemoryRows] | None,
    *,
    are_threads: bool,
) -> StoredMetric:
    dtype_name = definition.dtype.upper()
    # Values stored as text may have any type. CubeLib reads values without a type as double.
    is_double = held is not None or not definition.dtype
    dtype = type_of(definition.dtype) or (_DOUBLE if is_double else None)
    kind = definition.kind
    is_assumed = _lacks_unit(definition)
    unit, scale = ("s", 1.0) if is_assumed else base_unit(definition.unit)
    if is_ticks(definition, are_threads=are_threads):
        # These values are durations of whole visits, in ticks of an unknown clock. The declared
        # unit and kind are wrong.
        kind, unit, scale = MetricKind.INCLUSIVE, "ticks", 1.0
    extreme = {"MINDOUBLE": Fold.MIN, "MAXDOUBLE": Fold.MAX}.get(dtype_name)
    status, note, members = _status(definition, dtype, container, held)
    additive = extreme is None and definition.kind is not MetricKind.SIMPLE
    metric = Metric(definition.name, unit, definition.description, additive)
    return StoredMetric(
        DeclaredMetric(metric, status, note, unit_is_assumed=is_assumed and unit == "s"),
        definition.number,
        definition.kind,
        kind,
        _DOUBLE if dtype is None else dtype,
        extreme or (Fold.MAX if unit in {"s", "ticks"} else Fold.SUM),
        scale,
        dtype == np.dtype("u8"),
        members,
    )


def _lacks_unit(definition: MetricDefinition) -> bool:
    """Return whether a metric is a duration by its name and type, but has no unit."""
    is_real = definition.dtype.upper() in _REAL
    return not definition.unit and is_real and definition.name.lower() in _DURATIONS


def is_ticks(definition: MetricDefinition, *, are_threads: bool) -> bool:
    """Return whether a metric is the time of tuples over threads."""
    return (
        not are_threads and definition.dtype.upper() == "TAU_ATOMIC" and definition.name == "time"
    )


def _status(
    definition: MetricDefinition,
    dtype: np.dtype[np.generic] | None,
    container: Container,
    held: Mapping[int, InMemoryRows] | None,
) -> tuple[MetricStatus, str, tuple[Member, ...]]:
    if definition.kind is MetricKind.DERIVED:
        return MetricStatus.DERIVED, "the viewer computes it; no values are stored", ()
    if definition.void or dtype is None:
        note = f"values of type {definition.dtype or 'unknown'} are not numbers"
        return MetricStatus.UNSUPPORTED, "declared void" if definition.void else note, ()
    if held is not None:
        known = definition.number in held
        return (MetricStatus.DATA if known else MetricStatus.ABSENT), "", ()
    return _in_members(definition, container)


def _in_members(
    definition: MetricDefinition, container: Container
) -> tuple[MetricStatus, str, tuple[Member, ...]]:
    note = ""
    for prefix in ("ghost_", "") if definition.ghost else ("", "ghost_"):
        index = container.members.get(f"{prefix}{definition.number}.index")
        data = container.members.get(f"{prefix}{definition.number}.data")
        if index and data:
            return MetricStatus.DATA, "", (index, data)
        if index and index.size > _EMPTY_INDEX:
            note = "its data are missing in the file"
        elif data and data.size > _EMPTY_DATA:
            note = "its index is missing in the file"
    if not note and definition.name in _NEVER_ZERO:
        note = "its values are missing in the file"
    if note:
        return MetricStatus.UNSUPPORTED, note, ()
    return MetricStatus.ABSENT, "never non-zero", ()


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
        is_counter = stored.is_counter and stored.kind.value != "INCLUSIVE"
        if is_counter and self._is_measured:
            self.of_counter(stored, noticed.negative)
        # Lost costs of superlinear call paths are below zero.
        may_be_negative = is_counter or not self._is_measured
        kept = replace(noticed, negative=0) if may_be_negative else noticed
        note_invalid(self, stored.declared.metric.name, kept, tree)
