"""Evidence of a change of the mean, and alarms of a history with one false-alarm rate.

The evidence is the Bayes factor of two means against one, with an unknown variance (Gönen,
Johnson, Lu and Westfall: The Bayesian two-sample t test, 2005). Its expectation is 1 if the values
are normal and nothing changed, at every time a reader stops looking (Hendriksen, de Heide and
Grünwald: Optional stopping with Bayes factors, 2021). So an average of such factors exceeds 1/a at
any time with a probability of at most a (Ville's inequality). The average is over all records at
which the series may have changed, and its weights add up to at most 1.

A record is looked at with all earlier ones. So an alarm of an earlier record never depends on a
later record, and a history can be judged as often as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.distributions import student_quantile

SPREADS = (1.0, 10.0, 100.0, 1000.0)
"""Variances of the size of a change, in variances of one value; they have equal weights."""

_LEAST_BEFORE = 2
"""Fewest values before a change."""


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Running sums of series, from which the mean and scatter of any part follow.

    Attributes
    ----------
    columns : [n, T + 1, 4] number of values before a record, their sum, the sum of squares, and the
        sum of their squared errors
    """

    columns: FloatArray

    @classmethod
    def of(cls, values: FloatArray, errors: FloatArray) -> Sums:
        """Return the sums of series [n, T]; NaN = missing."""
        filled, there = np.nan_to_num(values), ~np.isnan(values)
        columns = np.stack([there, filled, filled**2, np.where(there, errors, 0.0)], axis=-1)
        return cls(np.pad(np.cumsum(columns, axis=1), ((0, 0), (1, 0), (0, 0))))

    def of_row(self, row: int) -> Sums:
        """Return the sums of one series."""
        return Sums(self.columns[[row]])

    def before(self, records: IntArray) -> FloatArray:
        """Return the sums of the values before some records [n, w], [n, w, 4]."""
        return np.asarray(self.columns[np.arange(len(records))[:, None], records])


