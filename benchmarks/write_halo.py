"""Write an OTF2 trace of processes in a ring that exchange with both neighbours in each round.

python benchmarks/write_halo.py DIRECTORY --events 1000000 --locations 16
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import count
from typing import Any

import otf2
from write_trace import asked, define_processes, function

_CALLS = ("main", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce")
_ROUNDS = 10
"""Rounds between two sums over all processes."""

_EVENTS_OF_ROUND = 18
_EVENTS_OF_SUM = 4
_ALLREDUCE, _NO_ROOT = 11, 2**32 - 1


def main() -> None:
    """Write the trace of the command line."""
    told = asked(__doc__)
    sums = told.events // told.locations // (_ROUNDS * _EVENTS_OF_ROUND + _EVENTS_OF_SUM)
    with otf2.writer.open(str(told.directory), timer_resolution=10**9) as archive:
        regions = {
            name: archive.definitions.region(name, name, paradigm=_paradigm(name))._ref  # noqa: SLF001
            for name in _CALLS
        }
        for rank, location in enumerate(define_processes(archive.definitions, told.locations)):
            writer = ctypes.cast(
                archive.event_writer_from_location(location).handle, ctypes.c_void_p
            )
            location._number_of_events_written = _write(  # noqa: SLF001
                writer, rank, told.locations, sums, regions
            )


def _paradigm(name: str) -> Any:
    return otf2.Paradigm.MPI if name.startswith("MPI") else otf2.Paradigm.COMPILER


def _write(writer: Any, rank: int, ranks: int, sums: int, regions: dict[str, int]) -> int:
    u32, u64 = ctypes.c_uint32, ctypes.c_uint64
    enter, leave = function("Enter", u32), function("Leave", u32)
    posted, complete = function("MpiIrecvRequest", u64), function("MpiIsendComplete", u64)
    send = function("MpiIsend", u32, u32, u32, u64, u64)
    receive = function("MpiIrecv", u32, u32, u32, u64, u64)
    begin = function("MpiCollectiveBegin")
    end = function("MpiCollectiveEnd", ctypes.c_uint8, u32, u32, u64, u64)
    tick = count(rank)
    written = 0

    def event(write: Callable[..., int], *arguments: int) -> None:
        nonlocal written
        write(writer, None, next(tick), *arguments)
        written += 1

    sides = (rank - 1) % ranks, (rank + 1) % ranks
    event(enter, regions["main"])
    for step in range(sums * _ROUNDS):
        requests = range(4 * step + 1, 4 * step + 5)
        for request in requests[:2]:
            event(enter, regions["MPI_Irecv"])
            event(posted, request)
            event(leave, regions["MPI_Irecv"])
        for peer, request in zip(sides, requests[2:], strict=True):
            event(enter, regions["MPI_Isend"])
            event(send, peer, 0, 7, 4096, request)
            event(leave, regions["MPI_Isend"])
        event(enter, regions["MPI_Waitall"])
        for peer, request in zip(sides, requests[:2], strict=True):
            event(receive, peer, 0, 7, 4096, request)
        for request in requests[2:]:
            event(complete, request)
        event(leave, regions["MPI_Waitall"])
        if step % _ROUNDS == _ROUNDS - 1:
            event(enter, regions["MPI_Allreduce"])
            event(begin)
            event(end, _ALLREDUCE, 0, _NO_ROOT, 8 * ranks, 8 * ranks)
            event(leave, regions["MPI_Allreduce"])
    event(leave, regions["main"])
    return written


if __name__ == "__main__":
    main()
