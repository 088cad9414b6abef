"""From recorded operations to a specification, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import gcd
from typing import TypeAlias

import msgspec
import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from callpath_modeler.errors import DataError
from cpmodel_commspec import computation, expressions
from cpmodel_commspec.compression import merging
from cpmodel_commspec.compression.loops import compress
from cpmodel_commspec.expressions import Partner, Relation, choose, is_series
from cpmodel_commspec.operations import FIELDS, TOGETHER, Recorded, Shape, Traced
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


_MOST_TAGS = 8
"""Tags of one call site that tell statements apart; more are numbers of one statement."""


class Tags(Enum):
    """The origin of the number of a tag."""

    ZERO = "zero"
    RANK = "rank"
    PEER = "peer"
    NONE = "none"
    """All tags have one number."""

    def number(self, rank: int | Int64Array, tags: Int64Array, peers: Int64Array) -> Int64Array:
        """Return the number of the tag of each message [n] of a rank, or of its rank [n]."""
        if self is Tags.ZERO:
            return tags
        if self is Tags.RANK:
            return tags - rank
        return tags - peers if self is Tags.PEER else np.zeros_like(tags)


def choose_tags(pairs: Sequence[tuple[int, Int64Array, Int64Array]]) -> Tags:
    """Return the origin with the fewest numbers.

    Parameters
    ----------
    pairs : for each rank, the rank, the tags of its messages and the partners
    """
    if is_series([tags for _, tags, _ in pairs]):
        return Tags.NONE
    counts = {
        tags: len(np.unique(np.concatenate([tags.number(*pair) for pair in pairs])))
        for tags in (Tags.ZERO, Tags.RANK, Tags.PEER)
    }
    best = min(counts, key=counts.__getitem__)
    return best if counts[best] <= _MOST_TAGS else Tags.NONE


_COMPARED = [FIELDS.index("tag"), FIELDS.index("bytes")]


def specify(traced: Traced, most_lines: int | None = None) -> Specification:
    """Return the specification of all operations of a trace.

    Raises
    ------
    DataError
        If it has more than `most_lines` lines.
    """
    sites = _Sites(traced)
    traced = sites.aligned
    messages = _messages(traced)
    sequences, meaning, values = _tokens(traced, messages)
    programs: dict[bytes, int] = {}
    number = [programs.setdefault(sequence.tobytes(), len(programs)) for sequence in sequences]
    distinct = [compress(np.frombuffer(code, np.int64).tolist()) for code in programs]
    ranks_of = {
        program: [rank for rank, k in enumerate(number) if k == program]
        for program in range(len(distinct))
    }
    build = _Build(traced, sites, messages, meaning, values, number, ranks_of)
    begins = [_begins(traced, ranks[0], values[ranks[0]]) for ranks in ranks_of.values()]
    merged = merging.Merger().merge(distinct, begins)
    found = merging.irregular(merged, meaning, traced.shapes, ranks_of)
    lines = merging.lines_of(merged)
    if most_lines is not None and lines > most_lines:
        longest = found or merging.irregular(merged, meaning, traced.shapes, ranks_of, is_any=True)
        raise DataError(
            f"the specification has {lines} lines, more than {most_lines}: "
            f"{merging.irregular_text(longest)}",
            hint=f"use --any-source for receives from any source, or --max-lines {lines}",
        )
    body = build.nodes(merged)
    told = Specification(
        traced.program,
        len(traced.ranks),
        traced.events,
        sum(len(one.shapes) for one in traced.ranks),
        len(programs),
        sites.shapes,
        traced.communicators,
        body,
        traced.left_out,
        found,
    )
    return with_computation(told, traced)


def _begins(traced: Traced, rank: int, values: Int64Array) -> list[merging.Begin]:
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
        number = merging.statements(traced)
        counts = np.bincount(number, minlength=len(number))
        self._has_many = (counts > 1).tolist()
        ranks = tuple(replace(one, shapes=number[one.shapes]) for one in traced.ranks)
        self.aligned = replace(traced, ranks=ranks)
        self._used: dict[Shape, int] = {}

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes of the lines so far."""
        return tuple(self._used)

    def line(self, shape: int, places: Mapping[int, Int64Array]) -> int:
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


_Statement: TypeAlias = tuple[int, int]
"""A shape, and the number of the tag of its first message."""


@dataclass(frozen=True, slots=True)
class _Partners:
    """The partners of a statement.

    Attributes
    ----------
    partner : as a function of the rank
    is_single : whether all of them belong to one line
    """

    partner: Partner
    is_single: bool


