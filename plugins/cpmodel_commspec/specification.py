"""A communication specification: loops and operations, each with the ranks that it is of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from cpmodel_commspec.expressions import Expression, size_of
from cpmodel_commspec.operations import FIELDS, Communicator, Recorded, Shape
from cpmodel_commspec.partners import Partner


class Step(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag="step"):
    """An operation.

    Attributes
    ----------
    shape : number of its shape
    ranks : who takes part, in order
    numbers : by the fields of the shape; that of "peer" is the number that `partner` tells from
    partner : of messages, else None
    """

    shape: int
    ranks: tuple[int, ...]
    numbers: Mapping[str, Expression]
    partner: Partner | None = None


class Loop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="loop"):
    """What the ranks that take part in any of it repeat `count` times."""

    count: int
    ranks: tuple[int, ...]
    body: tuple[Node, ...]

    def is_counted(self, depth: int) -> bool:
        """Tell whether any number depends on the round; `depth` is 0 for an outermost loop."""
        return any(
            expression.depends_on(depth)
            for node, _ in walk(self.body)
            if isinstance(node, Step)
            for expression in node.numbers.values()
        )


Node: TypeAlias = "Step | Loop"


class Specification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The communication of a run.

    Attributes
    ----------
    program : as it was called, or ""
    processes : number of ranks
    events, operations : in the trace, of all ranks
    programs : how many different sequences the ranks have
    shapes, communicators : what steps refer to
    body : what happens, in the order of every rank
    left_out : number of calls that are not told, by what they are
    """

    program: str
    processes: int
    events: int
    operations: int
    programs: int
    shapes: tuple[Shape, ...]
    communicators: tuple[Communicator, ...]
    body: tuple[Node, ...]
    left_out: Mapping[str, int]

    @property
    def lines(self) -> int:
        """Number of operations and loops."""
        return sum(1 for _ in walk(self.body))

    @property
    def tabulated(self) -> int:
        """Number of numbers in tables."""
        steps = (node for node, _ in walk(self.body) if isinstance(node, Step))
        return sum(len(x.table) for step in steps for x in step.numbers.values())

    def counts(self) -> NDArray[np.int64]:
        """Return how many operations each rank has, [processes]."""
        counts = np.zeros(self.processes, np.int64)
        for node, around in walk(self.body):
            if isinstance(node, Step):
                counts[list(node.ranks)] += size_of([loop.count for loop in around])
        return counts

    def of_rank(self, rank: int) -> Recorded:
        """Return the operations of one rank, in order."""
        rows = _unrolled(self.body, rank, ())
        return Recorded(rows[0, :, 0], rows[0, :, 1:])


def walk(
    nodes: Sequence[Node], around: tuple[Loop, ...] = ()
) -> Iterator[tuple[Node, tuple[Loop, ...]]]:
    """Yield loops and steps in order, each with the loops around it, the outermost first."""
    for node in nodes:
        yield node, around
        if isinstance(node, Loop):
            yield from walk(node.body, (*around, node))


def _unrolled(nodes: Sequence[Node], rank: int, counts: tuple[int, ...]) -> NDArray[np.int64]:
    """Return what a rank does, [rounds of all loops around x operations x (shape, `FIELDS`)]."""
    rounds = size_of(counts)
    parts = [np.empty((rounds, 0, 1 + len(FIELDS)), np.int64)]
    for node in nodes:
        place = bisect_left(node.ranks, rank)
        if place == len(node.ranks) or node.ranks[place] != rank:
            continue
        if isinstance(node, Loop):
            inner = _unrolled(node.body, rank, (*counts, node.count))
            parts.append(inner.reshape(rounds, node.count * inner.shape[1], 1 + len(FIELDS)))
            continue
        rows = np.zeros((rounds, 1, 1 + len(FIELDS)), np.int64)
        rows[:, 0, 0] = node.shape
        for field, expression in node.numbers.items():
            column = expression.of_rank(place).values((rank,), counts).ravel()
            if node.partner is not None and field == "peer":
                column = node.partner.peer(np.full(rounds, rank), column)
            rows[:, 0, 1 + FIELDS.index(field)] = column
        parts.append(rows)
    return np.concatenate(parts, axis=1)
