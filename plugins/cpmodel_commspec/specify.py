"""From recorded operations to a specification, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

import msgspec
import numpy as np
from numpy.typing import NDArray

from cpmodel_commspec import expressions, merging
from cpmodel_commspec.alignment import statements
from cpmodel_commspec.loops import compress
from cpmodel_commspec.merging import Shared, SharedLoop, SharedNode
from cpmodel_commspec.operations import FIELDS, MESSAGES, TOGETHER, Shape, Traced
from cpmodel_commspec.partners import Partner, choose, is_series
from cpmodel_commspec.specification import Loop, Node, Specification, Step, walk

Column = NDArray[np.int64]
_PEER = FIELDS.index("peer")
_COMPARED = [FIELDS.index("tag"), FIELDS.index("bytes")]


def specify(traced: Traced) -> Specification:
    """Return the specification of all operations of a trace."""
    sites = _Sites(traced)
    traced = sites.aligned
    partners = _partners(traced)
    sequences, meaning, values = _tokens(traced, partners)
    programs: dict[bytes, int] = {}
    number = [programs.setdefault(sequence.tobytes(), len(programs)) for sequence in sequences]
    distinct = [compress(np.frombuffer(code, np.int64).tolist()) for code in programs]
    ranks_of = {
        program: [rank for rank, k in enumerate(number) if k == program]
        for program in range(len(distinct))
    }
    build = _Build(traced, sites, partners, meaning, values, number, ranks_of)
    begins = [_begins(traced, ranks[0], values[ranks[0]]) for ranks in ranks_of.values()]
    body = build.nodes(merging.merge(distinct, begins))
    return Specification(
        traced.program,
        len(traced.ranks),
        traced.events,
        sum(len(one.shapes) for one in traced.ranks),
        len(programs),
        sites.shapes,
        traced.communicators,
        body,
        traced.left_out,
    )


def _begins(traced: Traced, rank: int, values: Column) -> list[merging.Begin]:
    """Return the numbers by which operations of different ranks are recognised as one statement.

    These are tags and bytes, and the number of a collective call of all ranks.
    """
    calls = np.zeros(len(values), np.int64)
    for number, communicator in enumerate(traced.communicators):
        if len(communicator.groups) == 1:
            is_call = np.array(
                [x.comm == number and x.kind in TOGETHER for x in traced.shapes], np.bool_
            )[traced.ranks[rank].shapes]
            calls[is_call] = np.arange(1, is_call.sum() + 1)
    return list(map(tuple, np.column_stack([values[:, _COMPARED], calls]).tolist()))


class _Sites:
    """The call sites of statements.

    Attributes
    ----------
    aligned : the trace, with one shape for all call sites of a statement
    """

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        number = statements(traced)
        counts = np.bincount(number, minlength=len(number))
        self._has_many = (counts > 1).tolist()
        ranks = tuple(replace(one, shapes=number[one.shapes]) for one in traced.ranks)
        self.aligned = replace(traced, ranks=ranks)
        self._used: dict[Shape, int] = {}

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the lines so far."""
        return tuple(self._used)

    def line(self, shape: int, places: Mapping[int, Column]) -> int:
        """Return the number of the shape of a line.

        Parameters
        ----------
        shape : the statement
        places : by rank, the operations of the line
        """
        told = self._traced.shapes[shape]
        if self._has_many[shape]:
            found = [np.unique(self._traced.ranks[r].shapes[at]) for r, at in places.items()]
            sites = [self._traced.shapes[k].site for k in np.unique(np.concatenate(found))]
            first, *others = dict.fromkeys(sites)
            told = msgspec.structs.replace(told, site=first, others=tuple(others))
        return self._used.setdefault(told, len(self._used))


@dataclass(frozen=True, slots=True)
class _Series:
    partner: Partner
    is_series: bool


def _partners(traced: Traced) -> Mapping[int, _Series]:
    """Return how the peers of messages are told, by the number of the shape."""
    found = {}
    for shape, about in enumerate(traced.shapes):
        if about.kind not in MESSAGES:
            continue
        peers = {
            rank: one.values[one.shapes == shape, _PEER] for rank, one in enumerate(traced.ranks)
        }
        peers = {rank: column for rank, column in peers.items() if len(column)}
        if not peers:
            continue
        ranks = np.concatenate([np.full(len(column), rank) for rank, column in peers.items()])
        partner = choose(ranks, np.concatenate(list(peers.values())), len(traced.ranks))
        numbers = [partner.number(np.full(len(x), rank), x) for rank, x in peers.items()]
        found[shape] = _Series(partner, is_series(numbers))
    return found


