"""Where values were measured: threads of processes, and streams of accelerators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callpath_modeler.profile.schema import Extent


@dataclass(frozen=True, slots=True)
class Location:
    """One thread, or one stream of an accelerator.

    Attributes
    ----------
    number : which profile of the database is its
    rank : its process; -1 where the database has no ranks
    on_gpu : True for a stream of an accelerator
    node : its node, or ""
    """

    number: int
    rank: int
    on_gpu: bool
    node: str = ""


Processes = tuple[tuple[Location, ...], ...]


@dataclass(frozen=True, slots=True)
class LocationSet:
    """The locations of a run, by process.

    Attributes
    ----------
    threads : per process, its threads
    streams : per process that has any, its streams on accelerators
    extent : how much machine the run used; all zero where nothing tells
    """

    threads: Processes
    streams: Processes
    extent: Extent

    @classmethod
    def of(cls, locations: Sequence[Location]) -> LocationSet:
        """Sort locations into processes; a run without ranks is one process."""
        threads = _by_rank([place for place in locations if not place.on_gpu])
        streams = _by_rank([place for place in locations if place.on_gpu])
        nodes = len({place.node for place in locations if place.node})
        largest = max((len(process) for process in threads), default=0)
        return cls(threads, streams, Extent(len(threads), largest, nodes))


def _by_rank(locations: Sequence[Location]) -> Processes:
    ranks: dict[int, list[Location]] = {}
    for place in locations:
        ranks.setdefault(place.rank, []).append(place)
    return tuple(tuple(ranks[rank]) for rank in sorted(ranks))
