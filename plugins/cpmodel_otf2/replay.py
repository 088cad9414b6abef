"""Replay of the calls of one location into a profile, by whole batches."""

from __future__ import annotations

from collections import Counter

import numpy as np

from callpath_modeler.arrays import BoolArray, Int64Array, UInt64Array
from cpmodel_otf2.definitions import UNDEFINED
from cpmodel_otf2.events import LEAVE, Batch, Calls, Message, references
from cpmodel_otf2.paths import OUTSIDE, PathTable, hash_of
from cpmodel_otf2.pauses import Pauses
from cpmodel_otf2.replay_totals import ReplayTotals
from cpmodel_otf2.samples import Counters
from cpmodel_otf2.threads import Context, Forks


class Replay:
    """Replay of one location, batch by batch."""

    def __init__(self, paths: PathTable, forks: Forks, counters: Counters) -> None:
        self.tally = ReplayTotals()
        self._paths = paths
        self._context = Context(paths, forks)
        self._pauses = Pauses()
        self._counters = counters
        self._outside = OUTSIDE
        self._path = OUTSIDE
        self._depth = 0
        self._local = np.uint64(0)
        self._time = 0
        self._origin: int | None = None
        self._end = 0
        self._before: Int64Array = np.array([OUTSIDE])
        self._place: Int64Array | None = None

    def start_below(self, path: int) -> None:
        """Set the caller of the next outermost calls, which also holds the events between them."""
        self._outside = path
        self._context.start_below(path)

    def add(self, batch: Batch) -> None:
        """Replay the next batch."""
        self._pauses.add(batch)
        self._end = max(self._end, *_last_times(batch))
        self.tally.sampled += batch.sampled
        self.tally.program = self.tally.program or batch.program
        calls, self._place = batch.calls, None
        if len(calls.time) or batch.switches:
            state = self._context.state()
            if not self._enter_and_leave(batch, calls):
                self._context.reset(state)
                stack = self._paths.regions_of(self._path)[-self._depth :] if self._depth else []
                calls, self._place, mended = nested(calls, stack)
                self.tally.mended += mended
                self._enter_and_leave(batch, calls, self._place)
        else:
            self._before = np.array([self._path])
        self._count(batch)
        self._counters.add(self.tally, batch.samples, calls.time, self._before)
        if len(calls.time):
            self._path = int(self._before[-1])
            self._time = int(calls.time[-1])
            self._pauses.forget(self._time)

    def finish(self) -> ReplayTotals:
        """Close the open regions at the end of the trace, and return the profile."""
        if self._depth:
            self.tally.left_open = self._depth
            times = np.array([self._time, max(self._end, self._time)])
            self._spend(np.array([self._path]), times)
            end = int(self._pauses.without(times)[1])
            self.tally.add_to_total("time", float(end - (self._origin or 0)))
        self.tally.pack()
        return self.tally

    def _enter_and_leave(self, batch: Batch, calls: Calls, place: Int64Array | None = None) -> bool:
        """Return whether calls nest, and replay them only in this case."""
        region, is_leave = references(calls.code), calls.code >= LEAVE
        depth = self._depth + np.cumsum(1 - 2 * is_leave)
        if len(depth) and depth.min() < 0:
            return False
        before = np.concatenate(([self._depth], depth))
        switches = [(k, at if place is None else int(place[at]), t, n)
                    for k, at, t, n in batch.switches]  # fmt: skip
        above, starts = self._context.of_calls(switches, region, before)
        level = self._paths.depth[above] + depth + is_leave
        step = hash_of(region, level)
        local = self._local + np.cumsum(np.where(is_leave, np.negative(step), step))
        if (local[depth == 0] != 0).any():
            return False
        hashes = np.where(depth > 0, local + self._paths.hashes[above], np.uint64(0))
        ids = self._identified(hashes, ~is_leave, region, level, step)
        if ids is None:
            return False
        self._before = np.concatenate(([self._path], ids))
        self._context.note(starts, self._before)
        self._tell_time(calls.time, depth, is_leave)
        self.tally.add("visits", ids[~is_leave])
        self.tally.add_to_total("visits", float(np.count_nonzero(~is_leave)))
        if len(calls.time):
            self._depth, self._local = int(depth[-1]), local[-1]
        return True

    def _identified(
        self, hashes: UInt64Array, is_enter: BoolArray, region: Int64Array,
        level: Int64Array, step: UInt64Array,
    ) -> Int64Array | None:  # fmt: skip
        """Return the call path after each call; None if a region is left that was not entered."""
        ids = self._paths.find(hashes)
        unknown = np.flatnonzero(ids < 0)
        if not len(unknown):
            return ids
        entered = unknown[is_enter[unknown]]
        new, first = np.unique(hashes[entered], return_index=True)
        if not np.isin(hashes[unknown], new).all():
            return None
        first = np.sort(entered[first])
        self._paths.add(hashes[first], hashes[first] - step[first], region[first], level[first])
        ids[unknown] = self._paths.find(hashes[unknown])
        return ids

    def _tell_time(self, time: Int64Array, depth: Int64Array, is_leave: BoolArray) -> None:
        if not len(time):
            return
        times = np.concatenate(([self._time], time))
        self._spend(self._before[:-1], times)
        if self._origin is None:
            self._origin = int(time[0])
        outermost = depth + is_leave == 1
        moments = self._pauses.without(time)[outermost] - self._origin
        spent = np.where(is_leave[outermost], moments, -moments)
        self.tally.add_to_total("time", float(spent.sum()))

    def _spend(self, paths: Int64Array, times: Int64Array) -> None:
        """Add the time between `times`, [n + 1], to call paths, [n]."""
        active = np.diff(self._pauses.without(times))
        within = paths != OUTSIDE
        self.tally.paused += int((np.diff(times) - active)[within].sum())
        self.tally.add("time", paths, np.where(within, active, 0))

    def paths_at(self, at: Int64Array) -> Int64Array:
        """Return the id of the call path after `at` calls of the last batch, [n]."""
        found = self._before[at if self._place is None else self._place[at]]
        return np.where(found == OUTSIDE, self._outside, found)

    def _count(self, batch: Batch) -> None:
        """Count messages, collective operations and remote memory access."""
        messages, collectives, (at, put, got) = batch.messages, batch.collectives, batch.accesses.T
        is_sent = np.isin(messages.kind, (Message.SEND, Message.ISEND))
        paths = self.paths_at(messages.at)
        for name, chosen in (("sent", is_sent), ("received", ~is_sent)):
            self._book(f"bytes_{name}", paths[chosen], messages.bytes[chosen])
            self._book(f"messages_{name}", paths[chosen], np.ones_like(paths[chosen]))
        together, accessed = self.paths_at(collectives.at), self.paths_at(at)
        self._book("bytes_sent", together, collectives.sent)
        self._book("bytes_received", together, collectives.received)
        self._book("collectives", together, np.ones_like(together))
        self._book("bytes_put", accessed, put)
        self._book("bytes_get", accessed, got)
        for booked in (paths, together, accessed):
            self.tally.outside += int(np.count_nonzero(booked == OUTSIDE))

    def _book(self, metric: str, paths: Int64Array, amounts: Int64Array) -> None:
        within = paths != OUTSIDE
        if within.any():
            self.tally.add(metric, paths[within], amounts[within])
            self.tally.add_to_total(metric, float(amounts[within].sum()))


