"""Latency and bandwidth of the machine, and what a run gains from a faster network.

The machine has one latency a step of an algorithm, and one time a byte. Calls count both exactly. A
call path that waits for messages cannot take less time than its transfers, but it may wait longer
for other reasons. So the cheapest call path bounds the latency and the time a byte from above. A
fit over all call paths does no better, because waiting looks like steps (`benchmarks/ACCURACY.md`).

Computation whose slowest process changes from call to call also makes others wait. Sums over a run
hide that: over n calls, such waiting is sqrt(n) times the delay of the sums. Only the time beyond
it must be transfer. Without such a time, the gain of a faster network may be zero.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.cause_needs import Needs, times_of, with_needs
from callpath_modeler.analysis.laws_of_time import FAMILIES, ROOTED, steps_and_bytes
from callpath_modeler.analysis.spent_delays import SpentDelays
from callpath_modeler.analysis.uncertain import Band, Total
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.call_class import CallClass, starts_a_collective

MESSAGES = frozenset({CallClass.POINT_TO_POINT, CallClass.WAIT, CallClass.ONE_SIDED})
"""Classes of calls that wait for some processes, but not for all."""
_SLOWEST = np.array([1e-4, 1e-8])
"""Largest latency in seconds, and the largest time of a byte, of a machine."""
_SOFTWARE = np.array([0.5, 0.0])
"""Part of the time of a step, and of a byte, that sender and receiver may compute."""
_UNLIKE = 2.0
"""How many times more a step or a byte may cost in one call path than in the cheapest."""
_LONG = 1e3
"""Size of a message in bytes from which on its bytes take a part of its time."""


class Unit(IntEnum):
    """A network takes time for each step of an algorithm, and for each byte."""

    STEP = 0
    BYTE = 1


class UnitCost(Struct, frozen=True, eq=False):
    """Costs of steps or of bytes at a target, in seconds.

    Attributes
    ----------
    unit : steps or bytes
    each : mean time of one over all call paths, with its range
    gain : what the run gains if they take no time, with its range; a low end of 0 = not known
    saved : [n] what call paths gain
    """

    unit: Unit
    each: Total
    gain: Total
    saved: FloatArray


class Network(Struct, frozen=True, eq=False):
    """Costs of messages at a target, of n call paths.

    Attributes
    ----------
    rows : [n] call paths
    time : [n] time of each at the target, delays included
    units : [n, 2] steps, and bytes, of each at the target
    most : [2] largest time of a step, and of a byte, that the calls allow, in seconds
    hidden : waiting for computation, in seconds, that sums over a run may hide
    in_chains : whether messages may wait for a chain of processes
    """

    rows: IntArray
    time: FloatArray
    units: FloatArray
    most: FloatArray
    hidden: float
    in_chains: bool

    @classmethod
    def of(cls, fitted: Fitted, target: float, chained: BoolArray) -> Network:
        """Return the network that the calls of an experiment tell.

        Parameters
        ----------
        fitted : models of a time
        target : value of the parameter
        chained : whether callers of `SpentDelays.rows` only use blocking calls for messages

        Raises
        ------
        UsageError
            If the profiles do not count calls and bytes, or no call sends messages.
        """
        tree, spent = fitted.experiment.tree, SpentDelays.of(fitted)
        regions = [tree.regions[region] for region in tree.region[spent.rows].tolist()]
        sends = np.array(
            [each.call_class in MESSAGES or each.call_class in FAMILIES for each in regions], bool
        )
        rows = spent.rows[sends]
        regions = [each for each, its in zip(regions, sends.tolist(), strict=True) if its]
        kinds = [each.call_class for each in regions]
        if not len(rows):
            raise UsageError(
                "--what-if: no call path waits for messages, so the network costs nothing",
                hint="change a computation, for example 'main/solve time / 2'",
            )
        counted = [each.metric for each in fitted.line.columns.values()]
        if not any(each.is_requirement and each.unit == "B" for each in counted):
            raise _uncounted("bytes")
        needs = with_needs(times_of(fitted, target, rows), fitted)
        units, calls = _units(needs, kinds)
        parts = (needs.delay, needs.beside)
        time = np.sum([each.values for each in parts if each is not None], axis=0)
        late = fitted.means_of(np.fmax(spent.largest - spent.mean, 0.0).sum(axis=0)[None])[0, -1]
        hidden = (np.sqrt(calls[:, -1].max()) - 1) * late
        # Only blocking operations without a root cannot return before all messages arrived.
        waits = np.array(
            [
                each.call_class.is_collective
                and each.call_class not in ROOTED
                and not starts_a_collective(each.name)
                for each in regions
            ]
        )
        most = _SLOWEST.copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            each = time[:, -2, None] / units[:, :, -2]
            size = units[:, 1, -2] / calls[:, -2]
        waits &= each[:, 0] > 0
        for k, known in enumerate((waits, waits & (size >= _LONG))):
            most[k] = min([most[k], *each[known, k].tolist()])
        is_chained = chained[sends] & np.array([each in MESSAGES for each in kinds])
        return cls(rows, time[:, -1], units[:, :, -1], most, float(hidden), bool(is_chained.any()))

    def cost(self, unit: Unit, rest: Band) -> UnitCost:
        """Return the costs of all steps or of all bytes at the target.

        Parameters
        ----------
        unit : steps or bytes
        rest : times of the call paths beside the delays of computation
        """
        which, cost = int(unit), self.most * self.units
        value, low, high = (np.nan_to_num(each) for each in (rest.value, rest.low, rest.high))
        own, other = cost[:, which], cost[:, 1 - which]
        share = own / np.maximum(np.maximum(value, own + other), np.finfo(float).tiny)
        # Where delays of computation are as long as the call, they hide its transfers.
        behind = np.maximum(np.minimum(self.time, _UNLIKE * own) - value, 0.0)
        most = (value + behind).sum() + np.sqrt(((high - value) ** 2).sum())
        least = 0.0
        # Time that the network cannot take is waiting of another kind, which may be anywhere.
        explained = value.sum() <= self.hidden + _UNLIKE * cost.sum()
        if explained and not self.in_chains and self.most[which] < _SLOWEST[which]:
            least = max(low.sum() - self.hidden - _UNLIKE * other.sum(), 0.0)
            least *= 1 - _SOFTWARE[which]
        saved = value * share
        if least > saved.sum():
            saved += (value - saved) * (least - saved.sum()) / (value - saved).sum()
        gain = (float(saved.sum()), float(least), float(most))
        count = max(float(self.units[:, which].sum()), np.finfo(float).tiny)
        each = [float(min(end / count, _SLOWEST[which])) for end in gain]
        return UnitCost(unit, (each[0], each[1], each[2]), gain, saved)


def _units(needs: Needs, kinds: list[CallClass]) -> tuple[FloatArray, FloatArray]:
    """Return steps and bytes [n, 2, K + 1], and calls [n, K + 1]."""
    units = np.zeros((len(kinds), 2, len(needs.points)))
    calls = np.zeros((len(kinds), len(needs.points)))
    for kind in dict.fromkeys(kinds):
        places = np.flatnonzero(np.array([each is kind for each in kinds]))
        found = steps_and_bytes(needs.take(places), kind)
        if found is None:
            raise _uncounted("calls")
        calls[places], units[places, 0], units[places, 1] = found
    return units, calls


def _uncounted(what: str) -> UsageError:
    return UsageError(
        f"--what-if: the profiles do not count the {what} of MPI functions, so they do not tell "
        "latency from bandwidth",
        hint="use profiles with visits and bytes of MPI calls, such as those of Score-P",
    )
