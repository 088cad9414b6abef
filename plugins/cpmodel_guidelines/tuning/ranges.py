"""Ranges of rules: from measured sizes and processes to all those between them.

A choice at a measured size reaches half the way to the next measured size, on a logarithmic scale.
No rule reaches beyond the smallest or the largest measured size. Between two measured numbers of
processes, a rule needs the same choice at both of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt

from cpmodel_guidelines.tuning.open_mpi import Algorithm


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
