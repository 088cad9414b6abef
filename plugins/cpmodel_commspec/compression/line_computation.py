"""From the times of a trace to the computation of each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from cpmodel_commspec import computation
from cpmodel_commspec.operations import Recorded, Traced
from cpmodel_commspec.specification import Loop, Node, Specification, Step, walk


def with_computation(told: Specification, traced: Traced) -> Specification:
    """Return the specification of a trace with the computation before each line.

    The lines stay as they are. A trace without times has no computation. The time is that of
    sorting the seconds of each line.
    """
    if not all(len(one.computing) == len(one.shapes) for one in traced.ranks):
        return told
    seconds = [_ByLine(told, rank, one) for rank, one in enumerate(traced.ranks)]
    last = np.array([[one.last] for one in traced.ranks])
    noticed = max(float(one.computing.sum()) + one.last for one in traced.ranks)
    found: list[tuple[computation.Computation, float]] = []
    for line, (node, around) in enumerate(walk(told.body), 1):
        if isinstance(node, Step):
            rows = np.stack([seconds[rank].of(line) for rank in node.ranks])
            rounds = around[-1].count if around else 1
            before = computation.find(rows, node.ranks, rounds, 2 + 2 * len(found), noticed)
            found.append((before, sum(seconds[rank].calling[line] for rank in node.ranks)))
    ranks = tuple(range(told.processes))
    return msgspec.structs.replace(
        told,
        body=_replaced(told.body, iter(found)),
        ending=computation.find(last, ranks, 1, 2 + 2 * len(found), noticed),
        seconds=traced.seconds,
    )


class _ByLine:
    """The seconds of one rank, in the order of lines.

    Attributes
    ----------
    calling : seconds in the calls of each line, by its number
    """

    def __init__(self, told: Specification, rank: int, one: Recorded) -> None:
        lines = told.lines_of_rank(rank)
        order = np.argsort(lines, kind="stable")
        self._lines: Int64Array = lines[order]
        self._seconds: FloatArray = one.computing[order]
        self.calling: list[float] = np.bincount(lines, one.calling, told.lines + 1).tolist()

    def of(self, line: int) -> FloatArray:
        """Return the seconds before each round of a line, in order."""
        begin, end = np.searchsorted(self._lines, [line, line + 1])
        return self._seconds[begin:end]


def _replaced(
    nodes: Sequence[Node], found: Iterator[tuple[computation.Computation, float]]
) -> tuple[Node, ...]:
    """Return nodes whose steps have times; loops nest a few deep."""
    replaced: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            replaced.append(msgspec.structs.replace(node, body=_replaced(node.body, found)))
        else:
            computing, calling = next(found)
            replaced.append(msgspec.structs.replace(node, computing=computing, calling=calling))
    return tuple(replaced)