@dataclass(frozen=True, slots=True)
class _Messages:
    """The messages of all ranks.

    Attributes
    ----------
    tags : the origin of the tags of a shape
    partners : of each statement, by the field of the partner
    """

    tags: Mapping[int, Tags]
    partners: Mapping[_Statement, Mapping[str, _Partners]]

    def of(self, statement: _Statement) -> dict[str, Partner]:
        """Return the partners of a line."""
        return {field: told.partner for field, told in self.partners.get(statement, {}).items()}


def _messages(traced: Traced) -> _Messages:
    """Return the criteria by which messages are different statements."""
    tags: dict[int, Tags] = {}
    partners: dict[_Statement, dict[str, _Partners]] = {}
    processes = len(traced.ranks)
    for shape, about in enumerate(traced.shapes):
        if not about.ends:
            continue
        rows = {rank: one.values[one.shapes == shape] for rank, one in enumerate(traced.ranks)}
        rows = {rank: values for rank, values in rows.items() if len(values)}
        if not rows:
            continue
        peer, tag, _ = about.ends[0].columns
        pairs = {rank: (rank, x[:, tag], x[:, peer]) for rank, x in rows.items()}
        tags[shape] = told = choose_tags(list(pairs.values()))
        numbers = {rank: told.number(*pair) for rank, pair in pairs.items()}
        for number in np.unique(np.concatenate(list(numbers.values()))).tolist():
            here = {rank: values[numbers[rank] == number] for rank, values in rows.items()}
            partners[shape, number] = {
                end.peer: _partners(
                    {rank: x[:, end.columns[0]] for rank, x in here.items() if len(x)},
                    processes,
                    # The sources of a receive from any source do not tell statements apart.
                    is_single=(about.is_any and not end.is_sent) or bool(about.turn),
                )
                for end in about.ends
            }
    return _Messages(tags, partners)


def _partners(peers: Mapping[int, Int64Array], processes: int, *, is_single: bool) -> _Partners:
    """Return the partners of the messages of each rank."""
    ranks = np.concatenate([np.full(len(column), rank) for rank, column in peers.items()])
    partner = choose(ranks, np.concatenate(list(peers.values())), processes)
    numbers = [partner.number(np.full(len(x), rank), x) for rank, x in peers.items()]
    is_one = all((column == column[0]).all() for column in peers.values())
    return _Partners(partner, is_single or is_one or is_series(numbers))


def _tokens(
    traced: Traced, messages: _Messages
) -> tuple[list[Int64Array], list[_Statement], list[Int64Array]]:
    """Give each line a number: a statement, and the partners where they tell lines apart.

    Returns
    -------
    sequences : of each rank, tokens [n]
    meaning : statement of each token
    values : of each rank, [n x `FIELDS`], in place of partners the numbers that tell them
    """
    tables, tokens, values = [], [], []
    for rank, one in enumerate(traced.ranks):
        table = np.zeros((len(one.shapes), 4), np.int64)
        table[:, 0] = one.shapes
        own = one.values.copy()
        for shape in np.unique(one.shapes).tolist():
            if shape not in messages.tags:
                continue
            here = np.flatnonzero(one.shapes == shape)
            ends = traced.shapes[shape].ends
            peer, tag, _ = ends[0].columns
            about = one.values[here]
            tags = messages.tags[shape].number(rank, about[:, tag], about[:, peer])
            table[here, 1] = tags
            for number in np.unique(tags).tolist():
                rows = here[tags == number]
                for k, end in enumerate(ends):
                    told, column = messages.partners[shape, number][end.peer], end.columns[0]
                    peers = one.values[rows, column]
                    own[rows, column] = told.partner.number(np.full(len(rows), rank), peers)
                    if not told.is_single:
                        table[rows, 2 + k] = own[rows, column]
        # Rank by rank, so that only a short table of all ranks is sorted.
        known, token = np.unique(table, axis=0, return_inverse=True)
        tables.append(known)
        tokens.append(token.ravel())
        values.append(own)
    lines, number = np.unique(np.concatenate(tables), axis=0, return_inverse=True)
    numbers_of_ranks = np.split(number.ravel(), np.cumsum([len(x) for x in tables])[:-1])
    sequences = [new[token] for new, token in zip(numbers_of_ranks, tokens, strict=True)]
    meaning = [(shape, tag) for shape, tag, *_ in lines.tolist()]
    return sequences, meaning, values


