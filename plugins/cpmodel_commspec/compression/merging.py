"""Merge of the programs of many ranks into one, with the ranks of every operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from cpmodel_commspec.compression import loops

_MOST_PAIRS = 400_000
"""Pairs of operations that are compared to align two programs; longer ones stay as they are."""

_UNEQUAL, _EQUAL = 2, 3
"""What it is worth to share an operation, of unequal and of equal numbers."""

Begin: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """An operation, the programs that it is part of by number, and its numbers at first there."""

    token: int
    who: frozenset[int]
    begins: frozenset[Begin]


@dataclass(frozen=True, slots=True)
class SharedLoop:
    """A loop, and the numbers of the programs that it is part of."""

    count: int
    body: tuple[SharedNode, ...]
    who: frozenset[int]


SharedNode: TypeAlias = "Shared | SharedLoop"
Nodes: TypeAlias = Sequence[SharedNode]


def merge(
    programs: Sequence[Sequence[loops.Node]], numbers: Sequence[Sequence[Begin]]
) -> tuple[SharedNode, ...]:
    """Return one program of which every given one is the part that is marked with its number.

    Programs are aligned one after the other with what was merged before, the longest first, so
    that as many operations as possible are shared, rather those of equal numbers than others.
    Whatever is shared, the order of each program is kept.

    Parameters
    ----------
    numbers : of each program, the numbers of each operation, once unrolled
    """
    marked = [
        _marked(program, numbers[k], frozenset({k}), 0)[0] for k, program in enumerate(programs)
    ]
    by_length = sorted(range(len(programs)), key=lambda k: -len(numbers[k]))
    return reduce(_merged, [marked[k] for k in by_length]) if marked else ()


def _marked(
    program: Sequence[loops.Node], numbers: Sequence[Begin], who: frozenset[int], begin: int
) -> tuple[tuple[SharedNode, ...], int]:
    """Return a program with what it shares so far, and how many operations it has, unrolled."""
    marked: list[SharedNode] = []
    length = 0
    for node in program:
        if isinstance(node, int):
            marked.append(Shared(node, who, frozenset({numbers[begin + length]})))
            length += 1
        else:
            body, inner = _marked(node.body, numbers, who, begin + length)
            marked.append(SharedLoop(node.count, body, who))
            length += inner * node.count
    return tuple(marked), length


def _merged(one: Nodes, other: Nodes) -> tuple[SharedNode, ...]:
    """Return two programs as one; loops nest a few deep, and so does this."""
    merged: list[SharedNode] = []
    i = j = 0
    for a, b in [*_aligned(one, other), (len(one), len(other))]:
        merged += one[i:a]
        merged += other[j:b]
        if a < len(one):
            merged.append(_joined(one[a], other[b]))
        i, j = a + 1, b + 1
    return tuple(merged)


def _joined(one: SharedNode, other: SharedNode) -> SharedNode:
    who = one.who | other.who
    if isinstance(one, SharedLoop) and isinstance(other, SharedLoop):
        return SharedLoop(one.count, _merged(one.body, other.body), who)
    assert isinstance(one, Shared)
    assert isinstance(other, Shared)
    return Shared(one.token, who, one.begins | other.begins)


def _aligned(one: Nodes, other: Nodes) -> list[tuple[int, int]]:
    """Return the pairs of places that become one, those that share most operations."""
    first = 0
    while first < min(len(one), len(other)) and _is_same(one[first], other[first]):
        first += 1
    last = 0
    while last < min(len(one), len(other)) - first and _is_same(one[~last], other[~last]):
        last += 1
    pairs = [(k, k) for k in range(first)]
    middle = _longest(one[first : len(one) - last], other[first : len(other) - last])
    pairs += [(first + a, first + b) for a, b in middle[1]]
    pairs += [(len(one) - k, len(other) - k) for k in range(last, 0, -1)]
    return pairs


def _longest(one: Nodes, other: Nodes) -> tuple[int, list[tuple[int, int]]]:
    """Return what is won at most, and the pairs that win it: a longest common subsequence."""
    if not one or not other or _lines(one) * _lines(other) > _MOST_PAIRS:
        return 0, []
    gains = {
        (a, b): gain
        for a, x in enumerate(one)
        for b, y in enumerate(other)
        if (gain := _gain(x, y))
    }
    best = [[0] * (len(other) + 1)]
    for a in range(len(one)):
        above, row = best[-1], [0]
        for b in range(len(other)):
            won = gains.get((a, b))
            skipped = max(above[b + 1], row[b])
            row.append(skipped if won is None else max(skipped, above[b] + won))
        best.append(row)
    return best[-1][-1], _traced(best, gains, len(one), len(other))


def _traced(
    best: list[list[int]], gains: dict[tuple[int, int], int], a: int, b: int
) -> list[tuple[int, int]]:
    pairs = []
    while a and b:
        won = gains.get((a - 1, b - 1))
        if won is not None and best[a][b] == best[a - 1][b - 1] + won:
            pairs.append((a - 1, b - 1))
            a, b = a - 1, b - 1
        elif best[a][b] == best[a - 1][b]:
            a -= 1
        else:
            b -= 1
    return pairs[::-1]


def _lines(nodes: Nodes) -> int:
    """Return the number of operations and loops."""
    return sum(1 + (_lines(x.body) if isinstance(x, SharedLoop) else 0) for x in nodes)


def _gain(one: SharedNode, other: SharedNode) -> int:
    """Return what is won if two elements become one; 0 if they cannot."""
    if isinstance(one, Shared) and isinstance(other, Shared):
        if one.token != other.token:
            return 0
        return _UNEQUAL if one.begins.isdisjoint(other.begins) else _EQUAL
    if isinstance(one, SharedLoop) and isinstance(other, SharedLoop) and one.count == other.count:
        return _longest(one.body, other.body)[0]
    return 0


def _is_same(one: SharedNode, other: SharedNode) -> bool:
    if isinstance(one, Shared) and isinstance(other, Shared):
        return one.token == other.token and not one.begins.isdisjoint(other.begins)
    if isinstance(one, SharedLoop) and isinstance(other, SharedLoop):
        return (
            one.count == other.count
            and len(one.body) == len(other.body)
            and all(map(_is_same, one.body, other.body))
        )
    return False
