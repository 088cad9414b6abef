"""What a trace defines: locations, regions, communicators, metrics; references resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.schema import PROGRAM, Region

UNDEFINED = 0xFFFFFFFF
PROGRAM_REGION = UNDEFINED - 1
"""The reference of the program itself, entered by ProgramBegin and left by ProgramEnd."""

UNRESOLVED = -1
"""The world rank of a partner that the definitions do not tell."""

_PROCESS, _CPU_THREAD, _METRIC_LOCATION = 1, 1, 3
_COMM_LOCATIONS, _COMM_SELF = 4, 6
_MPI = 4

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
    reference : its number in the trace, which also names its file
    name : as defined
    kind : 1 thread of a CPU, 2 stream of an accelerator, 3 place for metrics
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
    """Locations that share memory: a process, if `kind` is 1; `node` is a reference."""

    name: str
    kind: int
    node: int


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Members of a communicator; what they are depends on `kind`."""

    kind: int
    paradigm: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Communicator:
    """A communicator; `remote` is the other group of one between groups, or None."""

    name: str
    group: int
    remote: int | None = None


@dataclass(frozen=True, slots=True)
class MetricMember:
    """One quantity of a metric class.

    Attributes
    ----------
    mode : how values relate to time, as in the format
    type : stored type, as in the format
    scale : what to multiply stored values with to get `unit`
    """

    name: str
    description: str
    mode: int
    type: int
    scale: float
    unit: str


@dataclass(slots=True)
class Raw:
    """Definitions as they are read, references into each other and all.

    Attributes
    ----------
    strings : text by reference
    clock : ticks per second, global offset, length; () if not defined
    nodes : (name, class) by reference, as references of strings
    regions : (name, canonical name, role, paradigm, file, first line) by reference
    groups, location_groups, locations, comms, members, classes : see `TraceDefinitions`, with
        references in place of texts
    """

    strings: dict[int, str] = field(default_factory=dict)
    clock: tuple[int, ...] = ()
    nodes: dict[int, tuple[int, int]] = field(default_factory=dict)
    regions: dict[int, tuple[int, int, int, int, int, int]] = field(default_factory=dict)
    groups: dict[int, ProcessGroup] = field(default_factory=dict)
    location_groups: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    locations: dict[int, tuple[int, int, int, int]] = field(default_factory=dict)
    comms: dict[int, tuple[int, int, int | None]] = field(default_factory=dict)
    members: dict[int, tuple[int, int, int, int, int, int, int]] = field(default_factory=dict)
    classes: dict[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class TraceDefinitions:
    """What a trace defines, by reference.

    Attributes
    ----------
    ticks_per_second : resolution of all times
    strings : texts by reference
    locations : in order of their references
    location_groups, regions, groups, comms, metric_classes : by reference
    node_classes : class of each node of the system tree, such as ``"node"``, by reference
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

    def is_thread(self, location: Location) -> bool:
        """Tell whether `location` is a CPU thread of a process."""
        group = self.location_groups.get(location.group)
        is_process = group is None or group.kind in {0, _PROCESS}
        return location.kind in {0, _CPU_THREAD} and is_process

    def is_accelerator(self, location: Location) -> bool:
        """Tell whether `location` ran something that is no CPU thread."""
        return not self.is_thread(location) and location.kind != _METRIC_LOCATION

    @cached_property
    def ranks(self) -> Mapping[int, int]:
        """MPI rank in the world by reference of the location."""
        world = self._world
        return {location: rank for rank, location in reversed(list(enumerate(world)))}

    def world_ranks(self, comm: int, location: int) -> NDArray[np.int64]:
        """Return the world rank of each partner of `location` in a communicator.

        Parameters
        ----------
        comm : reference of the communicator
        location : reference of the location that communicates

        Returns
        -------
        [partners], `UNRESOLVED` where the definitions do not tell
        """
        known = self.comms.get(comm)
        if known is None:
            return np.empty(0, np.int64)
        own = self.ranks.get(location, UNRESOLVED)
        members = self._members(known.group, own)
        if known.remote is None:
            return members
        # Between two groups, partners are those of the group that one is not in.
        return self._members(known.remote, own) if own in members else members

    @cached_property
    def _world(self) -> tuple[int, ...]:
        for group in self.groups.values():
            if group.kind == _COMM_LOCATIONS and group.paradigm == _MPI:
                return group.members
        return ()

    def _members(self, reference: int, own: int) -> NDArray[np.int64]:
        group = self.groups.get(reference)
        if group is None:
            return np.empty(0, np.int64)
        if group.kind == _COMM_SELF:
            return np.array([own], np.int64)
        members = np.array(group.members, np.uint64).view(np.int64)
        known = (members >= 0) & (members < len(self._world))
        return np.where(known, members, UNRESOLVED)


def resolve(raw: Raw) -> TraceDefinitions:
    """Return definitions with their texts.

    Raises
    ------
    ValueError
        If the clock or all locations are missing.
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
            k: LocationGroup(text.get(n, ""), kind, at)
            for k, (n, kind, at) in raw.location_groups.items()
        },
        {k: text.get(kind, "") for k, (_, kind) in raw.nodes.items()},
        _regions(raw),
        raw.groups,
        {k: Communicator(text.get(n, ""), own, other) for k, (n, own, other) in raw.comms.items()},
        _metric_classes(raw),
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
    regions[PROGRAM_REGION] = Region(PROGRAM, paradigm="measurement", role="artificial")
    return regions


def _metric_classes(raw: Raw) -> dict[int, tuple[MetricMember, ...]]:
    text = raw.strings
    members = {}
    for reference, (name, about, mode, kind, base, exponent, unit) in raw.members.items():
        # An exponent beyond these is no unit but a broken file, and would overflow.
        scale = float(10 if base else 2) ** max(-100, min(exponent, 100))
        label = text.get(name) or f"metric {reference}"
        members[reference] = MetricMember(
            label, text.get(about, ""), mode, kind, scale, text.get(unit, "")
        )
    nothing = MetricMember("", "", -1, 0, 1.0, "")
    return {k: tuple(members.get(m, nothing) for m in used) for k, used in raw.classes.items()}
