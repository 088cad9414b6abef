"""Definitions of a trace: locations, regions, communicators and metrics, with texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.profile.schema import PROGRAM, Region

UNDEFINED = 0xFFFFFFFF
PROGRAM_REGION = UNDEFINED - 1
"""Reference of the program itself, which ProgramBegin enters and ProgramEnd leaves."""

KERNELS_REGION = UNDEFINED - 2
"""Reference of the caller of all calls on GPU streams, which have no caller in the trace."""

UNRESOLVED = -1
"""World rank of a partner that is not in the definitions."""

_PROCESS, _ACCELERATOR = 1, 2
"""Kinds of location groups."""
_CPU_THREAD, _GPU_STREAM, _METRIC_LOCATION = 1, 2, 3
"""Kinds of locations."""
_COMM_LOCATIONS, _COMM_SELF = 4, 6
_MPI = 4

POSTED_SOURCE = "posted_source"
_TEXT = 11
_SIGNED = {5: 8, 6: 16, 7: 32, 8: 64}
"""Types of attributes, and bits of signed numbers."""

_PARADIGMS = (
    "unknown", "user", "compiler", "openmp", "mpi", "cuda", "measurement", "pthread", "hmpp",
    "ompss", "hardware", "gaspi", "upc", "shmem", "winthread", "qtthread", "acethread",
    "tbbthread", "openacc", "opencl", "mtapi", "sampling", "none", "hip", "kokkos",
    "openmp target",
)  # fmt: skip
_ROLES = (
    "unknown", "function", "wrapper", "loop", "code", "parallel", "sections", "section",
    "workshare", "single", "single sblock", "master", "critical", "critical sblock", "atomic",
    "barrier", "implicit barrier", "flush", "ordered", "ordered sblock", "task", "task create",
    "task wait", "one2all", "all2one", "all2all", "other coll", "file io", "point2point", "rma",
    "data transfer", "artificial", "thread create", "thread wait", "task untied", "allocate",
    "deallocate", "reallocate", "file io metadata", "cancel", "kernel",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Location:
    """A stream of events.

    Attributes
    ----------
    reference : number in the trace, which is also the name of the file
    name : name as defined
    kind : 1 = CPU thread, 2 = GPU stream, 3 = location for metrics
    events : number of events as defined
    group : reference of the location group
    """

    reference: int
    name: str
    kind: int
    events: int
    group: int


@dataclass(frozen=True, slots=True)
class LocationGroup:
    """Locations that share memory.

    Attributes
    ----------
    name : name as defined
    kind : 1 = process, 2 = accelerator
    node : reference of the node of the system tree
    creator : reference of the group that created this one; `UNDEFINED` = not stated
    """

    name: str
    kind: int
    node: int
    creator: int = UNDEFINED


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Members of a communicator; their meaning depends on `kind`."""

    kind: int
    paradigm: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Communicator:
    """A communicator. `remote` is the remote group of an inter-communicator, or None."""

    name: str
    group: int
    remote: int | None = None


@dataclass(frozen=True, slots=True)
class MetricMember:
    """One quantity of a metric class.

    Attributes
    ----------
    mode : relation of values to time, as in the format
    type : stored type, as in the format
    scale : factor from stored values to `unit`
    """

    name: str
    description: str
    mode: int
    type: int
    scale: float
    unit: str


