"""Choices: one way for each function, number of processes and size, in the terms of a library.

Source: the tables of algorithms in ``src/collectives/*.c`` of github.com/hunsa/pgmpitunelib, and
its reader of profiles, ``src/tuning/pgmpi_profile_reader.c``.

A choice at a measured size reaches half the way to the next measured size, on a logarithmic scale.
No rule reaches beyond the smallest or the largest measured size. Between two measured numbers of
processes, a rule needs the same choice at both of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import isqrt

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

MOCK_UPS: Mapping[tuple[str, tuple[str, ...]], str] = {
    ("Allgather", ("Allgatherv",)): "allgather_as_allgatherv",
    ("Allgather", ("Allreduce",)): "allgather_as_allreduce",
    ("Allgather", ("Alltoall",)): "allgather_as_alltoall",
    ("Allgather", ("Gather", "Bcast")): "allgather_as_gather_bcast",
    ("Allreduce", ("Reduce", "Bcast")): "allreduce_as_reduce_bcast",
    (
        "Allreduce",
        ("Reduce_scatter_block", "Allgather"),
    ): "allreduce_as_reducescatterblock_allgather",
    ("Allreduce", ("Reduce_scatter", "Allgatherv")): "allreduce_as_reducescatter_allgatherv",
    ("Alltoall", ("Alltoallv",)): "alltoall_as_alltoallv",
    ("Bcast", ("Allgatherv",)): "bcast_as_allgatherv",
    ("Bcast", ("Scatter", "Allgather")): "bcast_as_scatter_allgather",
    ("Gather", ("Allgather",)): "gather_as_allgather",
    ("Gather", ("Gatherv",)): "gather_as_gatherv",
    ("Gather", ("Reduce",)): "gather_as_reduce",
    ("Reduce", ("Allreduce",)): "reduce_as_allreduce",
    ("Reduce", ("Reduce_scatter_block", "Gather")): "reduce_as_reducescatterblock_gather",
    ("Reduce", ("Reduce_scatter", "Gatherv")): "reduce_as_reducescatter_gatherv",
    ("Reduce_scatter_block", ("Allreduce",)): "reducescatterblock_as_allreduce",
    ("Reduce_scatter_block", ("Reduce_scatter",)): "reducescatterblock_as_reducescatter",
    ("Reduce_scatter_block", ("Reduce", "Scatter")): "reducescatterblock_as_reduce_scatter",
    ("Scan", ("Exscan", "Reduce_local")): "scan_as_exscan_reducelocal",
    ("Scatter", ("Bcast",)): "scatter_as_bcast",
    ("Scatter", ("Scatterv",)): "scatter_as_scatterv",
}
"""Names of mock-ups, by the function and the functions that replace it."""

COUNTED = frozenset({"Reduce_scatter_block"})
"""Functions whose size the library counts in elements, and not in bytes."""

LARGEST = 2**31 - 1
"""Largest size; the library keeps sizes as ``int``."""


@dataclass(frozen=True, slots=True)
class SizeRange:
    """A range of message sizes with one choice.

    Attributes
    ----------
    low, high : first and last size, in the unit of the library; None = no end
    what : an algorithm of Open MPI, or the name of a mock-up
    """

    low: int
    high: int | None
    what: Algorithm | str


@dataclass(frozen=True, slots=True)
class ProcessRange:
    """A range of numbers of processes with the same ranges of sizes.

    Attributes
    ----------
    low, high : first and last number of processes
    sizes : ranges with a choice, in ascending order; elsewhere the library decides
    """

    low: int
    high: int
    sizes: tuple[SizeRange, ...]


def size_ranges(
    sizes: Sequence[int], whats: Mapping[int, Algorithm | str]
) -> tuple[SizeRange, ...]:
    """Return the ranges of choices.

    Parameters
    ----------
    sizes : measured sizes
    whats : choice at some of them

    Examples
    --------
    >>> size_ranges([64, 256, 1024], {256: "x"})
    (SizeRange(low=129, high=512, what='x'),)
    """
    ordered = sorted({*sizes})
    # The range of a size ends at the geometric mean with the next one.
    ends = [isqrt(one * other) for one, other in pairwise(ordered)] + ordered[-1:]
    starts = ordered[:1] + [end + 1 for end in ends[:-1]]
    found: list[SizeRange] = []
    for size, start, end in zip(ordered, starts, ends, strict=True):
        what = whats.get(size)
        if what is None:
            continue
        last = found[-1] if found else None
        if last is not None and last.what == what and last.high == start - 1:
            found[-1] = SizeRange(last.low, end, what)
        else:
            found.append(SizeRange(start, end, what))
    return tuple(found)


def process_ranges(
    found: Mapping[int, tuple[SizeRange, ...]], measured: Sequence[int], *, exact: bool = False
) -> tuple[ProcessRange, ...]:
    """Return the ranges of processes with a choice, in ascending order.

    Parameters
    ----------
    found : ranges of sizes at numbers of processes
    measured : all measured numbers of processes
    exact : whether the library knows single numbers of processes only
    """
    ordered = sorted({*measured})
    rows = []
    for one, other in pairwise([*ordered, ordered[-1]]):
        here = found.get(one, ())
        rows.append(ProcessRange(one, one, here))
        if other > one + 1 and not exact:
            rows.append(ProcessRange(one + 1, other - 1, _common(here, found.get(other, ()))))
    merged: list[ProcessRange] = []
    for row in (each for each in rows if each.sizes):
        last = merged[-1] if merged else None
        if last and not exact and last.sizes == row.sizes and last.high == row.low - 1:
            merged[-1] = ProcessRange(last.low, row.high, row.sizes)
        else:
            merged.append(row)
    return tuple(merged)


def _common(one: Sequence[SizeRange], other: Sequence[SizeRange]) -> tuple[SizeRange, ...]:
    """Return the ranges in which both sides have the same choice."""
    found = []
    for a in one:
        for b in other:
            low = max(a.low, b.low)
            ends = [end for end in (a.high, b.high) if end is not None]
            high = min(ends) if ends else None
            if a.what == b.what and (high is None or low <= high):
                found.append(SizeRange(low, high, a.what))
    return tuple(found)


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
