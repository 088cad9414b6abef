"""Evidence of a change of the level, and alarms of a history with one false-alarm rate.

A change has two rivals, and an alarm needs evidence against both:

- The series wanders. The evidence against it is the Bayes factor of a step in a regression whose
  errors are correlated from record to record. Its variance is learnt, so it has the tails of
  Student's t (Gönen, Johnson, Lu and Westfall: The Bayesian two-sample t test, 2005).
- The records after the change are odd ones, independently of each other. The evidence against it
  is how rarely so many records are so far off, by the records of all series.

The expectation of such evidence is at most 1 if its rival is true, at every time a reader stops
looking (Hendriksen, de Heide and Grünwald: Optional stopping with Bayes factors, 2021). So an
average of it exceeds 1/a at any time with a probability of at most a (Ville's inequality). The
average is over all records at which the series may have changed, and its weights add up to at most
1. Scatter, correlation and tails are learnt from earlier records, so this holds as far as they are
known.

A record is looked at with all earlier ones. So an alarm of an earlier record never depends on a
later record, and a history can be judged as often as one likes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.days import CLIPPED
from callpath_modeler.modeling.day_scatter import DayScatter, learnt_scatter, refreshes
from callpath_modeler.modeling.distributions import student_quantile

SPREADS = (1.0, 10.0, 100.0, 1000.0)
"""Variances of the size of a change, in variances of one value; they have equal weights."""

_LEAST_BEFORE = 2
"""Fewest values before a change."""


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Comparisons of the values before and after possible changes, [n, w]; NaN = too few values.

    Attributes
    ----------
    difference : level after minus level before
    t : difference over its standard error
    dof : degrees of freedom
    size : effective number of values, of which the standard error is that of a mean
    """

    difference: FloatArray
    t: FloatArray
    dof: FloatArray
    size: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Regressions:
    """Running sums of series, from which the step at any record follows.

    A record is explained by the level, and by the correlation with the record before it. Records
    before a change are clipped at a few standard deviations, because odd ones must not hide it.

    Attributes
    ----------
    scatter : learnt scatter of the series
    values : [n, T] levels relative to the learnt centre; NaN = missing
    errors : [n, T] squared standard errors of the levels by repetitions
    clipped : the same, clipped
    first : [4, n, T + 1] of each record: clipped value, its innovation, that of the value, and that
        of the value after clipped ones; NaN = missing
    sums : [4, n, T + 1] number of earlier records, sums of innovations of clipped values and of
        all, and of squared errors
    """

    scatter: DayScatter
    values: FloatArray
    errors: FloatArray
    clipped: FloatArray
    first: FloatArray
    sums: FloatArray

    @classmethod
    def of(
        cls, values: FloatArray, errors: FloatArray, scatter: DayScatter, centre: FloatArray
    ) -> Regressions:
        """Return the sums of series [n, T] about centres [n]."""
        values = values - centre[:, None]
        limit = CLIPPED * scatter.sd[:, None]
        clipped, there = np.clip(values, -limit, limit), ~np.isnan(values)
        rho = scatter.correlation[:, None]
        before, clipped_before = _earlier(values, there), _earlier(clipped, there)
        smooth, rough = clipped - rho * clipped_before, values - rho * before
        steps = values - rho * clipped_before
        sums = np.zeros((4, len(values), values.shape[1] + 1))
        for column, each in zip(sums, (np.ones(values.shape), smooth, rough, errors), strict=True):
            np.cumsum(np.where(there, each, 0.0), axis=1, out=column[:, 1:])
        first = np.full(sums.shape, np.nan)
        for column, each in zip(first, (clipped, smooth, rough, steps), strict=True):
            column[:, :-1] = each
        return cls(scatter, values, errors, clipped, first, sums)

    def splits(self, start: IntArray, change: IntArray, end: IntArray, least_after: int) -> Splits:
        """Return the comparisons of series before and after possible changes.

        Parameters
        ----------
        start : [n, w] or [n, 1] first record before each change
        change : [w] first record after it; without a value, there is no comparison
        end : [w] number of records that are compared
        least_after : fewest values after a change
        """
        begin = np.take_along_axis(self._next(), start, axis=1)
        opening, opened = (np.take_along_axis(self.first[k], begin, axis=1) for k in (0, 1))
        low = [np.take_along_axis(self.sums[k], start, axis=1) for k in (0, 1)]
        middle, last = self.sums[:, :, change], self.sums[:, :, end]
        rough, step = self.first[2][:, change], self.first[3][:, change]
        before, after = middle[0] - low[0], last[0] - middle[0]
        rho = self.scatter.correlation[:, None]
        rest = 1.0 - rho
        # Sums of the products of regressors (level, step) and of their products with the values.
        of_level = (1.0 - rho**2) + (before + after - 1.0) * rest**2
        of_both = rest + (after - 1.0) * rest**2
        later = last[2] - middle[2] - rough
        earlier = middle[1] - low[1] - opened
        with_level = (1.0 - rho**2) * opening + rest * (earlier + step + later)
        with_step = step + rest * later
        enough = (before >= _LEAST_BEFORE) & (after >= least_after) & ~np.isnan(step)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = of_both / of_level
            size = np.where(enough, 1.0 + (after - 1.0) * rest**2 - of_both * part, np.nan)
            difference = (with_step - part * with_level) / size
            # Odd repetitions show in single records before they move the centre of one.
            error = (last[3] - middle[3]) / after
            extra = np.maximum(error - self.scatter.error[:, None], 0.0)
            variance = self.scatter.sd[:, None] ** 2 * (1.0 - rho**2) + extra
            dof = np.broadcast_to(self.scatter.dof[:, None], size.shape)
            return Splits(difference, difference / np.sqrt(variance / size), dof, size)

    def _next(self) -> IntArray:
        """Return the number of the next record that is there, [n, T + 1]."""
        records = self.values.shape[1]
        at = np.where(np.isnan(self.values), records, np.arange(records))
        at = np.pad(at, ((0, 0), (0, 1)), constant_values=records)
        return np.asarray(np.minimum.accumulate(at[:, ::-1], axis=1)[:, ::-1])

    def evidence(self, row: int, start: int, change: int, end: int, excess: float = 1.0) -> float:
        """Return the logarithm of the evidence of a change of one series against both rivals.

        Parameters
        ----------
        row : number of the series
        start, change, end : first record before the change, first one after it, number of records
        excess : by how much t is too large, as `crowd` tells
        """
        values = self.values[row, start:end].copy()
        after = values[change - start :]
        known = np.sort(after[~np.isnan(after)])
        if not len(known):
            return -np.inf
        sd = float(self.scatter.sd[row])
        # The middle record that is nearer to the level before.
        middles = known[(len(known) - 1) // 2], known[len(known) // 2]
        middle = min(middles, key=abs)
        limit = CLIPPED * sd
        after[:] = np.clip(after, middle - limit, middle + limit)
        values[: change - start] = self.clipped[row, start:change]
        alone = Regressions.of(
            values[None], self.errors[row, start:end][None], self.scatter.take(row), np.zeros(1)
        )
        at, last = np.array([change - start]), np.array([end - start])
        found = alone.splits(np.zeros((1, 1), np.intp), at, last, 1)
        steady = log_factors(found.t / excess, found.dof, found.size)
        return min(float(steady[0, 0]), self._rarity(row, start, change, end))

    def _rarity(self, row: int, start: int, change: int, end: int) -> float:
        """Return the logarithm of the evidence that the records after a change are no odd ones.

        If records are independent, k of w are at least so far off with a probability of at most
        exp(-w D), where D is the divergence of k/w from the probability of one of them (Chernoff
        1952). Sums of clipped deviations are compared as well, because many small deviations are
        rare, too.
        """
        before = self.clipped[row, start:change]
        before = before[~np.isnan(before)]
        after = self.values[row, change:end]
        after = after[~np.isnan(after)]
        if len(before) < _LEAST_BEFORE or not len(after):
            return -np.inf
        wider = self.scatter.sd[row] * np.sqrt(1.0 + 1.0 / len(before))
        off = (after - before.mean()) / wider
        sign = 1.0 if np.median(off) >= 0 else -1.0
        off = np.sort(sign * off)[::-1]
        number = len(off)
        share = np.arange(1, number + 1) / number
        chance = np.minimum(self.scatter.tail(row, off, sign), share)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.where(share < 1, (1 - share) * np.log((1 - share) / (1 - chance)), 0.0)
        divergence = share * np.log(share / chance) + np.nan_to_num(rest)
        counted = number * float(divergence.max()) - np.log(number)
        total = np.clip(off, -CLIPPED, CLIPPED).sum() / np.sqrt(number)
        parts = (np.array([total]), np.array([self.scatter.dof[row]]), np.array([float(number)]))
        return float(max(counted, float(log_factors(*parts)[0])) - np.log(2.0))


def _earlier(values: FloatArray, there: BoolArray) -> FloatArray:
    """Return the value of the last record before each one, [n, T]; 0 = there is none."""
    records = values.shape[1]
    at = np.maximum.accumulate(np.where(there, np.arange(records), -1), axis=1)
    at = np.pad(at, ((0, 0), (1, 0)), constant_values=-1)[:, :records]
    found = np.take_along_axis(values, np.maximum(at, 0), axis=1)
    return np.where(at >= 0, found, 0.0)


def log_factors(t: FloatArray, dof: FloatArray, size: FloatArray) -> FloatArray:
    """Return the logarithm of the Bayes factor of a change; NaN becomes minus infinity.

    Parameters
    ----------
    t, dof, size : as in `Splits`, any shape
    """
    found = np.full(t.shape, -np.inf)
    with np.errstate(invalid="ignore"):
        for spread in SPREADS:
            wider = 1.0 + spread * size
            gain = np.log1p(t**2 / dof) - np.log1p(t**2 / (dof * wider))
            found = np.logaddexp(found, (dof + 1.0) / 2.0 * gain - 0.5 * np.log(wider))
    return np.where(np.isnan(t), -np.inf, found - np.log(len(SPREADS)))


def largest_log_factors(found: Splits) -> FloatArray:
    """Return bounds of the log Bayes factors, [n, w], which are much faster to compute."""
    with np.errstate(invalid="ignore"):
        bound = (found.dof + 1.0) / 2.0 * np.log1p(found.t**2 / found.dof)
    return np.where(np.isnan(bound), -np.inf, bound)


def crowd(t: FloatArray, dof: FloatArray) -> FloatArray:
    """Return by how much series that should not change deviate more than chance explains, [w].

    It is at least 1. The series are an empirical null distribution (Efron: Large-scale
    simultaneous hypothesis testing, 2004).

    Parameters
    ----------
    t, dof : [n, w] comparisons of these series, as in `Splits`
    """
    there = ~np.isnan(t)
    largest = np.where(there, np.abs(t), 0.0).max(axis=0, initial=0.0)
    share = 1.0 - 0.5 / np.maximum(there.sum(axis=0), 1) / 2.0
    least = np.where(there, dof, 1.0).max(axis=0, initial=1.0)
    return np.asarray(np.maximum(largest / student_quantile(least, share), 1.0))


def record_weights(number: int) -> FloatArray:
    """Return weights of the records at which a series may have changed, [number].

    The weights of all records to come add up to 1, and decrease little faster than 1/number.
    """
    return _telescoped(np.arange(1.0, number + 1.0))


def _telescoped(k: FloatArray) -> FloatArray:
    return np.asarray(1.0 / np.log2(k + 1.0) - 1.0 / np.log2(k + 2.0))


def series_weights(first: IntArray, cost: FloatArray) -> FloatArray:
    """Return the share of each series in the false-alarm rate, [n].

    Series that were there earlier have larger shares, and so have costlier ones among them. The
    shares add up to at most 1, even with those of series that appear later.

    Parameters
    ----------
    first : [n] first record of each series
    cost : [n] cost in this record, e.g. in seconds
    """
    shares = np.empty(len(cost))
    shares[np.lexsort((-cost, first))] = _telescoped(np.arange(1.0, len(cost) + 1.0))
    return shares


_AFTER = np.array([n for n in range(1, 65) if n % max(1, 2 ** (n.bit_length() - 3)) == 0])
"""Numbers of records after a change at which a look compares: those with three binary digits.

The others would add time, and few alarms.
"""

_LEAST_RECORDS = 6
"""Fewest records that can be evidence enough for an alarm."""

_NEWEST = 3
"""Number of newest records whose scatter is not learnt yet."""

_DATED = 0.95
"""Probability that the interval of records holds the change."""

_MOVED = 4.0
"""Evidence, in nats, from which on a series moved together with one that raises an alarm."""

_PROVEN, _SURE = 0.05, 2.0
"""Logarithm of the largest change that is none, and standard errors that make this sure."""

_HOPELESS = 6.0
"""Nats below the least evidence below which a record adds nothing to an average over records."""


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """When evidence becomes an alarm.

    Attributes
    ----------
    false_alarms : probability of one or more false alarms in a history, however long it becomes
    memory : largest number of records before a change that it is compared with
    window : largest number of records after a change that are compared
    persistence : fewest records after a change
    least_sd : standard deviation of the logarithm below which values do not count as scattered
    few : largest share of the call paths that change together by a change of the program
    """

    false_alarms: float = 0.05
    memory: int = 64
    window: int = 64
    persistence: int = 2
    least_sd: float = 1e-3
    few: float = 0.25


@dataclass(frozen=True, slots=True)
class Alarm:
    """A change of one series.

    Attributes
    ----------
    row : number of the series
    raised : record at which the evidence sufficed
    earliest, likely, latest : first changed record: the likely one, and the interval that holds it
        with 95 % probability
    change, low, high : logarithm of the level after over before, and its 95 % confidence interval
    evidence : logarithm of the evidence over the least that is an alarm
    moved : series that changed at this time with evidence, this one among them
    unsure : number of other series of which it is not sure that they did not change
    """

    row: int
    raised: int
    earliest: int
    likely: int
    latest: int
    change: float
    low: float
    high: float
    evidence: float
    moved: frozenset[int] = frozenset()
    unsure: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """The alarms of a history.

    Attributes
    ----------
    alarms : in the order in which they were raised
    suspected : [n] True = the newest record alone deviates so far that one more like it is an alarm
    """

    alarms: tuple[Alarm, ...]
    suspected: BoolArray


Series = Callable[[int, slice], tuple[FloatArray, FloatArray]]
"""Values and squared errors of some records of series; the first records tell the weights."""


def replay(
    series: Series,
    records: int,
    weights: FloatArray,
    rule: AlarmRule,
    usual: BoolArray | None = None,
    paths: int | None = None,
) -> Replayed:
    """Return the alarms of series.

    After an alarm, a series starts again at the change. Its next alarm needs more evidence,
    because all alarms of a history share one false-alarm rate.

    Parameters
    ----------
    series : levels of series, and squared standard errors of the levels, as far as repetitions show
        them; records may scatter more. NaN = missing
    records : number of records
    weights : [n] weights of the series; they add up to at most 1; a series of weight 0 raises none
    usual : [paths] call paths that do not change on their own, so that they tell how surely one of
        the others does; None = there are none
    paths : number of call paths; the series are those of each question in turn. None = each series
        is a call path
    """
    return _Replay(series, records, weights, rule, usual, paths or len(weights)).run()


@dataclass(eq=False)
class _Open:
    """An alarm that later records date more precisely."""

    row: int
    raised: int
    start: int
    stop: int
    known: int
    evidence: float
    scatter: DayScatter
    moved: frozenset[int]
    unsure: int


@dataclass(frozen=True, eq=False)
class _Look:
    """The evidence of the first records of a history.

    Attributes
    ----------
    changes : [w] records at which series may have changed
    evidence : [n] logarithm of the evidence over the least that is an alarm
    log_probability : [n, w] of a change at each record, but for a constant
    found : [n, w] the comparisons
    """

    changes: IntArray
    evidence: FloatArray
    log_probability: FloatArray
    found: Splits


@dataclass(eq=False)
class _Epoch:
    """The records among which the same scatter is used, as the records before them tell it."""

    first: int
    known: int
    values: FloatArray
    errors: FloatArray
    scatter: DayScatter
    sums: Regressions = field(init=False)


class _Replay:
    """The state of a replay: where each series starts, and how many alarms it has raised."""

    def __init__(
        self,
        series: Series,
        records: int,
        weights: FloatArray,
        rule: AlarmRule,
        usual: BoolArray | None,
        paths: int,
    ) -> None:
        self._series = series
        self._records = records
        self._usual = usual
        self._rule = rule
        self._paths = paths
        self._start = np.zeros(len(weights), np.intp)
        self._segment = np.zeros((len(weights), records + 1), np.intp)
        self._alarms_of_row = np.zeros(len(weights))
        with np.errstate(divide="ignore"):
            self._log_weight = np.log(weights)
        self._prior = np.log(record_weights(records + 1))
        self._found: list[_Open] = []

    def run(self) -> Replayed:
        """Look at each record."""
        for known, last in refreshes(self._records, _LEAST_RECORDS - 1):
            self._epoch(known, last)
        suspected = self._suspected()
        return Replayed(tuple(self._dated(each) for each in self._found), suspected)

    def _opened(self, known: int, last: int) -> _Epoch:
        """Return the series up to a record, with the scatter that earlier records show."""
        first = max(0, known - self._rule.memory - self._rule.window)
        values, errors = self._series(known, slice(first, last))
        # A change may be among the newest records, and must not be learnt as scatter.
        known -= min(_NEWEST, known // 4)
        number = known - first
        blocks = [slice(k, k + self._paths) for k in range(0, len(values), self._paths)]
        scatter = DayScatter.joined(
            [
                learnt_scatter(
                    values[each, :number],
                    errors[each, :number],
                    self._segment[each, first:known],
                    self._rule.least_sd,
                )
                for each in blocks
            ]
        )
        return _Epoch(first, known, values, errors, scatter)

    def _epoch(self, known: int, last: int) -> None:
        """Look at the records from `known` to before `last`."""
        epoch = self._opened(known, last)
        self._about_levels(epoch, known)
        end = known
        while end < last:
            for each in self._candidates(epoch, end + 1, last):
                if self._look(epoch, each):
                    self._about_levels(epoch, each)
                    end = each
                    break
            else:
                end = last

    def _about_levels(self, epoch: _Epoch, end: int) -> None:
        """Sum series about their present levels, which alarms change."""
        centre = epoch.scatter.centre.copy()
        for row in np.flatnonzero(self._start > epoch.first).tolist():
            present = epoch.values[row, self._start[row] - epoch.first : end - epoch.first]
            present = present[~np.isnan(present)]
            centre[row] = np.median(present) if len(present) else np.nan
        epoch.sums = Regressions.of(epoch.values, epoch.errors, epoch.scatter, centre)

    def _candidates(self, epoch: _Epoch, first: int, last: int) -> list[int]:
        """Return the numbers of records, from `first` on, at which a series may raise an alarm."""
        pairs = [(end, change) for end in range(first, last + 1) for change in self._changes(end)]
        if not pairs:
            return []
        end, change = np.array(pairs).T
        found = self._splits(epoch, change, end, self._rule.persistence)
        may = (largest_log_factors(found) >= self._needed()[:, None]).any(axis=0)
        return list(map(int, np.unique(end[may])))

    def _look(self, epoch: _Epoch, end: int) -> bool:
        """Raise the alarms of the newest of the first `end` records; return whether there are."""
        look = self._evidence(epoch, end, self._rule.persistence)
        alarmed = np.flatnonzero(look.evidence >= 0.0)
        if not len(alarmed):
            return False
        strongest = alarmed[np.argmax(look.evidence[alarmed])]
        at = int(np.argmax(look.log_probability[strongest]))
        moved, unsure = self._moved(epoch, look, at, end)
        moved |= {int(row) % self._paths for row in alarmed}
        latest = int(look.changes[at])
        for row in alarmed.tolist():
            start = int(self._start[row])
            ends = look.changes[[*_interval(look.log_probability[row])]].tolist()
            earliest, _, latest_of_row = ends
            for earlier in self._found:
                if earlier.row == row and earlier.stop == self._records:
                    earlier.stop = max(earlier.raised + 1, earliest)
            self._found.append(
                _Open(
                    row,
                    end - 1,
                    start,
                    self._records,
                    epoch.known,
                    float(look.evidence[row]),
                    epoch.scatter.take(row),
                    frozenset(moved),
                    unsure,
                )
            )
            self._restart(np.array([row]), latest_of_row)
            self._alarms_of_row[row] += 1
        if self._usual is None and len(moved) > max(1.0, self._rule.few * self._paths):
            # Others may have moved too little to be seen.
            self._restart(np.flatnonzero(self._start < latest), latest)
        return True

    def _restart(self, rows: IntArray, at: int) -> None:
        self._start[rows] = at
        self._segment[rows, at:] += 1

    def _moved(self, epoch: _Epoch, look: _Look, at: int, end: int) -> tuple[set[int], int]:
        """Return the call paths that changed at a record, and how many may have changed."""
        found, change = look.found, int(look.changes[at])
        t, moved = found.t[:, at], set()
        logs = log_factors(t, found.dof[:, at], found.size[:, at])
        for row in np.flatnonzero(logs >= _MOVED).tolist():
            if self._both(epoch, row, change, end) >= _MOVED:
                moved.add(row % self._paths)
        level, t_level = found.difference[: self._paths, at], t[: self._paths]
        with np.errstate(invalid="ignore", divide="ignore"):
            reach = np.abs(level) + _SURE * np.abs(level / t_level)
        unsure = np.flatnonzero(reach > _PROVEN)
        return moved, len({*unsure.tolist()} - moved)

    def _both(self, epoch: _Epoch, row: int, change: int, end: int, excess: float = 1.0) -> float:
        """Return the evidence of a change of one series against both of its rivals."""
        start = max(int(self._start[row]), change - self._rule.memory, epoch.first)
        first = epoch.first
        return epoch.sums.evidence(row, start - first, change - first, end - first, excess)

    def _evidence(self, epoch: _Epoch, end: int, least_after: int) -> _Look:
        changes = self._changes(end)
        found = self._splits(epoch, changes, np.full_like(changes, end), least_after)
        needed = self._needed()
        evidence = np.full(len(needed), -np.inf)
        log_probability = np.full(found.t.shape, -np.inf)
        bound = largest_log_factors(found).max(axis=1, initial=-np.inf)
        some = np.flatnonzero(bound >= needed)
        if len(some):
            prior, excess = self._prior[changes], np.ones(found.t.shape)
            if self._usual is not None:
                for first in range(0, len(needed), self._paths):
                    some_usual = first + np.flatnonzero(self._usual)
                    block = slice(first, first + self._paths)
                    excess[block] = crowd(found.t[some_usual], found.dof[some_usual])
            steady = log_factors((found.t / excess)[some], found.dof[some], found.size[some])
            for row, smooth in zip(some.tolist(), steady, strict=True):
                for k in np.flatnonzero(smooth + prior >= needed[row] - _HOPELESS).tolist():
                    both = self._both(epoch, row, int(changes[k]), end, float(excess[row, k]))
                    log_probability[row, k] = prior[k] + both
            evidence[some] = _log_sum(log_probability[some])
        return _Look(changes, evidence - needed, log_probability, found)

    def _suspected(self) -> BoolArray:
        """Return the series of which one more record like the newest one raises an alarm."""
        rows = len(self._start)
        if self._records < _LEAST_RECORDS - 1:
            return np.zeros(rows, bool)
        epoch = self._opened(self._records - 1, self._records)
        epoch.values, epoch.errors = (
            np.concatenate([each, each[:, -1:]], axis=1) for each in (epoch.values, epoch.errors)
        )
        self._about_levels(epoch, self._records)
        found = self._evidence(epoch, self._records + 1, self._rule.persistence)
        is_new = found.changes[np.argmax(found.log_probability, axis=1)] == self._records - 1
        return np.asarray((found.evidence >= 0.0) & is_new)

    def _needed(self) -> FloatArray:
        """Return the logarithm of the least evidence that is an alarm, [n]."""
        k = self._alarms_of_row
        share = self._log_weight - np.log((k + 1.0) * (k + 2.0))
        return np.asarray(-np.log(self._rule.false_alarms) - share)

    def _changes(self, end: int) -> IntArray:
        """Return the records at which a look at `end` records tries a change."""
        after = _AFTER[min(self._rule.window, end - 1) >= _AFTER]
        return np.asarray(end - after[::-1])

    def _splits(self, epoch: _Epoch, changes: IntArray, ends: IntArray, least_after: int) -> Splits:
        """Return the comparisons of all series at some changes [w], of the first `ends` [w]."""
        change, end = changes - epoch.first, ends - epoch.first
        start = np.maximum(self._start - epoch.first, 0)[:, None]
        if change.max(initial=0) > self._rule.memory or start.max(initial=0) > change.min():
            start = np.minimum(np.maximum(start, change - self._rule.memory), change)
        return epoch.sums.splits(start, change, end, least_after)

    def _dated(self, found: _Open) -> Alarm:
        """Return an alarm with its date and size from all records up to the next alarm."""
        end = min(found.stop, found.raised + 1 + self._rule.window)
        every = self._series(found.known, slice(0, end))
        values, errors = (each[[found.row]] for each in every)
        first = max(found.start + 2, found.raised + 1 - self._rule.window)
        changes = np.arange(first, found.raised + 2 - self._rule.persistence)
        start = np.maximum(found.start, changes - self._rule.memory)[None]
        tried = _step(values, errors, found.scatter, start, changes)
        earliest, likely, latest = _interval(_log_likelihood(tried.t[0], tried.dof[0, 0]))
        at, begin = changes[[likely]], start[:, [likely]]
        middle, limit = np.nanmedian(values[:, at[0] :]), CLIPPED * found.scatter.sd[0]
        # Odd records after the change must not say how large it is.
        values = values.copy()
        values[:, at[0] :] = np.clip(values[:, at[0] :], middle - limit, middle + limit)
        size = _step(values, errors, found.scatter, begin, at)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = float(np.abs(size.difference / size.t)[0, 0])
        difference = float(size.difference[0, 0])
        reach = float(np.nan_to_num(student_quantile(size.dof[0, 0], 0.975) * error))
        # Records without a value before the first changed one may have the change as well.
        known = np.flatnonzero(~np.isnan(values[0, : first + earliest]))
        return Alarm(
            found.row,
            found.raised,
            int(known[-1]) + 1 if len(known) else first + earliest,
            first + likely,
            first + latest,
            difference,
            difference - reach,
            difference + reach,
            found.evidence,
            found.moved,
            found.unsure,
        )


def _step(
    values: FloatArray, errors: FloatArray, scatter: DayScatter, start: IntArray, change: IntArray
) -> Splits:
    """Return the comparisons of one series [1, T] at some changes, with all records after them."""
    middle = np.nanmedian(values[0, int(start.min()) : int(change.max())])
    sums = Regressions.of(values, errors, scatter, np.array([middle]))
    return sums.splits(start, change, np.full_like(change, values.shape[1]), 1)


def _log_likelihood(t: FloatArray, dof: float) -> FloatArray:
    """Return log likelihoods of steps at some records, [w], relative to that of the best one."""
    squares = np.nan_to_num(t) ** 2
    missed = squares.max() - squares
    return np.where(np.isnan(t), -np.inf, -(dof + 1.0) / 2.0 * np.log1p(missed / dof))


def _log_sum(logs: FloatArray) -> FloatArray:
    """Return the logarithm of the sums of exponentials of rows [n, w]."""
    most = logs.max(axis=1, initial=-np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = most + np.log(np.exp(logs - most[:, None]).sum(axis=1))
    return np.asarray(np.where(np.isfinite(most), found, most))


def _interval(log_probability: FloatArray) -> tuple[int, int, int]:
    """Return the ends of the interval with 95 % of the probability, and the likely place in it."""
    probability = np.exp(log_probability - log_probability.max())
    running = np.cumsum(probability) / probability.sum()
    low = int(np.searchsorted(running, (1.0 - _DATED) / 2.0))
    high = int(np.searchsorted(running, (1.0 + _DATED) / 2.0))
    return low, int(np.argmax(probability)), high