@dataclass(slots=True)
class Raw:
    """Definitions as stored, with references to each other.

    Attributes
    ----------
    strings : text by reference
    attributes : names of attributes by reference
    dimensions : sizes of Cartesian dimensions by reference, below zero for periodic ones
    grids : dimensions of Cartesian topologies by reference
    clock : ticks per second, global offset, length; () = not defined
    nodes : (name, class) by reference; both are references of strings
    regions : (name, canonical name, role, paradigm, file, first line) by reference
    groups, location_groups, locations, comms, members, classes : as in `TraceDefinitions`, with
        references instead of texts
    """

    strings: dict[int, str] = field(default_factory=dict)
    attributes: dict[int, int] = field(default_factory=dict)
    dimensions: dict[int, int] = field(default_factory=dict)
    grids: dict[int, tuple[int, ...]] = field(default_factory=dict)
    clock: tuple[int, ...] = ()
    nodes: dict[int, tuple[int, int]] = field(default_factory=dict)
    regions: dict[int, tuple[int, int, int, int, int, int]] = field(default_factory=dict)
    groups: dict[int, ProcessGroup] = field(default_factory=dict)
    location_groups: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    locations: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    comms: dict[int, tuple[int, int, int | None]] = field(default_factory=dict)
    members: dict[int, tuple[int, int, int, int, int, int, int]] = field(default_factory=dict)
    classes: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class TraceDefinitions:
    """TraceDefinitions of a trace, by reference.

    Attributes
    ----------
    ticks_per_second : resolution of all times, in 1/s
    strings : texts by reference
    locations : in order of their references
    location_groups, regions, groups, comms, metric_classes : by reference
    node_classes : class of each node of the system tree, such as ``"node"``, by reference
    node_names : name of each node of the system tree, by reference
    posted_source : the attribute for the source that a receive names; `UNRESOLVED` without it
    grids : sizes of Cartesian topologies, below zero for periodic dimensions
    """

    ticks_per_second: int
    strings: Mapping[int, str]
    locations: tuple[Location, ...]
    location_groups: Mapping[int, LocationGroup]
    node_classes: Mapping[int, str]
    regions: Mapping[int, Region]
    groups: Mapping[int, ProcessGroup]
    comms: Mapping[int, Communicator]
    metric_classes: Mapping[int, tuple[MetricMember, ...]]
    posted_source: int = UNRESOLVED
    grids: tuple[tuple[int, ...], ...] = ()
    node_names: Mapping[int, str] = field(default_factory=dict)

    def grid_within(self, processes: int) -> tuple[int, ...]:
        """Return the first Cartesian topology that so many processes fill, or a line of all."""
        fitting = (grid for grid in self.grids if abs(prod(grid)) <= processes)
        return next(fitting, (processes,))

    def is_thread(self, location: Location) -> bool:
        """Return whether `location` is a CPU thread of a process."""
        group = self.location_groups.get(location.group)
        is_process = group is None or group.kind in {0, _PROCESS}
        return location.kind in {0, _CPU_THREAD} and is_process

    def is_stream(self, location: Location) -> bool:
        """Return whether `location` is a GPU stream."""
        group = self.location_groups.get(location.group)
        on_accelerator = group is not None and group.kind == _ACCELERATOR
        return location.kind == _GPU_STREAM or (
            on_accelerator and location.kind != _METRIC_LOCATION
        )

    def is_unknown(self, location: Location) -> bool:
        """Return whether `location` is neither a thread, nor a stream, nor for metrics."""
        is_known = self.is_thread(location) or self.is_stream(location)
        return not is_known and location.kind != _METRIC_LOCATION

    @cached_property
    def process_of_streams(self) -> Mapping[Location, int]:
        """Return the location group of the process of each GPU stream; `UNRESOLVED` = unknown.

        A stream belongs to its own location group if this is a process. Otherwise, it belongs to
        the process that created the group. In a run of one process, all streams belong to it.
        """
        processes = {x.group for x in self.locations if self.is_thread(x)}
        only = next(iter(processes)) if len(processes) == 1 else UNRESOLVED
        found = {}
        for stream in filter(self.is_stream, self.locations):
            group = self.location_groups.get(stream.group)
            candidates = (stream.group, group.creator if group else UNRESOLVED)
            found[stream] = next((k for k in candidates if k in processes), only)
        return found

    @cached_property
    def ranks(self) -> Mapping[int, int]:
        """Return the MPI world rank by reference of the location."""
        world = self._world
        return {location: rank for rank, location in reversed(list(enumerate(world)))}

    def world_ranks(self, comm: int, location: int) -> Int64Array:
        """Return the world rank of each partner of `location` in a communicator.

        Parameters
        ----------
        comm : reference of the communicator
        location : reference of the location that communicates

        Returns
        -------
        [partners], `UNRESOLVED` = not in the definitions
        """
        known = self.comms.get(comm)
        if known is None:
            return np.empty(0, np.int64)
        own = self.ranks.get(location, UNRESOLVED)
        members = self._members(known.group, own)
        if known.remote is None:
            return members
        # In an inter-communicator, partners are the members of the group that does not contain the
        # location.
        return self._members(known.remote, own) if own in members else members

    @cached_property
    def _world(self) -> tuple[int, ...]:
        for group in self.groups.values():
            if group.kind == _COMM_LOCATIONS and group.paradigm == _MPI:
                return group.members
        return ()

    def _members(self, reference: int, own: int) -> Int64Array:
        group = self.groups.get(reference)
        if group is None:
            return np.empty(0, np.int64)
        if group.kind == _COMM_SELF:
            return np.array([own], np.int64)
        members = np.array(group.members, np.uint64).view(np.int64)
        known = (members >= 0) & (members < len(self._world))
        return np.where(known, members, UNRESOLVED)


