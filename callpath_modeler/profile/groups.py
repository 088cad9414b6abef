"""Call paths in groups, and what each group costs.

The exclusive value of a group is the sum over its call paths. Its inclusive value is the sum over
the outermost of them: what a call path takes is part of what its callers take, so a call path below
another one of its group is not counted again. (Adhianto et al.: HPCTOOLKIT: Tools for
performance analysis of optimized parallel programs, 2010; the views of recursive programs.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import inclusive_values
from callpath_modeler.profile.schema import Region

Rows = NDArray[np.int32 | np.intp]


class Grouping(StrEnum):
    """What the nodes of a level of a flat view are: attributes of regions."""

    PARADIGM = "paradigm"
    MODULE = "module"
    FILE = "file"
    REGION = "region"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Costs:
    """Columns of values that add up over call paths.

    Attributes
    ----------
    exclusive, inclusive : [call paths, columns]; NaN = the call path did not occur
    """

    exclusive: FloatArray
    inclusive: FloatArray

    @classmethod
    def of(cls, tree: CallTree, exclusive: FloatArray) -> Costs:
        """Add inclusive values to exclusive ones, [call paths] or [call paths, columns]."""
        columns = exclusive if exclusive.ndim > 1 else exclusive[:, None]
        # Column by column in memory, because that is how groups are summed.
        inclusive = inclusive_values(tree, columns)
        return cls(np.asfortranarray(columns), np.asfortranarray(inclusive))

    def only(self, column: int) -> Costs:
        """Return one of the columns, as [call paths, 1]: faster to sum than all."""
        if self.exclusive.shape[1] == 1:
            return self  # of which views may have sums
        exclusive, inclusive = (
            np.ascontiguousarray(values[:, column, None])
            for values in (self.exclusive, self.inclusive)
        )
        return Costs(exclusive, inclusive)

    @property
    def total(self) -> FloatArray:
        """Sum over all call paths, [columns]."""
        total: FloatArray = np.nansum(self.exclusive, axis=0)
        return total


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Codes:
    """Whole numbers of call paths; of a group, the largest counts.

    Attributes
    ----------
    numbers : [call paths]
    """

    numbers: NDArray[np.integer]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Call paths, group by group; their numbers are int32, because there may be 10^6.

    Attributes
    ----------
    rows : the call paths, ascending in each group
    at : what decided on the group of each of `rows`: the call path itself, or one of its callers
    start : [groups + 1] where the groups begin in `rows`
    key : [groups] what the call paths of a group share, ascending
    outer, outer_start : those of `rows` that are below no other one of their group, and where the
        groups begin among them
    """

    rows: Rows
    at: Rows
    start: Rows
    key: Rows
    outer: Rows
    outer_start: Rows

    @classmethod
    def of(cls, tree: CallTree, rows: Rows, at: Rows, key: Rows) -> Groups:
        """Divide ascending `rows`, at least one, by `key`, which is not negative."""
        # Small integers are sorted in linear time.
        small = key.astype(np.uint16) if key.max() <= np.iinfo(np.uint16).max else key
        order = np.argsort(small, kind="stable")
        divided, key = rows.astype(np.int32, copy=False)[order], key[order]
        at = divided if at is rows else at.astype(np.int32, copy=False)[order]
        del order, small
        begins = np.diff(key, prepend=-1) != 0
        start = np.append(np.flatnonzero(begins), len(divided))
        is_outer = outermost(tree, divided, np.cumsum(begins) - 1)
        outer_start = np.concatenate([[0], np.cumsum(is_outer)])[start]
        outer = divided if is_outer.all() else divided[is_outer]
        return cls(divided, at, start, key[start[:-1]], outer, outer_start)

    def __len__(self) -> int:
        return len(self.key)

    def part(self, index: int) -> slice:
        """Return where a group is in `rows`."""
        return slice(self.start[index], self.start[index + 1])

    def values(self, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Return exclusive and inclusive values, [groups, columns]."""
        return (
            sums(costs.exclusive, self.rows, self.start[:-1]),
            sums(costs.inclusive, self.outer, self.outer_start[:-1]),
        )

    def largest(self, numbers: NDArray[np.integer], *, at: bool = False) -> NDArray[np.integer]:
        """Return the largest of `numbers` [call paths] of each group, [groups].

        Parameters
        ----------
        at : take the numbers of what decided on the groups instead
        """
        found: NDArray[np.integer] = np.maximum.reduceat(
            numbers[self.at if at else self.rows], self.start[:-1]
        )
        return found

    def chosen(self, index: Rows) -> Rows:
        """Return the call paths of the groups `index`, one group after the other."""
        if len(index) == len(self) and (np.diff(index) == 1).all():
            return self.rows
        length = self.start[index + 1] - self.start[index]
        before = np.cumsum(length) - length
        place = np.arange(length.sum()) + np.repeat(self.start[index] - before, length)
        rows: Rows = self.rows[place]
        return rows


def outermost(tree: CallTree, rows: Rows, group: Rows | int = 0) -> BoolArray:
    """Tell which call paths are below no other one of their group, [rows].

    Parameters
    ----------
    rows : call paths, ascending in each group
    group : [rows] number of the group, ascending, int64; or all are of one
    """
    # In preorder, a row is below an earlier one if that one's subtree has not ended yet. Groups
    # are moved apart, so that no subtree reaches into the next group.
    offset = group * (len(tree) + 1)
    reached = np.maximum.accumulate(tree.end[rows] + offset)
    return np.concatenate([[True], (rows + offset)[1:] >= reached[:-1]])[: len(rows)]


def functions(regions: Sequence[Region]) -> tuple[Rows, tuple[str, ...]]:
    """Return a number for the function of each region, and the functions' names.

    Names are full, but where builds gave a function several, it has what they share. Functions of
    one name in several files carry the file's name.
    """
    numbers: dict[tuple[str, str], int] = {}
    number_of = [
        numbers.setdefault((r.common_name, r.file.rpartition("/")[2]), len(numbers))
        for r in regions
    ]
    full: list[set[str]] = [set() for _ in numbers]
    for number, region in zip(number_of, regions, strict=True):
        full[number].add(region.name)
    homes = Counter(name for name, _ in numbers)
    names = []
    for (name, file), known in zip(numbers, full, strict=True):
        shown = known.pop() if len(known) == 1 else name
        names.append(f"{shown} ({file})" if homes[name] > 1 and file else shown)
    return np.array(number_of, np.intp), tuple(names)


def level(regions: Sequence[Region], grouping: Grouping) -> tuple[Rows, tuple[str, ...]]:
    """Return a number per region for what it belongs to, and the names of that."""
    if grouping is Grouping.REGION:
        return functions(regions)
    known = [getattr(region, grouping) for region in regions]
    numbers = {name: k for k, name in enumerate(dict.fromkeys(known))}
    names = tuple(name or f"<unknown {grouping}>" for name in numbers)
    return np.array([numbers[name] for name in known], np.intp), names


def sums(values: FloatArray, rows: Rows, start: Rows) -> FloatArray:
    """Sum values [call paths, columns] of `rows` over groups; of nothing but NaN, NaN.

    Parameters
    ----------
    rows : call paths, group by group, at least one in each
    start : where in `rows` the groups begin
    """
    total = np.empty((len(start), values.shape[1]))
    for column in range(values.shape[1]):
        parts = values[:, column][rows]
        missing = np.isnan(parts)
        if missing.any():
            parts[missing] = 0.0
        total[:, column] = np.add.reduceat(parts, start)
        if missing.any():
            total[np.logical_and.reduceat(missing, start), column] = np.nan
    return total
