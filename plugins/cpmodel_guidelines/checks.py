"""What can be checked: which guideline, of which functions, at which settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

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
    guideline, group : what is checked, and of which library or caller
    left : what should not be slower
    right : than these one after the other
    times : how often they are done
    can_break, can_hold : whether it tells that; where nobody said how long messages are, they may
        be shorter or longer than those of the guideline
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
    """A guideline that could not be checked in a group, and what was not measured for it."""

    guideline: Guideline
    group: Group
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class Finder:
    """Finds what can be checked of a benchmark.

    Attributes
    ----------
    benchmark : what was measured
    guidelines : between collectives; those about single ones are known
    """

    benchmark: Benchmark
    guidelines: Sequence[Guideline]

    def measured(self) -> tuple[list[GuidelineCheck], list[MissingFunctions]]:
        """Return all checks that measurements allow, and what they do not allow.

        Messages of emulations may be of sizes between two that were measured.
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
        """Sizes of messages that were measured."""
        places = (
            FunctionAtSetting(row, s)
            for row, settings in enumerate(self._settings)
            for s in settings
        )
        return Sizes.of(places, self.benchmark.axis(self.benchmark.size))

    def _is_known(self, check: GuidelineCheck) -> bool:
        return all(self.sizes.between(place) is not None for place in check.right)

    def predicted(self, settings: Sequence[Setting]) -> list[GuidelineCheck]:
        """Return the checks between functions at settings at which models are asked."""
        return [*self._every_pattern(settings)]

    def moved(self, check: GuidelineCheck, processes: float) -> GuidelineCheck:
        """Return a check between functions on another number of processes."""
        p_axis = self.benchmark.axis(self.benchmark.processes)
        assert p_axis is not None, "targets are numbers of processes"
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
        """Go through the checks of a guideline between functions, measured or not.

        Parameters
        ----------
        settings : of the left side; None = all at which it was measured
        """
        bench, left = self.benchmark, rows[guideline.left.function]
        sizes = {term.size for term in guideline.right}
        told = bench.size is not None
        if told and bench.processes is None and sizes & {Size.ALL, Size.PART}:
            return
        # Longer messages do not take less time: what shorter ones take is a lower bound.
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
        """Return a setting with messages of the size that a function of a guideline has."""
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
        """Go through the checks of a guideline about one function."""
        bench = self.benchmark
        is_of_processes = guideline.kind is GuidelineKind.PROCESSES
        axis = bench.axis(bench.processes if is_of_processes else bench.size)
        # What a program exchanges on more processes need not be as long.
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
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where the sides of checks stand among values, [checks] and [parts, checks].

    Parameters
    ----------
    where : of each place; -1 is for parts that a check does not have
    """
    left = np.array([where(check.left) for check in checks], np.intp)
    parts = np.full((max((len(check.right) for check in checks), default=1), len(checks)), -1)
    for k, check in enumerate(checks):
        parts[: len(check.right), k] = [where(place) for place in check.right]
    return left, parts


def groups_of(functions: Sequence[Function]) -> Mapping[Group, Rows]:
    """Return the row of each collective of each group, in the order in which they come up."""
    groups: dict[Group, dict[str, int]] = {}
    for row, function in enumerate(functions):
        groups.setdefault(function.group, {})[function.name] = row
    return groups
