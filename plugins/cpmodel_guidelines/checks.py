"""Checks of guidelines: the comparisons that a benchmark allows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import log

import numpy as np

from callpath_modeler.arrays import IntArray
from cpmodel_guidelines.benchmark import Benchmark
from cpmodel_guidelines.functions import Function
from cpmodel_guidelines.rules import (
    Guideline,
    GuidelineKind,
    GuidelineTerm,
    Size,
    of_function,
    of_mock_up,
)

Setting = tuple[float, ...]
"""Values of all parameters, in their order."""


@dataclass(frozen=True, slots=True)
class FunctionAtSetting:
    """A function, by its row, at a setting."""

    row: int
    setting: Setting


@dataclass(frozen=True, slots=True)
class Between:
    """The known neighbours of a place.

    Attributes
    ----------
    less, more : nearest known places with messages at most, and at least, as long
    weight : position between them on a logarithmic scale, from 0 (`less`) to 1 (`more`)
    """

    less: FunctionAtSetting
    more: FunctionAtSetting
    weight: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Message sizes at which functions are known.

    Attributes
    ----------
    axis : index of the message size in settings; None = no such parameter
    known : ascending sizes of each function at each setting of the other parameters
    """

    axis: int | None
    known: Mapping[FunctionAtSetting, tuple[float, ...]]

    @classmethod
    def of(cls, places: Iterable[FunctionAtSetting], axis: int | None) -> Sizes:
        """Return the sizes of `places`, sorted."""
        found: dict[FunctionAtSetting, set[float]] = {}
        for place in places:
            size = 0.0 if axis is None else place.setting[axis]
            found.setdefault(_line(place, axis), set()).add(size)
        return cls(axis, {line: tuple(sorted(sizes)) for line, sizes in found.items()})

    def least(self, place: FunctionAtSetting) -> float | None:
        """Return the smallest known size of a function at the setting of a place; None = none."""
        sizes = self.known.get(_line(place, self.axis))
        return None if sizes is None else sizes[0]

    def between(self, place: FunctionAtSetting) -> Between | None:
        """Return the neighbours of a place; None = outside the measured sizes.

        A known place is its own neighbour, twice.
        """
        sizes = self.known.get(_line(place, self.axis))
        if sizes is None:
            return None
        if self.axis is None:
            return Between(place, place, 0.0)
        size = place.setting[self.axis]
        above, below = bisect_left(sizes, size), bisect_right(sizes, size) - 1
        if above == len(sizes) or below < 0:
            return None
        less, more = sizes[below], sizes[above]
        first, second = (
            FunctionAtSetting(place.row, moved(place.setting, self.axis, end))
            for end in (less, more)
        )
        # A message of zero bytes has no logarithm, so the weight is the middle.
        weight = 0.0 if less == more else log(size / less) / log(more / less) if less > 0 else 0.5
        return Between(first, second, weight)


def moved(setting: Setting, axis: int, value: float) -> Setting:
    """Return a setting with another value of one parameter."""
    return (*setting[:axis], value, *setting[axis + 1 :])


def without(setting: Setting, axis: int) -> Setting:
    """Return the values of the other parameters."""
    return (*setting[:axis], *setting[axis + 1 :])


def _line(place: FunctionAtSetting, axis: int | None) -> FunctionAtSetting:
    return place if axis is None else FunctionAtSetting(place.row, without(place.setting, axis))


Group = tuple[str, ...]

_MOST_PARTNERS = 64
_MOST_PAIRS = 8192
"""Number of smaller sizes into which a message is split, and of such pairs of one function."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a group in a benchmark.

    Attributes
    ----------
    functions : row of each function
    mock_ups : row of each measured mock-up, by the function it replaces and those it executes
    """

    functions: dict[str, int] = field(default_factory=dict)
    mock_ups: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)

    def mock_up(self, guideline: Guideline) -> int | None:
        """Return the row of the mock-up of a guideline; None = not measured."""
        return self.mock_ups.get((guideline.left.function, guideline.parts))

    def can_compose(self, guideline: Guideline) -> bool:
        """Return whether all functions of the right side were measured, and their sizes known."""
        return guideline.is_composable and {*guideline.parts} <= {*self.functions}


@dataclass(frozen=True, slots=True)
class GuidelineCheck:
    """One comparison.

    Attributes
    ----------
    guideline, group : guideline, and library or caller of the functions
    left : the function that should not be slower
    right : functions of the right side, executed one after the other
    times : number of executions of the right side
    can_break, can_hold : whether the check can show a violation, or that the guideline holds.
        Without a message size, real messages may be longer or shorter than the guideline requires.
    is_mock_up : whether the right side is a measured mock-up
    """

    guideline: Guideline
    group: Group
    left: FunctionAtSetting
    right: tuple[FunctionAtSetting, ...]
    times: float = 1.0
    can_break: bool = True
    can_hold: bool = True
    is_mock_up: bool = False


