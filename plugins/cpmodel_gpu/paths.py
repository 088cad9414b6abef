"""Call paths of host calls and GPU activities, numbered in order of appearance."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from callpath_modeler.arrays import Int32Array, IntArray
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import PROGRAM, Region
from callpath_modeler.profile.unify import preorder

WHOLE_PROGRAM = 0
"""Number of the call path of the whole program, which is the root of all others."""

NOT_RECORDED = Region("(launch not recorded)", role="artificial")
"""Caller of GPU activities whose launch is not in the profile."""

_BLOCK = 1 << 19
"""Number of call paths that are looked up together."""


class Regions:
    """Distinct regions, numbered in order of appearance; the first is the program."""

    def __init__(self) -> None:
        self._numbers = {Region(PROGRAM, role="artificial"): 0}

    def number(self, region: Region) -> int:
        """Return the number of a region, which may be new."""
        return self._numbers.setdefault(region, len(self._numbers))

    def numbers(self, regions: Iterable[Region]) -> Int32Array:
        """Return the numbers of regions, [n]."""
        return np.array([self.number(each) for each in regions], np.int32)

    @property
    def all(self) -> tuple[Region, ...]:
        """All regions, in the order of their numbers."""
        return tuple(self._numbers)


class Paths:
    """Distinct call paths below the program; callers have smaller numbers than callees.

    Attributes
    ----------
    regions : the regions, which may be used before they are part of a call path
    """

    def __init__(self) -> None:
        self.regions = Regions()
        self._parent, self._region = [-1], [0]
        self._numbers: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._parent)

    def callee(self, caller: int, region: int) -> int:
        """Return the number of the call path of a region below a caller, which may be new."""
        key = caller, region
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._parent)
            self._parent.append(caller)
            self._region.append(region)
        return found

    def callees(self, callers: Int32Array, regions: Int32Array) -> Int32Array:
        """Return the numbers of the call paths of regions, [n], below callers, [n]."""
        found = np.empty(len(callers), np.int32)
        for first in range(0, len(callers), _BLOCK):
            part = slice(first, first + _BLOCK)
            key = callers[part].astype(np.int64) << 32
            key |= regions[part]
            distinct, inverse = np.unique(key, return_inverse=True)
            numbers = [self.callee(each >> 32, each & 0xFFFFFFFF) for each in distinct.tolist()]
            found[part] = np.array(numbers, np.int32)[inverse]
        return found

    def regions_of(self, path: int) -> list[int]:
        """Return the numbers of the regions from the outermost caller to a call path."""
        chain = []
        while path != WHOLE_PROGRAM:
            chain.append(self._region[path])
            path = self._parent[path]
        return chain[::-1]

    def last_regions(self) -> IntArray:
        """Return the number of the region of each call path, [n]."""
        return np.array(self._region, np.intp)

    def depths(self) -> IntArray:
        """Return the number of callers of each call path, [n]."""
        found = np.zeros(len(self), np.intp)
        for path, caller in enumerate(self._parent[1:], start=1):
            found[path] = found[caller] + 1
        return found

    def tree(self) -> tuple[CallTree, IntArray]:
        """Return the call tree, and the row of each call path, [n]."""
        parent, region = np.array(self._parent), np.array(self._region)
        row = preorder(parent)
        order = np.argsort(row)
        used, numbers = np.unique(region[order], return_inverse=True)
        regions = self.regions.all
        callers = parent[order]
        tree = CallTree.from_parents(
            np.where(callers < 0, -1, row[callers]), numbers, [regions[k] for k in used.tolist()]
        )
        return tree, row
