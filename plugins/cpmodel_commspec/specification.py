"""Communication specification: loops and operations with their ranks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.expressions import Expression, size_of
from cpmodel_commspec.operations import FIELDS, Communicator, Recorded, Shape
from cpmodel_commspec.partners import Partner


class Step(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag="step"):
    """An operation.

    Attributes
    ----------
    shape : number of its shape
    ranks : who takes part, in order
    numbers : by the fields of the shape; partners are numbers that `partners` turn into ranks
    partners : of messages, by the field of the partner
    """

    shape: int
    ranks: tuple[int, ...]
    numbers: Mapping[str, Expression]
    partners: Mapping[str, Partner] = {}


class Loop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="loop"):
    """Nodes that their ranks repeat `count` times."""

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


class Irregular(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement that one rank executes in many lines, because it does not repeat.

    Attributes
    ----------
    site, call : the call path, and the MPI function
    ranks : the ranks with such lines
    lines : the lines of the rank with most of them
    """

    site: tuple[str, ...]
    call: str
    ranks: tuple[int, ...]
    lines: int


class Specification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The communication of a run.

    Attributes
    ----------
    program : as it was called, or ""
    processes : number of ranks
    events, operations : in the trace, of all ranks
    programs : how many different sequences the ranks have
    shapes, communicators : the definitions that steps refer to
    body : the program, in the order of every rank
    left_out : number of excluded calls, by kind
    irregular : statements that do not repeat, those of most lines first
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
    irregular: tuple[Irregular, ...] = ()

    @property
    def lines(self) -> int:
        """Number of operations and loops."""
        return sum(1 for _ in walk(self.body))

    @property
    def tabulated(self) -> int:
        """Number of numbers in tables."""
        steps = (node for node, _ in walk(self.body) if isinstance(node, Step))
        return sum(len(x.table) for step in steps for x in step.numbers.values())

    @property
    def from_any_source(self) -> int:
        """Number of receives from any source."""
        return sum(
            len(node.ranks) * size_of([loop.count for loop in around])
            for node, around in walk(self.body)
            if isinstance(node, Step) and self.shapes[node.shape].is_any
        )

    def counts(self) -> Int64Array:
        """Return how many operations each rank has, [processes]."""
        counts = np.zeros(self.processes, np.int64)
        for node, around in walk(self.body):
            if isinstance(node, Step):
                counts[list(node.ranks)] += size_of([loop.count for loop in around])
        return counts

    def of_rank(self, rank: int) -> Recorded:
        """Return the operations of one rank, in order."""
        rows = self._rows(rank)
        return Recorded(rows[:, 0], rows[:, 2:])

    def lines_of_rank(self, rank: int) -> Int64Array:
        """Return the line of each operation of one rank, from 1, in the order of `walk`."""
        return self._rows(rank)[:, 1]

    def _rows(self, rank: int) -> Int64Array:
        rows: Int64Array = _unrolled(self.body, rank, (), 1)[0]
        return rows


def walk(
    nodes: Sequence[Node], around: tuple[Loop, ...] = ()
) -> Iterator[tuple[Node, tuple[Loop, ...]]]:
    """Yield loops and steps in order, each with the loops around it from the outside."""
    for node in nodes:
        yield node, around
        if isinstance(node, Loop):
            yield from walk(node.body, (*around, node))


def _lines(nodes: Sequence[Node]) -> int:
    return sum(1 for _ in walk(nodes))


def _unrolled(nodes: Sequence[Node], rank: int, counts: tuple[int, ...], line: int) -> Int64Array:
    """Return the operations of a rank.

    Parameters
    ----------
    counts : rounds of each loop around
    line : the line of the first node

    Returns
    -------
    [rounds of all loops around x operations x (shape, line, `FIELDS`)]
    """
    rounds, width = size_of(counts), 2 + len(FIELDS)
    parts = [np.empty((rounds, 0, width), np.int64)]
    for node in nodes:
        begin, line = line, line + _lines((node,))
        place = bisect_left(node.ranks, rank)
        if place == len(node.ranks) or node.ranks[place] != rank:
            continue
        if isinstance(node, Loop):
            inner = _unrolled(node.body, rank, (*counts, node.count), begin + 1)
            parts.append(inner.reshape(rounds, node.count * inner.shape[1], width))
            continue
        rows = np.zeros((rounds, 1, width), np.int64)
        rows[:, 0, 0], rows[:, 0, 1] = node.shape, begin
        for field, expression in node.numbers.items():
            column = expression.of_rank(place).values((rank,), counts).ravel()
            if field in node.partners:
                column = node.partners[field].peer(np.full(rounds, rank), column)
            rows[:, 0, 2 + FIELDS.index(field)] = column
        parts.append(rows)
    return np.concatenate(parts, axis=1)
