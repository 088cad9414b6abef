"""Costs of call paths in sampled metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array, UInt64Array
from cpmodel_otf2.definitions import MetricMember
from cpmodel_otf2.events import Samples
from cpmodel_otf2.paths import OUTSIDE

if TYPE_CHECKING:
    from cpmodel_otf2.replay_totals import ReplayTotals

_ACCUMULATED_START, _LAST = 0, (32, 34)
_FLOAT, _DOUBLE = 9, 10


def is_cost(member: MetricMember) -> bool:
    """Return whether a metric is a cost, and not a level at a point in time."""
    return member.mode == _ACCUMULATED_START or member.mode in _LAST


class Counters:
    """Assignment of the metrics of one location to call paths.

    The increase of a counter between two samples belongs to the call path between them. A sample is
    taken before the call with the same time is recorded, so that call is included.
    """

    def __init__(self, classes: Mapping[int, tuple[MetricMember, ...]]) -> None:
        self._classes = classes
        self._last: dict[int, tuple[int, UInt64Array]] = {}

    def add(
        self,
        tally: ReplayTotals,
        samples: Mapping[int, Samples],
        time: Int64Array,
        before: Int64Array,
    ) -> None:
        """Add the samples of a batch.

        Parameters
        ----------
        time : [n], times of the calls of the batch
        before : [n + 1], call path before each call, and after the last one
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


def _costs(member: MetricMember, bits: UInt64Array) -> FloatArray:
    """Return the cost before each sample except the first, [n - 1]."""
    stored: FloatArray | Int64Array
    if member.type == _DOUBLE:
        stored = bits.view(np.float64)
    elif member.type == _FLOAT:
        stored = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    else:
        # Unsigned counters may wrap around, and differences wrap in the same way.
        stored = bits.view(np.int64)
    with np.errstate(all="ignore"):
        spent = stored[1:] if member.mode in _LAST else np.diff(stored)
        return np.array(spent, np.float64)