class _Build:
    """Builder of the program: puts the numbers of all ranks into the merged statements."""

    def __init__(
        self, traced: Traced, sites: _Sites, messages: _Messages,
        meaning: Sequence[_Statement], values: Sequence[Int64Array], number: Sequence[int],
        ranks_of: Mapping[int, Sequence[int]],
    ) -> None:  # fmt: skip
        self._traced, self._sites = traced, sites
        self._messages, self._meaning = messages, meaning
        self._values, self._number, self._ranks_of = values, number, ranks_of

    def nodes(self, merged: Sequence[merging.Merged]) -> tuple[Node, ...]:
        """Return the program with its numbers."""
        everything = {
            k: np.arange(len(self._values[ranks[0]]))[np.newaxis]
            for k, ranks in self._ranks_of.items()
        }
        return self._filled(merged, everything, ())

    def _filled(
        self,
        merged: Sequence[merging.Merged],
        places: Mapping[int, Int64Array],
        counts: tuple[int, ...],
    ) -> tuple[Node, ...]:
        """Return nodes with their numbers.

        Parameters
        ----------
        places : by program, the numbers of its operations here, [rounds of all loops around x n]
        counts : rounds of each loop around
        """
        filled: list[Node] = []
        for node, here in merging.placed(merged, places):
            ranks = tuple(sorted(rank for program in here for rank in self._ranks_of[program]))
            if isinstance(node, merging.Rounds):
                filled += self._loop(node, ranks, here, counts)
            else:
                filled.append(self._step(node, ranks, here, counts))
        return tuple(filled)

    def _loop(
        self, node: merging.Rounds, ranks: tuple[int, ...], here: Mapping[int, Int64Array],
        counts: tuple[int, ...],
    ) -> Sequence[Node]:  # fmt: skip
        rounds = {k: x.reshape(x.shape[0] * node.count, -1) for k, x in here.items()}
        body = self._filled(node.body, rounds, (*counts, node.count))
        loop = Loop(node.count, ranks, body)
        if _is_pair(loop, len(counts)):
            halves = {k: np.split(x.reshape(len(x) // 2, -1), 2, axis=1) for k, x in rounds.items()}
            return [
                self._filled(node.body, {k: x[half] for k, x in halves.items()}, counts)[0]
                for half in (0, 1)
            ]
        inner = _period(body, len(counts), node.count)
        if inner == node.count:
            return [loop]
        # Numbers that start again after some rounds belong to a loop in a loop.
        within = merging.Rounds(dict.fromkeys(node.counts, inner), node.body)
        outer = merging.Rounds(dict.fromkeys(node.counts, node.count // inner), (within,))
        return self._loop(outer, ranks, here, counts)

    def _step(
        self, node: merging.Line, ranks: tuple[int, ...], here: Mapping[int, Int64Array],
        counts: tuple[int, ...],
    ) -> Step:  # fmt: skip
        shape, tag = self._meaning[node.token]
        found = {}
        for field in self._traced.shapes[shape].fields:
            column = FIELDS.index(field)
            rows = [self._values[r][here[self._number[r]][:, 0], column] for r in ranks]
            values = np.stack(rows).reshape(len(ranks), *counts)
            found[field] = expressions.find(values, ranks)
        places = {rank: here[self._number[rank]][:, 0] for rank in ranks}
        line = self._sites.line(shape, places)
        partners = self._messages.of((shape, tag))
        for field, partner in partners.items():
            number = found[field]
            if partner.relation is Relation.DISTANCE and number.rank:
                # A distance that grows with the rank is shorter as the rank of the partner.
                found[field] = msgspec.structs.replace(number, rank=number.rank + 1)
                partners[field] = Partner(Relation.RANK)
        return Step(line, ranks, found, partners)


def _is_pair(loop: Loop, depth: int) -> bool:
    """Tell whether a loop is two statements: one operation each, with different numbers."""
    is_one = len(loop.body) == 1 and isinstance(loop.body[0], Step)
    return loop.count == 2 and is_one and loop.is_counted(depth)


def _period(body: Sequence[Node], depth: int, count: int) -> int:
    """Return the number of rounds after which even steps start again.

    Parameters
    ----------
    depth, count : number and rounds of the loop around the body

    Returns
    -------
    a divisor of `count`, or `count` itself
    """
    for node, _ in walk(body):
        if isinstance(node, Step):
            for expression in node.numbers.values():
                if depth in expression.axes:
                    period = gcd(count, *(expression.jumps(depth) + 1).tolist())
                    if 1 < period < count:
                        return period
    return count
