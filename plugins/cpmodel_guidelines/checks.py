"""Checks of guidelines: the comparisons that a benchmark allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from callpath_modeler.arrays import IntArray
from cpmodel_guidelines.benchmark import Benchmark
from cpmodel_guidelines.functions import Function
from cpmodel_guidelines.message_sizes import FunctionAtSetting, Setting, Sizes, moved, without
from cpmodel_guidelines.rules import Guideline, GuidelineKind, GuidelineTerm, Size, of_function

Group = tuple[str, ...]
Rows = Mapping[str, int]


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
    """

    guideline: Guideline
    group: Group
    left: FunctionAtSetting
    right: tuple[FunctionAtSetting, ...]
    times: float = 1.0
    can_break: bool = True
    can_hold: bool = True


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
    """

    benchmark: Benchmark
    guidelines: Sequence[Guideline]

    def measured(self) -> tuple[list[GuidelineCheck], list[MissingFunctions]]:
        """Return all checks that the measurements allow, and the guidelines without any.

        Messages of the right side may have sizes between two measured ones.
        """
        checks: list[GuidelineCheck] = []
        missing = []
        for group, rows in self._groups.items():
            for guideline in self.guidelines:
                if guideline.left.function not in rows:
                    continue
                lacking = [term.function for term in guideline.right if term.function not in rows]
                found = [] if lacking else [*self._of_pattern(guideline, group, rows)]
                inside = [check for check in found if self._is_known(check)]
                checks += inside
                if not inside:
                    lacking = lacking or [str(term) for term in guideline.right]
                    missing.append(MissingFunctions(guideline, group, tuple(lacking)))
            for name, row in rows.items():
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
            for guideline in self.guidelines:
                if {term.function for term in (guideline.left, *guideline.right)} <= {*rows}:
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
        bench, left = self.benchmark, rows[guideline.left.function]
        sizes = {term.size for term in guideline.right}
        told = bench.size is not None
        if told and bench.processes is None and sizes & {Size.ALL, Size.PART}:
            return
        # A longer message is not faster, so the time of a shorter one is a lower bound.
        can_break, can_hold = told or Size.ALL not in sizes, told or Size.PART not in sizes
        at = dict.fromkeys(
            self._sized(guideline.left, left, setting)
            for setting in (self._settings[left] if settings is None else settings)
        )
        for setting in at:
            right = tuple(
                FunctionAtSetting(
                    rows[term.function], self._sized(term, rows[term.function], setting)
                )
                for term in guideline.right
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
            for less, more in pairwise(sorted(line, key=lambda setting: setting[axis])):
                here, there = FunctionAtSetting(row, less), FunctionAtSetting(row, more)
                pieces = more[axis] / less[axis] if less[axis] > 0 else np.inf
                if guideline.kind is not GuidelineKind.SPLIT:
                    yield GuidelineCheck(guideline, group, here, (there,))
                elif pieces == np.floor(pieces):
                    yield GuidelineCheck(guideline, group, there, (here,), pieces)


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
    """Return the row of each collective by group, in order of appearance."""
    groups: dict[Group, dict[str, int]] = {}
    for row, function in enumerate(functions):
        groups.setdefault(function.group, {})[function.name] = row
    return groups
