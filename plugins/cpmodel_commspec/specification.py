"""Communication specification: loops and operations with their ranks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, Int64Array
from cpmodel_commspec.computation import Computation
from cpmodel_commspec.expressions import Expression, Partner, size_of
from cpmodel_commspec.operations import FIELDS, Communicator, Recorded, Shape


class Step(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag="step"):
    """An operation.

    Attributes
    ----------
    shape : number of its shape
    ranks : who takes part, in order
    numbers : by the fields of the shape; partners are numbers that `partners` turn into ranks
    partners : of messages, by the field of the partner
    computing : of the ranks before the operation; None if the trace has no times
    calling : seconds in the calls of all ranks and rounds
    """

    shape: int
    ranks: tuple[int, ...]
    numbers: Mapping[str, Expression]
    partners: Mapping[str, Partner] = {}
    computing: Computation | None = None
    calling: float = 0.0


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
    ending : computation of all ranks after their last operations; None if the trace has no times
    seconds : run time of the trace, from the end of MPI_Init to the begin of MPI_Finalize
    band : half the width of the band of an extrapolated replay, relative to it; 0 for traces
    run_time, run_time_band : extrapolated seconds on the machine of the traces, and their band
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
    ending: Computation | None = None
    seconds: float = 0.0
    band: float = 0.0
    run_time: float = 0.0
    run_time_band: float = 0.0

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
            if isinstance(node, Step) and self.shapes[node.shape].has_any_source
        )

    def counts(self) -> Int64Array:
        """Return how many operations each rank has, [processes]."""
        counts = np.zeros(self.processes, np.int64)
        for node, around in walk(self.body):
            if isinstance(node, Step):
                counts[list(node.ranks)] += size_of([loop.count for loop in around])
        return counts

    def of_rank(self, rank: int) -> Recorded:
        """Return the operations of one rank, in order; `computing_of_rank` has their times."""
        rows = self._unrolled(rank, partial(_operations, rank), (1 + len(FIELDS),))
        return Recorded(rows[:, 0], rows[:, 1:])

    def lines_of_rank(self, rank: int) -> Int64Array:
        """Return the line of each operation of one rank, from 1, in the order of `walk`."""
        lines = {id(node): line for line, (node, _) in enumerate(walk(self.body), 1)}
        return self._unrolled(rank, lambda step, counts: np.full(size_of(counts), lines[id(step)]))

    def _unrolled(
        self, rank: int, row: Callable[[Step, tuple[int, ...]], npt.NDArray[Any]],
        width: tuple[int, ...] = (), dtype: npt.DTypeLike = np.int64,
    ) -> npt.NDArray[Any]:  # fmt: skip
        def rounds_of(node: Node) -> int | None:
            place = bisect_left(node.ranks, rank)
            if place == len(node.ranks) or node.ranks[place] != rank:
                return None
            return node.count if isinstance(node, Loop) else 1

        rows: npt.NDArray[Any] = unrolled(self.body, rounds_of, row, width, dtype)[0]
        return rows

    @property
    def is_timed(self) -> bool:
        """Whether the trace has times."""
        return self.ending is not None

    @property
    def computing(self) -> float:
        """Seconds of computation of all ranks."""
        steps = [node for node, _ in walk(self.body) if isinstance(node, Step)]
        found = [step.computing for step in steps] + [self.ending]
        return sum(one.total for one in found if one is not None)

    def computing_of_rank(self, rank: int) -> FloatArray:
        """Return the seconds that one rank computes before each operation, as in `of_rank`.

        They are what a program computes, and not those of the trace: rounds take them in another
        order. They are 0 if the trace has no times.
        """

        def row(step: Step, counts: tuple[int, ...]) -> FloatArray:
            if step.computing is None:
                return np.zeros(size_of(counts))
            return step.computing.of_rank(rank)

        return self._unrolled(rank, row, dtype=np.float64)

    def ending_of_rank(self, rank: int) -> float:
        """Return the seconds that one rank computes after its last operation."""
        return 0.0 if self.ending is None else float(self.ending.of_rank(rank)[0])


_N = TypeVar("_N")


def walk(nodes: Sequence[_N], around: tuple[Any, ...] = ()) -> Iterator[tuple[_N, tuple[Any, ...]]]:
    """Yield loops and steps in order, each with the loops around it from the outside.

    Only loops have a body, also those of programs for any number of processes.
    """
    for node in nodes:
        yield node, around
        yield from walk(getattr(node, "body", ()), (*around, node))


def lines_in(node: Node) -> int:
    """Return the number of operations and loops of a node."""
    return sum(1 for _ in walk((node,)))


def unrolled(
    nodes: Sequence[Any], rounds_of: Callable[[Any], int | None],
    row: Callable[[Any, tuple[int, ...]], npt.NDArray[Any]], width: tuple[int, ...] = (),
    dtype: npt.DTypeLike = np.int64, counts: tuple[int, ...] = (),
) -> npt.NDArray[Any]:  # fmt: skip
    """Return the rows of the operations of a rank, in order; loops nest a few deep.

    Parameters
    ----------
    rounds_of : from a node to the rounds of the rank, 1 for an operation; None if it lacks it
    row : from an operation and the rounds of loops around to the rows of all rounds
    width, dtype : of a row
    counts : rounds of each loop around

    Returns
    -------
    [rounds of all loops around x operations x width]
    """
    rounds = size_of(counts)
    parts = [np.empty((rounds, 0, *width), dtype)]
    for node in nodes:
        own = rounds_of(node)
        if own is not None and hasattr(node, "body"):
            inner = unrolled(node.body, rounds_of, row, width, dtype, (*counts, own))
            parts.append(inner.reshape(rounds, own * inner.shape[1], *width))
        elif own is not None:
            parts.append(row(node, counts).reshape(rounds, 1, *width))
    return np.concatenate(parts, axis=1)


def _operations(rank: int, step: Step, counts: tuple[int, ...]) -> Int64Array:
    """Return the operations of a rank in all rounds, [rounds x (shape, `FIELDS`)]."""
    rounds = size_of(counts)
    rows = np.zeros((rounds, 1 + len(FIELDS)), np.int64)
    rows[:, 0] = step.shape
    for field, expression in step.numbers.items():
        column = expression.of_rank(bisect_left(step.ranks, rank)).values((rank,), counts).ravel()
        if field in step.partners:
            column = step.partners[field].peer(np.full(rounds, rank), column)
        rows[:, 1 + FIELDS.index(field)] = column
    return rows
