"""Ranks, compute nodes and Cartesian coordinates of the processes of a run."""

from __future__ import annotations

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import IntArray
from callpath_modeler.printable import printable


class Topology(Struct, frozen=True, eq=False):
    """A Cartesian topology that has every process of a run at its own coordinates.

    Attributes
    ----------
    name : name in the profile
    dimensions : number of coordinates in each of the D dimensions
    coordinates : intp [processes, D], each from 0 to the dimension - 1
    """

    name: str
    dimensions: tuple[int, ...]
    coordinates: IntArray

    def __post_init__(self) -> None:
        structs.force_setattr(self, "name", printable(self.name))


class Placement(Struct, frozen=True, eq=False):
    """Ranks and places of the processes of a run, in the order of the reader's processes.

    Attributes
    ----------
    ranks : intp [processes] MPI rank of each process, all different
    nodes : name of the compute node of each process; "" = not known
    topologies : Cartesian topologies of all processes
    """

    ranks: IntArray
    nodes: tuple[str, ...]
    topologies: tuple[Topology, ...] = ()

    def __post_init__(self) -> None:
        if not all(map(str.isprintable, set(self.nodes))):
            structs.force_setattr(self, "nodes", tuple(map(printable, self.nodes)))

    @classmethod
    def unknown(cls, processes: int) -> Placement:
        """Return ranks in the order of the processes, without places."""
        return cls(np.arange(processes), ("",) * processes)

    @classmethod
    def stated(
        cls, ranks: IntArray, nodes: tuple[str, ...], topologies: tuple[Topology, ...] = ()
    ) -> Placement:
        """Return the placement that a profile states.

        If ranks are negative or not all different, the profile does not state them. They are then
        in the order of the processes.
        """
        if (ranks < 0).any() or len(np.unique(ranks)) < len(ranks):
            ranks = np.arange(len(ranks))
        return cls(ranks, nodes, topologies)

    def of(self, processes: IntArray) -> Placement:
        """Return the placement of some processes, in this order."""
        return Placement(
            self.ranks[processes],
            tuple(self.nodes[k] for k in processes.tolist()),
            tuple(
                Topology(each.name, each.dimensions, each.coordinates[processes])
                for each in self.topologies
            ),
        )
