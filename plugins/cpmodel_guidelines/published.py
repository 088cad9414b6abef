"""Violations as PGMPI's own code finds and prints them (``--compat pgmpi``).

The procedure differs from the paper in two points: outliers are removed inside each mpirun, and a
message in pieces has to be faster by a factor of 2.05 instead of 1.05 (Hunold, Carpen-Amarie,
Lübbe, Träff: Automatic verification of self-consistent MPI performance guidelines, Euro-Par 2016).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from callpath_modeler.arrays import FloatArray
from cpmodel_guidelines.campaigns.campaign import Campaign
from cpmodel_guidelines.functions import canonical, mock_up
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

_LEVEL = 0.05
_PIECES = 2.05
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_MOST_PARTNERS = 4096


@dataclass(frozen=True, slots=True)
class PublishedViolation:
    """One row of PGMPI's table of violations.

    Attributes
    ----------
    library, processes : MPI library and number of processes
    start, end : message sizes; both are the same for patterns
    function : guideline, in PGMPI's spelling
    kind : ``pattern``, ``monotony`` or ``split``
    significance : stars of the p-value
    description : the compared medians, in seconds
    """

    library: str
    processes: int
    start: float
    end: float
    function: str
    kind: str
    significance: str
    description: str


def stars(chance: float) -> str:
    """Return the stars of a p-value.

    >>> stars(0.0009), stars(0.05), stars(0.051)
    ('***', '*', '')
    """
    return next((text for limit, text in _STARS if chance <= limit), "")


def published_violations(campaign: Campaign) -> list[PublishedViolation]:
    """Return the violations of a campaign with measured mock-ups, in PGMPI's order."""
    medians = campaign.medians(without_outliers=True)
    of_series: dict[tuple[str, int], dict[tuple[str, ...], dict[float, list[float]]]] = {}
    for each, median in zip(campaign.measurements, medians.tolist(), strict=True):
        key = _key(each.cell.function)
        if key is not None:
            functions = of_series.setdefault(each.series, {})
            functions.setdefault(key, {}).setdefault(each.cell.size, []).append(median)
    found: list[PublishedViolation] = []
    for (library, processes), functions in sorted(of_series.items()):
        rows = _violations({name: _Series.of(values) for name, values in functions.items()})
        found += [PublishedViolation(library, processes, *row) for row in rows]
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


_Row = tuple[float, float, str, str, str, str]


def _violations(functions: Mapping[tuple[str, ...], _Series]) -> Iterator[_Row]:
    for function in dict.fromkeys(left for left, _ in PATTERNS):
        series = functions.get((function,))
        if series is None:
            continue
        for left, parts in PATTERNS:
            there = functions.get((left, *parts))
            if left == function and there is not None:
                yield from _of_pattern(f"MPI_{left}<{'+'.join(parts)}", series, there)
        yield from _of_monotony(f"MPI_{function}", series)
        yield from _of_split(f"MPI_{function}", series)


def _of_pattern(name: str, left: _Series, right: _Series) -> Iterator[_Row]:
    common = sorted({*left.sizes} & {*right.sizes})
    rows = [(left.sizes.index(size), right.sizes.index(size)) for size in common]
    for size, (k, m), chance in _tested(common, rows, left, right):
        told = f"time({_size(size)})={left.medians[k]:g} > time({_size(size)})={right.medians[m]:g}"
        yield size, size, name, "pattern", stars(chance), told


def _of_monotony(name: str, series: _Series) -> Iterator[_Row]:
    rows = [*pairwise(range(len(series.sizes)))]
    for _, (k, m), chance in _tested(rows, rows, series, series):
        less, more = series.sizes[k], series.sizes[m]
        told = (
            f"median({_size(less)})={series.medians[k]:g} > "
            f"median({_size(more)})={series.medians[m]:g}"
        )
        yield less, more, name, "monotony", stars(chance), told


def _tested(
    keys: Iterable[object], rows: Sequence[tuple[int, int]], left: _Series, right: _Series
) -> Iterator[tuple]:  # type: ignore[type-arg]
    """Yield the pairs whose left side is significantly greater."""
    if not rows:
        return
    first, second = (np.array(column) for column in zip(*rows, strict=True))
    chances = rank_sum_chances(left.values[first], right.values[second]).tolist()
    for key, row, chance in zip(keys, rows, chances, strict=True):
        if chance <= _LEVEL:
            yield key, row, chance


def _of_split(name: str, series: _Series) -> Iterator[_Row]:
    sizes, medians = np.array(series.sizes), series.medians
    for j in range(1, len(sizes)):
        first = max(0, j - _MOST_PARTNERS)
        with np.errstate(divide="ignore", invalid="ignore"):
            pieces = np.ceil(sizes[j] / sizes[first:j])
            sums = pieces * medians[first:j]
        violating = np.flatnonzero(_PIECES * sums < medians[j])
        if len(violating):
            k = int(violating[-1])
            less, more = series.sizes[first + k], series.sizes[j]
            told = f"{pieces[k]:.0f}*t({_size(less)})={sums[k]:g} < t({_size(more)})={medians[j]:g}"
            yield less, more, name, "split", "*", told


def _size(size: float) -> str:
    return f"{size:.0f}" if size == int(size) else f"{size:g}"
