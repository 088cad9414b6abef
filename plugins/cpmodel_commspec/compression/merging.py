"""Alignment of statements, merge of the programs of many ranks, and statements that do not repeat.

MPI matches the n-th collective operation of a communicator on all of its members. If these call it
from different functions, the functions are branches of one statement (algorithm 1 of Wu, Mueller
and Pakin, TOPC 2014). If the branches also have the same messages in the same order, these are one
statement each as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.printable import printable, shortened
from callpath_modeler.units import counted
from cpmodel_commspec.compression import loops
from cpmodel_commspec.operations import TOGETHER, Shape, Traced
from cpmodel_commspec.specification import Irregular

Site = tuple[str, ...]


def statements(traced: Traced) -> Int64Array:
    """Return the number of the statement of each shape, [shapes].

    Shapes of one statement differ only in the call site. A statement has the number of its first
    shape. The time is linear in the number of operations.
    """
    number = np.arange(len(traced.shapes))
    if not _may_differ(traced.shapes):
        return number
    sites = _Sites()
    for first, second in _met(traced):
        one, other = traced.shapes[first], traced.shapes[second]
        if _statement(one, one.site) == _statement(other, one.site):
            sites.join(one.site, other.site)
    branches = _Branches(traced, sites)
    of_calls: dict[Shape, int] = {}
    of_messages: dict[Shape, int] = {}
    for k, shape in enumerate(traced.shapes):
        site = sites.common(shape.site)
        if shape.kind in TOGETHER:
            number[k] = of_calls.setdefault(_statement(shape, site), k)
        elif branches.is_common(k):
            number[k] = of_messages.setdefault(_statement(shape, site), k)
    return number


def _statement(shape: Shape, site: Site) -> Shape:
    return msgspec.structs.replace(shape, site=site)


def _may_differ(shapes: Sequence[Shape]) -> bool:
    """Tell whether any collective operation has two call sites: the check before all work."""
    calls = [_statement(shape, ()) for shape in shapes if shape.kind in TOGETHER]
    return len(set(calls)) < len(calls)


def _met(traced: Traced) -> Iterator[tuple[int, int]]:
    """Yield the pairs of shapes that were the same operation of a communicator."""
    comm = np.array(
        [shape.comm if shape.kind in TOGETHER else -1 for shape in traced.shapes], np.int64
    )
    seen: set[tuple[int, int]] = set()
    for number, communicator in enumerate(traced.communicators):
        for group in communicator.groups:
            calls = [traced.ranks[rank].shapes for rank in group if rank < len(traced.ranks)]
            calls = [column[comm[column] == number] for column in calls]
            for other in calls[1:]:
                # Ranks of a trace that was cut have fewer calls.
                n = min(len(calls[0]), len(other))
                differ = calls[0][:n] != other[:n]
                pairs = np.stack([calls[0][:n][differ], other[:n][differ]])
                for first, second in np.unique(pairs, axis=1).T.tolist():
                    if (first, second) not in seen:
                        seen.add((first, second))
                        yield first, second


class _Sites:
    """Call paths that mean the same: a branch stands for the first of its kind."""

    def __init__(self) -> None:
        self._stands_for: dict[Site, Site] = {}
        self._branches: set[Site] = set()

    def join(self, one: Site, other: Site) -> None:
        """Note that two call paths mean the same, as far as they differ."""
        shared = 0
        while shared < min(len(one), len(other)) and one[~shared] == other[~shared]:
            shared += 1
        first = self.common(one[: len(one) - shared])
        second = self.common(other[: len(other) - shared])
        if first != second:
            low, high = sorted((first, second), key=lambda site: (len(site), site))
            self._stands_for[high] = low

    def common(self, site: Site) -> Site:
        """Return the call path that stands for a call path; each step shortens or sorts it."""
        k = len(site)
        while k >= 0:
            meant = self._stands_for.get(site[:k])
            if meant is None:
                k -= 1
            else:
                site = (*meant, *site[k:])
                k = len(site)
        return site

    def branch(self, site: Site) -> Site:
        """Return the longest branch at the beginning of a call path, or ()."""
        if not self._branches:
            self._branches = {*self._stands_for, *self._stands_for.values()}
        return next((site[:k] for k in range(len(site), 0, -1) if site[:k] in self._branches), ())


class _Branches:
    """The statements of branches, in the order in which they first occur on a rank.

    A branch has the statements of the rank that executes most of them.
    """

    def __init__(self, traced: Traced, sites: _Sites) -> None:
        self._sites = sites
        self._of_shape = [sites.branch(shape.site) for shape in traced.shapes]
        self._statements: dict[Site, list[Shape]] = {}
        for one in traced.ranks:
            shapes, first = np.unique(one.shapes, return_index=True)
            orders: defaultdict[Site, list[Shape]] = defaultdict(list)
            for k in shapes[np.argsort(first)].tolist():
                branch, shape = self._of_shape[k], traced.shapes[k]
                orders[branch].append(_statement(shape, shape.site[len(branch) :]))
            for branch, order in orders.items():
                if len(order) > len(self._statements.get(branch, ())):
                    self._statements[branch] = order

    def is_common(self, number: int) -> bool:
        """Tell whether the branch of a shape has the same statements as the common branch."""
        branch = self._of_shape[number]
        common = self._sites.common(branch)
        return self._statements.get(branch) == self._statements.get(common)


_MOST_PAIRS = 400_000
"""Pairs of lines that are compared to align two programs; longer ones stay as they are."""

Begin: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """An operation, the programs that it is part of by number, and its numbers at first there."""

    token: int
    who: frozenset[int]
    begins: frozenset[Begin]


@dataclass(frozen=True, slots=True)
class Rounds:
    """A loop, and its rounds in each program that it is part of."""

    counts: Mapping[int, int]
    body: tuple[Merged, ...]

    @property
    def who(self) -> frozenset[int]:
        """The programs."""
        return frozenset(self.counts)

    @property
    def count(self) -> int:
        """The rounds, if all programs have the same."""
        return next(iter(self.counts.values()))


Merged: TypeAlias = "Line | Rounds"
Nodes: TypeAlias = Sequence[Merged]


@dataclass(frozen=True, slots=True)
class Join:
    """Nodes ``one[a:b]`` and ``other[c:d]`` that become one; several nodes are one round."""

    a: int
    b: int
    c: int
    d: int


class Merger:
    """Merge of programs into one. Loops become one if their rounds are the same.

    Programs are aligned one after the other with what was merged before, so that as many
    operations as possible are shared, rather those of equal numbers than others. Whatever is
    shared, the order of each program is kept.

    Attributes
    ----------
    gain, gain_of_equal : what a shared line is worth, and further if its first numbers are equal
    gain_of_rounds : what a shared loop is worth besides its lines, if its rounds are equal
    joins_equal : whether lines are shared if that is worth as much as to leave them
    """

    gain, gain_of_equal, gain_of_rounds, joins_equal = 2, 1, 0, True

    def merge(
        self, programs: Sequence[Sequence[loops.Node]], numbers: Sequence[Sequence[Begin]]
    ) -> tuple[Merged, ...]:
        """Return one program of which every given one is the part that is marked with its number.

        Parameters
        ----------
        numbers : of each program, the numbers of each operation, once unrolled
        """
        marked = [_marked(program, numbers[k], k, 0)[0] for k, program in enumerate(programs)]
        lengths = [len(own) for own in numbers]
        order = sorted(range(len(programs)), key=lambda k: self._place(marked[k], lengths[k], k))
        return reduce(self._merged, [marked[k] for k in order]) if marked else ()

    def _place(self, _program: Nodes, length: int, _number: int) -> tuple[int, ...]:
        """Return the sort key of a program; the longest comes first, because it has most lines."""
        return (-length,)

    def _merged(self, one: Nodes, other: Nodes) -> tuple[Merged, ...]:
        """Return two programs as one; loops nest a few deep, and so does this."""
        merged: list[Merged] = []
        i = j = 0
        for join in [*self._aligned(one, other), Join(len(one), len(one), len(other), len(other))]:
            merged += one[i : join.a]
            merged += other[j : join.c]
            if join.b > join.a:
                merged.append(self._joined(one[join.a : join.b], other[join.c : join.d]))
            i, j = join.b, join.d
        return tuple(merged)

    def _joined(self, one: Nodes, other: Nodes) -> Merged:
        first, second = one[0], other[0]
        if len(one) == len(other) == 1 and isinstance(first, Line) and isinstance(second, Line):
            return Line(first.token, first.who | second.who, first.begins | second.begins)
        left, right = as_loop(one), as_loop(other)
        return Rounds({**left.counts, **right.counts}, self._merged(left.body, right.body))

    def _aligned(self, one: Nodes, other: Nodes) -> list[Join]:
        """Return the joins that share most lines, in order."""
        first, shorter = 0, min(len(one), len(other))
        while first < shorter and self._is_same(one[first], other[first]):
            first += 1
        last = 0
        while last < shorter - first and self._is_same(one[~last], other[~last]):
            last += 1
        joins = [Join(k, k + 1, k, k + 1) for k in range(first)]
        middle = self._longest(one[first : len(one) - last], other[first : len(other) - last])
        joins += [Join(first + x.a, first + x.b, first + x.c, first + x.d) for x in middle[1]]
        ends = [(len(one) - k, len(other) - k) for k in range(last, 0, -1)]
        return joins + [Join(a, a + 1, c, c + 1) for a, c in ends]

    def _longest(self, one: Nodes, other: Nodes) -> tuple[int, list[Join]]:
        """Return what is won at most, and the joins that win it: a longest common subsequence."""
        if not one or not other or lines_of(one) * lines_of(other) > _MOST_PAIRS:
            return 0, []
        best: list[list[int]] = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
        came: dict[tuple[int, int], Join] = {}
        for a in range(1, len(one) + 1):
            for b in range(1, len(other) + 1):
                won = max(best[a - 1][b], best[a][b - 1])
                for join, gain in self._joins(one, other, a, b):
                    total = best[join.a][join.c] + gain
                    if total > won or (total == won and self.joins_equal):
                        won = total
                        came[a, b] = join
                best[a][b] = won
        joins: list[Join] = []
        a, b = len(one), len(other)
        while a and b:
            best_join = came.get((a, b))
            if best_join is not None:
                joins.append(best_join)
                a, b = best_join.a, best_join.c
            elif best[a][b] == best[a - 1][b]:
                a -= 1
            else:
                b -= 1
        return best[-1][-1], joins[::-1]

    def _joins(self, one: Nodes, other: Nodes, a: int, b: int) -> list[tuple[Join, int]]:
        """Return the joins that end with the nodes before `a` and `b`, and what each is worth."""
        gain = self._gain(one[a - 1], other[b - 1])
        return [(Join(a - 1, a, b - 1, b), gain)] if gain else []

    def _gain(self, one: Merged, other: Merged) -> int:
        """Return what is won if two nodes become one; 0 if they cannot."""
        if isinstance(one, Line) and isinstance(other, Line):
            if one.token != other.token:
                return 0
            return self.gain + self.gain_of_equal * (not one.begins.isdisjoint(other.begins))
        if isinstance(one, Rounds) and isinstance(other, Rounds) and self._may_join(one, other):
            is_equal = set(one.counts.values()) == set(other.counts.values())
            gain = self._longest(one.body, other.body)[0]
            return gain + self.gain_of_rounds * is_equal if gain else 0
        return 0

    def _may_join(self, one: Rounds, other: Rounds) -> bool:
        """Tell whether loops can become one."""
        return one.count == other.count

    def _is_same(self, one: Merged, other: Merged) -> bool:
        if isinstance(one, Line) and isinstance(other, Line):
            return one.token == other.token and not one.begins.isdisjoint(other.begins)
        if isinstance(one, Rounds) and isinstance(other, Rounds):
            return (
                self._may_join(one, other)
                and len(one.body) == len(other.body)
                and all(map(self._is_same, one.body, other.body))
            )
        return False


def as_loop(nodes: Nodes) -> Rounds:
    """Return a loop as it is, and other nodes as a loop of one round."""
    first = nodes[0]
    if len(nodes) == 1 and isinstance(first, Rounds):
        return first
    who = frozenset[int]().union(*(node.who for node in nodes))
    return Rounds(dict.fromkeys(sorted(who), 1), tuple(nodes))


def _marked(
    program: Sequence[loops.Node], numbers: Sequence[Begin], who: int, begin: int
) -> tuple[tuple[Merged, ...], int]:
    """Return a program with its number, and how many operations it has, unrolled."""
    marked: list[Merged] = []
    length = 0
    for node in program:
        if isinstance(node, int):
            marked.append(Line(node, frozenset({who}), frozenset({numbers[begin + length]})))
            length += 1
        else:
            body, inner = _marked(node.body, numbers, who, begin + length)
            marked.append(Rounds({who: node.count}, body))
            length += inner * node.count
    return tuple(marked), length


def lines_of(merged: Nodes) -> int:
    """Return the number of operations and loops."""
    return sum(1 + (lines_of(x.body) if isinstance(x, Rounds) else 0) for x in merged)


def placed(
    merged: Nodes, places: Mapping[int, Int64Array]
) -> Iterator[tuple[Merged, dict[int, Int64Array]]]:
    """Yield nodes with the operations that each of their programs has there.

    Parameters
    ----------
    places : by program, the numbers of its operations here, [rounds of all loops around x n]
    """
    done = dict.fromkeys(places, 0)
    for node in merged:
        here = {}
        for program in sorted(node.who):
            begin = done[program]
            done[program] += length(node, program)
            here[program] = places[program][:, begin : done[program]]
        yield node, here


def length(node: Merged, program: int) -> int:
    """Return how many operations of a program a node is; loops nest a few deep."""
    if isinstance(node, Line):
        return int(program in node.who)
    return node.counts.get(program, 0) * sum(length(x, program) for x in node.body)


_LEAST_LINES = 16
_LINES_PER_PARTNER = 3
"""A statement is irregular from so many lines on, if one rank has so many of each partner."""

_SHOWN = 3


def irregular(
    merged: Nodes,
    meaning: Sequence[tuple[int, int]],
    shapes: Sequence[Shape],
    ranks_of: Mapping[int, Sequence[int]],
    *,
    is_any: bool = False,
) -> tuple[Irregular, ...]:
    """Return the statements that do not repeat, those of most lines first.

    Parameters
    ----------
    merged : the program of all ranks
    meaning : statement of each token: a shape and a tag
    ranks_of : the ranks of each program
    is_any : whether to return all statements
    """
    lines: Counter[tuple[int, tuple[int, int]]] = Counter()
    partners: defaultdict[tuple[int, tuple[int, int]], set[int]] = defaultdict(set)
    for node in _operations(merged):
        for program in node.who:
            key = program, meaning[node.token]
            lines[key] += 1
            partners[key].add(node.token)
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for key, count in lines.items():
        program, (shape, _) = key
        if is_any or count >= max(_LEAST_LINES, _LINES_PER_PARTNER * len(partners[key])):
            found[shape][program] = max(count, found[shape].get(program, 0))
    told = [
        Irregular(
            shapes[shape].site,
            shapes[shape].call or shapes[shape].name or str(shapes[shape].kind),
            tuple(sorted(rank for program in programs for rank in ranks_of[program])),
            max(programs.values()),
        )
        for shape, programs in found.items()
    ]
    return tuple(sorted(told, key=lambda one: -one.lines))


def irregular_text(found: Sequence[Irregular]) -> str:
    """Return the statements that do not repeat, in words."""
    parts = []
    for one in found[:_SHOWN]:
        first, *others = one.ranks
        who = f"rank {first}" + (f" and {counted(len(others), 'other')}" if others else "")
        path = shortened(printable("/".join((*one.site[1:], one.call))))
        parts.append(f"{one.lines} lines for {path} of {who}")
    if len(found) > _SHOWN:
        parts.append(f"{counted(len(found) - _SHOWN, 'more statement')}")
    return ", ".join(parts)


def _operations(merged: Nodes) -> Iterator[Line]:
    for node in merged:
        if isinstance(node, Line):
            yield node
        else:
            yield from _operations(node.body)