@dataclass(frozen=True, slots=True)
class MissingFunctions:
    """A guideline that could not be checked in a group, with the missing functions."""

    guideline: Guideline
    group: Group
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class Finder:
    """Search for checks in a benchmark.

    Attributes
    ----------
    benchmark : the measured collectives
    guidelines : guidelines between collectives; the ones about single functions are built in
    with_singles : whether to check guidelines about single functions
    """

    benchmark: Benchmark
    guidelines: Sequence[Guideline]
    with_singles: bool = True

    def measured(self) -> tuple[list[GuidelineCheck], list[MissingFunctions]]:
        """Return all checks that the measurements allow, and the guidelines without any.

        Messages of the right side may have sizes between two measured ones.
        """
        checks: list[GuidelineCheck] = []
        missing = []
        for group, rows in self._groups.items():
            for guideline in self._guidelines_of(rows):
                if guideline.left.function not in rows.functions:
                    continue
                lacking = [part for part in guideline.parts if part not in rows.functions]
                found = [*self._of_pattern(guideline, group, rows)]
                inside = [check for check in found if self._is_known(check)]
                checks += inside
                if not inside:
                    lacking = lacking or [str(term) for term in guideline.right]
                    missing.append(MissingFunctions(guideline, group, tuple(lacking)))
            for name, row in rows.functions.items() if self.with_singles else ():
                for guideline in of_function(name):
                    checks += self._of_function(guideline, group, row)
        return checks, missing

    @cached_property
    def sizes(self) -> Sizes:
        """Return the measured message sizes of each function."""
        places = (
            FunctionAtSetting(row, s)
            for row, settings in enumerate(self._settings)
            for s in settings
        )
        return Sizes.of(places, self.benchmark.axis(self.benchmark.size))

    def _is_known(self, check: GuidelineCheck) -> bool:
        return all(self.sizes.between(place) is not None for place in check.right)

    def composed(self, check: GuidelineCheck) -> GuidelineCheck | None:
        """Return the composed check beside one with a mock-up; None = its parts are not known."""
        rows = self._groups[check.group]
        if not check.is_mock_up or not rows.can_compose(check.guideline):
            return None
        found = self._composed(check.guideline, check.group, rows, [check.left.setting])
        beside = next(iter(found), None)
        return beside if beside is not None and self._is_known(beside) else None

    def _guidelines_of(self, rows: Rows) -> list[Guideline]:
        """Return all guidelines of a group, with those that only its mock-ups state."""
        told = {(each.left.function, each.parts) for each in self.guidelines}
        return [*self.guidelines, *(of_mock_up(*key) for key in rows.mock_ups if key not in told)]

    def predicted(self, settings: Sequence[Setting]) -> list[GuidelineCheck]:
        """Return the checks of patterns at predicted settings."""
        return [*self._every_pattern(settings)]

    def moved(self, check: GuidelineCheck, processes: float) -> GuidelineCheck:
        """Return the check of a pattern on another number of processes."""
        p_axis = self.benchmark.axis(self.benchmark.processes)
        assert p_axis is not None, "a target is a number of processes"
        setting = moved(check.left.setting, p_axis, processes)
        rows = self._groups[check.group]
        return next(self._of_pattern(check.guideline, check.group, rows, [setting]))

    @cached_property
    def _groups(self) -> Mapping[Group, Rows]:
        return groups_of(self.benchmark.functions)

    @cached_property
    def _settings(self) -> list[list[Setting]]:
        """Return the settings at which each function was measured."""
        settings = [tuple(setting) for setting in self.benchmark.settings.tolist()]
        there = (~np.isnan(self.benchmark.values)).sum(axis=2) > 0
        every = range(len(self.benchmark.functions))
        return [[settings[k] for k in np.flatnonzero(there[row]).tolist()] for row in every]

    def _every_pattern(self, settings: Sequence[Setting] | None = None) -> Iterator[GuidelineCheck]:
        for group, rows in self._groups.items():
            for guideline in self._guidelines_of(rows):
                if guideline.left.function in rows.functions:
                    yield from self._of_pattern(guideline, group, rows, settings)

    def _of_pattern(
        self,
        guideline: Guideline,
        group: Group,
        rows: Rows,
        settings: Sequence[Setting] | None = None,
    ) -> Iterator[GuidelineCheck]:
        """Yield the checks of a pattern, whether or not its right side was measured.

        Parameters
        ----------
        settings : settings of the left side; None = all that were measured
        """
        left = rows.functions[guideline.left.function]
        at = dict.fromkeys(
            self._sized(guideline.left, left, setting)
            for setting in (self._settings[left] if settings is None else settings)
        )
        mock_up = rows.mock_up(guideline)
        measured = {*at} if settings is not None else set()
        if mock_up is not None:
            measured = measured or {*self._settings[mock_up]}
            for setting in (each for each in at if each in measured):
                here, there = (FunctionAtSetting(row, setting) for row in (left, mock_up))
                yield GuidelineCheck(guideline, group, here, (there,), is_mock_up=True)
        others = [each for each in at if mock_up is None or each not in measured]
        if rows.can_compose(guideline):
            yield from self._composed(guideline, group, rows, others)

    def _composed(
        self, guideline: Guideline, group: Group, rows: Rows, settings: Sequence[Setting]
    ) -> Iterator[GuidelineCheck]:
        """Yield the checks whose right side is the sum of functions with converted sizes."""
        bench, left = self.benchmark, rows.functions[guideline.left.function]
        sizes = {term.size for term in guideline.right}
        told = bench.size is not None
        if told and bench.processes is None and sizes & {Size.ALL, Size.PART}:
            return
        # A longer message is not faster, so the time of a shorter one is a lower bound.
        can_break, can_hold = told or Size.ALL not in sizes, told or Size.PART not in sizes
        for setting in settings:
            right = tuple(
                FunctionAtSetting(row, self._sized(term, row, setting))
                for term, row in ((term, rows.functions[term.function]) for term in guideline.right)
            )
            yield GuidelineCheck(
                guideline, group, FunctionAtSetting(left, setting), right, 1.0, can_break, can_hold
            )

    def _sized(self, term: GuidelineTerm, row: int, setting: Setting) -> Setting:
        """Return a setting with the message size that a function has in a guideline."""
        axis = self.benchmark.axis(self.benchmark.size)
        p_axis = self.benchmark.axis(self.benchmark.processes)
        if axis is None or term.size is Size.SAME:
            return setting
        if term.size is Size.LEAST:
            alone = min(each[axis] for each in self._settings[row])
            least = self.sizes.least(FunctionAtSetting(row, setting))
            size = alone if least is None else least
        elif p_axis is None:
            return setting
        else:
            p = setting[p_axis]
            size = setting[axis] * p if term.size is Size.ALL else setting[axis] / p
        return moved(setting, axis, size)

    def _of_function(
        self, guideline: Guideline, group: Group, row: int
    ) -> Iterator[GuidelineCheck]:
        """Yield the checks of a guideline about a single function."""
        bench = self.benchmark
        is_of_processes = guideline.kind is GuidelineKind.PROCESSES
        axis = bench.axis(bench.processes if is_of_processes else bench.size)
        # On more processes, the messages of a program may become shorter.
        if axis is None or (is_of_processes and bench.per_call):
            return
        lines: dict[Setting, list[Setting]] = {}
        for setting in self._settings[row]:
            lines.setdefault(without(setting, axis), []).append(setting)
        for line in lines.values():
            if guideline.kind is GuidelineKind.SPLIT:
                yield from self._of_split(guideline, group, row, line)
                continue
            for less, more in pairwise(sorted(line, key=lambda setting: setting[axis])):
                here, there = FunctionAtSetting(row, less), FunctionAtSetting(row, more)
                yield GuidelineCheck(guideline, group, here, (there,))

    def _of_split(
        self, guideline: Guideline, group: Group, row: int, line: Sequence[Setting]
    ) -> Iterator[GuidelineCheck]:
        """Yield a check for each pair of sizes.

        A message of m_j bytes is split into k = ceil(m_j / m_i) messages of m_i bytes, for all
        smaller sizes m_i. Of many sizes, the nearest ones are used.
        """
        axis = self.benchmark.axis(self.benchmark.size)
        assert axis is not None, "pieces need a message size"
        known = sorted(
            (setting for setting in line if setting[axis] > 0), key=lambda setting: setting[axis]
        )
        partners = max(1, min(_MOST_PARTNERS, _MOST_PAIRS // max(len(known), 1)))
        for j, more in enumerate(known):
            for less in known[max(0, j - partners) : j]:
                there, here = FunctionAtSetting(row, less), FunctionAtSetting(row, more)
                pieces = float(np.ceil(more[axis] / less[axis]))
                yield GuidelineCheck(guideline, group, here, (there,), pieces)


def places_of(
    checks: Sequence[GuidelineCheck], where: Callable[[FunctionAtSetting], int]
) -> tuple[IntArray, IntArray]:
    """Return the positions of both sides of checks among values: [C], and [parts, C].

    Parameters
    ----------
    where : position of a place. Missing parts of the right side have the position -1.
    """
    left = np.array([where(check.left) for check in checks], np.intp)
    parts = np.full((max((len(check.right) for check in checks), default=1), len(checks)), -1)
    for k, check in enumerate(checks):
        parts[: len(check.right), k] = [where(place) for place in check.right]
    return left, parts


def groups_of(functions: Sequence[Function]) -> Mapping[Group, Rows]:
    """Return the rows of each group, in order of appearance."""
    groups: dict[Group, Rows] = {}
    for row, function in enumerate(functions):
        rows = groups.setdefault(function.group, Rows())
        if function.mock_up:
            rows.mock_ups[function.name, function.mock_up] = row
        else:
            rows.functions[function.name] = row
    return groups
