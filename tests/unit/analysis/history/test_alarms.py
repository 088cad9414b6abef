"""Alarms of single series, record by record."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.history.alarms import AlarmRule, _Replay, replay
from cells import cells


def series(*parts, seed=0, sd=0.01):
    """Return one series [1, T] of levels, each given as (number of records, level)."""
    levels = np.repeat([level for _, level in parts], [number for number, _ in parts])
    noise = sd * np.random.default_rng(seed).standard_normal(len(levels))
    return (levels + noise)[None]


def replayed(values, errors=0.0, weights=None, rule=None):
    """Return the replay of series, each of which is a call path."""
    weights = np.ones(len(values)) if weights is None else np.asarray(weights)
    errors = np.broadcast_to(errors, values.shape)

    def parts(_, part):
        return values[:, part], errors[:, part]

    return replay(parts, values.shape[1], weights, rule or AlarmRule())


def alarms(values, **rule):
    return replayed(values, rule=AlarmRule(**rule)).alarms


def test_all_alarms_of_a_series_share_one_rate_of_false_alarms():
    """An alarm is false with a probability of at most 1 / least evidence (Ville's inequality)."""
    values = np.zeros((50, 4))
    weights = np.full(50, 1 / 50)
    rule = AlarmRule(false_alarms=0.05)
    state = _Replay(lambda _, __: (values, values), 4, weights, rule, None, 50)
    shares = []
    for number in range(10_000):
        state._alarms_of_row[:] = number
        shares.append(np.exp(-state._needed()).sum())
    assert sum(shares) == pytest.approx(0.05, rel=1e-3)
    assert shares == sorted(shares, reverse=True)
    assert shares[1] == pytest.approx(shares[0] / 3)


def test_a_second_change_of_a_series_is_dated_as_well():
    values = series((20, 0.0), (20, 1.0), (20, 2.0))
    first, second = alarms(values)
    assert (first.likely, second.likely) == (20, 40)


def test_a_rarer_false_alarm_needs_more_evidence():
    values = series((20, 0.0), (5, 1.0))
    often, rarely = (alarms(values, false_alarms=rate)[0] for rate in (0.1, 0.001))
    assert often.raised == rarely.raised
    assert often.evidence - rarely.evidence == pytest.approx(np.log(100))


def test_a_series_of_small_weight_needs_more_evidence():
    values = series((20, 0.0), (5, 1.0))
    rule, errors = AlarmRule(), np.zeros(values.shape)
    large, small = (replayed(values, errors, [weight], rule).alarms[0] for weight in (1.0, 0.01))
    assert large.evidence - small.evidence == pytest.approx(np.log(100))
    assert replayed(values, errors, [0.0], rule).alarms == ()


@cells("memory", [8, 12, 64])
@cells("window", [5, 64])
def test_a_change_is_measured_between_the_records_in_memory_and_in_the_window(memory, window):
    values = series((30, 0.0), (30, 1.0), sd=0.1)
    (found, *_) = alarms(values, memory=memory, window=window)
    begin, end = max(0, found.likely - memory), min(60, found.raised + 1 + window)
    before, after = values[0, begin : found.likely], values[0, found.likely : end]
    assert found.change == pytest.approx(after.mean() - before.mean(), rel=0.05)
    assert found.low < found.change < found.high
    assert found.low < 1.0 < found.high


def test_a_short_memory_knows_less_of_the_level_before():
    values = series((30, 0.0), (5, 0.25), sd=0.05)
    long, short = (alarms(values, memory=memory) for memory in (64, 5))
    assert long
    assert not short or short[0].evidence < long[0].evidence - 1


def test_a_small_change_is_found_only_if_the_window_is_long_enough():
    values = series((40, 0.0), (40, 0.08), sd=0.05)
    (found,) = alarms(values)
    assert found.raised - found.likely >= 7
    assert alarms(values, window=4) == ()


@pytest.mark.parametrize("persistence", [1, 2, 4])
def test_an_alarm_waits_for_as_many_records_as_a_change_has_to_persist(persistence):
    (found,) = alarms(series((20, 0.0), (10, 1.0)), persistence=persistence)
    assert found.raised == found.likely - 1 + persistence
    assert found.likely in (20, 19)


def test_series_of_equal_values_change_only_by_more_than_the_least_scatter():
    values = series((20, 0.0), (10, 1e-5), sd=0.0)
    assert alarms(values) == ()
    (found,) = alarms(values, least_sd=1e-8)
    assert found.likely == 20


def test_the_newest_record_that_deviates_is_suspected_and_no_other():
    values = np.concatenate([series((20, 0.0), (1, 1.0)), series((21, 0.0), seed=1)])
    found = replayed(values, weights=[0.5, 0.5], rule=AlarmRule())
    assert (found.alarms, found.suspected.tolist()) == ((), [True, False])


def test_errors_of_repetitions_make_alarms_later():
    values = series((20, 0.0), (10, 0.1), sd=0.01)
    sure = replayed(values).alarms
    unsure = replayed(values, 0.2**2).alarms
    assert sure
    assert not unsure


SD, CHANGED, STEP = 0.05, 60, 2.0


@pytest.fixture(scope="module")
def many():
    """Return the alarms of 300 series that change by twice their scatter, 20 of 200 at a time."""
    random, found = np.random.default_rng(5), []
    for _ in range(15):
        values = SD * random.standard_normal((200, 120))
        values[:20, CHANGED:] += STEP * SD
        weights = np.where(np.arange(200) < 20, 1 / 20, 0.0)
        alarms = replayed(values, weights=weights, rule=AlarmRule(few=1.0)).alarms
        first = {each.row: each for each in reversed(alarms)}
        found += [first[row] for row in sorted(first)]
    assert len(found) > 290
    return found


def test_the_interval_of_records_holds_the_change_in_95_of_100_cases_and_few_others(many):
    early, late = ([f(each) for each in many] for f in (lambda a: a.earliest, lambda a: a.latest))
    held = np.mean((np.array(early) <= CHANGED) & (np.array(late) >= CHANGED))
    assert 0.93 <= held <= 0.99
    assert np.subtract(late, early).mean() < 8
    assert all(each.earliest <= each.likely <= each.latest for each in many)
    assert np.mean([each.likely == CHANGED for each in many]) > 0.3


def test_the_interval_of_the_change_holds_it_in_95_of_100_cases(many):
    held = np.mean([each.low <= STEP * SD <= each.high for each in many])
    assert 0.92 <= held <= 0.985
    middle = [(each.low + each.high) / 2 for each in many]
    assert middle == pytest.approx([each.change for each in many])


def test_the_default_is_five_false_alarms_in_a_hundred_histories_and_two_records():
    values = series((20, 0.0), (5, 1.0))
    (default,), (rate,) = alarms(values), alarms(values, false_alarms=0.05)
    assert default == rate
    assert default.raised == default.likely + 1


def test_64_records_on_both_sides_of_a_change_are_compared():
    values = series((80, 0.0), (80, 1.0), sd=0.1)
    (found, *_) = alarms(values)
    begin, end = found.likely - 64, found.raised + 1 + 64
    expected = values[0, found.likely : end].mean() - values[0, begin : found.likely].mean()
    assert found.change == pytest.approx(expected, rel=0.05)


def test_changes_of_less_than_a_tenth_of_a_percent_are_scatter():
    for change, number in ((0.0005, 0), (0.01, 1)):
        assert len(alarms(series((30, 0.0), (30, change), sd=0.0))) == number


def test_the_newest_record_of_an_alarm_is_no_suspicion_and_one_that_deviates_later_is():
    values = np.concatenate([series((30, 0.0), (2, 1.0)), series((12, 0.0), (19, 1.0), (1, 3.0))])
    found = replayed(values, weights=[0.5, 0.5], rule=AlarmRule())
    assert [(each.row, each.raised) for each in found.alarms] == [(1, 13), (0, 31)]
    assert found.suspected.tolist() == [False, True]


def test_a_change_is_measured_up_to_the_next_one_of_the_same_series():
    values = np.concatenate(
        [series((20, 0.0), (20, 1.0), (20, 3.0)), series((30, 0.0), (30, 1.0), seed=1)]
    )
    found = replayed(values, weights=[0.5, 0.5], rule=AlarmRule()).alarms
    assert [(each.row, each.likely) for each in found] == [(0, 20), (1, 30), (0, 40)]
    levels = [(values[0, :20], values[0, 20:40]), (values[1, :30], values[1, 30:]),
              (values[0, 20:40], values[0, 40:])]  # fmt: skip
    for each, (before, after) in zip(found, levels, strict=True):
        assert each.change == pytest.approx(after.mean() - before.mean(), rel=0.05)


def test_a_change_back_to_the_mean_is_found_in_one_of_two_series():
    """Evidence of the second change begins after the first one, also with a short window.

    The last level is the mean of all records before it.
    """
    values = np.concatenate([series((20, 0.0), (20, 10.0), (20, 5.0)), series((60, 0.0), seed=1)])
    rule = AlarmRule(window=8)
    found = replayed(values, weights=[0.5, 0.5], rule=rule).alarms
    assert [(each.row, each.likely) for each in found] == [(0, 20), (0, 40)]


def test_a_change_may_have_been_at_any_record_without_a_value():
    """The change may have been at any of 81 records, 80 of which have no value."""
    values = series((20, 0.0), (80, 0.0), (20, 1.0))
    values[0, 20:100] = np.nan
    (found,) = alarms(values, memory=200, window=200)
    assert (found.earliest, found.likely, found.latest) == (20, 100, 100)
