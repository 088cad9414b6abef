"""Computation at other numbers of processes: a performance model of the mean of each line.

The mean over ranks and rounds is modelled with its band, by the models of
`callpath_modeler.modeling`. The first round of the innermost loop is apart where it differs,
because a program computes there what it has done since the loop before. Ranks and rounds differ
from the mean as in the largest trace, at the same place among the ranks of the line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array
from callpath_modeler.modeling import Models, fit
from cpmodel_commspec.operations import Traced
from cpmodel_commspec.scalable.scales import Scale

ENDING = 0
"""The number of the line after the last operation."""


_DIFFERS = 0.1
"""Share of the mean, from which on first rounds are apart."""

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
    """A line; `is_first` is None for all rounds, and else tells which of them."""

    line: int
    is_first: bool | None = None


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
    """

    keys: tuple[Key, ...]
    processes: tuple[int, ...]
    means: FloatArray
    factors: Mapping[Key, tuple[FloatArray, ...]]

    @cached_property
    def models(self) -> Models:
        """The models of the means."""
        return fit(np.array(self.processes, np.float64), self.means)

    def values(self, processes: Sequence[float]) -> FloatArray:
        """Return the seconds at p [m], [keys x m]; without a model, the last mean."""
        found = self.models.values(processes)
        last = np.array([np.nanmean(row[~np.isnan(row).all(axis=1)][-1]) for row in self.means])
        return np.where(np.isnan(found), last[:, np.newaxis], found)

    def bands(self, scale: Scale) -> dict[Key, Band]:
        """Return the seconds of each line at a scale."""
        found, values = self.models.predict([scale.processes]), self.values([scale.processes])
        low, high = (np.nan_to_num(x, nan=y) for x, y in ((found.low, 0.0), (found.high, np.inf)))
        bands = {}
        for k, key in enumerate(self.keys):
            value, least, most = (float(x[k, 0]) for x in (values, low, high))
            bands[key] = Band(key, value, least, most, self.models.formula(k))
        return bands

    def seconds(
        self, bands: Mapping[Key, Band], line: int, place: int, ranks: int, counts: Sequence[int]
    ) -> FloatArray:
        """Return the seconds of a rank in each round, [rounds].

        Parameters
        ----------
        bands : as predicted
        place, ranks : of the rank among those of the line, and their number
        counts : rounds of each loop around
        """
        rounds = int(np.prod(counts, dtype=np.int64))
        seconds = np.zeros(rounds)
        is_first = (
            np.arange(rounds) % max(counts[-1], 1) == 0 if counts else np.ones(rounds, np.bool_)
        )
        for key, chosen in (
            (Key(line), np.ones(rounds, np.bool_)),
            (Key(line, True), is_first),
            (Key(line, False), ~is_first),
        ):
            if key in bands:
                rows = self.factors[key]
                row = rows[place * len(rows) // ranks]
                seconds[chosen] = bands[key].value * row[np.arange(int(chosen.sum())) % len(row)]
        return seconds


def times(traces: Sequence[Traced], rows: Mapping[int, Sequence[Rows]]) -> Times | None:
    """Return the computation of lines; None if a trace has no times.

    Parameters
    ----------
    rows : by line, those of each trace
    """
    if any(len(x.computing) != len(x.shapes) for one in traces for x in one.ranks):
        return None
    seconds = [np.concatenate([x.computing for x in one.ranks]) for one in traces]
    ranks = [
        np.repeat(np.arange(len(one.ranks)), [len(x.shapes) for x in one.ranks]) for one in traces
    ]
    keys, means, factors = [], list[list[FloatArray]](), dict[Key, tuple[FloatArray, ...]]()
    for line, of_traces in rows.items():
        for key in _keys(line, seconds, of_traces):
            keys.append(key)
            parts = []
            for k, one in enumerate(of_traces):
                at = one.at if key.is_first is None else one.at[one.is_first == key.is_first]
                begins = np.flatnonzero(np.diff(ranks[k][at])) + 1
                parts.append(np.split(seconds[k][at], begins) if len(at) else [])
            means.append([_groups(own) for own in parts])
            factors[key] = _relative(next(own for own in reversed(parts) if own))
    last = [[np.array([x.last]) for x in one.ranks] for one in traces]
    keys.append(Key(ENDING))
    means.append([_groups(own) for own in last])
    factors[keys[-1]] = _relative(last[-1])
    processes = tuple(len(one.ranks) for one in traces)
    return Times(tuple(keys), processes, np.array(means, np.float64), factors)


def _groups(parts: Sequence[FloatArray]) -> FloatArray:
    """Return the means of groups of ranks that follow each other; NaN without ranks."""
    found = np.full(_GROUPS, np.nan)
    own = np.array([part.mean() for part in parts])
    for k, group in enumerate(np.array_split(own, min(_GROUPS, len(own))) if len(own) else ()):
        found[k] = group.mean()
    return found


def _keys(line: int, seconds: Sequence[FloatArray], of_traces: Sequence[Rows]) -> tuple[Key, ...]:
    """Return the keys of a line: one, or two if first rounds differ from the others."""
    for k, rows in enumerate(of_traces):
        if rows.is_first.any() and not rows.is_first.all():
            own = seconds[k][rows.at]
            first, usual = own[rows.is_first].mean(), own[~rows.is_first].mean()
            if abs(first - usual) > _DIFFERS * own.mean():
                return Key(line, True), Key(line, False)
    return (Key(line),)


def _relative(parts: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
    mean = float(np.concatenate(parts).mean())
    return tuple(part / mean if mean > 0 else np.ones_like(part) for part in parts)
