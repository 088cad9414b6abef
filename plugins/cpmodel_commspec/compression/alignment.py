"""Alignment of statements that several call sites execute: which shapes are one statement.

MPI matches the n-th collective operation of a communicator on all of its members. If these call it
from different functions, the functions are branches of one statement (algorithm 1 of Wu, Mueller
and Pakin, TOPC 2014). If the branches also have the same messages in the same order, these are one
statement each as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.operations import TOGETHER, Shape, Traced

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
