"""Violations as PGMPI's own code finds and prints them (``--compat pgmpi``).

The procedure differs from the paper in two points: outliers are removed inside each mpirun, and a
message in pieces has to be faster by a factor of 2.05 instead of 1.05 (Hunold, Carpen-Amarie,
Lübbe, Träff: Automatic verification of self-consistent MPI performance guidelines, Euro-Par 2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from callpath_modeler.arrays import FloatArray
from cpmodel_guidelines.campaigns.campaign import Campaign
from cpmodel_guidelines.functions import canonical, mock_up
from cpmodel_guidelines.rules import Guideline, GuidelineKind, of_function, of_mock_up
from cpmodel_guidelines.statistics.two_sample_tests import rank_sum_chances

PATTERNS = (
    ("Gather", ("Allgather",)),
    ("Gather", ("Reduce",)),
    ("Allgather", ("Alltoall",)),
    ("Allgather", ("Allreduce",)),
    ("Scatter", ("Bcast",)),
    ("Reduce", ("Allreduce",)),
    ("Reduce_scatter", ("Allreduce",)),
    ("Bcast", ("Scatter", "Allgather")),
    ("Allgather", ("Gather", "Bcast")),
    ("Allreduce", ("Reduce", "Bcast")),
    ("Allreduce", ("Reduce_scatter_block", "Allgather")),
    ("Reduce", ("Reduce_scatter_block", "Gather")),
    ("Reduce_scatter_block", ("Reduce", "Scatter")),
    ("Scan", ("Exscan", "Reduce_local")),
    ("Reduce_scatter", ("Reduce", "Scatterv")),
)
"""PGMPI's patterns in the order of its list: the function, and the functions of the mock-up."""

_PIECES = 2.05
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_MOST_PARTNERS = 4096
_KINDS = (GuidelineKind.MONOTONY, GuidelineKind.SPLIT)

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class PublishedCheck:
    """One comparison of PGMPI's code. Those that it calls violated are the rows of its table.

    Attributes
    ----------
    library, processes : MPI library and number of processes
    guideline : the compared guideline
    start, end : message sizes; both are the same for patterns
    chance : p-value; NaN = no test
    factor : median of the left side over that of the right side
    significance : stars of the p-value; "" = not violated
    description : the compared medians, in seconds
    """

    library: str
    processes: int
    guideline: Guideline
    start: float
    end: float
    chance: float
    factor: float
    significance: str
    description: str

    @property
    def kind(self) -> GuidelineKind:
        """Return the kind of guideline."""
        return self.guideline.kind

    @property
    def function(self) -> str:
        """Return the guideline in PGMPI's spelling."""
        parts = "+".join(self.guideline.parts)
        return f"MPI_{self.guideline.left.function}{'<' * bool(parts)}{parts}"

    @property
    def size(self) -> float:
        """Return the message size of the left side."""
        return self.end if self.kind is GuidelineKind.SPLIT else self.start


def stars(chance: float) -> str:
    """Return the stars of a p-value.

    >>> stars(0.0009), stars(0.05), stars(0.051)
    ('***', '*', '')
    """
    return next((text for limit, text in _STARS if chance <= limit), "")


def published_guidelines() -> list[Guideline]:
    """Return all guidelines that PGMPI's code compares: patterns, then those of one function.

    >>> len(published_guidelines())
    33
    """
    functions = dict.fromkeys(left for left, _ in PATTERNS)
    own = [_own(name, kind) for kind in _KINDS for name in functions]
    return [*(of_mock_up(left, parts) for left, parts in PATTERNS), *own]


def published_violations(campaign: Campaign) -> list[PublishedCheck]:
    """Return the violations of a campaign with measured mock-ups, in PGMPI's order."""
    return [each for each in published_checks(campaign) if each.significance]


def published_checks(campaign: Campaign) -> list[PublishedCheck]:
    """Return the comparisons of a campaign with measured mock-ups, in PGMPI's order."""
    medians = campaign.medians(without_outliers=True)
    of_series: dict[tuple[str, int], dict[tuple[str, ...], dict[float, list[float]]]] = {}
    for each, median in zip(campaign.measurements, medians.tolist(), strict=True):
        key = _key(each.cell.function)
        if key is not None:
            functions = of_series.setdefault(each.series, {})
            functions.setdefault(key, {}).setdefault(each.cell.size, []).append(median)
    found: list[PublishedCheck] = []
    for (library, processes), functions in sorted(of_series.items()):
        rows = _compared({name: _Series.of(values) for name, values in functions.items()})
        found += [PublishedCheck(library, processes, *row) for row in rows]
    return found


