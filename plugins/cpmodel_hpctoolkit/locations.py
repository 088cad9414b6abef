"""Locations of values: threads of processes, and accelerator streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callpath_modeler.profile.schema import Extent


@dataclass(frozen=True, slots=True)
class Location:
    """A thread or an accelerator stream.

    Attributes
    ----------
    number : number of its profile in the database
    rank : rank of its process; -1 = the database has no ranks
    on_gpu : whether it is an accelerator stream
    node : name of the compute node, or ""
    thread : number of the thread in its process; the first one started the others
    """

    number: int
    rank: int
    on_gpu: bool
    node: str = ""
    thread: int = 0


Processes = tuple[tuple[Location, ...], ...]


@dataclass(frozen=True, slots=True)
class LocationSet:
    """Locations of a run, by process.

    Attributes
    ----------
    threads : threads of each process
    streams : accelerator streams of each process that has any
    extent : number of processes, threads and nodes; all zero = unknown
    """

    threads: Processes
    streams: Processes
    extent: Extent

    @classmethod
    def of(cls, locations: Sequence[Location]) -> LocationSet:
        """Return locations by process; a run without ranks is one process."""
        threads = _by_rank([place for place in locations if not place.on_gpu])
        streams = _by_rank([place for place in locations if place.on_gpu])
        nodes = len({place.node for place in locations if place.node})
        largest = max((len(process) for process in threads), default=0)
        return cls(threads, streams, Extent(len(threads), largest, nodes))


def _by_rank(locations: Sequence[Location]) -> Processes:
    ranks: dict[int, list[Location]] = {}
    for place in locations:
        ranks.setdefault(place.rank, []).append(place)
    # Databases have the profiles in any order.
    return tuple(
        tuple(sorted(ranks[rank], key=lambda place: place.thread)) for rank in sorted(ranks)
    )
