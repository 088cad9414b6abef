"""Who is waited for: each delay of computation is spent once, where it is met first."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.run_time import ImbalanceSources
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.call_class import CallClass
from callpath_modeler.profile.calltree import ROOT, CallTree

_SMALL_SOURCE, _SMALL_WAIT = 1e-3, 1e-4
"""Parts of all delays, and of all waiting, below which a call path is left out."""
_MOSTLY = 0.5
"""Part of the waiting that computation has to cause before it is named."""
_SPENT_HERE = 0.3
"""Part of a delay that an operation has to spend before its computation is named there."""
_ROUNDING = 1e-9
"""Part of all delays below which a rest is only rounding."""

_KNOWN: WeakKeyDictionary[Fitted, SpentDelays] = WeakKeyDictionary()
"""Delays by models: a table asks for one block of call paths after the other."""


class SpentDelays(Struct, frozen=True, eq=False):
    """Call paths that wait, and the delays by computation that they wait for.

    The slowest process computes longer than the mean by a delay. Each delay is spent once. First,
    operations below the same caller spend it: those after the computation in the order of the call
    tree, then those before it, because callers may be loops. Each spends at most its own time. Then
    operations below the next caller spend the rest, and so on.

    Attributes
    ----------
    rows : [m] call paths that wait, ascending
    time : [m, runs] their times, on the mean process
    delay : [m, runs] delays that they spend
    source : [m] computation that causes most of the waiting at the largest scale; -1 = none does
    late : [n] computation that delays others, ascending
    mean, largest : [n, runs] its times on the mean and on the slowest process
    share : [m, n] part of its delay that each operation spends at the largest scale
    """

    rows: IntArray
    time: FloatArray
    delay: FloatArray
    source: IntArray
    late: IntArray
    mean: FloatArray
    largest: FloatArray
    share: FloatArray

    @property
    def rest(self) -> FloatArray:
        """What operations take beside the delays, [m, runs]."""
        return np.maximum(self.time - self.delay, 0.0)

    @classmethod
    def of(cls, fitted: Fitted) -> SpentDelays:
        """Return the delays of all call paths of models; none where they are not known."""
        if fitted not in _KNOWN:
            _KNOWN[fitted] = cls._of(fitted)
        return _KNOWN[fitted]

    @classmethod
    def _of(cls, fitted: Fitted) -> SpentDelays:
        line, name, sources = fitted.line, fitted.metric.name, ImbalanceSources.of(fitted)
        none = np.empty(0, np.intp)
        if sources is None:
            no_runs = np.empty((0, len(line.runs)))
            return cls(none, no_runs, no_runs, none, none, no_runs, no_runs, np.empty((0, 0)))
        tree = fitted.experiment.tree
        # Only computation with imbalance at the largest scale makes others wait.
        late = np.flatnonzero(sources.above > _SMALL_SOURCE * sources.upto[-1])
        mean, largest = line.means_and_maxima(name, late)
        # A difference that is not known adds nothing.
        unspent = np.fmax(largest - mean, 0.0)
        classes = [region.call_class for region in tree.regions]
        # The start and the end of MPI wait for whatever collective operations did not.
        waits = np.array([each.waits and each is not CallClass.MANAGEMENT for each in classes])
        wait = np.where(waits[tree.region], np.nan_to_num(sources.mean), 0.0)
        rows = np.flatnonzero(wait > _SMALL_WAIT * wait.sum())
        room = np.nan_to_num(line.means_and_maxima(name, rows)[0])
        at_largest = line.settings([fitted.parameter])[:, 0] == fitted.points[-1]
        whole = unspent[:, at_largest].mean(axis=1)
        spent = _spent(tree, late, unspent, rows, room, at_largest)
        source = np.full(len(rows), -1, np.intp)
        for k, parts in enumerate(spent.of_largest):
            most = int(np.argmax(parts)) if parts.any() else -1
            if most >= 0 and parts[most] >= max(_MOSTLY * wait[rows[k]], _SPENT_HERE * whole[most]):
                source[k] = late[most]
        share = spent.of_largest / np.where(whole > 0, whole, 1.0)
        return cls(rows, room, spent.delay, source, late, mean, largest, share)


class _Spent(Struct, frozen=True, eq=False):
    """Delays [m, runs] that m operations spend, and at the largest scale [m, n] by computation."""

    delay: FloatArray
    of_largest: FloatArray


def _spent(
    tree: CallTree,
    late: IntArray,
    delays: FloatArray,
    waiting: IntArray,
    times: FloatArray,
    at_largest: BoolArray,
) -> _Spent:
    """Return the delays that operations spend.

    Parameters
    ----------
    tree : the call paths
    late : [n] computation, ascending
    delays : [n, runs] their delays
    waiting : [m] operations, ascending
    times : [m, runs] the most that each spends
    at_largest : [runs] whether a run has the largest scale
    """
    unspent, room, total = delays.copy(), times.copy(), delays.sum(axis=0)
    found = _Spent(np.zeros_like(times), np.zeros((len(waiting), len(late))))
    for caller in _callers(tree, late):
        ends = [caller, int(tree.end[caller])]
        (first, last), (begin, stop) = (np.searchsorted(each, ends) for each in (late, waiting))
        # Below most callers, everything was spent below an inner one.
        rest = np.minimum(unspent[first:last].sum(axis=0), room[begin:stop].sum(axis=0))
        if not (rest > _ROUNDING * total).any():
            continue
        for goes_round in (False, True):
            for k in (begin + np.flatnonzero(room[begin:stop].any(axis=1))).tolist():
                which = _latest_first(first, np.searchsorted(late, waiting[k]), last, goes_round)
                offered = unspent[which]
                taken = np.clip(room[k] - (offered.cumsum(axis=0) - offered), 0.0, offered)
                unspent[which] -= taken
                room[k] = np.maximum(room[k] - taken.sum(axis=0), 0.0)
                found.delay[k] += taken.sum(axis=0)
                found.of_largest[k, which] += taken[:, at_largest].mean(axis=1)
    return found


def _callers(tree: CallTree, rows: IntArray) -> list[int]:
    """Return call paths and all of their callers, the inner ones first."""
    found: set[int] = set()
    for row in rows.tolist():
        caller = row
        while caller != ROOT and caller not in found:
            found.add(caller)
            caller = int(tree.parent[caller])
    return sorted(found, reverse=True)


def _latest_first(first: int, at: int, last: int, goes_round: bool) -> IntArray:
    """Return the places from `first` to `last`, from `at` backwards, and round if asked."""
    before = np.arange(first, at)[::-1]
    return np.append(before, np.arange(at, last)[::-1]) if goes_round else before