def _key(name: str) -> tuple[str, ...] | None:
    """Return the function, followed by the functions of a mock-up; None = neither."""
    made = mock_up(name)
    if made is not None:
        return (made[0], *made[1])
    function = canonical(name)
    return None if function is None else (function,)


@dataclass(frozen=True, slots=True, eq=False)
class _Series:
    """One function: medians of mpiruns [K, R] at ascending sizes [K]; NaN = missing."""

    sizes: list[float]
    values: FloatArray
    medians: FloatArray

    @classmethod
    def of(cls, values: Mapping[float, Sequence[float]]) -> _Series:
        sizes = sorted(values)
        table = np.full((len(sizes), max(map(len, values.values()))), np.nan)
        for k, size in enumerate(sizes):
            table[k, : len(values[size])] = values[size]
        return cls(sizes, table, np.nanmedian(table, axis=1))


_Row = tuple[Guideline, float, float, float, float, str, str]


def _own(function: str, kind: GuidelineKind) -> Guideline:
    """Return the guideline of a kind about a single function."""
    return next(each for each in of_function(function) if each.kind is kind)


def _compared(functions: Mapping[tuple[str, ...], _Series]) -> Iterator[_Row]:
    for function in dict.fromkeys(left for left, _ in PATTERNS):
        series = functions.get((function,))
        if series is None:
            continue
        for left, parts in PATTERNS:
            there = functions.get((left, *parts))
            if left == function and there is not None:
                yield from _of_pattern(of_mock_up(left, parts), series, there)
        yield from _of_monotony(_own(function, GuidelineKind.MONOTONY), series)
        yield from _of_split(_own(function, GuidelineKind.SPLIT), series)


def _of_pattern(guideline: Guideline, left: _Series, right: _Series) -> Iterator[_Row]:
    common = sorted({*left.sizes} & {*right.sizes})
    rows = [(left.sizes.index(size), right.sizes.index(size)) for size in common]
    for size, (k, m), chance in _tested(common, rows, left, right):
        one, other = float(left.medians[k]), float(right.medians[m])
        told = f"time({_size(size)})={one:g} > time({_size(size)})={other:g}"
        yield guideline, size, size, chance, _over(one, other), stars(chance), told


def _of_monotony(guideline: Guideline, series: _Series) -> Iterator[_Row]:
    rows = [*pairwise(range(len(series.sizes)))]
    for _, (k, m), chance in _tested(rows, rows, series, series):
        less, more = series.sizes[k], series.sizes[m]
        one, other = float(series.medians[k]), float(series.medians[m])
        told = f"median({_size(less)})={one:g} > median({_size(more)})={other:g}"
        yield guideline, less, more, chance, _over(one, other), stars(chance), told


def _tested(
    keys: Sequence[_Key], rows: Sequence[tuple[int, int]], left: _Series, right: _Series
) -> Iterator[tuple[_Key, tuple[int, int], float]]:
    """Yield the pairs with the p-value that the left side is greater."""
    if not rows:
        return
    first, second = (np.array(column) for column in zip(*rows, strict=True))
    chances = rank_sum_chances(left.values[first], right.values[second]).tolist()
    yield from zip(keys, rows, chances, strict=True)


def _of_split(guideline: Guideline, series: _Series) -> Iterator[_Row]:
    """Yield the largest size whose pieces are faster, or else the fastest one."""
    sizes, medians = np.array(series.sizes), series.medians
    for j in range(1, len(sizes)):
        first = max(0, j - _MOST_PARTNERS)
        with np.errstate(divide="ignore", invalid="ignore"):
            pieces = np.ceil(sizes[j] / sizes[first:j])
            sums = pieces * medians[first:j]
        violating = np.flatnonzero(_PIECES * sums < medians[j])
        known = np.where(np.isfinite(sums), sums, np.inf)
        k = int(violating[-1]) if len(violating) else int(np.argmin(known))
        if not np.isfinite(sums[k]):
            continue
        less, more, whole = series.sizes[first + k], series.sizes[j], float(sums[k])
        sign = "<" if len(violating) else ">="
        told = f"{pieces[k]:.0f}*t({_size(less)})={whole:g} {sign} t({_size(more)})={medians[j]:g}"
        star = "*" * bool(len(violating))
        yield guideline, less, more, np.nan, _over(float(medians[j]), whole), star, told


def _over(left: float, right: float) -> float:
    return left / right if right > 0 else np.nan


def _size(size: float) -> str:
    return f"{size:.0f}" if size == int(size) else f"{size:g}"
