"""A history names the call path that changed, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.history.alarms import AlarmRule, replay
from callpath_modeler.history.judgement import (
    ALL,
    GROWTH,
    LARGEST,
    TARGET,
    judge,
    least_program_change,
    questions,
)

SCALES = np.array([8.0, 16.0, 32.0, 64.0])
RULE = AlarmRule()


def history(seed, records=50, rows=30, own=0.03, shared=0.1):
    """Return values [call paths, records, scales, repetitions] without a change."""
    random = np.random.default_rng(seed)
    shape = (rows, records, len(SCALES), 3)
    size = random.dirichlet(np.ones(rows))[:, None, None, None] + 1e-3
    noise = own * random.standard_normal(shape) + shared * random.standard_normal(shape[1:])
    return size * np.exp(noise)


def judged(values, target=256.0, control=None):
    return judge(values, SCALES, target, RULE, control)


def of(number, rows=30):
    """Return a control of the last call paths."""
    return np.arange(rows) >= rows - number


def test_the_rate_of_false_alarms_holds_for_whole_histories():
    """Each series is a history of its own, looked at after each of 80 records."""
    number, rate = 300, 0.2
    values = np.random.default_rng(5).standard_normal((number, 80))
    rule = AlarmRule(false_alarms=rate, persistence=1)
    found = replay(
        lambda _, part: (values[:, part], np.zeros(values[:, part].shape)),
        80,
        np.ones(number),
        rule,
    )
    alarmed = len({each.row for each in found.alarms})
    assert alarmed <= number * rate + 2 * np.sqrt(number * rate * (1 - rate))


def test_histories_without_a_change_name_no_call_path():
    assert sum(bool(judged(history(seed)).own) for seed in range(12)) <= 2


@pytest.mark.parametrize("seed", range(3))
def test_a_slowdown_is_named_within_three_records_and_dated(seed):
    values = history(seed)
    row = int(np.argsort(-values[:, 0, -1].mean(axis=-1))[3])
    values[row, 30:] *= 1.5
    found = judged(values)
    (change,) = found.own
    assert change.row == row
    assert change.is_worse
    assert 31 <= change.raised <= 32
    leading = change.leading
    assert leading.earliest <= 30 <= leading.latest
    assert leading.latest - leading.earliest <= 2
    assert change.level is not None
    assert change.level[1].low < np.log(1.5) < change.level[1].high


def test_growth_is_told_from_a_slowdown_at_all_scales():
    values = history(1, own=0.01)
    values[4, 25:] *= (SCALES / SCALES[0])[:, None] ** 0.25
    values[9, 40:] *= 1.3
    changes = {each.row: each for each in judged(values).own}
    assert set(changes) == {4, 9}
    assert GROWTH in changes[4].answers
    assert changes[4].answers[GROWTH].change == pytest.approx(0.25, abs=0.03)
    assert GROWTH not in changes[9].answers
    assert changes[4].answers[TARGET].change > changes[4].answers[LARGEST].change
    assert changes[9].level is not None
    assert changes[9].level[0] == ALL


def test_a_kernel_upgrade_is_common_and_no_change_of_a_call_path():
    values = history(2, shared=0.01)
    random = np.random.default_rng(2)
    values[:, 25:] *= np.exp(0.1 + 0.08 * random.standard_normal(len(values)))[:, None, None, None]
    found = judged(values)
    assert found.own == ()
    assert [change.is_worse for change in found.common] == [True]
    assert found.common[0].leading.earliest <= 25 <= found.common[0].leading.latest
    assert found.joint
    assert all(each.earliest <= 25 <= each.latest for each in found.joint[-1:])


def test_a_step_of_a_group_of_call_paths_is_joint():
    values = history(3, own=0.02)
    values[:9, 25:] *= 1.3
    found = judged(values)
    assert found.own == ()
    (joint,) = found.joint
    assert set(joint.rows) <= set(range(9))
    assert len(joint.rows) >= 4
    assert joint.earliest <= 25 <= joint.latest
    assert joint.change == pytest.approx(np.log(1.3), abs=0.05)


def test_a_change_after_an_upgrade_is_still_named():
    values = history(4, records=70, own=0.02)
    values[:, 20:] *= np.exp(np.random.default_rng(4).normal(0.1, 0.05, (30, 1, 1, 1)))
    row = int(np.argmax(values[:, 0, -1].mean(axis=-1)))
    values[row, 55:] *= 1.5
    (change,) = judged(values).own
    assert change.row == row
    assert 56 <= change.raised <= 58


def test_an_alarm_does_not_depend_on_later_records():
    values = history(6)
    values[2, 20:] *= 1.5
    for end in (23, 30, 50):
        found = judged(values[:, :end]).own
        assert [(each.row, each.raised) for each in found] == [(2, 21)]


def test_one_record_is_a_suspicion_and_the_second_one_an_alarm():
    values = history(7, records=31)
    values[0, 29:] *= 2
    once, twice = judged(values[:, :30]), judged(values)
    assert (once.own, np.flatnonzero(once.suspected).tolist()) == ((), [0])
    assert [each.row for each in twice.own] == [0]
    assert not twice.suspected.any()


def test_a_faster_call_path_is_no_worse_one():
    values = history(8)
    values[1, 20:] /= 1.5
    (change,) = judged(values).own
    assert not change.is_worse


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_few_call_paths_are_judged_too(rows):
    values = history(9, rows=rows, shared=0.0, own=0.02)
    assert judged(values).own == ()
    values[0, 30:] *= 1.5
    assert [each.row for each in judged(values).own] == [0]


@pytest.mark.parametrize("records", [1, 2, 3])
def test_a_short_history_has_no_alarm(records):
    values = history(10, records=records)
    values[0, -1:] *= 3
    found = judged(values)
    assert (found.own, found.common, found.joint) == ((), (), ())


def test_two_scales_have_no_growth_and_no_target():
    assert questions(SCALES[:1], 100.0) == (ALL,)
    assert questions(SCALES[:2], 100.0) == (ALL, LARGEST)
    assert questions(SCALES, None) == (ALL, LARGEST, GROWTH)


def test_call_paths_that_come_and_go_are_no_error():
    values = history(11)
    values[0, 10:] = np.nan
    values[1, :40] = np.nan
    values[2, ::2] = np.nan
    values[3] = 0
    assert judged(values).own == ()


def test_odd_repetitions_are_no_change():
    """One run in five is slower by half, of a few call paths: the median of three may be odd."""
    named = 0
    for seed in range(8):
        values = history(seed, own=0.01, shared=0.0)
        odd = np.random.default_rng([seed, 1]).random((3, *values.shape[1:])) < 0.2
        values[:3] *= np.where(odd, 1.5, 1.0)
        named += bool(judged(values).own)
    assert named <= 1


def allowed(number, rate=RULE.false_alarms):
    """Return the largest number of histories with a false alarm: the rate + 2 standard errors."""
    return number * rate + 2 * np.sqrt(number * rate * (1 - rate))


@pytest.mark.parametrize("number", [3, 10])
def test_histories_without_a_change_have_no_more_false_alarms_with_a_control(number):
    """Own noise of 1, 3 and 10 %, common noise of 0, 5 and 10 %."""
    named, cells = 0, [(own, shared) for own in (0.01, 0.03, 0.1) for shared in (0.0, 0.05, 0.1)]
    for own, shared in cells:
        for seed in range(2):
            values = history([seed, number], own=own, shared=shared)
            found = judged(values, control=of(number))
            named += bool(found.own or found.program)
    assert named <= allowed(2 * len(cells))


@pytest.mark.parametrize("number", [3, 10])
def test_an_upgrade_that_moves_the_control_too_is_no_change_of_the_program(
    number,
):
    """A factor of few call paths is sure only as far as they agree."""
    named, histories = 0, 8
    for seed in range(histories):
        values = history([seed, number], own=0.01, shared=0.05)
        slower = np.random.default_rng([seed, 7]).normal(0.08, 0.03, (30, 1, 1, 1))
        values[:, 25:] *= np.exp(slower)
        named += bool(judged(values, control=of(number)).program)
    assert named <= allowed(histories)


@pytest.mark.parametrize(("number", "own"), [(3, 0.01), (10, 0.1)])
def test_a_slower_program_beside_a_quiet_control_is_named_within_three_records(number, own):
    soon = 0
    for seed in range(8):
        values = history([seed, number], records=33, own=0.01, shared=0.05)
        random, shape = np.random.default_rng([seed, 5]), values[~of(number)].shape
        values[~of(number)] *= np.exp(own * random.standard_normal(shape))
        values[~of(number), 30:] *= 1.2
        found = judged(values, control=of(number))
        soon += any(each.is_worse and 30 <= each.raised <= 32 for each in found.program)
    assert soon >= 7


def test_a_slower_program_is_no_change_of_the_program_if_the_control_shares_it():
    values = history(1, shared=0.02)
    values[:, 25:] *= 1.2
    found = judged(values, control=of(6))
    assert (found.own, found.program) == ((), ())
    assert [each.is_worse for each in found.common] == [True]


def test_the_size_of_a_change_of_the_program_is_relative_to_the_control():
    values = history(2, own=0.02, shared=0.05)
    values[:, 20:] *= 0.9
    values[~of(8), 30:] *= 1.2
    (change,) = judged(values, control=of(8)).program
    assert change.leading.earliest <= 30 <= change.leading.latest
    assert change.answers[ALL].low < np.log(1.2) < change.answers[ALL].high


def test_one_slower_call_path_is_named_beside_a_control_and_slows_the_program():
    values = history(3)
    row = int(np.argmax(values[:20, 0, -1].mean(axis=-1)))
    values[row, 30:] *= 1.5
    found = judged(values, control=of(8))
    assert [each.row for each in found.own] == [row]
    (change,) = found.program
    cost = values[:22].sum(axis=0).mean(axis=(1, 2))
    size = np.log(cost[30:].mean() / cost[:30].mean())
    assert change.answers[ALL].low < size < change.answers[ALL].high
    assert 0 < size < np.log(1.5) / 2


@pytest.mark.parametrize("number", [3, 10])
def test_a_third_of_the_call_paths_that_become_slower_are_a_slower_program(number):
    """They are too many to be named on their own, and too few to move the median."""
    soon = 0
    for seed in range(8):
        values = history([seed, number], records=33, own=0.02, shared=0.05)
        random = np.random.default_rng([seed, 9])
        rows = random.choice(np.flatnonzero(~of(number)), 9, replace=False)
        values[rows, 30:] *= random.uniform(1.3, 1.7, (9, 1, 1, 1))
        found = judged(values, control=of(number))
        soon += any(each.is_worse and 30 <= each.raised <= 32 for each in found.program)
    assert soon >= 7


@pytest.mark.parametrize(("number", "own"), [(3, 0.03), (10, 0.1)])
def test_the_slowdown_that_a_control_is_said_to_show_is_named_and_half_of_it_is_not(number, own):
    named = dict.fromkeys((0.5, 1.0, 2.0), 0)
    for seed in range(8):
        values = history([seed, number], records=33, own=own, shared=0.05)
        before = judged(values[:, :30], control=of(number))
        least = least_program_change(before, RULE, number)
        for share in named:
            later = values.copy()
            later[~of(number), 30:] *= np.exp(share * least)
            found = judged(later, control=of(number)).program
            named[share] += any(each.is_worse and each.raised >= 30 for each in found)
    assert named[0.5] <= 3
    assert named[1.0] >= 5
    assert named[2.0] == 8


def test_a_new_call_path_slows_the_program():
    values = history(6, own=0.01, shared=0.05)
    values[0] *= 0.2 / values[0].mean() * values[1:].sum(axis=0).mean()
    values[0, :30] = np.nan
    (change,) = judged(values, control=of(8)).program
    assert change.is_worse
    assert change.leading.earliest <= 30 <= change.leading.latest


NULLS = ("odd nights", "correlated", "a third of the call paths")


def null(kind, seed, records=45, rows=20):
    """Return a history in which no call path changes on its own, with one kind of noise."""
    random = np.random.default_rng([seed, 31])
    logs = 0.02 * random.standard_normal((rows, records, len(SCALES), 3))
    if kind == "odd nights":
        logs += np.where(random.random((rows, records, 1, 1)) < 0.05, np.log(1.12), 0.0)
    elif kind == "correlated":
        steps = 0.03 * random.standard_normal((rows, records, 1, 1))
        steps[:, 1:] *= np.sqrt(1 - 0.8**2)
        for record in range(1, records):
            steps[:, record] += 0.8 * steps[:, record - 1]
        logs += steps
    else:
        logs[: rows // 3, 25:] += np.log(1.1)
    return np.exp(logs) * random.uniform(0.1, 1.0, (rows, 1, 1, 1))


def test_noise_that_histories_show_names_no_call_path():
    """False names are at most the stated rate and two standard errors."""
    histories = [(kind, seed) for kind in NULLS for seed in range(8)]
    blamed = [
        bool(found.own) or any(each.is_few for each in found.joint)
        for found in (judged(null(*each), target=None) for each in histories)
    ]
    assert sum(blamed) <= allowed(len(histories))


def together(paths, factors, seed=3, machines=None, control=None):
    """Return the judgement of 13 records, at the tenth of which call paths become slower."""
    random = np.random.default_rng(seed)
    values = np.exp(0.02 * random.standard_normal((paths, 13, 3, 3)))
    values *= np.arange(1.0, paths + 1)[:, None, None, None]
    values[: len(factors), 9:] *= np.reshape(factors, (-1, 1, 1, 1))
    return judge(values, SCALES[:3], None, RULE, control, machines)


@pytest.mark.parametrize(
    ("paths", "factors"), [(8, (1.5, 1.9)), (12, (1.5, 1.9)), (20, (1.5, 1.9, 2.3))]
)
def test_few_call_paths_beside_unchanged_ones_are_worse_as_a_group(paths, factors):
    found = together(paths, factors)
    assert found.own == ()
    (group,) = found.joint
    assert group.is_few
    assert group.rows.tolist() == [*range(len(factors))]
    assert group.earliest <= 9 <= group.latest


def test_a_third_of_the_call_paths_by_one_factor_is_probably_the_machine():
    for paths, number in ((8, 3), (12, 4), (20, 7)):
        found = together(paths, (1.1,) * number)
        assert found.own == ()
        assert [(each.is_few, each.is_alike) for each in found.joint] == [(False, True)]


def test_few_call_paths_are_named_if_the_machine_is_known_to_be_the_same():
    same, other = np.zeros(13, int), np.repeat([0, 1], [9, 4])
    assert {each.row for each in together(12, (1.5, 1.9), machines=same).own} == {0, 1}
    assert together(12, (1.5, 1.9), machines=other).own == ()
    control = np.arange(12) >= 6
    assert {each.row for each in together(12, (1.5, 1.9), control=control).own} == {0, 1}


def test_a_change_at_all_scales_is_named_though_the_largest_one_is_noisy():
    soon = 0
    for seed in range(6):
        random = np.random.default_rng([seed, 41])
        noise = np.array([0.02, 0.04, 0.08, 0.16])[:, None]
        values = np.exp(noise * random.standard_normal((12, 35, 4, 3)))
        values[5, 30:] *= 1.2
        found = judged(values, target=None)
        soon += any(each.row == 5 and each.raised <= 32 for each in found.own)
    assert soon >= 5
