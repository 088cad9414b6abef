"""Values of a metric in all runs, and groups of call paths with their costs.

The exclusive value of a group is the sum over its call paths. Its inclusive value is the sum over
its outermost call paths, those without a caller in the same group. The cost of the other call paths
is already part of a caller's inclusive value. (Adhianto et al.: HPCTOOLKIT: Tools for performance
analysis of optimized parallel programs, 2010; the views of recursive programs.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, Float32Array, FloatArray, IntArray
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import Metric, Reduction, Region


@dataclass(frozen=True, slots=True)
class MetricValues:
    """One metric of all runs.

    Attributes
    ----------
    metric : the metric
    exclusive : [call paths, runs], SI base units; NaN = the call path did not occur
    total : [runs] inclusive value of the program, measured separately; NaN = not recorded
    imbalance : [call paths, runs] exclusive imbalance: the largest over the mean of the processes;
        1 = balanced, NaN = not known; None = not known for any run
    run_time : [runs] of a duration: the inclusive time of the program on the slowest process,
        for every reduction; NaN = not recorded; None = not recorded for any run
    """

    metric: Metric
    exclusive: FloatArray
    total: FloatArray
    imbalance: Float32Array | None = None
    run_time: FloatArray | None = None

    def of_runs(self, chosen: IntArray) -> MetricValues:
        """Return the values of some runs."""
        return MetricValues(
            self.metric,
            self.exclusive[:, chosen],
            self.total[chosen],
            None if self.imbalance is None else self.imbalance[:, chosen],
            None if self.run_time is None else self.run_time[chosen],
        )

    def of_rows(self, chosen: IntArray) -> MetricValues:
        """Return the values of some call paths; those of the program stay."""
        imbalance = None if self.imbalance is None else self.imbalance[chosen]
        return replace(self, exclusive=self.exclusive[chosen], imbalance=imbalance)

    def means(self, reduction: Reduction) -> FloatArray:
        """Return means over processes, [call paths, runs], from maxima and imbalance.

        If either is not known, the values are returned as they are.
        """
        if reduction is Reduction.MAX and self.imbalance is not None:
            return self.exclusive / np.nan_to_num(self.imbalance, nan=1.0)
        return self.exclusive


def inclusive_values(tree: CallTree, exclusive: FloatArray) -> FloatArray:
    """Return sums over subtrees [n, ...]; a call path that did not occur stays NaN."""
    missing = np.isnan(exclusive)
    if not missing.any():
        return tree.inclusive(exclusive)
    total = tree.inclusive(np.where(missing, 0.0, exclusive))
    total[tree.inclusive((~missing).astype(np.float64)) == 0] = np.nan
    return total


class LineCosts(Struct, frozen=True, eq=False):
    """One metric of the lines of one run.

    A line of a function that several call paths call has an entry for each of them. Entries of the
    same call path and line are added.

    Attributes
    ----------
    row : [entries] call path
    file : [entries] index into `files`
    line : [entries] line in the source, from 1
    files : source files, as the profile names them
    exclusive : [entries] exclusive cost of the line in this call path; NaN = not known
    """

    row: NDArray[np.integer]
    file: NDArray[np.integer]
    line: NDArray[np.integer]
    files: tuple[str, ...]
    exclusive: FloatArray

    def scaled(self, factor: float) -> LineCosts:
        """Return the costs in another unit."""
        return structs.replace(self, exclusive=self.exclusive * factor)

    def moved(self, place: IntArray) -> LineCosts:
        """Return the costs on another call tree.

        Parameters
        ----------
        place : [call paths] new row of each call path; negative = it is excluded
        """
        row = place[self.row]
        kept = row >= 0
        return LineCosts(
            row[kept], self.file[kept], self.line[kept], self.files, self.exclusive[kept]
        )

    def of_rows(self, rows: NDArray[np.integer]) -> dict[tuple[str, int], float]:
        """Return the sums over some call paths, by file and line."""
        chosen = np.isin(self.row, rows) & ~np.isnan(self.exclusive)
        places = zip(self.file[chosen].tolist(), self.line[chosen].tolist(), strict=True)
        sums: dict[tuple[str, int], float] = {}
        for (file, line), cost in zip(places, self.exclusive[chosen].tolist(), strict=True):
            place = self.files[file], line
            sums[place] = sums.get(place, 0.0) + cost
        return sums


RunLines = Mapping[str, LineCosts]
"""Costs of the lines of one run, by metric name."""

Rows = NDArray[np.int32 | np.intp]


class Grouping(StrEnum):
    """Attribute of regions that forms a level of a flat view."""

    PARADIGM = "paradigm"
    MODULE = "module"
    FILE = "file"
    REGION = "region"


@dataclass(frozen=True, eq=False)
class Costs:
    """Columns of values, which are additive unless they are of a `FormulaCosts`.

    Attributes
    ----------
    exclusive : [call paths, columns]; NaN = the call path did not occur
    whole : the same with callees, or a function that makes them when they are asked for
    """

    exclusive: FloatArray
    whole: FloatArray | Callable[[], FloatArray]

    @cached_property
    def inclusive(self) -> FloatArray:
        """Values with callees, [call paths, columns]; NaN = the call path did not occur."""
        return self.whole() if callable(self.whole) else self.whole

    @property
    def addends(self) -> Costs:
        """The values that are summed over the call paths of a node."""
        return self

    def of_sums(self, sums: FloatArray) -> FloatArray:
        """Return values from sums of the addends, [..., columns]."""
        return sums

    @classmethod
    def of(cls, tree: CallTree, exclusive: FloatArray) -> Costs:
        """Return costs from exclusive values, [call paths] or [call paths, columns]."""
        # Groups are summed column by column, so columns are contiguous in memory.
        columns = np.asfortranarray(exclusive if exclusive.ndim > 1 else exclusive[:, None])
        return cls(columns, lambda: np.asfortranarray(inclusive_values(tree, columns)))

    def of_rows(self, rows: IntArray | slice) -> Costs:
        """Return the costs of some call paths, [rows, columns]."""
        return Costs(self.exclusive[rows], lambda: self.inclusive[rows])

    @classmethod
    def beside(cls, costs: Sequence[Costs]) -> Costs:
        """Return the columns of several costs."""
        own, whole = [each.exclusive for each in costs], [each.inclusive for each in costs]
        return cls(np.concatenate(own, axis=1), np.concatenate(whole, axis=1))

    def only(self, column: int) -> Costs:
        """Return one column, [call paths, 1]; its sums are faster than those of all columns."""
        if self.exclusive.shape[1] == 1:
            return self  # views may have cached its sums
        exclusive, inclusive = (
            np.ascontiguousarray(values[:, column, None])
            for values in (self.exclusive, self.inclusive)
        )
        return Costs(exclusive, inclusive)

    @cached_property
    def total(self) -> FloatArray:
        """Sum over all call paths, [columns]."""
        # A sum of all columns at once would copy them.
        return np.array([np.nansum(column) for column in self.exclusive.T])


@dataclass(frozen=True, eq=False)
class FormulaCosts(Costs):
    """Columns of values that do not add up: a node has a function of the sums of its addends.

    Attributes
    ----------
    operands : the addends
    function : function from sums [..., columns of addends] to values [..., columns]
    """

    operands: Costs
    function: Callable[[FloatArray], FloatArray]

    @classmethod
    def by(cls, operands: Costs, function: Callable[[FloatArray], FloatArray]) -> FormulaCosts:
        """Return the costs of a function of sums."""
        own = function(operands.exclusive)
        return cls(own, lambda: function(operands.inclusive), operands, function)

    @property
    def addends(self) -> Costs:
        """The operands, which are summed over the call paths of a node."""
        return self.operands

    def of_sums(self, sums: FloatArray) -> FloatArray:
        """Return the function of sums of the operands."""
        return self.function(sums)

    @cached_property
    def total(self) -> FloatArray:
        """Value of all call paths together, [columns]; NaN = no operand occurred."""
        is_absent = np.isnan(self.operands.exclusive).all(axis=0)
        return self.function(np.where(is_absent, np.nan, self.operands.total))


class Codes(Struct, frozen=True, eq=False, weakref=True):
    """Integers of call paths; the code of a group is the largest of its call paths.

    Attributes
    ----------
    numbers : [call paths]
    """

    numbers: NDArray[np.integer]


class Groups(Struct, frozen=True, eq=False):
    """A division of call paths into groups.

    Row numbers are int32, because there may be 10^6 call paths.

    Attributes
    ----------
    rows : call paths, group by group, ascending in each group
    at : [rows] the call path whose key determines the group: the call path itself or a caller
    start : [groups + 1] first position of each group in `rows`
    key : [groups] key that the call paths of a group share, ascending
    outer : the outermost call paths of each group: they have no caller in the group
    outer_start : [groups + 1] first position of each group in `outer`
    """

    rows: Rows
    at: Rows
    start: Rows
    key: Rows
    outer: Rows
    outer_start: Rows

    @classmethod
    def of(cls, tree: CallTree, rows: Rows, at: Rows, key: Rows) -> Groups:
        """Return the groups of `rows` with equal `key`.

        Parameters
        ----------
        tree : the call tree
        rows : call paths, ascending, at least one
        at : [rows] the call path whose key determines the group
        key : [rows] key, at least 0
        """
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
        """Return the slice of `rows` that holds a group."""
        return slice(self.start[index], self.start[index + 1])

    def values(self, costs: Costs) -> tuple[FloatArray, FloatArray]:
        """Return exclusive and inclusive values, each [groups, columns]."""
        return (
            sums(costs.exclusive, self.rows, self.start[:-1]),
            sums(costs.inclusive, self.outer, self.outer_start[:-1]),
        )

    def largest(self, numbers: NDArray[np.integer], *, at: bool = False) -> NDArray[np.integer]:
        """Return the largest of `numbers` [call paths] in each group, [groups].

        Parameters
        ----------
        numbers : [call paths]
        at : use the numbers of the call paths in `at` instead of `rows`
        """
        found: NDArray[np.integer] = np.maximum.reduceat(
            numbers[self.at if at else self.rows], self.start[:-1]
        )
        return found

    def members(self, index: Rows) -> Rows:
        """Return the call paths of the groups `index`, in the order of `rows`."""
        is_chosen = np.zeros(len(self), bool)
        is_chosen[index] = True
        rows: Rows = self.rows[np.repeat(is_chosen, np.diff(self.start))]
        return rows


def outermost(tree: CallTree, rows: Rows, group: Rows | int = 0) -> BoolArray:
    """Return whether each call path has no caller in its own group, [rows].

    Parameters
    ----------
    tree : the call tree
    rows : call paths, group by group, ascending in each group
    group : [rows] number of the group, ascending, int64; 0 = a single group
    """
    # In preorder, a row is below an earlier one if the earlier subtree has not ended yet. An offset
    # per group keeps subtrees from reaching into the next group.
    offset = group * (len(tree) + 1)
    reached = np.maximum.accumulate(tree.end[rows] + offset)
    return np.concatenate([[True], (rows + offset)[1:] >= reached[:-1]])[: len(rows)]


def functions(regions: Sequence[Region]) -> tuple[Rows, tuple[str, ...]]:
    """Return the number of the function of each region, and the names of the functions.

    A function has its full name. If builds spell the full name differently, the function has the
    common part. If several files have a function of the same name, the name of the file is added.
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
    """Return the number of the group of each region, and the names of the groups."""
    if grouping is Grouping.REGION:
        return functions(regions)
    known = [getattr(region, grouping) for region in regions]
    numbers = {name: k for k, name in enumerate(dict.fromkeys(known))}
    names = tuple(name or f"<unknown {grouping}>" for name in numbers)
    return np.array([numbers[name] for name in known], np.intp), names


def sums(values: FloatArray, rows: Rows, start: Rows) -> FloatArray:
    """Return the sums of values [call paths, columns] over groups, [groups, columns].

    NaN values are skipped. The sum of a group without other values is NaN.

    Parameters
    ----------
    values : [call paths, columns]
    rows : call paths, group by group, at least one in each group
    start : [groups] first position of each group in `rows`
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
