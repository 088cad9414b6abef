"""Call paths as sums of hashes of regions, so that a whole batch is looked up together.

A call adds the hash of its region at its depth, and a return subtracts it. So a running sum
identifies the call path after every event. The probability that two of a million call paths have
the same one of 2^64 sums is below 10^-7.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from callpath_modeler.arrays import Int64Array, UInt64Array
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.unify import preorder

OUTSIDE = 0
"""Id of the state outside all regions."""

_REGION = np.uint64(0x9E3779B97F4A7C15)
_DEPTH = np.uint64(0xD1B54A32D192ED03)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFT = (np.uint64(30), np.uint64(27), np.uint64(31))
_SLOT = np.uint64(48)


def hash_of(region: Int64Array, depth: Int64Array) -> UInt64Array:
    """Return a hash of each region, [n], at its depth, [n]; roots have depth 1."""
    mixed = region.view(np.uint64) * _REGION + depth.view(np.uint64) * _DEPTH
    mixed ^= mixed >> _SHIFT[0]
    mixed *= _MIX[0]
    mixed ^= mixed >> _SHIFT[1]
    mixed *= _MIX[1]
    mixed ^= mixed >> _SHIFT[2]
    return mixed


class PathTable:
    """Call paths of a trace, numbered in order of appearance; callers precede callees.

    Attributes
    ----------
    hashes : uint64 [n], sums of hashes; 0 for `OUTSIDE`
    parent : int64 [n], id of the caller; -1 for `OUTSIDE`
    region : int64 [n], reference of the region; -1 for `OUTSIDE`
    depth : int64 [n], 1 for roots
    """

    def __init__(self) -> None:
        self.hashes = np.zeros(1, np.uint64)
        self.parent = np.full(1, -1, np.int64)
        self.region = np.full(1, -1, np.int64)
        self.depth = np.zeros(1, np.int64)
        self._index()

    def __len__(self) -> int:
        return len(self.hashes)

    def find(self, hashes: UInt64Array) -> Int64Array:
        """Return the id of each sum, [n]; -1 = unknown."""
        # Most sums are the only ones with their first 16 bits. The others need a search.
        ids: Int64Array = self._slots[hashes >> _SLOT]
        others = np.flatnonzero(self.hashes[ids] != hashes)
        if len(others):
            place = np.searchsorted(self._sorted, hashes[others]).clip(max=len(self) - 1)
            known = self._sorted[place] == hashes[others]
            ids[others] = np.where(known, self._order[place], -1)
        return ids

    def add(
        self, hashes: UInt64Array, above: UInt64Array, region: Int64Array, depth: Int64Array
    ) -> None:
        """Add new call paths, [k]; their callers must be known or among them."""
        by_depth = np.argsort(depth, kind="stable")
        self.hashes = np.concatenate((self.hashes, hashes[by_depth]))
        self.region = np.concatenate((self.region, region[by_depth]))
        self.depth = np.concatenate((self.depth, depth[by_depth]))
        self._index()
        self.parent = np.concatenate((self.parent, self.find(above[by_depth])))

    def callee(self, caller: int, region: int) -> int:
        """Return the id of the call path of a region below a caller, which may be new."""
        regions, depth = np.array([region]), self.depth[[caller]] + 1
        above = self.hashes[[caller]]
        hashes = above + hash_of(regions, depth)
        if self.find(hashes)[0] < 0:
            self.add(hashes, above, regions, depth)
        return int(self.find(hashes)[0])

    def regions_of(self, path: int) -> list[int]:
        """Return the references of the regions from the root to a call path."""
        chain = []
        while path != OUTSIDE:
            chain.append(int(self.region[path]))
            path = int(self.parent[path])
        return chain[::-1]

    def tree(self, regions: Mapping[int, Region]) -> tuple[CallTree, Int64Array]:
        """Return the call tree, and the row of each id, [n]; -1 for `OUTSIDE`."""
        # `OUTSIDE` has the first row, which is not in the tree.
        row = preorder(self.parent) - 1
        order = np.argsort(row)[1:]
        used, region = np.unique(self.region[order], return_inverse=True)
        known = [regions.get(k) or Region(f"region {k}", role="unknown") for k in used.tolist()]
        return CallTree.from_parents(row[self.parent[order]], region, known), row

    def _index(self) -> None:
        self._order = np.argsort(self.hashes)
        self._sorted = self.hashes[self._order]
        self._slots = np.zeros(1 << 16, np.int64)
        self._slots[self.hashes >> _SLOT] = np.arange(len(self))
