"""Replay of the calls of one location into a profile, by whole batches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int32Array, Int64Array, UInt64Array
from cpmodel_otf2.definitions import UNDEFINED, MetricMember
from cpmodel_otf2.events import LEAVE, Batch, Calls, Message, Samples, Switch, references
from cpmodel_otf2.paths import OUTSIDE, PathTable, hash_of


@dataclass(slots=True)
class ReplayTotals:
    """What one location spent in each call path.

    Attributes
    ----------
    cells : (int32 [n] call paths, float64 [n] values other than zero) by metric, times in ticks
    totals : by metric, counted without call paths
    outside : number of messages and other operations outside any region
    left_open : number of regions that were never left
    mended : number of returns that were added or left out, so that calls nest
    paused : ticks that do not count, because measurement was off or the trace was written
    sampled : number of events that have no place among calls
    program : the program that ran, as it was called, or ""
    """

    cells: dict[str, tuple[Int32Array, FloatArray]] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    outside: int = 0
    left_open: int = 0
    mended: int = 0
    paused: int = 0
    sampled: int = 0
    program: str = ""
    _dense: dict[str, FloatArray] = field(default_factory=dict)

    def add(
        self, metric: str, paths: Int64Array, amounts: Int64Array | FloatArray | None = None
    ) -> None:
        """Add amounts [n] (None: ones) to call paths [n]."""
        if not len(paths):
            return
        found = np.bincount(paths, None if amounts is None else amounts.astype(np.float64))
        held = self._dense.get(metric)
        if held is None or len(held) < len(found):
            grown = np.zeros(len(found))
            if held is not None:
                grown[: len(held)] = held
            held = self._dense[metric] = grown
        held[: len(found)] += found

    def add_to_total(self, metric: str, amount: float) -> None:
        """Add to the total of a metric."""
        self.totals[metric] = self.totals.get(metric, 0.0) + amount

    def pack(self) -> None:
        """Move what was added to `cells`: a location may know few of all call paths."""
        for metric, values in self._dense.items():
            paths = np.flatnonzero(values).astype(np.int32)
            self.cells[metric] = paths, values[paths]
        self._dense.clear()


_OFF = 2
_OPEN = 2**63 - 1


class Pauses:
    """Pauses of one location that can still affect later events."""

    def __init__(self) -> None:
        self._gaps: list[tuple[int, int]] = []
        self._over = 0

    def add(self, batch: Batch) -> None:
        """Add the pauses of a batch."""
        for time, mode in batch.pauses.tolist():
            is_open = bool(self._gaps) and self._gaps[-1][1] == _OPEN
            if mode == _OFF and not is_open:
                self._gaps.append((time, _OPEN))
            elif mode != _OFF and is_open:
                self._gaps[-1] = (self._gaps[-1][0], time)
        # An open pause stays at the end.
        self._gaps[:0] = [(begin, end) for begin, end in batch.flushes.tolist() if end > begin]

    def forget(self, time: int) -> None:
        """Replace the pauses before `time` by their total length."""
        if self._gaps:
            self._over = time - int(self.without(np.array([time]))[0])
            self._gaps = [(max(begin, time), end) for begin, end in self._gaps if end > time]

    def without(self, time: Int64Array) -> Int64Array:
        """Return times, [n], on a clock that stops in pauses; none may precede a `forget`."""
        if not self._gaps:
            return time - self._over
        begin, end = self._merged()
        before = np.concatenate(([0], np.cumsum(end - begin)))
        over = np.searchsorted(end, time, side="right")
        inside = np.minimum(over, len(begin) - 1)
        current = np.where(over < len(begin), np.maximum(time - begin[inside], 0), 0)
        shortened: Int64Array = time - self._over - before[over] - current
        return shortened

    def _merged(self) -> tuple[Int64Array, Int64Array]:
        merged: list[list[int]] = []
        for begin, end in sorted(self._gaps):
            if merged and begin <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([begin, end])
        begins, ends = np.array(merged, np.int64).T
        return begins, ends


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


_Switches = Sequence[tuple[int, int, int, int]]


class Forks:
    """Call paths that started threads, of all locations read until now.

    Attributes
    ----------
    teams : by reference of a team: call path at the beginning of each of its episodes
    created : by reference of the contingent and number of the thread: call path
    """

    def __init__(self) -> None:
        self.teams: dict[int, list[int]] = defaultdict(list)
        self.created: dict[tuple[int, int], int] = {}


class Context:
    """Callers of the outermost calls of one location, from event to event."""

    def __init__(self, paths: PathTable, forks: Forks) -> None:
        self._paths, self._forks = paths, forks
        self._episodes: dict[int, int] = defaultdict(int)
        self._above = OUTSIDE
        self._is_first = False

    def start_below(self, path: int) -> None:
        """Set the caller of the next outermost calls."""
        self._above = path

    def state(self) -> tuple[dict[int, int], int, bool]:
        """Return the state for `reset`."""
        return dict(self._episodes), self._above, self._is_first

    def reset(self, state: tuple[dict[int, int], int, bool]) -> None:
        """Restore an earlier state."""
        episodes, self._above, self._is_first = state
        self._episodes = defaultdict(int, episodes)

    def of_calls(
        self, switches: _Switches, region: Int64Array, depth: Int64Array
    ) -> tuple[Int64Array, list[tuple[int, int, int, int]]]:
        """Return the call path that is the caller of each outermost call of a batch.

        Parameters
        ----------
        switches : events of threads, see `Batch`
        region : [n], region of each call
        depth : [n + 1], number of open regions of this location before each call, and after the
            last one

        Returns
        -------
        above : [n], ids of call paths
        starts : switches at which this location started threads
        """
        above = np.empty(len(region), np.int64)
        starts, done = [], 0
        for switch in switches:
            kind, at, _, _ = switch
            if depth[at] > 0 or kind == Switch.CREATE:
                starts.append(switch)
                continue
            self._fill(above, region, done, at)
            done = at
            self._change(switch)
        self._fill(above, region, done, len(region))
        return above, starts

    def note(self, starts: _Switches, path_before: Int64Array) -> None:
        """Record where this location started threads; `path_before` is [n + 1] as `depth`."""
        for kind, at, team, thread in starts:
            path = int(path_before[at])
            if kind == Switch.TEAM_BEGIN:
                self._episodes[team] += 1
                self._forks.teams[team].append(path)
            elif kind == Switch.CREATE:
                self._forks.created[team, thread] = path

    def _change(self, switch: tuple[int, int, int, int]) -> None:
        kind, _, team, thread = switch
        if kind == Switch.TEAM_BEGIN:
            episode = self._episodes[team]
            self._episodes[team] += 1
            known = self._forks.teams[team]
            self._above = known[episode] if episode < len(known) else OUTSIDE
        elif kind == Switch.BEGIN:
            self._above = self._forks.created.get((team, thread), OUTSIDE)
        else:
            self._above = OUTSIDE
        self._is_first = True

    def _fill(self, above: Int64Array, region: Int64Array, first: int, stop: int) -> None:
        if stop == first:
            return
        # Threads of a team enter the region of their master again. It is the same region.
        if self._is_first and self._paths.region[self._above] == region[first]:
            self._above = int(self._paths.parent[self._above])
        self._is_first = False
        above[first:stop] = self._above


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
