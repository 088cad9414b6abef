"""The operations of a trace in one table, and the statements that they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.compression.tags import Tags, choose_tags
from cpmodel_commspec.operations import End, Shape
from cpmodel_commspec.partners import is_series
from cpmodel_commspec.scalable.joint import Joint


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
    return tables, [Statement(*row) for row in known.tolist()]


def _tags(
    shape: Shape, here: Sequence[Int64Array], ranks: Sequence[Int64Array],
    values: Sequence[Int64Array],
) -> Tags:  # fmt: skip
    peer, tag, _ = shape.ends[0].columns
    pairs = []
    for k, rows in enumerate(here):
        own, begin = np.unique(ranks[k][rows], return_index=True)
        for rank, part in zip(own.tolist(), np.split(rows, begin[1:]), strict=True):
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

    def is_series(self, numbers: Sequence[Int64Array]) -> bool:
        """Tell whether numbers, in the order of operations, follow each other evenly.

        Parameters
        ----------
        numbers : of each trace, [n]
        """
        parts = []
        for (ranks, _), found in zip(self.in_order, numbers, strict=True):
            if len(ranks):
                begins = np.flatnonzero(np.diff(ranks)) + 1
                parts += np.split(found, begins)
        return bool(parts) and is_series(parts)