def _moments(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return number, mean and squared deviations of the values whose sums are given."""
    count, total, squares = np.moveaxis(sums[..., :3], -1, 0)
    mean = total / np.maximum(count, 1.0)
    return count, mean, np.maximum(squares - count * mean**2, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Comparisons of the values before and after possible changes, [n, w]; NaN = too few values.

    Attributes
    ----------
    difference : mean after minus mean before
    t : difference over its standard error
    dof : degrees of freedom
    size : effective number of values, of which the standard error is that of a mean
    """

    difference: FloatArray
    t: FloatArray
    dof: FloatArray
    size: FloatArray

    def take(self, rows: IntArray | slice) -> Splits:
        """Return the comparisons of some series."""
        return Splits(self.difference[rows], self.t[rows], self.dof[rows], self.size[rows])


def splits(
    sums: Sums, start: IntArray, change: IntArray, end: IntArray, least_after: int, least_sd: float
) -> Splits:
    """Return the comparisons of series before and after possible changes.

    Parameters
    ----------
    sums : running sums of series
    start : [n, w] first record before each change
    change : [n, w] first record after it
    end : [n, w] number of records that are compared
    least_after : fewest values after a change
    least_sd : standard deviation below which values do not count as scattered
    """
    first, middle, last = (sums.before(each) for each in (start, change, end))
    before, mean_before, squares_before = _moments(middle - first)
    after, mean_after, squares_after = _moments(last - middle)
    by_repetitions = (last - first)[..., 3] / np.maximum(before + after, 1.0)
    enough = (before >= _LEAST_BEFORE) & (after >= least_after)
    dof = np.where(enough, before + after - 2.0, np.nan)
    size = np.where(enough, before * after / np.maximum(before + after, 1.0), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Odd repetitions show in single records before they move the centre of one.
        scatter = np.maximum((squares_before + squares_after) / dof, by_repetitions)
        variance = scatter + least_sd**2
        difference = np.where(enough, mean_after - mean_before, np.nan)
        return Splits(difference, difference / np.sqrt(variance / size), dof, size)


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


def crowd(found: Splits, few: float) -> FloatArray:
    """Return by how much all series deviate more than chance explains, [w]; at least 1.

    A share `few` of the series, and at least one of several, may deviate by any amount; none may
    if the share is 0. The others are an empirical null distribution (Efron: Large-scale
    simultaneous hypothesis testing, 2004): an event of many series at once is no change of one of
    them.

    Parameters
    ----------
    found : comparisons of all series
    few : share of the series that may change together; 0 = none may change
    """
    t, there = found.t, ~np.isnan(found.t)
    count = there.sum(axis=0)
    most = np.maximum(count - 1, 0)
    on_their_own = np.minimum(np.maximum(np.floor(few * count), few > 0), most)
    ordered = np.sort(np.where(there, np.abs(t), -1.0), axis=0)  # missing ones come first
    seen = ordered[len(t) - 1 - on_their_own.astype(int), np.arange(t.shape[1])]
    share = 1.0 - (on_their_own if few else 0.5) / np.maximum(count, 1) / 2.0
    dof = np.where(there, found.dof, 1.0).max(axis=0, initial=1.0)
    return np.asarray(np.maximum(seen / student_quantile(dof, share), 1.0))


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


LEAST_CROWD = 8
"""Fewest series of which only a small share may change on its own at one time."""

_AFTER = np.array([n for n in range(1, 65) if n % max(1, 2 ** (n.bit_length() - 3)) == 0])
"""Numbers of records after a change at which a look compares: those with three binary digits.

The others would add time, and few alarms.
"""

_LEAST_RECORDS = 4
"""Fewest records that can be evidence enough for an alarm."""
_CHUNK = 64
"""Number of looks that are screened at once."""

_DATED = 0.95
"""Probability that the interval of records holds the change."""


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
    few : largest share of the series that change on their own at one time
    """

    false_alarms: float = 0.05
    memory: int = 64
    window: int = 64
    persistence: int = 2
    least_sd: float = 1e-3
    few: float = 0.1


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
    shared : True = many series changed at this time, so that this is no change of its own
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
    shared: bool


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


def replay(
    values: FloatArray,
    errors: FloatArray,
    weights: FloatArray,
    rule: AlarmRule,
    usual: BoolArray | None = None,
) -> Replayed:
    """Return the alarms of series.

    After an alarm, a series starts again at the change. Its next alarm needs more evidence,
    because all alarms of a history share one false-alarm rate.

    Parameters
    ----------
    values : [n, T] levels of series; NaN = missing
    errors : [n, T] squared standard errors of the levels, as far as repetitions show them; records
        may scatter more
    weights : [n] weights of the series; they add up to at most 1; a series of weight 0 raises none
    usual : [n] series that do not change on their own, so that they tell what happens to many at
        once; None = all series tell it, except for a few
    """
    return _Replay(Sums.of(values, errors), weights, rule, usual).run()


@dataclass(eq=False)
class _Open:
    """An alarm that later records date more precisely."""

    row: int
    raised: int
    start: int
    stop: int
    evidence: float
    shared: bool


@dataclass(frozen=True, eq=False)
class _Look:
    """The evidence of the first records of a history.

    Attributes
    ----------
    changes : [w] records at which series may have changed
    own, whole : [n] logarithm of the evidence over the least that is an alarm; `own` leaves out
        what happens to many series at once
    log_probability : [n, w] of a change at each record, but for a constant
    """

    changes: IntArray
    own: FloatArray
    whole: FloatArray
    log_probability: FloatArray


class _Replay:
    """The state of a replay: where each series starts, and how many alarms it has raised."""

    def __init__(
        self, sums: Sums, weights: FloatArray, rule: AlarmRule, usual: BoolArray | None
    ) -> None:
        self._usual = slice(None) if usual is None else np.flatnonzero(usual)
        # Half of few series may change on their own, so fewer than half tell the usual change.
        self._few = rule.few if len(weights) >= LEAST_CROWD else 0.5
        if usual is not None:
            self._few = 0.0
        self._rule = rule
        self._sums = sums
        self._records = sums.columns.shape[1] - 1
        self._start = np.zeros(len(weights), np.intp)
        self._alarms_of_row = np.zeros(len(weights))
        with np.errstate(divide="ignore"):
            self._log_weight = np.log(weights)
        self._prior = np.log(record_weights(self._records))
        self._found: list[_Open] = []

    def run(self) -> Replayed:
        """Look at each record."""
        # An alarm changes which later records may raise one.
        end: int | None = _LEAST_RECORDS - 1
        while end is not None:
            end = next(filter(self._look, self._candidates(end + 1)), None)
        suspected = np.zeros(len(self._start), bool)
        if self._records:
            own = self._evidence(self._records, least_after=1).own
            suspected = own >= 0.0
        alarms = tuple(self._dated(each) for each in self._found)
        return Replayed(alarms, suspected)

    def _candidates(self, first: int) -> Iterator[int]:
        """Yield the numbers of records, from `first`, at which a series may raise an alarm."""
        least, needed = self._rule.persistence, self._needed()
        for begin in range(first, self._records + 1, _CHUNK):
            ends = np.arange(begin, min(begin + _CHUNK, self._records + 1))
            pairs = [(end, change) for end in ends.tolist() for change in self._changes(end)]
            end, change = np.array(pairs).T
            found = self._splits(change, end, least)
            may = (largest_log_factors(found) >= needed[:, None]).any(axis=0)
            yield from np.unique(end[may]).tolist()

    def _look(self, end: int) -> bool:
        """Raise the alarms of the newest of the first `end` records; return whether there are."""
        look = self._evidence(end, self._rule.persistence)
        alone = look.own >= 0.0
        moved = (look.whole >= 0.0) & ~alone
        least = max(2.0, self._rule.few * len(moved))
        many = moved if moved.sum() >= least else np.zeros_like(moved)
        for row in np.flatnonzero(alone | many).tolist():
            start = int(self._start[row])
            earliest, _, latest = look.changes[[*_interval(look.log_probability[row])]].tolist()
            for earlier in self._found:
                if earlier.row == row and earlier.stop == self._records:
                    earlier.stop = max(earlier.raised + 1, earliest)
            evidence = float(look.own[row])
            self._found.append(_Open(row, end - 1, start, self._records, evidence, bool(many[row])))
            self._start[row] = latest
            self._alarms_of_row[row] += 1
        return bool((alone | many).any())

    def _evidence(self, end: int, least_after: int) -> _Look:
        changes = self._changes(end)
        found = self._splits(changes, np.full_like(changes, end), least_after)
        needed = self._needed()
        own, whole = np.full((2, len(needed)), -np.inf)
        log_probability = np.full(found.t.shape, -np.inf)
        bound = largest_log_factors(found).max(axis=1, initial=-np.inf)
        some = np.flatnonzero(bound >= needed)
        if len(some):
            prior, few = self._prior[changes], found.take(some)
            excess = crowd(found.take(self._usual), self._few)
            log_probability[some] = prior + log_factors(few.t, few.dof, few.size)
            own[some] = _log_sum(prior + log_factors(few.t / excess, few.dof, few.size))
            whole[some] = _log_sum(log_probability[some])
        return _Look(changes, own - needed, whole - needed, log_probability)

    def _needed(self) -> FloatArray:
        """Return the logarithm of the least evidence that is an alarm, [n]."""
        k = self._alarms_of_row
        share = self._log_weight - np.log((k + 1.0) * (k + 2.0))
        return np.asarray(-np.log(self._rule.false_alarms) - share)

    def _changes(self, end: int) -> IntArray:
        """Return the records at which a look at `end` records tries a change."""
        after = _AFTER[min(self._rule.window, end - 1) >= _AFTER]
        return np.asarray(end - after[::-1])

    def _splits(self, changes: IntArray, ends: IntArray, least_after: int) -> Splits:
        """Return the comparisons of all series at some changes [w], of the first `ends` [w]."""
        shape = len(self._start), len(changes)
        change, end = (np.broadcast_to(each, shape) for each in (changes, ends))
        start = np.maximum(self._start[:, None], change - self._rule.memory)
        start = np.minimum(start, change)
        return splits(self._sums, start, change, end, least_after, self._rule.least_sd)

    def _dated(self, found: _Open) -> Alarm:
        """Return an alarm with its date and size from all records up to the next alarm."""
        end = min(found.stop, found.raised + 1 + self._rule.window)
        sums = self._sums.of_row(found.row)
        first = max(found.start + 2, found.raised + 1 - self._rule.window)
        changes = np.arange(first, found.raised + 2 - self._rule.persistence)[None]
        start = np.maximum(found.start, changes - self._rule.memory)
        ends = np.full_like(changes, end)
        compared = splits(sums, start, changes, ends, 1, self._rule.least_sd)
        likelihood = log_factors(compared.t, compared.dof, compared.size)
        earliest, likely, latest = _interval(likelihood[0])
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.abs(compared.difference / compared.t)[0, likely]
        difference = float(compared.difference[0, likely])
        reach = float(np.nan_to_num(student_quantile(compared.dof[0, likely], 0.975) * error))
        return Alarm(
            found.row,
            found.raised,
            first + earliest,
            first + likely,
            first + latest,
            difference,
            difference - reach,
            difference + reach,
            found.evidence,
            found.shared,
        )


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
