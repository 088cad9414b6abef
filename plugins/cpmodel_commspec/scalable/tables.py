"""The operations of a trace in one table, and the statements that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.units import counted
from cpmodel_commspec.compression.merging import statements
from cpmodel_commspec.compression.specify import Tags, choose_tags
from cpmodel_commspec.expressions import LEAST_SERIES, is_even, is_series
from cpmodel_commspec.operations import Communicator, End, Recorded, Shape, Traced

_FEWEST = 3
_HINT = "give traces of one program, with one input, at three or more numbers of processes"


@dataclass(frozen=True, slots=True)
class Joint:
    """Traces with common definitions, the one of fewest processes first.

    Attributes
    ----------
    shapes : of all traces; a Cartesian communicator has no sizes
    sites : for each shape, the shape that stands for its statement, [shapes]
    communicators : of each trace, in a common order
    grids : sizes of the Cartesian communicators that a shape makes, by trace
    """

    traces: tuple[Traced, ...]
    shapes: tuple[Shape, ...]
    sites: Int64Array
    communicators: tuple[tuple[Communicator, ...], ...]
    grids: dict[int, tuple[tuple[int, ...], ...]]


def join(traces: Sequence[Traced]) -> Joint:
    """Return traces with common definitions.

    Raises
    ------
    DataError
        If the traces are too few, of equal numbers of processes, or of different programs.
    """
    ordered = sorted(traces, key=lambda one: len(one.ranks))
    sizes = [len(one.ranks) for one in ordered]
    _check_sizes(sizes)
    order = _communicator_order(ordered)
    shapes: dict[Shape, int] = {}
    joined, grids = [], dict[int, dict[int, tuple[int, ...]]]()
    for k, one in enumerate(ordered):
        comm = {old: new for new, old in enumerate(order[k])}
        number = []
        for shape in one.shapes:
            key = msgspec.structs.replace(shape, comm=comm.get(shape.comm, -1), grid=())
            number.append(shapes.setdefault(key, len(shapes)))
            if (
                shape.grid
                and grids.setdefault(number[-1], {}).setdefault(k, shape.grid) != shape.grid
            ):
                raise DataError(
                    f"{shape.call} makes grids of different sizes at p = {sizes[k]}", hint=_HINT
                )
        renumbered = np.array(number, np.int64)
        ranks = tuple(replace(x, shapes=renumbered[x.shapes]) for x in one.ranks)
        joined.append(
            replace(one, ranks=ranks, communicators=tuple(one.communicators[j] for j in order[k]))
        )
    common = tuple(shapes)
    joined = [replace(one, shapes=common) for one in joined]
    _check_programs(joined)
    sites = statements(_together(joined))
    whole = {
        k: tuple(of[j] for j in range(len(joined)))
        for k, of in grids.items()
        if len(of) == len(joined)
    }
    return Joint(tuple(joined), common, sites, tuple(one.communicators for one in joined), whole)


def _check_sizes(sizes: Sequence[int]) -> None:
    for one, other in pairwise(sizes):
        if one == other:
            raise DataError(f"two traces have {one} processes", hint=_HINT)
    if len(sizes) < _FEWEST:
        raise DataError(
            f"{counted(len(sizes), 'trace')} are too few: two give a formula and a third tests it"
            if len(sizes) > 1
            else "one trace is too few: two give a formula and a third tests it",
            hint=_HINT,
        )
    if sizes[0] < 2:
        raise DataError("a trace has only one process, so that nobody communicates", hint=_HINT)


def _communicator_order(traces: Sequence[Traced]) -> list[list[int]]:
    """Return for each trace its communicators in the common order: by name, or as defined."""
    names = [[one.name for one in trace.communicators] for trace in traces]
    if all(set(found) == set(names[0]) for found in names):
        return [[found.index(name) for name in names[0]] for found in names]
    if len({len(found) for found in names}) == 1:
        return [list(range(len(found))) for found in names]
    few, many = min(names, key=len), max(names, key=len)
    p = [len(traces[names.index(found)].ranks) for found in (few, many)]
    raise DataError(
        f"{counted(len(few), 'communicator')} at p = {p[0]} and {len(many)} at p = {p[1]}",
        hint=_HINT,
    )


def _check_programs(traces: Sequence[Traced]) -> None:
    """Raise `DataError` if most statements of a trace are in no other one."""
    called = []
    for one in traces:
        used = np.unique(np.concatenate([x.shapes for x in one.ranks]))
        called.append(
            {(one.shapes[k].kind, one.shapes[k].call, one.shapes[k].site) for k in used.tolist()}
        )
    for one, own in zip(traces, called, strict=True):
        shared = own & set().union(*(other for other in called if other is not own))
        if 2 * len(shared) < len(own):
            raise DataError(
                f"the trace of p = {len(one.ranks)} is of another program: "
                f"{len(own) - len(shared)} of {len(own)} calls are in no other trace",
                hint=_HINT,
            )


def _together(traces: Sequence[Traced]) -> Traced:
    """Return the traces as one, the ranks of each after those of the one before."""
    ranks: list[Recorded] = []
    groups: list[list[tuple[int, ...]]] = [[] for _ in traces[0].communicators]
    for one in traces:
        begin = len(ranks)
        for k, communicator in enumerate(one.communicators):
            groups[k] += [tuple(begin + rank for rank in group) for group in communicator.groups]
        ranks += one.ranks
    named = zip(traces[0].communicators, groups, strict=True)
    made = tuple(Communicator(one.name, tuple(found)) for one, found in named)
    return replace(traces[0], ranks=tuple(ranks), communicators=made)


class Statement(NamedTuple):
    """A shape, and the number of the tag of its first message."""

    shape: int
    tag: int


@dataclass(frozen=True)
class Table:
    """The operations of a trace, rank by rank.

    Attributes
    ----------
    processes : number of ranks
    begins : the first operation of each rank, and the end, [processes + 1]
    ranks, shapes, statements : of each operation, [n]
    values : [n x `FIELDS`]
    """

    processes: int
    begins: Int64Array
    ranks: Int64Array
    shapes: Int64Array
    statements: Int64Array
    values: Int64Array

    @cached_property
    def rows(self) -> dict[int, Int64Array]:
        """The operations of each statement, in order."""
        order = np.argsort(self.statements, kind="stable")
        found, begin = np.unique(self.statements[order], return_index=True)
        return dict(zip(found.tolist(), np.split(order, begin[1:]), strict=True))


def tabulated(joint: Joint) -> tuple[list[Table], list[Statement]]:
    """Return the operations of each trace, and the statements that their numbers mean."""
    shapes = [joint.sites[np.concatenate([x.shapes for x in one.ranks])] for one in joint.traces]
    values = [np.concatenate([x.values for x in one.ranks]) for one in joint.traces]
    lengths = [[len(x.shapes) for x in one.ranks] for one in joint.traces]
    ranks = [np.repeat(np.arange(len(n)), n) for n in lengths]
    tags = [np.zeros(len(x), np.int64) for x in shapes]
    for number, shape in enumerate(joint.shapes):
        if shape.ends:
            here = [np.flatnonzero(x == number) for x in shapes]
            chosen = _tags(shape, here, ranks, values)
            peer, tag, _ = shape.ends[0].columns
            for k, rows in enumerate(here):
                about = values[k][rows]
                tags[k][rows] = chosen.number(ranks[k][rows], about[:, tag], about[:, peer])
    pairs = [np.stack([shapes[k], tags[k]], axis=1) for k in range(len(shapes))]
    known = np.unique(np.concatenate([np.unique(x, axis=0) for x in pairs]), axis=0)
    number_of = {tuple(row): k for k, row in enumerate(known.tolist())}
    tables = []
    for k, pair in enumerate(pairs):
        own, inverse = np.unique(pair, axis=0, return_inverse=True)
        numbers = np.array([number_of[tuple(row)] for row in own.tolist()], np.int64)
        begins = np.concatenate([[0], np.cumsum(lengths[k])])
        tables.append(
            Table(len(lengths[k]), begins, ranks[k], shapes[k], numbers[inverse.ravel()], values[k])
        )
    return tables, _without_roots([Statement(*row) for row in known.tolist()], joint, tables)


def _without_roots(
    statements: list[Statement], joint: Joint, tables: Sequence[Table]
) -> list[Statement]:
    """Make messages with one rank after the other, of ranks among others, a statement."""
    for number, statement in enumerate(tuple(statements)):
        shape = joint.shapes[statement.shape]
        if not shape.ends or shape.is_any or shape.turn:
            continue
        messages = Messages(tables, number, shape.ends[0])
        many = []
        for ranks, peers in messages.in_order:
            pairs = np.unique(np.stack([ranks, peers]), axis=1)[0]
            many.append(np.bincount(pairs, minlength=int(ranks.max(initial=0)) + 1)[ranks] > 1)
        own = [
            np.split(peers[is_many], np.flatnonzero(np.diff(ranks[is_many])) + 1)
            for (ranks, peers), is_many in zip(messages.in_order, many, strict=True)
            if is_many.any()
        ]
        is_mixed = any(x.any() and not x.all() for x in many)
        if is_mixed and all(map(is_even, own)) and any(map(is_series, own)):
            for table, rows, is_many in zip(tables, messages.rows, many, strict=True):
                table.statements[rows[is_many]] = len(statements)
                table.__dict__.pop("rows", None)
            statements.append(statement)
    return statements


def _tags(
    shape: Shape, here: Sequence[Int64Array], ranks: Sequence[Int64Array],
    values: Sequence[Int64Array],
) -> Tags:  # fmt: skip
    peer, tag, _ = shape.ends[0].columns
    pairs = []
    for k, rows in enumerate(here):
        own, begin = np.unique(ranks[k][rows], return_index=True)
        # Without rows, there is one part of nobody.
        for rank, part in zip(own.tolist(), np.split(rows, begin[1:]), strict=False):
            pairs.append((rank, values[k][part, tag], values[k][part, peer]))
    return choose_tags(pairs) if pairs else Tags.ZERO


class Messages:
    """The partners of one end of a statement, in each trace.

    Attributes
    ----------
    rows : of each trace, the operations [n]
    ranks, peers : of each trace, who communicates with whom, each pair once
    """

    def __init__(self, tables: Sequence[Table], statement: int, end: End) -> None:
        nobody = np.empty(0, np.int64)
        column = end.columns[0]
        self.rows = [table.rows.get(statement, nobody) for table in tables]
        self.in_order = [
            (table.ranks[rows], table.values[rows, column])
            for table, rows in zip(tables, self.rows, strict=True)
        ]
        self.ranks, self.peers = [], []
        for table, (ranks, peers) in zip(tables, self.in_order, strict=True):
            pairs = np.unique(ranks * table.processes + peers)
            self.ranks.append(pairs // table.processes)
            self.peers.append(pairs % table.processes)

    def used(self) -> Iterator[int]:
        """Yield the traces with such messages."""
        yield from (k for k, ranks in enumerate(self.ranks) if len(ranks))

    def is_series(self, numbers: Sequence[Int64Array], least: int = LEAST_SERIES) -> bool:
        """Tell whether numbers, in the order of operations, follow each other evenly.

        Parameters
        ----------
        numbers : of each trace, [n]
        least : partners of one rank
        """
        of_traces = [
            np.split(found, np.flatnonzero(np.diff(ranks)) + 1)
            for (ranks, _), found in zip(self.in_order, numbers, strict=True)
            if len(found)
        ]
        return all(map(is_even, of_traces)) and any(is_series(own, least) for own in of_traces)
