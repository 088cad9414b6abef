"""Estimated times of calls, from latency and bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

from cpmodel_guidelines.rules import GuidelineTerm, Size

_ONCE = frozenset({"Bcast", "Reduce", "Scan", "Exscan"})
_GATHERING = frozenset({"Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv"})
_EXCHANGING = frozenset({"Alltoall", "Alltoallv", "Alltoallw"})
_SCATTERING = frozenset({"Reduce_scatter", "Reduce_scatter_block"})


@dataclass(frozen=True, slots=True)
class Machine:
    """Assumptions about a machine.

    Attributes
    ----------
    latency : time of a short message in seconds
    bandwidth : bytes per second of one process
    startup : time in seconds from the start of a program to its first call, and to end it
    """

    latency: float
    bandwidth: float
    startup: float

    def call(self, terms: Sequence[GuidelineTerm], size: float, processes: int) -> float:
        """Return the time in seconds of calls that are executed one after the other.

        Parameters
        ----------
        terms : functions, with their message sizes
        size : message size m in bytes
        processes : number of processes
        """
        return sum(self._one(term, size, processes) for term in terms)

    def barrier(self, processes: int) -> float:
        """Return the time in seconds in which all processes meet before a call."""
        return self.latency * max(_steps(processes), 1)

    def _one(self, term: GuidelineTerm, size: float, processes: int) -> float:
        name, p = term.function, processes
        m = {Size.SAME: size, Size.ALL: size * p, Size.PART: size / p, Size.LEAST: 1.0}[term.size]
        steps, per_byte = _steps(p), 1 / self.bandwidth
        if name == "Barrier":
            return self.barrier(p)
        if name == "Reduce_local":
            return m * per_byte
        if name in _ONCE:
            found = steps * (self.latency + m * per_byte)
        elif name == "Allreduce":
            found = 2 * steps * (self.latency + m * per_byte)
        elif name in _GATHERING:
            found = steps * self.latency + (p - 1) * m * per_byte
        elif name in _EXCHANGING:
            found = (p - 1) * (self.latency + m * per_byte)
        elif name in _SCATTERING:
            found = 2 * steps * self.latency + 2 * p * m * per_byte
        else:
            found = self.latency + m * per_byte
        return max(found, self.latency)


def _steps(processes: int) -> int:
    """Return the number of steps of a tree."""
    return ceil(log2(processes)) if processes > 1 else 0