def is_any_text(text: str) -> bool:
    """Tell whether a text means MPI_ANY_SOURCE."""
    return text.upper() in {"ANY", "MPI_ANY_SOURCE"}


def is_any_source(kind: int, bits: int, strings: Mapping[int, str]) -> bool:
    """Tell whether the attribute of a receive says MPI_ANY_SOURCE.

    Parameters
    ----------
    kind, bits : type and value, as in the format: a text, or a negative number
    """
    if kind == _TEXT:
        return is_any_text(strings.get(bits & UNDEFINED, ""))
    return kind in _SIGNED and bool(bits >> (_SIGNED[kind] - 1) & 1)


def resolve(raw: Raw) -> TraceDefinitions:
    """Return definitions with their texts.

    Raises
    ------
    ValueError
        If there is no clock, or no location.
    """
    if not raw.clock or not raw.clock[0]:
        raise ValueError("the resolution of the clock is not defined")
    if not raw.locations:
        raise ValueError("no locations are defined")
    text = raw.strings
    locations = tuple(
        Location(reference, text.get(name, ""), kind, events, group)
        for reference, (name, kind, events, group) in sorted(raw.locations.items())
    )
    return TraceDefinitions(
        raw.clock[0],
        text,
        locations,
        {
            k: LocationGroup(text.get(n, ""), kind, at, creator)
            for k, (n, kind, at, creator) in raw.location_groups.items()
        },
        {k: text.get(kind, "") for k, (_, kind) in raw.nodes.items()},
        _regions(raw),
        raw.groups,
        {k: Communicator(text.get(n, ""), own, other) for k, (n, own, other) in raw.comms.items()},
        _metric_classes(raw),
        next((k for k, n in raw.attributes.items() if text.get(n) == POSTED_SOURCE), UNRESOLVED),
        tuple(
            tuple(raw.dimensions[k] for k in grid)
            for grid in raw.grids.values()
            if grid and all(raw.dimensions.get(k) for k in grid)
        ),
        {k: text.get(name, "") for k, (name, _) in raw.nodes.items()},
    )


def _regions(raw: Raw) -> dict[int, Region]:
    text = raw.strings
    regions = {
        reference: Region(
            name=text.get(name) or f"region {reference}",
            mangled=text.get(canonical, "") if canonical != name else "",
            file=text.get(file, ""),
            line=line or -1,
            paradigm=_PARADIGMS[paradigm] if paradigm < len(_PARADIGMS) else "unknown",
            role=_ROLES[role] if role < len(_ROLES) else "unknown",
        )
        for reference, (name, canonical, role, paradigm, file, line) in raw.regions.items()
    }
    for reference, name in ((PROGRAM_REGION, PROGRAM), (KERNELS_REGION, "KERNELS")):
        regions[reference] = Region(name, paradigm="measurement", role="artificial")
    return regions


def _metric_classes(raw: Raw) -> dict[int, tuple[MetricMember, ...]]:
    text = raw.strings
    members = {}
    for reference, (name, about, mode, kind, base, exponent, unit) in raw.members.items():
        # A larger exponent would overflow. Only damaged files have one.
        scale = float(10 if base else 2) ** max(-100, min(exponent, 100))
        label = text.get(name) or f"metric {reference}"
        members[reference] = MetricMember(
            label, text.get(about, ""), mode, kind, scale, text.get(unit, "")
        )
    nothing = MetricMember("", "", -1, 0, 1.0, "")
    return {k: tuple(members.get(m, nothing) for m in used) for k, used in raw.classes.items()}
