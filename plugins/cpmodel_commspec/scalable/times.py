"""Computation at other numbers of processes: a performance model of each line and class of ranks.

Ranks at the corners, edges and ends of the grid compute before other lines than those within, and
the first one often has serial work. So ranks are classes by their position on the grid; positions
that compute alike are one class. The mean over the ranks and rounds of a class is modelled with its
band, by the models of `callpath_modeler.modeling`. The first round of the innermost loop is apart
where it differs, because a program computes there what it has done since the loop before. Ranks and
rounds differ from the mean as in the largest trace, at the same place among the ranks of the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array
from callpath_modeler.modeling import Models, fit
from cpmodel_commspec.operations import Traced
from cpmodel_commspec.scalable.numbers import grouped_text
from cpmodel_commspec.scalable.quantities import Quantity, Unfit
from cpmodel_commspec.scalable.quantities import fit as fit_quantity
from cpmodel_commspec.scalable.scales import Scale

ENDING = 0
"""The number of the line after the last operation."""


_ALIKE = 0.25
"""Share of the longest mean of positions, by which those of a class differ at most, and the change
of the share of a position between traces from which on positions are classes."""

_NOTHING = 1e-12
"""Seconds; a mean below them has no shares."""

_DIFFERS = 0.1
"""Share of the mean, from which on first rounds are apart."""

_FURTHER = 4
"""Times the largest trace, where the bands of models are compared."""

_STEEPEST = 2.0
"""Power of p of the trend of a line without a model."""

_GROUPS = 4
"""Groups of ranks whose means are repetitions of one measurement."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The operations of a line in a trace, rank by rank.

    Attributes
    ----------
    at : among the operations of all ranks, [n]
    is_first : whether each is in the first round of the innermost loop, [n]
    """

    at: Int64Array
    is_first: BoolArray


class Key(NamedTuple):
    """A line and a class of ranks; `is_first` is None for all rounds, and else tells which."""

    line: int
    is_first: bool | None = None
    group: int = 0


@dataclass(frozen=True, slots=True)
class Band:
    """Seconds of computation of one rank in one round, with the band of the model."""

    key: Key
    value: float
    low: float
    high: float
    formula: str


@dataclass(frozen=True)
class Times:
    """Computation before each line.

    Attributes
    ----------
    keys : lines, the last one is `ENDING`
    processes : of the traces, [K]
    means : seconds, [keys x K x `_GROUPS`]: the means of groups of ranks, which serve as
        repetitions; NaN where there are none
    factors : by key, the seconds of ranks in rounds in the largest trace that has them, over their
        mean; one row for each rank
    groups : by line, the class of each position
    rounds : by key, the operations of a rank, where the models are those of all of them together:
        a loop of log2 p rounds can share work that falls as 1 / p
    """

    keys: tuple[Key, ...]
    processes: tuple[int, ...]
    means: FloatArray
    factors: Mapping[Key, tuple[FloatArray, ...]]
    groups: Mapping[int, Mapping[int, int]]
    rounds: Mapping[Key, Quantity]

    @cached_property
    def models(self) -> Models:
        """The models of the means."""
        return fit(np.array(self.processes, np.float64), self.means)

    def values(self, scales: Sequence[Scale]) -> FloatArray:
        """Return the seconds at scales [m], [keys x m]; without a model, the trend of the means."""
        p = np.array([scale.processes for scale in scales], np.float64)
        found = self.models.values(p)
        known = np.array(self.processes, np.float64)
        trends = np.array([_trend(known, row, p) for row in self.means])
        found = np.where(np.isnan(found), trends, found)
        # Sums with falling terms can go below zero far outside of the traces.
        return np.maximum(found, 0.0) / self._divisors(scales)

    def _divisors(self, scales: Sequence[Scale]) -> FloatArray:
        """Return the rounds that share the seconds of a key, [keys x m]."""
        found = np.ones((len(self.keys), len(scales)))
        for key, rounds in self.rounds.items():
            row = self.keys.index(key)
            for k, scale in enumerate(scales):
                with suppress(Unfit):
                    found[row, k] = max(1, rounds.value(scale))
        return found

    def bands(self, scale: Scale) -> dict[Key, Band]:
        """Return the seconds of each line at a scale."""
        found, values = self.models.predict([scale.processes]), self.values([scale])
        divisors = self._divisors([scale])
        low, high = (
            np.nan_to_num(x / divisors, nan=y) for x, y in ((found.low, 0.0), (found.high, np.inf))
        )
        bands = {}
        for k, key in enumerate(self.keys):
            value, least, most = (float(x[k, 0]) for x in (values, low, high))
            formula = self.models.formula(k)
            if key in self.rounds:
                formula = f"({formula}) / {grouped_text(str(self.rounds[key]))}"
            bands[key] = Band(key, value, least, most, formula)
        return bands

    def without_largest(self) -> Times:
        """Return what the traces but the largest one tell."""
        means = self.means.copy()
        means[:, -1] = np.nan
        return replace(self, means=means)

    def classes(self, line: int, scale: Scale, ranks: Int64Array) -> Int64Array:
        """Return the class of each rank [n]; positions of no trace are those most like them."""
        known = self.groups[line]
        positions = scale.positions(ranks)
        nearest = {
            one: min(known, key=lambda other: (_distance(one, other), -other))
            for one in np.unique(positions).tolist()
        }
        return np.array([known[nearest[one]] for one in positions.tolist()], np.int64)

    def seconds(
        self, bands: Mapping[Key, Band], line: int, group: int, place: int, ranks: int,
        counts: Sequence[int],
    ) -> FloatArray:  # fmt: skip
        """Return the seconds of a rank in each round, [rounds].

        Parameters
        ----------
        bands : as predicted
        group, place, ranks : the class of the rank, its place there, and the number of its ranks
        counts : rounds of each loop around
        """
        rounds = int(np.prod(counts, dtype=np.int64))
        seconds = np.zeros(rounds)
        is_first = (
            np.arange(rounds) % max(counts[-1], 1) == 0 if counts else np.ones(rounds, np.bool_)
        )
        for key, chosen in (
            (Key(line, None, group), np.ones(rounds, np.bool_)),
            (Key(line, True, group), is_first),
            (Key(line, False, group), ~is_first),
        ):
            if key in bands:
                rows = self.factors[key]
                row = rows[place * len(rows) // ranks]
                seconds[chosen] = bands[key].value * row[np.arange(int(chosen.sum())) % len(row)]
        return seconds


def _distance(one: int, other: int) -> int:
    """Return in how many dimensions positions differ."""
    return sum(one // unit % 3 != other // unit % 3 for unit in (1, 3, 9))


def times(
    traces: Sequence[Traced], scales: Sequence[Scale], rows: Mapping[int, Sequence[Rows]]
) -> Times | None:
    """Return the computation of lines; None if a trace has no times.

    Parameters
    ----------
    scales : of the traces
    rows : by line, those of each trace
    """
    if any(len(x.computing) != len(x.shapes) for one in traces for x in one.ranks):
        return None
    seconds = [np.concatenate([*(x.computing for x in one.ranks), _last(one)]) for one in traces]
    ranks = [
        np.concatenate([np.repeat(np.arange(len(x)), x), np.arange(len(x))])
        for x in (one.counts() for one in traces)
    ]
    positions = [scale.positions(own) for scale, own in zip(scales, ranks, strict=True)]
    # The end of a rank is a line of one operation.
    begins = [int(one.counts().sum()) for one in traces]
    ends = [
        Rows(begin + np.arange(len(one.ranks)), np.ones(len(one.ranks), np.bool_))
        for begin, one in zip(begins, traces, strict=True)
    ]
    keys, means, factors = [], list[FloatArray](), dict[Key, tuple[FloatArray, ...]]()
    groups, rounds = {}, dict[Key, Quantity]()
    for line, of_traces in {**rows, ENDING: ends}.items():
        at = [one.at for one in of_traces]
        groups[line] = _classes(
            [own[x] for own, x in zip(seconds, at, strict=True)],
            [own[x] for own, x in zip(positions, at, strict=True)],
        )
        for is_first in _kinds(seconds, of_traces):
            for group in sorted(set(groups[line].values())):
                members = [x for x, own in groups[line].items() if own == group]
                keys.append(Key(line, is_first, group))
                parts = []
                for k, one in enumerate(of_traces):
                    is_here = np.isin(positions[k][one.at], members)
                    if is_first is not None:
                        is_here &= one.is_first == is_first
                    own = one.at[is_here]
                    places = np.flatnonzero(np.diff(ranks[k][own])) + 1
                    parts.append(np.split(seconds[k][own], places) if len(own) else [])
                means.append(np.array([_groups(own) for own in parts]))
                counts = [{len(part) for part in own} for own in parts]
                shared = _shared(scales, means[-1], counts)
                if shared is not None:
                    rounds[keys[-1]] = shared
                    factor = np.array([next(iter(own)) for own in counts], np.float64)
                    means[-1] = means[-1] * factor[:, np.newaxis]
                largest = next((own for own in reversed(parts) if own), [np.zeros(1)])
                factors[keys[-1]] = _relative(largest)
    processes = tuple(len(one.ranks) for one in traces)
    return Times(tuple(keys), processes, np.array(means, np.float64), factors, groups, rounds)


def _last(traced: Traced) -> FloatArray:
    return np.array([x.last for x in traced.ranks], np.float64)


def _classes(seconds: Sequence[FloatArray], positions: Sequence[Int64Array]) -> dict[int, int]:
    """Return the class of each position; positions whose means are alike are one class.

    Parameters
    ----------
    seconds, positions : of the operations of a line in each trace, [n]
    """
    of_mean: dict[int, list[float]] = {}
    of_most: dict[int, list[float]] = {}
    for own, places in zip(seconds, positions, strict=True):
        means = {one: float(own[places == one].mean()) for one in np.unique(places).tolist()}
        for one, mean in means.items():
            of_mean.setdefault(one, []).append(mean / max(float(own.mean()), _NOTHING))
            of_most.setdefault(one, []).append(mean / max(_NOTHING, *means.values()))
    if all(max(own) <= (1 + _ALIKE) * min(own) for own in of_mean.values()):
        # An imbalance that all traces have is that of the largest, place by place.
        return dict.fromkeys(of_mean, 0)
    ordered = sorted((float(np.median(own)), one) for one, own in of_most.items())
    found: dict[int, int] = {}
    least, group = ordered[0][0], 0
    for share, one in ordered:
        if share - least > _ALIKE:
            least, group = share, group + 1
        found[one] = group
    return found


def _trend(processes: FloatArray, means: FloatArray, at: FloatArray) -> FloatArray:
    """Return a power law through the means of the largest two traces that have some, at p [m].

    Parameters
    ----------
    means : [traces x groups]
    """
    known = ~np.isnan(means).all(axis=1)
    values = np.nanmean(means[known], axis=1)
    if not len(values):
        return np.zeros(len(at))
    power = 0.0
    if len(values) > 1 and values[-2] > 0 and values[-1] > 0:
        p = processes[known]
        power = float(np.log(values[-1] / values[-2]) / np.log(p[-1] / p[-2]))
    ratio = at / processes[known][-1]
    found: FloatArray = values[-1] * ratio ** min(max(power, -_STEEPEST), _STEEPEST)
    return found


def _shared(
    traces: Sequence[Scale], means: FloatArray, counts: Sequence[set[int]]
) -> Quantity | None:
    """Return the rounds of a line if the seconds of all of them have a surer model than their mean.

    Parameters
    ----------
    traces : the scales
    means : of one round, [traces x groups]
    counts : operations of each rank in each trace
    """
    if any(len(own) != 1 for own in counts):
        return None
    rounds = [next(iter(own)) for own in counts]
    dimensions = max(1, *(sum(size > 1 for size in scale.sizes) for scale in traces))
    formulas = fit_quantity(traces, rounds, dimensions) if len(set(rounds)) > 1 else []
    if not formulas:
        return None
    p = np.array([scale.processes for scale in traces], np.float64)
    totals = means * np.array(rounds, np.float64)[:, np.newaxis]
    found = fit(p, np.stack([means, totals])).predict([_FURTHER * p[-1]])
    widths = found.high[:, 0] / np.maximum(found.low[:, 0], 1e-12)
    return formulas[0] if widths[1] < widths[0] else None


def _groups(parts: Sequence[FloatArray]) -> FloatArray:
    """Return the means of groups of ranks that follow each other; NaN without ranks."""
    found = np.full(_GROUPS, np.nan)
    own = np.array([part.mean() for part in parts])
    for k, group in enumerate(np.array_split(own, min(_GROUPS, len(own))) if len(own) else ()):
        found[k] = group.mean()
    return found


def _kinds(seconds: Sequence[FloatArray], of_traces: Sequence[Rows]) -> tuple[bool | None, ...]:
    """Return the rounds that have models of their own: all, or the first ones and the others."""
    for k, rows in enumerate(of_traces):
        if rows.is_first.any() and not rows.is_first.all():
            own = seconds[k][rows.at]
            first, usual = own[rows.is_first].mean(), own[~rows.is_first].mean()
            if abs(first - usual) > _DIFFERS * own.mean():
                return True, False
    return (None,)


def _relative(parts: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
    mean = float(np.concatenate(parts).mean())
    return tuple(part / mean if mean > 0 else np.ones_like(part) for part in parts)
