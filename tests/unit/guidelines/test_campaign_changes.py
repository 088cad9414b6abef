from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from callpath_modeler.errors import DataError
from callpath_modeler.studies.data_frame import from_frame
from cells import cells
from cpmodel_guidelines.answer import Method
from cpmodel_guidelines.answer import Test as Kind
from cpmodel_guidelines.benchmark import benchmark_of
from cpmodel_guidelines.changes.comparison import VerdictChange, change_of, compare
from cpmodel_guidelines.judge import GuidelineVerdict
from cpmodel_guidelines.rules import patterns
from cpmodel_guidelines.statistics.permutations import Control
from cpmodel_guidelines.statistics.two_sample_tests import two_sided, welch_interval
from cpmodel_guidelines.verification import verify

SIZES = (8, 64, 512, 4096)
HELD, BROKEN, OPEN = GuidelineVerdict.HOLDS, GuidelineVerdict.VIOLATED, GuidelineVerdict.OPEN


def verified(times, *, seed, noise=0.02, mpiruns=8, processes=(4,), library="", method=None):
    """Return the verdicts on a campaign of a law (function, size) -> µs."""
    rng = np.random.default_rng(seed)
    rows = [
        {"call": f"{library}/MPI_{name}" if library else f"MPI_{name}", "p": p, "size": size,
         "repetition": run, "latency_us": times(name, size) * np.exp(noise * rng.normal())}
        for name in ("Reduce", "Bcast", "Allreduce")
        for p in processes
        for size in SIZES
        for run in range(1, mpiruns + 1)
    ]  # fmt: skip
    made = from_frame(
        pd.DataFrame(rows), callpath="call", parameters=["p", "size"], repetition="repetition",
        metrics={"latency_us": "us"},
    )  # fmt: skip
    return verify(benchmark_of(made), patterns(), method=method)


def law(factor=1.0, at=SIZES):
    """Return a law in which Allreduce is slower by a factor at some sizes."""

    def times(name, size):
        base = {"Reduce": 5.0, "Bcast": 4.0, "Allreduce": 7.5}[name] * (1 + 0.01 * size)
        return base * (factor if name == "Allreduce" and size in at else 1.0)

    return times


def changes_of(found, text="Allreduce <= Reduce + Bcast"):
    (found_row,) = [each for each in found.guidelines if each.guideline.text == text]
    at = {dict(found.pairs[k].setting)["size"]: found.pairs[k].change for k in found_row.pairs}
    return found_row.change, at


@cells(
    ("before", "after", "is_larger", "change"),
    [
        (HELD, BROKEN, False, "new"), (OPEN, BROKEN, True, "new"),
        (OPEN, BROKEN, False, "newly shown"), (BROKEN, BROKEN, True, "still violated"),
        (BROKEN, HELD, False, "mended"), (BROKEN, OPEN, False, "no longer shown"),
        (HELD, HELD, False, "holds"), (HELD, OPEN, True, "not decided"),
        (OPEN, HELD, False, "not decided"), (OPEN, OPEN, False, "not decided"),
    ],
)  # fmt: skip
def test_changes_of_verdicts(before, after, is_larger, change):
    assert change_of(before, after, is_larger=is_larger) == change


def test_a_violation_at_some_sizes_is_new_there_and_its_left_side_slower():
    found = compare(verified(law(), seed=1), verified(law(1.6, at=(64, 512)), seed=2))
    change, at = changes_of(found)
    assert change is VerdictChange.NEW
    assert {size for size, each in at.items() if each is VerdictChange.NEW} == {64, 512}
    (slower,) = found.slower()
    assert slower.function == "Allreduce"
    assert [dict(slower.settings[k])["size"] for k, row in enumerate(slower.rows)
            if found.times.larger[row]] == [64, 512]  # fmt: skip
    for row in slower.rows[1:3]:
        assert found.times.low[row] < 1.6 < found.times.high[row]
    assert found.faster() == []
    assert found.fails(worse=False)


def test_a_mended_guideline_is_not_a_failure():
    found = compare(verified(law(1.6), seed=1), verified(law(), seed=2))
    assert changes_of(found)[0] is VerdictChange.MENDED
    assert [each.function for each in found.faster()] == ["Allreduce"]
    assert not found.fails(worse=True)


def test_a_violation_that_stays_is_not_new():
    found = compare(verified(law(1.6), seed=1), verified(law(1.6), seed=2))
    assert changes_of(found)[0] is VerdictChange.STILL
    assert not found.fails(worse=True)