def _tokens(
    traced: Traced, partners: Mapping[int, _Series]
) -> tuple[list[Column], list[int], list[Column]]:
    """Give each shape a number, with each of its partners if these are no series.

    Returns
    -------
    sequences : of each rank, tokens [n]
    meaning : shape of each token
    values : of each rank, [n x `FIELDS`], in place of peers the numbers that tell them
    """
    tables, values = [], []
    for rank, one in enumerate(traced.ranks):
        table = np.zeros((len(one.shapes), 2), np.int64)
        table[:, 0] = one.shapes
        own = one.values.copy()
        for shape in np.unique(one.shapes).tolist():
            if shape in partners:
                here = one.shapes == shape
                peers = own[here, _PEER]
                numbers = partners[shape].partner.number(np.full(len(peers), rank), peers)
                own[here, _PEER] = numbers
                table[here, 1] = 0 if partners[shape].is_series else numbers
        tables.append(table)
        values.append(own)
    known, token = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    ends = np.cumsum([len(table) for table in tables])[:-1]
    return np.split(token.ravel(), ends), known[:, 0].tolist(), values


class _Build:
    """Puts the numbers of all ranks into a merged program."""

    def __init__(
        self, traced: Traced, sites: _Sites, partners: Mapping[int, _Series],
        meaning: Sequence[int], values: Sequence[Column], number: Sequence[int],
        ranks_of: Mapping[int, Sequence[int]],
    ) -> None:  # fmt: skip
        self._traced, self._sites = traced, sites
        self._partners, self._meaning = partners, meaning
        self._values, self._number, self._ranks_of = values, number, ranks_of

    def nodes(self, merged: Sequence[SharedNode]) -> tuple[Node, ...]:
        """Return the program with its numbers."""
        everything = {
            k: np.arange(len(self._values[ranks[0]]))[np.newaxis]
            for k, ranks in self._ranks_of.items()
        }
        return self._filled(merged, everything, ())

    def _filled(
        self, merged: Sequence[SharedNode], places: Mapping[int, Column], counts: tuple[int, ...]
    ) -> tuple[Node, ...]:
        """Return nodes with their numbers.

        Parameters
        ----------
        places : by program, the numbers of its operations here, [rounds of all loops around x n]
        counts : rounds of each loop around
        """
        filled: list[Node] = []
        done = dict.fromkeys(places, 0)
        for node in merged:
            here = {}
            for program in node.who:
                begin = done[program]
                done[program] += _length(node, program)
                here[program] = places[program][:, begin : done[program]]
            ranks = tuple(sorted(rank for program in here for rank in self._ranks_of[program]))
            if isinstance(node, SharedLoop):
                filled.append(self._loop(node, ranks, here, counts))
            else:
                filled.append(self._step(node, ranks, here, counts))
        return tuple(filled)

    def _loop(
        self, node: SharedLoop, ranks: tuple[int, ...], here: Mapping[int, Column],
        counts: tuple[int, ...],
    ) -> Loop:  # fmt: skip
        rounds = {k: x.reshape(x.shape[0] * node.count, -1) for k, x in here.items()}
        body = self._filled(node.body, rounds, (*counts, node.count))
        inner = _period(body, len(counts), node.count)
        if inner == node.count:
            return Loop(node.count, ranks, body)
        # Numbers that begin anew every so many rounds are those of a loop in a loop.
        outer = replace(node, count=node.count // inner, body=(replace(node, count=inner),))
        return self._loop(outer, ranks, here, counts)

    def _step(
        self, node: Shared, ranks: tuple[int, ...], here: Mapping[int, Column],
        counts: tuple[int, ...],
    ) -> Step:  # fmt: skip
        shape = self._meaning[node.token]
        found = {}
        for field in self._traced.shapes[shape].fields:
            column = FIELDS.index(field)
            rows = [self._values[r][here[self._number[r]][:, 0], column] for r in ranks]
            values = np.stack(rows).reshape(len(ranks), *counts)
            found[field] = expressions.find(values, ranks)
        told = self._partners.get(shape)
        places = {rank: here[self._number[rank]][:, 0] for rank in ranks}
        line = self._sites.line(shape, places)
        return Step(line, ranks, found, told.partner if told else None)


def _period(body: Sequence[Node], depth: int, count: int) -> int:
    """Return after how many rounds numbers begin anew that grow evenly until then.

    Parameters
    ----------
    depth, count : number and rounds of the loop around the body

    Returns
    -------
    a divisor of `count`; `count` itself if they do not
    """
    for node, _ in walk(body):
        if isinstance(node, Step):
            for expression in node.numbers.values():
                if depth in expression.axes:
                    period = gcd(count, *(expression.jumps(depth) + 1).tolist())
                    if 1 < period < count:
                        return period
    return count


def _length(node: SharedNode, program: int) -> int:
    """Return how many operations of a program a node is; loops nest a few deep."""
    if isinstance(node, Shared):
        return int(program in node.who)
    return node.count * sum(_length(x, program) for x in node.body if program in x.who)
