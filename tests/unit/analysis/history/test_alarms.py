"""Alarms of single series, record by record."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.history.alarms import (
    AlarmRule,
    Sums,
    _Replay,
    log_factors,
    record_weights,
    replay,
    splits,
)
from cells import cells


def series(*parts, seed=0, sd=0.01):
    """Return one series [1, T] of levels, each given as (number of records, level)."""
    levels = np.repeat([level for _, level in parts], [number for number, _ in parts])
    noise = sd * np.random.default_rng(seed).standard_normal(len(levels))
    return (levels + noise)[None]


def alarms(values, **rule):
    return replay(values, np.zeros(values.shape), np.ones(len(values)), AlarmRule(**rule)).alarms


def test_all_alarms_of_a_series_share_one_rate_of_false_alarms():
    """An alarm is false with a probability of at most 1 / least evidence (Ville's inequality)."""
    values = np.zeros((50, 4))
    weights = np.full(50, 1 / 50)
    state = _Replay(Sums.of(values, values), weights, AlarmRule(false_alarms=0.05), None)
    shares = []
    for number in range(10_000):
        state._alarms_of_row[:] = number
        shares.append(np.exp(-state._needed()).sum())
    assert sum(shares) == pytest.approx(0.05, rel=1e-3)
    assert shares == sorted(shares, reverse=True)
    assert shares[1] == pytest.approx(shares[0] / 3)


def test_a_second_alarm_needs_more_evidence_than_the_first_one():
    values = series((20, 0.0), (20, 1.0), (20, 2.0))
    first, second = alarms(values)
    assert (first.likely, second.likely) == (20, 40)
    # The same second change, in a series that has raised no alarm.
    (alone,) = alarms(np.where(np.arange(60) < 20, np.nan, values))
    assert alone.likely == 40
    # Shares of the rate: 1/2 for the first alarm of a series, and 1/6 for the second.
    assert alone.evidence == pytest.approx(second.evidence + np.log(3))


def test_a_rarer_false_alarm_needs_more_evidence():
    values = series((20, 0.0), (5, 1.0))
    often, rarely = (alarms(values, false_alarms=rate)[0] for rate in (0.1, 0.001))
    assert often.raised == rarely.raised
    assert often.evidence - rarely.evidence == pytest.approx(np.log(100))


def test_a_series_of_small_weight_needs_more_evidence():
    values = series((20, 0.0), (5, 1.0))
    rule, errors = AlarmRule(), np.zeros(values.shape)
    large, small = (
        replay(values, errors, np.array([weight]), rule).alarms[0] for weight in (1.0, 0.01)
    )
    assert large.evidence - small.evidence == pytest.approx(np.log(100))
    assert replay(values, errors, np.zeros(1), rule).alarms == ()


@cells("memory", [4, 12, 64])
@cells("window", [5, 64])
def test_a_change_is_measured_between_the_records_in_memory_and_in_the_window(memory, window):
    values = series((30, 0.0), (30, 1.0), sd=0.1)
    (found, *_) = alarms(values, memory=memory, window=window)
    begin, end = max(0, found.likely - memory), min(60, found.raised + 1 + window)
    before, after = values[0, begin : found.likely], values[0, found.likely : end]
    assert found.change == pytest.approx(after.mean() - before.mean())
    assert found.low < found.change < found.high
    assert found.low < 1.0 < found.high


def test_a_short_memory_knows_less_of_the_level_before():
    values = series((30, 0.0), (3, 0.2), sd=0.05)
    long, short = (alarms(values, memory=memory) for memory in (64, 5))
    assert long
    assert not short or short[0].evidence < long[0].evidence - 1


def test_a_small_change_is_found_only_if_the_window_is_long_enough():
    values = series((40, 0.0), (40, 0.06), sd=0.05)
    (found,) = alarms(values)
    assert found.raised - found.likely >= 8
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
    found = replay(values, np.zeros(values.shape), np.full(2, 0.5), AlarmRule())
    assert (found.alarms, found.suspected.tolist()) == ((), [True, False])


def test_no_record_and_two_records_raise_nothing():
    for records in range(3):
        values = np.arange(records, dtype=float)[None] * 100
        found = replay(values, np.zeros(values.shape), np.ones(1), AlarmRule(persistence=1))
        assert found.alarms == ()


def test_series_that_move_together_are_shared_and_one_that_moves_alone_is_not():
    together = np.concatenate([series((20, 0.0), (10, 1.0), seed=k) for k in range(20)])
    alone = together.copy()
    alone[:19, 20:] -= 1.0
    weights = np.full(20, 1 / 20)
    rule, errors = AlarmRule(), np.zeros(alone.shape)
    found = replay(together, errors, weights, rule).alarms
    assert {each.row for each in found} == set(range(20))
    assert all(each.shared for each in found)
    (one,) = replay(alone, errors, weights, rule).alarms
    assert (one.row, one.shared) == (19, False)


def test_series_that_cannot_change_on_their_own_tell_what_is_common():
    """All moved, the usual ones too: so nothing changed on its own."""
    values = np.concatenate([series((20, 0.0), (10, 1.0), seed=k) for k in range(6)])
    usual = np.arange(6) >= 3
    weights = np.where(usual, 0.0, 1 / 3)
    found = replay(values, np.zeros(values.shape), weights, AlarmRule(), usual).alarms
    assert all(each.shared for each in found)
    values[3:, 20:] -= 1.0
    found = replay(values, np.zeros(values.shape), weights, AlarmRule(), usual).alarms
    assert {each.row for each in found if not each.shared} == {0, 1, 2}


def test_errors_of_repetitions_make_alarms_later():
    values = series((20, 0.0), (10, 0.1), sd=0.01)
    sure = replay(values, np.zeros(values.shape), np.ones(1), AlarmRule()).alarms
    unsure = replay(values, np.full(values.shape, 0.2**2), np.ones(1), AlarmRule()).alarms
    assert sure
    assert not unsure


def test_four_records_can_be_enough_and_three_cannot():
    values = np.array([[0.0, 0.0, 1.0, 1.0]])
    rule = {"false_alarms": 0.9, "persistence": 1, "least_sd": 1e-9}
    (found,) = alarms(values, **rule)
    assert (found.raised, found.likely) == (3, 2)
    assert alarms(values[:, :3], **rule) == ()


def test_a_change_is_compared_after_each_of_eight_records_and_then_in_steps_of_a_quarter():
    """Two records are the fewest before a change, so no earlier change explains the values."""
    values = series((2, 0.0), (80, 1.0), sd=1e-6)
    waited = []
    for persistence in range(3, 65):
        found = alarms(values, persistence=persistence)[0]
        waited.append(found.raised + 1 - 2)
        assert found.likely == 2
    assert waited[:6] == [3, 4, 5, 6, 7, 8]
    for persistence, after in enumerate(waited, 3):
        assert persistence <= after <= 1.25 * persistence
    assert waited[-1] == 64
    assert len({*waited}) == 18
    assert alarms(values, persistence=65, window=128) == ()


@pytest.mark.parametrize(
    ("number", "moved", "shared"), [(7, 3, False), (7, 5, True), (8, 3, True), (10, 2, True)]
)
def test_of_seven_series_half_may_change_on_their_own_and_of_more_a_tenth(number, moved, shared):
    values = np.concatenate(
        [series((20, 0.0), (10, 1.0 if k < moved else 0.0), seed=k) for k in range(number)]
    )
    weights = np.full(number, 1 / number)
    found = replay(values, np.zeros(values.shape), weights, AlarmRule()).alarms
    assert {each.row for each in found} == {*range(moved)}
    assert {each.shared for each in found} == {shared}


SD, CHANGED, STEP = 0.05, 60, 2.0


@pytest.fixture(scope="module")
def many():
    """Return the alarms of 300 series that change by twice their scatter, and steady ones."""
    random = np.random.default_rng(5)
    values = SD * random.standard_normal((320, 120))
    values[:300, CHANGED:] += STEP * SD
    steady = np.arange(320) >= 300
    weights = np.where(steady, 0.0, 1 / 300)
    found = replay(values, np.zeros(values.shape), weights, AlarmRule(), steady).alarms
    first = {each.row: each for each in reversed(found)}
    assert len(first) > 290
    assert not any(each.shared for each in found)
    return [first[row] for row in sorted(first)]


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
    assert found.change == pytest.approx(expected)


def test_changes_of_less_than_a_tenth_of_a_percent_are_scatter():
    for change, number in ((0.0005, 0), (0.01, 1)):
        assert len(alarms(series((30, 0.0), (30, change), sd=0.0))) == number


def test_the_newest_record_of_an_alarm_is_no_suspicion_and_one_that_deviates_later_is():
    values = np.concatenate([series((30, 0.0), (2, 1.0)), series((12, 0.0), (19, 1.0), (1, 3.0))])
    found = replay(values, np.zeros(values.shape), np.full(2, 0.5), AlarmRule())
    assert [(each.row, each.raised) for each in found.alarms] == [(1, 13), (0, 31)]
    assert found.suspected.tolist() == [False, True]


@cells("change", np.linspace(0.02, 0.08, 25))
def test_a_record_is_suspected_if_one_more_like_it_would_not_be_needed(change):
    values = series((20, 0.0), (1, change))
    found = replay(values, np.zeros(values.shape), np.ones(1), AlarmRule())
    at_once = alarms(values, persistence=1)
    assert bool(found.suspected[0]) == bool(at_once)


def test_the_newest_record_may_be_the_changed_one():
    (found,) = alarms(series((20, 0.0), (1, 1.0)), persistence=1)
    assert (found.earliest, found.likely, found.latest, found.raised) == (20, 20, 20, 20)
    assert found.change == pytest.approx(1.0, abs=0.05)


def test_a_change_is_measured_up_to_the_next_one_of_the_same_series():
    values = np.concatenate(
        [series((20, 0.0), (20, 1.0), (20, 3.0)), series((30, 0.0), (30, 1.0), seed=1)]
    )
    found = replay(values, np.zeros(values.shape), np.full(2, 0.5), AlarmRule()).alarms
    assert [(each.row, each.likely) for each in found] == [(0, 20), (1, 30), (0, 40)]
    levels = [(values[0, :20], values[0, 20:40]), (values[1, :30], values[1, 30:]),
              (values[0, 20:40], values[0, 40:])]  # fmt: skip
    for each, (before, after) in zip(found, levels, strict=True):
        assert each.change == pytest.approx(after.mean() - before.mean())


def test_a_change_back_to_the_mean_is_found_in_one_of_two_series():
    """Evidence of the second change begins after the first one, also with a short window.

    The last level is the mean of all records before it.
    """
    values = np.concatenate([series((20, 0.0), (20, 10.0), (20, 5.0)), series((60, 0.0), seed=1)])
    rule = AlarmRule(window=8)
    found = replay(values, np.zeros(values.shape), np.full(2, 0.5), rule).alarms
    assert [(each.row, each.likely) for each in found] == [(0, 20), (0, 40)]


def test_the_interval_leaves_out_a_fortieth_of_the_probability_at_both_ends():
    """The change is equally likely at each of 81 records, because 80 have no value."""
    values = series((20, 0.0), (80, 0.0), (20, 1.0))
    values[0, 20:100] = np.nan
    (found,) = alarms(values, memory=200, window=200)
    assert (found.earliest, found.latest) == (22, 98)
    assert 20 <= found.likely <= 100


def test_the_evidence_is_the_average_of_the_factors_of_all_records():
    values = series((20, 0.0), (4, 0.06))
    (found,) = alarms(values)
    end = found.raised + 1
    after = [n for n in (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20) if n <= end - 2]
    changes = end - np.array([after])
    start, ends = np.zeros_like(changes), np.full_like(changes, end)
    sums = Sums.of(values, np.zeros(values.shape))
    compared = splits(sums, start, changes, ends, 2, AlarmRule().least_sd)
    factors = np.exp(log_factors(compared.t, compared.dof, compared.size))
    average = (record_weights(end)[changes] * factors).sum()
    # The first alarm of a series has half of the rate of five in a hundred.
    assert found.evidence == pytest.approx(np.log(average * 0.05 / 2))
