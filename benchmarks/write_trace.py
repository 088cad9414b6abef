"""Write an OTF2 trace of a synthetic program: calls, and messages between neighbours.

    python benchmarks/write_trace.py DIRECTORY --events 1000000 --locations 16

The package `otf2` writes definitions. Events are passed directly to its library, which takes
seconds instead of half a minute.
"""

from __future__ import annotations

import argparse
import ctypes
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import otf2
from _otf2.Config import conf

_DEPTH = 6
_CALLEES = 4
"""Callees of a function; there are at most _CALLEES to the power of _DEPTH call paths."""


def main() -> None:
    """Write the trace of the command line."""
    told = asked(__doc__)
    with otf2.writer.open(str(told.directory), timer_resolution=10**9) as archive:
        regions, send = _define_regions(archive.definitions)
        locations = define_processes(archive.definitions, told.locations)
        for rank, location in enumerate(locations):
            handle = archive.event_writer_from_location(location).handle
            share = told.events // told.locations
            written = _write(handle, rank, told.locations, share, regions, send)
            location._number_of_events_written = written  # noqa: SLF001


def asked(what: str | None) -> argparse.Namespace:
    """Return the place and the size of the trace from the command line."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000, help="of all locations together")
    parser.add_argument("--locations", type=int, default=16)
    return parser.parse_args()


def _define_regions(definitions: Any) -> tuple[list[int], int]:
    compiler, mpi = otf2.Paradigm.COMPILER, otf2.Paradigm.MPI
    names = [f"function_{k}" for k in range(1 + _DEPTH * _CALLEES)]
    regions = [definitions.region(name, name, paradigm=compiler)._ref for name in names]  # noqa: SLF001
    return regions, definitions.region("MPI_Send", "MPI_Send", paradigm=mpi)._ref  # noqa: SLF001


def define_processes(definitions: Any, count: int) -> list[Any]:
    """Define one location for each process, and the communicator of all."""
    node = definitions.system_tree_node("node", "node")
    locations = []
    for rank in range(count):
        group = definitions.location_group(f"MPI Rank {rank}", system_tree_parent=node)
        locations.append(definitions.location("Master thread", group=group))
    kinds = otf2.GroupType.COMM_LOCATIONS, otf2.GroupType.COMM_GROUP
    for name, kind in zip(("all", "world"), kinds, strict=True):
        group = definitions.group(name, kind, otf2.Paradigm.MPI, members=tuple(locations))
    definitions.comm("MPI_COMM_WORLD", group)
    return locations


def function(name: str, *arguments: Any) -> Callable[..., int]:
    """Return the library's function for an event; `arguments` are types after the time."""
    function = conf.lib[f"OTF2_EvtWriter_{name}"]
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, *arguments]
    return function


def _write(handle: Any, rank: int, ranks: int, events: int, regions: list[int], send: int) -> int:
    u32, u64 = ctypes.c_uint32, ctypes.c_uint64
    enter, leave = function("Enter", u32), function("Leave", u32)
    message = function("MpiSend", u32, u32, u32, u64)
    writer = ctypes.cast(handle, ctypes.c_void_p)
    rng = random.Random(rank)
    now, written, stack = 0, 1, [regions[0]]
    enter(writer, None, now, stack[0])
    while written < events - _DEPTH:
        now += rng.randrange(100, 2000)
        chance = rng.random()
        if len(stack) < _DEPTH and chance < 0.5:
            stack.append(regions[(len(stack) - 1) * _CALLEES + rng.randrange(_CALLEES) + 1])
            enter(writer, None, now, stack[-1])
            written += 1
        elif len(stack) > 1 and chance < 0.9:
            leave(writer, None, now, stack.pop())
            written += 1
        else:
            enter(writer, None, now, send)
            message(writer, None, now + 5, (rank + 1) % ranks, 0, 3, rng.randrange(1000))
            now += 50
            leave(writer, None, now, send)
            written += 3
    for region in reversed(stack):
        now += 5
        leave(writer, None, now, region)
    return written + len(stack)


if __name__ == "__main__":
    main()
