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


_LEAST_LINES = 16
_LINES_PER_PARTNER = 3
"""A statement is irregular from so many lines on, if one rank has so many of each partner."""

_SHOWN = 3


def irregular(
    merged: Sequence[SharedNode],
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


def lines_of(merged: Sequence[SharedNode]) -> int:
    """Return the number of operations and loops."""
    return sum(1 if isinstance(x, Shared) else 1 + lines_of(x.body) for x in merged)


def _operations(merged: Sequence[SharedNode]) -> Iterator[Shared]:
    for node in merged:
        if isinstance(node, Shared):
            yield node
        else:
            yield from _operations(node.body)
