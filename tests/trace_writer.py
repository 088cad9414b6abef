"""Small OTF2 traces from lists of events.

An event is a tuple: the name of a method of `otf2.event_writer.EventWriter`, the time in ticks, and
the arguments. Regions are strings, communicators are `Comm`. `METRICS` is the class of all metrics,
`WINDOW` is memory shared by all processes, and `CONTEXT` is a sampled calling context. A
dictionary at the end has the attributes of the event by name.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Event = tuple[Any, ...]
METRICS, WINDOW, CONTEXT = object(), object(), object()


class Comm(str):
    """The name of a communicator; ``WORLD`` contains all processes."""

    __slots__ = ()


@dataclass(frozen=True)
class Thread:
    """The events of one location; `kind` is one of `otf2.LocationType`."""

    events: Sequence[Event]
    kind: str = "CPU_THREAD"


class Accelerator(int):
    """The number of the location group of an accelerator."""

    __slots__ = ()


@dataclass(frozen=True)
class Trace:
    """A trace.

    Attributes
    ----------
    processes : threads of each process; only the first thread uses MPI
    resolution : ticks per second
    communicators : ranks in the world, by name; None = a communicator of each single process
    grids : Cartesian topologies: size of each dimension, and whether it is periodic
    accelerators : streams of each location group of an accelerator, and the group that created it:
        the number of a process, `Accelerator` of an earlier one, or None = not stated
    metrics : (unit, mode, type, exponent) by name
    counted : True if the definitions contain the number of events of each location
    """

    processes: Sequence[Sequence[Thread]]
    resolution: int = 10**9
    communicators: Mapping[str, Sequence[int] | None] = field(default_factory=dict)
    metrics: Mapping[str, tuple[str, str, str, int]] = field(default_factory=dict)
    counted: bool = True
    grids: Sequence[Sequence[tuple[int, bool]]] = ()
    accelerators: Sequence[tuple[int | Accelerator | None, Sequence[Thread]]] = ()


def write_trace(folder: Path, trace: Trace) -> Path:
    """Write an archive into `folder`, which must not exist, and return its anchor."""
    import otf2

    # The default buffers are 5 MiB for each location, which take longer to clear than to fill.
    small = {"chunk_size_events": 1 << 18, "chunk_size_definitions": 1 << 18}
    with otf2.writer.open(str(folder), timer_resolution=trace.resolution, **small) as archive:
        writer = _Writer(archive, trace)
        groups = [*trace.processes, *(streams for _, streams in trace.accelerators)]
        for threads, locations in zip(groups, writer.locations, strict=True):
            for thread, location in zip(threads, locations, strict=True):
                writer.write(location, thread.events)
                if not trace.counted:
                    location._number_of_events_written = 0
    return folder / "traces.otf2"


def one_rank(*events: Event, **options: Any) -> Trace:
    """Return a trace of one process with one thread."""
    return Trace([[Thread(events)]], **options)


def random_events(seed: int, rank: int = 0, ranks: int = 1, count: int = 200) -> list[Event]:
    """Return nested calls with messages, collectives and pauses."""
    rng = random.Random(f"{seed} {rank}")
    events: list[Event] = [("program_begin", 1000, "app", ())]
    now, stack = 1000, [""]
    while len(events) < count or len(stack) > 1:
        now += rng.choice((0, 1, 7, 1000))
        kind = rng.random()
        if len(events) < count and (kind < 0.45 or len(stack) == 1):
            stack.append(f"f{rng.randrange(4)}")
            events.append(("enter", now, stack[-1]))
        elif kind < 0.8 or len(events) >= count:
            events.append(("leave", now, stack.pop()))
        elif kind < 0.85:
            peer, size = rng.randrange(ranks), rng.randrange(5000)
            method = rng.choice(("mpi_send", "mpi_recv"))
            events.append((method, now, peer, Comm("WORLD"), rng.randrange(9), size))
        elif kind < 0.9:
            events.append(("mpi_collective_begin", now))
            operation, root = rng.randrange(17), rng.randrange(ranks)
            sizes = rng.randrange(99), rng.randrange(99)
            events.append(("mpi_collective_end", now + 2, operation, Comm("WORLD"), root, *sizes))
            now += 2
        elif kind < 0.95:
            events += [("measurement_on_off", now, "OFF"), ("measurement_on_off", now + 30, "ON")]
            now += 30
        else:
            events.append(("buffer_flush", now, now + 50))
            now += 50
    return [*events, ("program_end", now + 1, 0)]


class _Writer:
    def __init__(self, archive: Any, trace: Trace) -> None:
        import otf2

        self._otf2, self._archive, self._definitions = otf2, archive, archive.definitions
        self._regions: dict[str, Any] = {}
        self._attributes: dict[str, Any] = {}
        self._location_groups: list[Any] = []
        self.locations = [self._process(n, t) for n, t in enumerate(trace.processes)]
        world = [threads[0] for threads in self.locations]
        for creator, streams in trace.accelerators:
            first = len(trace.processes) if isinstance(creator, Accelerator) else 0
            created_by = None if creator is None else self._location_groups[first + creator]
            self.locations.append(self._accelerator(streams, created_by))
        self._group("COMM_LOCATIONS", world)
        named = {"WORLD": range(len(world)), **trace.communicators}
        self._comms = {
            name: self._definitions.comm(
                name,
                self._group("COMM_SELF", ())
                if ranks is None
                else self._group("COMM_GROUP", [world[rank] for rank in ranks], name),
            )
            for name, ranks in named.items()
        }
        for number, grid in enumerate(trace.grids):
            periodicity = otf2.CartPeriodicity
            dimensions = [
                self._definitions.cart_dimension(
                    f"{number}.{k}",
                    size=size,
                    cart_periodicity=periodicity.TRUE if periodic else periodicity.FALSE,
                )
                for k, (size, periodic) in enumerate(grid)
            ]
            self._definitions.cart_topology(
                f"grid {number}", communicator=self._comms["WORLD"], dimensions=tuple(dimensions)
            )
        members = [self._metric(name, *about) for name, about in trace.metrics.items()]
        metrics = self._definitions.metric_class(tuple(members)) if members else None
        self._special = {
            METRICS: lambda: metrics,
            WINDOW: lambda: self._definitions.rma_win("window", self._comms["WORLD"]),
            CONTEXT: lambda: self._definitions.calling_context(
                self._region("sampled"), parent=None
            ),
        }

    def write(self, location: Any, events: Sequence[Event]) -> None:
        writer = self._archive.event_writer_from_location(location)
        for method, time, *arguments in events:
            known = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
            attributes = {self._attribute(name, x): x for name, x in known.items()}
            defined = [self._defined(method, a) for a in arguments]
            getattr(writer, method)(time, *defined, attributes=attributes or None)

    def _attribute(self, name: str, value: str | int) -> Any:
        kind = self._otf2.Type.STRING if isinstance(value, str) else self._otf2.Type.INT32
        if name not in self._attributes:
            self._attributes[name] = self._definitions.attribute(name, type=kind)
        return self._attributes[name]

    def _defined(self, method: str, argument: Any) -> Any:
        if method in {"enter", "leave"}:
            return self._region(argument)
        if isinstance(argument, Comm):
            return self._comms[argument]
        if method == "measurement_on_off":
            return getattr(self._otf2.MeasurementMode, argument)
        return self._special[argument]() if argument in (METRICS, WINDOW, CONTEXT) else argument

    def _region(self, name: str) -> Any:
        if name not in self._regions:
            paradigm = {"M": "MPI", "!": "OPENMP"}.get(name[:1], "COMPILER")
            self._regions[name] = self._definitions.region(
                name,
                name,
                source_file="a.c",
                begin_line_number=len(self._regions) + 1,
                paradigm=getattr(self._otf2.Paradigm, paradigm),
            )
        return self._regions[name]

    def _process(self, number: int, threads: Sequence[Thread]) -> list[Any]:
        node = self._definitions.system_tree_node(f"n{number // 2}", "node")
        group = self._definitions.location_group(f"MPI Rank {number}", system_tree_parent=node)
        return self._in_group(group, threads)

    def _accelerator(self, streams: Sequence[Thread], creator: Any) -> list[Any]:
        group = self._definitions.location_group(
            f"CUDA Context {len(self._location_groups)}",
            location_group_type=self._otf2.LocationGroupType.ACCELERATOR,
            system_tree_parent=self._definitions.system_tree_node("gpu", "device"),
            creating_location_group=creator,
        )
        return self._in_group(group, streams)

    def _in_group(self, group: Any, threads: Sequence[Thread]) -> list[Any]:
        self._location_groups.append(group)
        number = len(self._location_groups) - 1
        return [
            self._definitions.location(
                f"{number}.{k}", getattr(self._otf2.LocationType, thread.kind), group=group
            )
            for k, thread in enumerate(threads)
        ]

    def _group(self, kind: str, members: Sequence[Any], name: str = "") -> Any:
        return self._definitions.group(
            name,
            getattr(self._otf2.GroupType, kind),
            self._otf2.Paradigm.MPI,
            members=tuple(members),
        )

    def _metric(self, name: str, unit: str, mode: str, kind: str, exponent: int) -> Any:
        return self._definitions.metric_member(
            name,
            metric_mode=getattr(self._otf2.MetricMode, mode),
            value_type=getattr(self._otf2.Type, kind),
            exponent=exponent,
            unit=unit,
        )
