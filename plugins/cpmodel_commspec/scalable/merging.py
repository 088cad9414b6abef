"""Merge of the programs of all ranks of all traces into one, with loops of different rounds.

This differs from `cpmodel_commspec.compression.merging` in one respect: the rounds of a loop may
depend on the number of processes. So loops of different traces become one although their counts
differ, and operations become the only round of a loop that other traces repeat.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from cpmodel_commspec.compression import loops

_MOST_PAIRS = 400_000
"""Pairs of lines that are compared to align two programs; longer ones stay as they are."""

_GAIN, _SAME = 4, 1
"""Gain of a shared line, and further gain if its first numbers are equal."""

_ONCE = 1
"""Cost of a loop of one round around lines."""


@dataclass(frozen=True, slots=True)
class Line:
    """An operation, the programs that it is part of, and its numbers at first there."""

    token: int
    who: frozenset[int]
    begins: frozenset[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Rounds:
    """A loop, and its rounds in each program that it is part of."""

    counts: Mapping[int, int]
    body: tuple[Node, ...]

    @property
    def who(self) -> frozenset[int]:
        """The programs."""
        return frozenset(self.counts)


Node: TypeAlias = "Line | Rounds"
Nodes: TypeAlias = Sequence[Node]


@dataclass(frozen=True, slots=True)
class _Join:
    """Nodes ``one[a:b]`` and ``other[c:d]`` that become one; several nodes are one round."""

    a: int
    b: int
    c: int
    d: int


class Merger:
    """Merge of programs.

    Parameters
    ----------
    trace_of : the trace of each program
    free : tokens that ranks of one trace may repeat a different number of times
    """

    def __init__(self, trace_of: Sequence[int], free: Collection[int]) -> None:
        self._trace_of, self._free = trace_of, free

    def merge(
        self, programs: Sequence[Sequence[loops.Node]], numbers: Sequence[Sequence[tuple[int, ...]]]
    ) -> tuple[Node, ...]:
        """Return one program of which every given one is the part that is marked with its number.

        The longest programs of the largest traces come first, because they have most lines.
        """
        marked = [_marked(program, numbers[k], k, 0)[0] for k, program in enumerate(programs)]
        order = sorted(
            range(len(programs)), key=lambda k: (-_lines(marked[k]), -self._trace_of[k], k)
        )
        return reduce(self._merged, [marked[k] for k in order]) if marked else ()

    def _merged(self, one: Nodes, other: Nodes) -> tuple[Node, ...]:
        merged: list[Node] = []
        i = j = 0
        for join in [*self._aligned(one, other), _Join(len(one), len(one), len(other), len(other))]:
            merged += one[i : join.a]
            merged += other[j : join.c]
            if join.b > join.a:
                merged.append(self._joined(one[join.a : join.b], other[join.c : join.d]))
            i, j = join.b, join.d
        return tuple(merged)

    def _joined(self, one: Nodes, other: Nodes) -> Node:
        first, second = one[0], other[0]
        if len(one) == len(other) == 1 and isinstance(first, Line) and isinstance(second, Line):
            return Line(first.token, first.who | second.who, first.begins | second.begins)
        left, right = _as_loop(one), _as_loop(other)
        return Rounds({**left.counts, **right.counts}, self._merged(left.body, right.body))

    def _aligned(self, one: Nodes, other: Nodes) -> list[_Join]:
        """Return the joins that share most lines, in order."""
        first, shorter = 0, min(len(one), len(other))
        while first < shorter and self._is_same(one[first], other[first]):
            first += 1
        last = 0
        while last < shorter - first and self._is_same(one[~last], other[~last]):
            last += 1
        joins = [_Join(k, k + 1, k, k + 1) for k in range(first)]
        middle = self._longest(one[first : len(one) - last], other[first : len(other) - last])
        joins += [_Join(first + x.a, first + x.b, first + x.c, first + x.d) for x in middle[1]]
        ends = [(len(one) - k, len(other) - k) for k in range(last, 0, -1)]
        return joins + [_Join(a, a + 1, c, c + 1) for a, c in ends]

    def _longest(self, one: Nodes, other: Nodes) -> tuple[int, list[_Join]]:
        """Return what is won at most, and the joins that win it: a longest common subsequence."""
        if not one or not other or _lines(one) * _lines(other) > _MOST_PAIRS:
            return 0, []
        best: list[list[int]] = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
        came: dict[tuple[int, int], _Join] = {}
        for a in range(1, len(one) + 1):
            for b in range(1, len(other) + 1):
                won = max(best[a - 1][b], best[a][b - 1])
                for join, gain in self._joins(one, other, a, b):
                    total = best[join.a][join.c] + gain
                    if total > won:
                        won = total
                        came[a, b] = join
                best[a][b] = won
        joins: list[_Join] = []
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

    def _joins(self, one: Nodes, other: Nodes, a: int, b: int) -> list[tuple[_Join, int]]:
        """Return the joins that end with the nodes before `a` and `b`, and what each is worth."""
        x, y = one[a - 1], other[b - 1]
        found = []
        gain = self._gain(x, y)
        if gain:
            found.append((_Join(a - 1, a, b - 1, b), gain))
        if isinstance(x, Rounds) and not isinstance(y, Rounds):
            for n in range(1, min(b, len(x.body)) + 1):
                gain = self._gain_once(x, other[b - n : b])
                if gain:
                    found.append((_Join(a - 1, a, b - n, b), gain))
        if isinstance(y, Rounds) and not isinstance(x, Rounds):
            for n in range(1, min(a, _lines(one)) + 1):
                gain = self._gain_once(y, one[a - n : a])
                if gain:
                    found.append((_Join(a - n, a, b - 1, b), gain))
        return found

    def _gain(self, one: Node, other: Node) -> int:
        if isinstance(one, Line) and isinstance(other, Line):
            if one.token != other.token:
                return 0
            return _GAIN + _SAME * (not one.begins.isdisjoint(other.begins))
        if isinstance(one, Rounds) and isinstance(other, Rounds) and self._may_join(one, other):
            is_equal = set(one.counts.values()) == set(other.counts.values())
            gain = self._longest(one.body, other.body)[0]
            return gain + _SAME * is_equal if gain else 0
        return 0

    def _gain_once(self, loop: Rounds, nodes: Nodes) -> int:
        """Return what is won if nodes are a round of a loop; 0 if they are not."""
        if any(isinstance(node, Rounds) for node in nodes):
            return 0
        if not self._is_free(loop) and len(nodes) != len(loop.body):
            return 0
        single = _as_loop(nodes)
        if not self._may_join(loop, single):
            return 0
        gain, joins = self._longest(loop.body, nodes)
        is_whole = sum(join.d - join.c for join in joins) == len(nodes)
        return gain - _ONCE if is_whole else 0

    def _may_join(self, one: Rounds, other: Rounds) -> bool:
        """Tell whether loops have equal rounds in each trace that has both, or free ones."""
        if self._is_free(one) or self._is_free(other):
            return True
        rounds: dict[int, set[int]] = {}
        for program, count in (*one.counts.items(), *other.counts.items()):
            rounds.setdefault(self._trace_of[program], set()).add(count)
        return all(len(own) == 1 for own in rounds.values())

    def _is_free(self, loop: Rounds) -> bool:
        return any(isinstance(node, Line) and node.token in self._free for node in loop.body)

    def _is_same(self, one: Node, other: Node) -> bool:
        if isinstance(one, Line) and isinstance(other, Line):
            return one.token == other.token and not one.begins.isdisjoint(other.begins)
        if isinstance(one, Rounds) and isinstance(other, Rounds):
            return (
                self._may_join(one, other)
                and len(one.body) == len(other.body)
                and all(map(self._is_same, one.body, other.body))
            )
        return False


def _as_loop(nodes: Nodes) -> Rounds:
    """Return a loop as it is, and other nodes as a loop of one round."""
    first = nodes[0]
    if len(nodes) == 1 and isinstance(first, Rounds):
        return first
    who = frozenset[int]().union(*(node.who for node in nodes))
    return Rounds(dict.fromkeys(sorted(who), 1), tuple(nodes))


def _marked(
    program: Sequence[loops.Node], numbers: Sequence[tuple[int, ...]], who: int, begin: int
) -> tuple[tuple[Node, ...], int]:
    """Return a program with its number, and how many operations it has, unrolled."""
    marked: list[Node] = []
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


def _lines(nodes: Nodes) -> int:
    """Return the number of operations and loops."""
    return sum(1 + (_lines(x.body) if isinstance(x, Rounds) else 0) for x in nodes)


def length(node: Node, program: int) -> int:
    """Return how many operations of a program a node is; loops nest a few deep."""
    if isinstance(node, Line):
        return int(program in node.who)
    return node.counts.get(program, 0) * sum(length(x, program) for x in node.body)
