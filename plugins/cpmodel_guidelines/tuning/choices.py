"""Choices: one way for each function, number of processes and size, in the terms of a library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shortened
from cpmodel_guidelines.checks import Group
from cpmodel_guidelines.rules import GuidelineKind
from cpmodel_guidelines.tuning.gains import Gain, Gains, Place, best_of
from cpmodel_guidelines.tuning.open_mpi import (
    COLLECTIVES,
    SAME_STEPS,
    SIMILAR_STEPS,
    Algorithm,
    Scale,
)
from cpmodel_guidelines.tuning.pgmpitunelib import LARGEST, MOCK_UPS
from cpmodel_guidelines.tuning.ranges import ProcessRange, SizeRange, process_ranges, size_ranges

What = Algorithm | str
"""An algorithm of Open MPI, or the name of a mock-up of PGMPITuneLib."""


class Library(StrEnum):
    """A library that loads rules."""

    OPEN_MPI = "openmpi"
    PGMPITUNELIB = "pgmpitunelib"


_SIZES = {Library.OPEN_MPI: (0, 2**63 - 2), Library.PGMPITUNELIB: (1, LARGEST)}
"""First and last size that a rule can have. A rule of Open MPI is followed by another one."""


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A gain without a rule, and why there is none."""

    gain: Gain
    reason: str


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for one library.

    Attributes
    ----------
    library : the library that loads them
    group : the measured library to which they apply
    ranges : ranges of processes and sizes of each function, in ascending order
    written : the gain behind the rule at each place that was measured
    unwritten : the best gains at places without a rule
    """

    library: Library
    group: Group
    ranges: Mapping[str, tuple[ProcessRange, ...]]
    written: Mapping[Place, tuple[What, Gain]]
    unwritten: tuple[Unwritten, ...]


def group_of(gains: Gains, library: str | None) -> Group:
    """Return the measured library to which rules apply.

    Parameters
    ----------
    library : its name; None = the only one

    Raises
    ------
    UsageError
        If several libraries were measured and none is named, or there is none of this name.
    """
    groups = sorted({group for group, _, _ in gains.measured})
    names = ["/".join(group) for group in groups]
    known = ", ".join(shortened(name) or "without a name" for name in names[:8])
    if library is None:
        if len(groups) == 1:
            return groups[0]
        raise UsageError(
            f"{len(groups)} libraries were measured, and rules are for one",
            hint=f"choose one with --library: {known}",
        )
    if library not in names:
        raise UsageError(
            f"--library {shortened(library)!r} was not measured",
            hint=f"measured: {known}",
        )
    return groups[names.index(library)]


def expressed(library: Library, gain: Gain) -> What | None:
    """Return the way of a gain in the terms of a library; None = the library does not know it."""
    if gain.guideline.kind is not GuidelineKind.PATTERN:
        return None
    key = gain.place.function, gain.guideline.parts
    if library is Library.PGMPITUNELIB:
        return MOCK_UPS.get(key) if gain.algorithm is None else None
    if gain.algorithm is not None:
        return gain.algorithm
    number = SAME_STEPS.get(key)
    return None if number is None else Algorithm(gain.place.function, number)


def rules_of(gains: Gains, library: Library, group: Group) -> Rules:
    """Return the rules that give a library the gains of a campaign.

    At each place, the way with the largest lower end of the gain decides, among those that the
    library knows.
    """
    mine = tuple(gain for gain in gains.every if gain.place.group == group)
    ways: dict[tuple[str, int], list[tuple[What, Gain]]] = {}
    for gain in mine:
        what = expressed(library, gain)
        if what is not None:
            ways.setdefault((gain.place.function, gain.place.processes), []).append((what, gain))
    found: dict[str, dict[int, tuple[SizeRange, ...]]] = {}
    written: dict[Place, tuple[What, Gain]] = {}
    unselected: dict[Place, str] = {}
    for (function, processes), every in ways.items():
        sizes, here = gains.measured[group, function, processes], every
        selector = _selector(library, function)
        if selector is None:
            chosen = _for_all_sizes(here, sizes)
            made = tuple(SizeRange(0, None, what) for what, _ in chosen[:1])
            if not chosen:
                why = COLLECTIVES[function].reason
                unselected |= {gain.place: why for _, gain in here}
        else:
            least, most = _SIZES[library]
            units = [each for size in sizes if least <= (each := selector(size, processes)) <= most]
            known = {*units}
            here = [row for row in every if selector(row[1].place.size, processes) in known]
            best = best_of(tuple(gain for _, gain in here))
            chosen = [(what, gain) for what, gain in here if best[gain.place] is gain]
            whats = {selector(gain.place.size, processes): what for what, gain in chosen}
            made = size_ranges(units, whats)
        found.setdefault(function, {})[processes] = made
        written |= {gain.place: (what, gain) for what, gain in chosen}
    ranges: dict[str, tuple[ProcessRange, ...]] = {}
    for function, of_processes in found.items():
        measured = [p for g, f, p in gains.measured if (g, f) == (group, function)]
        exact = library is Library.PGMPITUNELIB
        extended = process_ranges(of_processes, measured, exact=exact)
        if extended:
            ranges[function] = extended
    best = best_of(mine)
    unwritten = tuple(
        Unwritten(gain, _too_wide(unselected.get(place)) or _why(library, gain))
        for place, gain in best.items()
        if place not in written
    )
    return Rules(library, group, ranges, written, unwritten)


def _too_wide(why: str | None) -> str:
    """Return why no rule can be limited to the sizes with a gain."""
    return f"a rule would hold for all sizes, and not all of them gain: {why}" if why else ""


def _selector(library: Library, function: str) -> Callable[[float, int], int] | None:
    """Return the size with which a library selects a rule; None = it selects by processes only."""
    if library is Library.PGMPITUNELIB:
        return lambda size, _: round(size)
    scale = COLLECTIVES[function].scale
    if scale is Scale.NONE:
        return None
    return lambda size, processes: round(size * (processes if scale is Scale.WHOLE else 1))


def _for_all_sizes(
    here: Sequence[tuple[What, Gain]], sizes: Sequence[float]
) -> list[tuple[What, Gain]]:
    """Return the gains of the best way that is faster at all measured sizes; empty = none is."""
    found = []
    for what in dict.fromkeys(what for what, _ in here):
        best = best_of(tuple(gain for each, gain in here if each == what))
        if len(best) == len(sizes):
            found.append([(what, gain) for gain in best.values()])
    return max(found, key=lambda each: min(gain.low for _, gain in each), default=[])


def _why(library: Library, gain: Gain) -> str:
    """Return why a library cannot use a faster way."""
    if expressed(library, gain) is not None:
        return "rules of this library have no such size"
    if gain.guideline.kind is not GuidelineKind.PATTERN:
        return "only the program can do this"
    if library is Library.PGMPITUNELIB:
        if gain.algorithm is not None:
            return "PGMPITuneLib selects mock-ups, and this is an algorithm of the library"
        return "PGMPITuneLib has no such mock-up"
    similar = SIMILAR_STEPS.get((gain.place.function, gain.guideline.parts), ())
    if similar:
        known = " or ".join(Algorithm(gain.place.function, number).title for number in similar)
        return f"Open MPI does these steps in its own way: measure {known}"
    return "no algorithm of Open MPI does this"