def test_a_slower_library_without_a_violation_only_fails_for_worse_times():
    def slow(name, size):
        return 1.5 * law()(name, size)

    found = compare(verified(law(), seed=1), verified(slow, seed=2))
    assert len(found.slower()) == 3
    assert not found.fails(worse=False)
    assert found.fails(worse=True)


def test_a_small_change_at_all_sizes_is_found_in_their_mean():
    before, after = (verified(law(f), seed=s, noise=0.08) for f, s in ((1.0, 3), (1.13, 4)))
    found = compare(before, after)
    (allreduce,) = [each for each in found.functions if each.function == "Allreduce"]
    assert found.means.larger[allreduce.number]
    assert found.means.low[allreduce.number] < 1.13 < found.means.high[allreduce.number]
    assert allreduce in found.slower()


@pytest.mark.parametrize("method", [
    Method(Kind.MEANS, Control.PERMUTATION), Method(Kind.RANK_SUM, Control.PERMUTATION),
    Method(Kind.MEANS, Control.HOLM), Method(Kind.MEANS, Control.DISCOVERY),
])  # fmt: skip
def test_each_control_finds_a_large_change_and_none_in_equal_campaigns(method):
    before = verified(law(), seed=1, method=method)
    assert compare(before, verified(law(1.6), seed=2, method=method)).fails(worse=False)
    same = compare(before, verified(law(), seed=5, method=method))
    assert same.slower() == same.faster() == []
    assert not same.fails(worse=True)


def test_equal_campaigns_seldom_have_any_change():
    wrong = 0
    for seed in range(20):
        found = compare(
            verified(law(1.04), seed=2 * seed, noise=0.1, mpiruns=6),
            verified(law(1.04), seed=2 * seed + 1, noise=0.1, mpiruns=6),
        )
        wrong += bool(found.slower() or found.faster() or found.fails(worse=True))
    # 5 % of 20 are 1; more than 4 have a probability below 0.3 %.
    assert wrong <= 4


def test_numbers_of_mpiruns_may_differ():
    found = compare(verified(law(), seed=1, mpiruns=10), verified(law(1.6), seed=2, mpiruns=6))
    assert found.is_tested
    assert [each.function for each in found.slower()] == ["Allreduce"]


def test_single_mpiruns_have_verdicts_of_models_and_no_tests():
    scales = (4, 8, 16, 32, 64)
    found = compare(*(
        verified(law(f), seed=1, mpiruns=1, processes=scales, noise=0.001) for f in (1.0, 1.6)
    ))  # fmt: skip
    assert not found.is_tested
    assert found.slower() == []
    assert np.isnan(found.times.rate).all()
    assert changes_of(found, "Allreduce <= Reduce + Bcast")[0] is VerdictChange.NEW


def test_what_only_one_campaign_has_is_reported():
    found = compare(
        verified(law(), seed=1, processes=(4, 8)), verified(law(), seed=2, processes=(4, 16))
    )
    assert found.only_before == tuple(sorted(f"p = 8, size = {size}" for size in SIZES))
    assert found.only_after == tuple(sorted(f"p = 16, size = {size}" for size in SIZES))
    assert {dict(pair.setting)["p"] for pair in found.pairs} == {4}


def test_libraries_without_a_common_name_are_an_error():
    with pytest.raises(DataError, match="no library in common: MPICH and Open MPI"):
        compare(verified(law(), seed=1, library="MPICH"),
                verified(law(), seed=1, library="Open MPI"))  # fmt: skip


def test_welch_interval_covers_the_true_ratio():
    rng = np.random.default_rng(1)
    left = 2 * np.exp(0.1 * rng.standard_normal((2000, 6)))
    right = np.exp(0.3 * rng.standard_normal((2000, 9)))
    difference, low, high = welch_interval(left, right, 0.95)
    covered = ((low <= np.log(2)) & (np.log(2) <= high)).mean()
    assert 0.93 < covered < 0.97
    assert difference.mean() == pytest.approx(np.log(2), abs=0.02)
    assert np.isnan(welch_interval(left[:, :1], right, 0.95)[1]).all()


def test_two_sided_chances_double_the_smaller_one():
    assert two_sided(np.array([0.01, 0.9, 0.6]), np.array([0.99, 0.1, 0.6])).tolist() == [
        0.02, 0.2, 1.0,
    ]  # fmt: skip
