"""Metrics that a trace samples at its calls, turned into what each call path cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpmodel_otf2.definitions import MetricMember
from cpmodel_otf2.events import Column, Samples
from cpmodel_otf2.paths import OUTSIDE

if TYPE_CHECKING:
    from cpmodel_otf2.replay_totals import ReplayTotals

_ACCUMULATED_START, _LAST = 0, (32, 34)
_FLOAT, _DOUBLE = 9, 10


def is_cost(member: MetricMember) -> bool:
    """Tell whether a metric is spent, unlike one that has a level at any time."""
    return member.mode == _ACCUMULATED_START or member.mode in _LAST


class Counters:
    """Books the metrics of one location.

    Between two samples, what a counter advanced by belongs to the call path that the program
    was in. A sample is taken before the call of the same time is noted, so that call counts.
    """

    def __init__(self, classes: Mapping[int, tuple[MetricMember, ...]]) -> None:
        self._classes = classes
        self._last: dict[int, tuple[int, NDArray[np.uint64]]] = {}

    def add(
        self, tally: ReplayTotals, samples: Mapping[int, Samples], time: Column, before: Column
    ) -> None:
        """Take in the samples of a batch.

        Parameters
        ----------
        time : [n], times of the calls of the batch
        before : [n + 1], the call path before each call, and after the last
        """
        for reference, taken in samples.items():
            times, values = taken.time, taken.values
            known = self._last.get(reference)
            if known is not None:
                times = np.concatenate(([known[0]], times))
                values = np.concatenate((known[1][np.newaxis], values))
            self._last[reference] = int(times[-1]), values[-1].copy()
            paths = before[np.searchsorted(time, times[:-1], side="right")]
            for k, member in enumerate(self._classes[reference]):
                if is_cost(member):
                    cost = _costs(member, values[:, k])
                    cost[paths == OUTSIDE] = 0.0
                    tally.add(member.name, paths, cost)
                    tally.add_to_total(member.name, float(cost.sum()))


def _costs(member: MetricMember, bits: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return what was spent before each sample but the first, [n - 1]."""
    stored: NDArray[np.float64] | NDArray[np.int64]
    if member.type == _DOUBLE:
        stored = bits.view(np.float64)
    elif member.type == _FLOAT:
        stored = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    else:
        # Unsigned counters may wrap around: so do differences.
        stored = bits.view(np.int64)
    with np.errstate(all="ignore"):
        spent = stored[1:] if member.mode in _LAST else np.diff(stored)
        return np.array(spent, np.float64)