def nested(calls: Calls, stack: list[int]) -> tuple[Calls, Int64Array, int]:
    """Return calls that nest.

    A return ends the innermost open call of its region. It also ends all calls within it, because
    their returns were lost. A return of a region that is not open is dropped, because its call was
    lost.

    Parameters
    ----------
    stack : references of the open regions

    Returns
    -------
    calls : calls with added returns, and without dropped ones
    place : int64 [n + 1], number of new calls before each old one, and at the end
    mended : number of added and dropped returns
    """
    stack, is_open = list(stack), Counter(stack)
    times: list[int] = []
    codes: list[int] = []
    place, mended = [0], 0
    for time, what in zip(calls.time.tolist(), calls.code.tolist(), strict=True):
        if what < LEAVE:
            stack.append(what)
            is_open[what] += 1
            ended = [what]
        else:
            region = what - LEAVE
            ended = _ended(stack, is_open, region)
            mended += len(ended) - 1 if ended else 1
        codes += ended
        times += [time] * len(ended)
        place.append(len(codes))
    return Calls(np.array(times, np.int64), np.array(codes, np.int64)), np.array(place), mended


def _ended(stack: list[int], is_open: Counter[int], region: int) -> list[int]:
    """Remove the calls that a return ends, and return their codes, innermost first."""
    if region == UNDEFINED and stack:
        region = stack[-1]
    if not is_open[region]:
        return []
    ended: list[int] = []
    while not ended or ended[-1] != LEAVE + region:
        ended.append(LEAVE + stack.pop())
        is_open[ended[-1] - LEAVE] -= 1
    return ended


def _last_times(batch: Batch) -> list[int]:
    columns = (batch.calls.time, batch.messages.time, batch.collectives.time,
               batch.pauses[:, 0], batch.flushes[:, 1])  # fmt: skip
    return [int(column[-1]) for column in columns if len(column)] or [0]
