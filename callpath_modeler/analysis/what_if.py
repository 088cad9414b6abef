"""Gains of a run from the removal or the change of a cause, waiting included.

The other processes wait for the slowest one. So a computation costs the run the time of its slowest
process, not the mean. Its gain at the target comes from a model of the maxima. An operation that
waits gains only its time beside the delays, because other operations would spend these. Computation
between messages is different. Other delays may hide a part of it. In a pipeline, the last process
also waits for the computation of all processes before it. So such gains have wide bands. See
docs/explanation/requirements.md, 'What a change gains'.

Balance gains the delay of the slowest process. Another delay may hide all of this gain. It is
larger if the slowest process changes from call to call, because a profile has sums over calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.network import MESSAGES, Network, Unit, UnitCost
from callpath_modeler.analysis.run_time import ImbalanceSources
from callpath_modeler.analysis.spent_delays import SpentDelays
from callpath_modeler.analysis.uncertain import Band, Total
from callpath_modeler.analysis.waiting import delays_at, parts_of, predicted_runs
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.call_class import blocks_for_a_message
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.pattern import match, unmatched
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.units import decimal_of

_HIDDEN = 2.0
"""How many times smaller a gain may be that is waited for in messages."""
_CHANGING = 4.0
"""How many times larger the gain of balance may be than the delay that sums over the run show."""
_NONE = 0.1
"""Part of this delay that balance may cost, where another delay hides it."""
_ROUNDING = 1e-9
"""Part of a time below which a rest is only rounding."""


class Quantity(StrEnum):
    """What a change changes."""

    TIME = "time"
    IMBALANCE = "imbalance"
    LATENCY = "latency"
    BANDWIDTH = "bandwidth"

    @property
    def unit(self) -> Unit | None:
        """The unit whose cost the network changes; None = the network stays."""
        return {"latency": Unit.STEP, "bandwidth": Unit.BYTE}.get(self.value)


_CHANGE = re.compile(
    r"(?:(?P<pattern>.*\S)\s+)?"
    r"(?P<quantity>time|imbalance|latency|bandwidth)\s*(?P<sign>[*/=])\s*(?P<number>\S.*)",
    re.DOTALL,
)
_ALLOWED = {
    Quantity.TIME: "time * or / a number",
    Quantity.IMBALANCE: "imbalance = 1 or more",
    Quantity.LATENCY: "latency / 1 or more, or latency * 1 or less",
    Quantity.BANDWIDTH: "bandwidth * 1 or more",
}


class Change(Struct, frozen=True):
    """A cause that is changed.

    Attributes
    ----------
    text : as the user wrote it
    pattern : call paths; "" = the network of the machine
    quantity : what is changed
    value : the imbalance, or the factor of the time, of each step or of each byte
    """

    text: str
    pattern: str
    quantity: Quantity
    value: float


class WhatIf(Struct, frozen=True, eq=False):
    """A run at a target after some changes.

    Attributes
    ----------
    changes : the changes
    gain : time of the run that goes away, with its band
    before, after : time of the run without and with the changes
    values : [call paths] exclusive values with the changes; NaN = no value
    network : latency and bandwidth that the calls show, if one of them is changed
    """

    changes: tuple[Change, ...]
    gain: Total
    before: Total
    after: Total
    values: FloatArray
    network: tuple[UnitCost, ...] = ()


def parse_change(text: str) -> Change:
    """Return a change such as ``main/solve imbalance = 1`` or ``latency / 2``.

    Raises
    ------
    UsageError
        If the text is no change.
    """
    hint = "for example 'main/solve time / 2', 'main/solve imbalance = 1' or 'latency / 2'"
    found = _CHANGE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--what-if {text}: not a change", hint=hint)
    quantity, pattern = Quantity(found["quantity"]), found["pattern"] or ""
    if quantity.unit is None and not pattern:
        raise UsageError(f"--what-if {text}: not a change", hint=hint)
    if quantity.unit is not None and pattern:
        raise UsageError(
            f"--what-if {text}: all call paths share one {quantity}",
            hint=f"leave out {pattern}: '{quantity} {text.strip()[found.start('sign') :]}'",
        )
    sign, number = found["sign"], found["number"]
    try:
        value = decimal_of(number)
    except ValueError:
        value = float("nan")
    if not 0 <= value < np.inf or (sign == "/" and value == 0):
        raise UsageError(f"--what-if {text}: {number} is not a number of 0 or more", hint=hint)
    is_balance = quantity is Quantity.IMBALANCE
    factor = 1 / value if sign == "/" else value
    if quantity is Quantity.BANDWIDTH:
        factor = 1 / factor if factor > 0 else np.inf
    allowed = is_balance == (sign == "=") and (not is_balance or value >= 1)
    # A slower network shows transfers that computation hides, and no profile counts these.
    if not allowed or (quantity.unit is not None and factor > 1):
        raise UsageError(f"--what-if {text}: give {_ALLOWED[quantity]}", hint=hint)
    return Change(text, pattern, quantity, factor)


def _has_processes(fitted: Fitted) -> bool:
    """Return whether models are of a time whose largest value over processes is known."""
    is_sum = fitted.metric.is_time and fitted.metric.additive
    return is_sum and fitted.line.columns[fitted.metric.name].imbalance is not None


def gains_at(ranking: Ranking, rows: IntArray) -> Band:
    """Return what a run gains at a finite target if a call path takes no time, [n].

    NaN = not known.
    """
    fitted = ranking.fitted
    found = np.full((3, len(rows)), np.nan)
    if _has_processes(fitted):
        waits = fitted.waits[rows]
        work = ~waits & fitted.modelled[rows]
        found[:, work] = _without_work(fitted, ranking.target, rows[work])
        found[:, waits] = _beside_delays(ranking, rows[waits])
    return Band(*found)


def _without_work(fitted: Fitted, target: float, rows: IntArray) -> FloatArray:
    """Return the gains of computations that take no time, with bands, [3, n]."""
    _, largest = fitted.line.means_and_maxima(fitted.metric.name, rows)
    band = predicted_runs(fitted, largest, np.array([target]))
    found = np.array([band.value[:, 0], band.low[:, 0], band.high[:, 0]])
    between = _between_messages(fitted, rows)
    found[:, between] = _in_pipelines(fitted, target, rows[between], found[:, between])
    return found


def _beside_delays(ranking: Ranking, rows: IntArray) -> FloatArray:
    """Return the parts of the times of operations beside delays, with bands, [3, n]."""
    fitted, spent = ranking.fitted, SpentDelays.of(ranking.fitted)
    found = np.full((3, len(rows)), np.nan)
    known = np.flatnonzero(np.isin(rows, spent.rows))
    if not len(known):
        return found
    places = np.searchsorted(spent.rows, rows[known])
    parts = parts_of(fitted, spent, places, np.array([ranking.target]))
    # The difference of two equal numbers is rounding.
    beside = (spent.rest[places] > _ROUNDING * spent.time[places]).any(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(beside, np.nan_to_num(parts.rest / parts.time)[:, 0], 0.0)
    times, _ = ranking.of_rows(rows[known])
    found[:, known] = share * np.array([times.value, times.low, times.high])
    return np.asarray(np.maximum(found, 0.0))


def _in_pipelines(fitted: Fitted, target: float, rows: IntArray, own: FloatArray) -> FloatArray:
    """Return the gains of computation between messages with bands, [3, n], from its own time.

    Processes that only use blocking sends and receives wait in a chain, as in wave fronts: if they
    exchanged messages like this, each would block the other. They wait for computation and for the
    network. So the gain is the geometric mean of its own time without the waiting of the last
    process, and with all of it. In other exchanges the waiting only makes the band wider. Over 16
    to 256 simulated processes, computation was 20 to 100 % of the waiting (SimGrid).
    """
    waiting = _largest_waiting(fitted, target, rows)
    chained = np.where(_in_chains(fitted, rows), waiting, 0.0)
    value, low, high = own
    return np.array([np.sqrt(value * (value + chained)), low / _HIDDEN, high + waiting])


def _largest_waiting(fitted: Fitted, target: float, rows: IntArray) -> FloatArray:
    """Return the share [n] of computations in the largest waiting for messages of their callers.

    Delays of computation are no part of it. Computations below one caller share it by their times.
    """
    tree, spent = fitted.experiment.tree, SpentDelays.of(fitted)
    sources = ImbalanceSources.of(fitted)
    if sources is None or not len(rows):
        return np.zeros(len(rows))
    classes = [each.call_class for each in tree.regions]
    sends = np.array([each in MESSAGES for each in classes], bool)[tree.region[spent.rows]]
    calls = spent.rows[sends]
    _, largest = fitted.line.means_and_maxima(fitted.metric.name, calls)
    delays = (spent.share[sends] > 0) @ np.fmax(spent.largest - spent.mean, 0.0)
    rest = np.nan_to_num(np.maximum(largest - delays, 0.0))
    upto = np.concatenate([np.zeros((1, rest.shape[1])), rest.cumsum(axis=0)])
    caller = _caller(tree, rows)
    first, last = (np.searchsorted(calls, ends) for ends in (caller, tree.end[caller]))
    waiting = predicted_runs(fitted, upto[last] - upto[first], np.array([target])).value[:, 0]
    computes = np.array([each.computes for each in classes], bool)[tree.region]
    work = np.concatenate([[0.0], np.where(computes, np.nan_to_num(sources.mean), 0.0).cumsum()])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = sources.mean[rows] / (work[tree.end[caller]] - work[caller])
    return np.asarray(np.maximum(np.nan_to_num(share * waiting), 0.0))


def _in_chains(fitted: Fitted, rows: IntArray) -> BoolArray:
    """Return whether all messages below the callers of computations block, [n].

    A process that exchanges messages uses requests, MPI_Sendrecv, or a neighbourhood collective.
    """
    tree = fitted.experiment.tree
    upto = _calls_before(
        tree,
        [
            each.call_class in MESSAGES and not blocks_for_a_message(each.name)
            for each in tree.regions
        ],
    )
    caller = _caller(tree, rows)
    return np.asarray(upto[tree.end[caller]] == upto[caller])


def _calls_before(tree: CallTree, is_counted: Sequence[bool]) -> IntArray:
    """Return the number of counted call paths before each, [call paths + 1], by region."""
    return np.concatenate([[0], np.cumsum(np.array(is_counted, bool)[tree.region])])


def _caller(tree: CallTree, rows: IntArray) -> IntArray:
    """Return the callers of call paths; the caller of a root is itself."""
    return np.where(tree.parent[rows] == ROOT, rows, tree.parent[rows])


def _between_messages(fitted: Fitted, rows: IntArray) -> BoolArray:
    """Return whether a computation or its caller sends messages, and calls nothing collective."""
    tree = fitted.experiment.tree
    classes = [region.call_class for region in tree.regions]
    some = _calls_before(tree, [each in MESSAGES for each in classes])
    whole = _calls_before(tree, [each.is_collective for each in classes])
    caller = _caller(tree, rows)
    # A caller such as main calls something collective.
    found = np.zeros(len(rows), bool)
    for first in (rows, caller):
        last = tree.end[first]
        found |= (some[last] > some[first]) & (whole[last] == whole[first])
    return found


def what_if(ranking: Ranking, changes: Sequence[Change]) -> WhatIf:
    """Return what a run takes at the target of a ranking after some changes.

    Gains of several changes add up.

    Raises
    ------
    UsageError
        If processes are not known, the target is infinite, a pattern matches no computation, or
        calls and bytes of a changed network are not counted.
    """
    fitted, target = ranking.fitted, ranking.target
    costs: dict[Unit, UnitCost] = {}
    if np.isinf(target):
        raise UsageError("--what-if: the target is infinite", hint="give a finite --target")
    if not _has_processes(fitted):
        raise UsageError(
            "--what-if: the profiles have no times per process, so they do not tell who waits",
            hint="give profiles with values per process, such as those of Score-P",
        )
    values, before = ranking.call_paths[0].value.copy(), ranking.program_total
    gain = np.zeros(3)
    for change in sorted(changes, key=lambda each: each.quantity.unit is None):
        unit = change.quantity.unit
        if unit is not None:
            costs[unit], saved = _of_network(ranking, change, unit)
            values -= np.minimum(saved, np.nan_to_num(values))
            # Steps and bytes explain the same times, so their errors are not independent.
            gain += (1.0 - change.value) * np.array(costs[unit].gain)
            # No run gains more than it takes.
            gain[2] = max(min(gain[2], before[2]), gain[0])
            continue
        part = _balanced if change.quantity is Quantity.IMBALANCE else _shortened
        its, saved = part(fitted, target, _computations(fitted, change), change)
        values -= np.minimum(np.nan_to_num(saved), np.nan_to_num(values))
        middle = gain[0] + its.value.sum()
        below = np.hypot(gain[0] - gain[1], np.sqrt(((its.value - its.low) ** 2).sum()))
        above = np.hypot(gain[2] - gain[0], np.sqrt(((its.high - its.value) ** 2).sum()))
        gain = np.array([middle, middle - below, middle + above])
    after = max(before[0] - gain[0], 0.0)
    low = max(after - float(np.hypot(before[0] - before[1], gain[2] - gain[0])), 0.0)
    high = after + float(np.hypot(before[2] - before[0], gain[0] - gain[1]))
    middle, least, most = gain.tolist()
    return WhatIf(
        *(tuple(changes), (middle, least, most), before, (after, low, high), values),
        tuple(costs.values()),
    )


def _computations(fitted: Fitted, change: Change) -> IntArray:
    """Return the call paths that a change of computation names."""
    chosen = match(fitted.experiment.tree, change.pattern)
    if not chosen.any():
        raise unmatched(fitted.experiment.tree, change.pattern)
    rows = np.flatnonzero(chosen & ~fitted.waits & fitted.modelled)
    if not len(rows):
        raise UsageError(
            f"--what-if {change.text}: {change.pattern} computes nothing",
            hint="waiting follows from computation: change what it waits for, or 'latency / 2'",
        )
    return rows


def _of_network(ranking: Ranking, change: Change, unit: Unit) -> tuple[UnitCost, FloatArray]:
    """Return the costs of steps or bytes, and what call paths save, [call paths]."""
    fitted = ranking.fitted
    if fitted.experiment.reduction is not Reduction.MEAN:
        raise UsageError(
            f"--what-if {change.text}: the network needs means over processes",
            hint="use --locations mean",
        )
    rows = SpentDelays.of(fitted).rows
    network = Network.of(fitted, ranking.target, _in_chains(fitted, rows))
    cost = network.cost(unit, Band(*_beside_delays(ranking, network.rows)))
    saved = np.zeros(len(fitted.experiment.tree))
    saved[network.rows] = (1.0 - change.value) * cost.saved
    return cost, saved


class _Late(Struct, frozen=True, eq=False):
    """Delays at a target of those of n call paths that delay others.

    Attributes
    ----------
    of_rows : [m] their places among the call paths
    of_spent : [m] their places in `SpentDelays.late`
    delay, variance : [m] delays, and the variance of their logarithms
    """

    of_rows: IntArray
    of_spent: IntArray
    delay: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, fitted: Fitted, target: float, rows: IntArray) -> _Late:
        """Return the delays of call paths, which ascend."""
        spent = SpentDelays.of(fitted)
        of_rows = np.flatnonzero(np.isin(rows, spent.late))
        of_spent = np.searchsorted(spent.late, rows[of_rows])
        if not len(of_rows):
            return cls(of_rows, of_spent, np.empty(0), np.empty(0))
        scales = np.append(fitted.points[fitted.points < target], target)
        delay, variance = (each[:, -1] for each in delays_at(fitted, spent, of_spent, scales))
        return cls(of_rows, of_spent, delay, variance)

    def waited_less(self, fitted: Fitted, part: FloatArray) -> FloatArray:
        """Return what waiting becomes shorter by if parts [m] of delays go, [call paths]."""
        spent, saved = SpentDelays.of(fitted), np.zeros(len(fitted.experiment.tree))
        saved[spent.rows] = spent.share[:, self.of_spent] @ (part * self.delay)
        return saved


def _shortened(
    fitted: Fitted, target: float, rows: IntArray, change: Change
) -> tuple[Band, FloatArray]:
    """Return the gain [n] of computation by a factor, and what call paths save, [call paths]."""
    less = 1.0 - change.value
    value, low, high = _without_work(fitted, target, rows)
    ends = np.sort([less * low, less * high], axis=0)
    late = _Late.of(fitted, target, rows)
    saved = late.waited_less(fitted, np.full(len(late.of_rows), less))
    saved[rows] += less * fitted.models.take(rows).values(np.array([target]))[:, 0]
    return Band(less * value, ends[0], ends[1]), saved


def _balanced(
    fitted: Fitted, target: float, rows: IntArray, change: Change
) -> tuple[Band, FloatArray]:
    """Return the gain [n] of a smaller imbalance, and what call paths save, [call paths]."""
    late, gain = _Late.of(fitted, target, rows), np.zeros((3, len(rows)))
    mean = fitted.models.take(rows[late.of_rows]).values(np.array([target]))[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.clip(1 - mean * (change.value - 1) / late.delay, 0.0, 1.0)
    value, wide = part * late.delay, np.exp(1.96 * np.sqrt(late.variance))
    gain[:, late.of_rows] = value, -_NONE * value, value * np.maximum(wide, _CHANGING)
    return Band(*gain), late.waited_less(fitted, part)
