from __future__ import annotations

import csv
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from cells import cells
from cpmodel_guidelines.statistics.permutations import (
    Control,
    adjusted,
    permutation_test,
    smallest_rate,
)
from cpmodel_guidelines.statistics.two_sample_tests import (
    exact_rank_chances,
    mean_chances,
    midranks,
    rank_sum_chances,
    smirnov_chances,
    welch_chances,
)

GUIDELINES, SIZES = 15, 21


def samples(seed, ties=False):
    rng = np.random.default_rng(seed)
    left, right = rng.lognormal(size=(2, 40, 10))
    if ties:
        left, right = np.round(left, 0), np.round(right, 0)
    left[rng.random(left.shape) < 0.2] = np.nan
    return left, right


# Tests of one check.


@pytest.mark.parametrize("ties", [False, True])
def test_the_rank_sum_test_is_the_published_one(ties):
    left, right = samples(1, ties)
    found = rank_sum_chances(left, right)
    for a, b, p in zip(left, right, found, strict=True):
        known = stats.mannwhitneyu(
            a[~np.isnan(a)], b, alternative="greater", method="asymptotic", use_continuity=True
        ).pvalue
        assert p == pytest.approx(known, rel=1e-9)


def test_the_test_of_means_is_that_of_welch():
    left, right = samples(3)
    known = stats.ttest_ind(
        np.log(left), np.log(right), axis=1, equal_var=False, alternative="greater",
        nan_policy="omit",
    )  # fmt: skip
    np.testing.assert_allclose(welch_chances(left, right), known.pvalue, rtol=1e-8)


def test_means_without_scatter_are_not_tested():
    assert np.isnan(welch_chances(np.full((1, 5), 2.0), np.ones((1, 5))))
    assert np.isnan(welch_chances(np.full((1, 1), 2.0), np.ones((1, 5))))


@cells(("n", "m"), [(1, 1), (2, 9), (5, 5), (10, 10), (30, 30)])
def test_the_exact_test_of_ranks_is_that_of_mann_and_whitney(n, m):
    rng = np.random.default_rng(n)
    left, right = rng.normal(0.4, 1, (20, n)), rng.normal(0, 1, (20, m))
    known = [
        stats.mannwhitneyu(a, b, alternative="greater", method="exact").pvalue
        for a, b in zip(left, right, strict=True)
    ]
    np.testing.assert_allclose(exact_rank_chances(left, right), known, rtol=1e-9)


def test_the_exact_test_of_ranks_counts_missing_and_equal_values():
    left = np.array([[3.0, 4.0, np.nan], [1.0, 1.0, 1.0], [np.nan, np.nan, np.nan]])
    right = np.array([[1.0, 2.0, np.nan], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    found = exact_rank_chances(left, right)
    np.testing.assert_allclose(found, [1 / 6, 1.0, np.nan])


def test_two_typical_times_of_mpiruns_are_no_evidence_beyond_their_divisions():
    # Five fast and five slow mpiruns are divided in this way once in 252 times.
    left, right = np.array([[8.0, 8.01, 8.02, 8.01, 8.0]]), np.array([[4.0, 4.01, 4.0, 4.01, 4.0]])
    assert welch_chances(left, right) < 1e-8
    assert mean_chances(left, right) == pytest.approx(1 / 252)


@pytest.mark.parametrize("runs", [5, 10])
def test_means_keep_their_rate_if_mpiruns_have_two_typical_times(runs):
    rng = np.random.default_rng(5)
    times = np.where(rng.random((4000, 2 * runs)) < 0.5, 1.0, 1.5)
    times *= np.exp(0.002 * rng.standard_normal(times.shape))
    left, right = times[:, :runs], times[:, runs:]
    level = 1e-3 if runs == 10 else 1 / 252
    assert (mean_chances(left, right) <= level).mean() <= level + 2 * np.sqrt(level / 4000)


def test_a_rank_sum_of_equal_or_missing_values_is_no_test():
    assert np.isnan(rank_sum_chances(np.ones((1, 5)), np.ones((1, 5))))
    assert np.isnan(rank_sum_chances(np.full((1, 5), np.nan), np.ones((1, 5))))


def test_five_mpiruns_have_a_smallest_rank_sum():
    high, low = np.arange(6.0, 11.0)[None], np.arange(1.0, 6.0)[None]
    assert rank_sum_chances(high, low)[0] == pytest.approx(0.0061, abs=5e-5)


@pytest.mark.parametrize("ties", [False, True])
def test_the_other_test_is_that_of_kolmogorov_and_smirnov(ties):
    left, right = samples(2, ties)
    for a, b, p in zip(left, right, smirnov_chances(left, right), strict=True):
        present = a[~np.isnan(a)]
        known = stats.ks_2samp(present, b, alternative="less")
        distance = known.statistic if known.statistic_sign < 0 else 0.0
        n, m = len(present), len(b)
        assert p == pytest.approx(np.exp(-2 * distance**2 * n * m / (n + m)))


def test_equal_values_share_their_mean_rank():
    values = np.array([[3.0, 1.0, 3.0, np.nan, 2.0, 3.0]])
    known = stats.rankdata(values, axis=1, nan_policy="omit")
    np.testing.assert_array_equal(midranks(values), known)


# Many checks.


def test_holm_is_as_published():
    chance = np.array([0.01, 0.04, np.nan, 0.03, 0.005])
    found = adjusted(chance, Control.HOLM, np.zeros(5, int))
    np.testing.assert_allclose(found, [0.03, 0.06, np.nan, 0.06, 0.02])
    assert adjusted(np.full(3, 0.9), Control.HOLM, np.zeros(3, int)).tolist() == [1.0] * 3


def test_kinds_of_guidelines_share_the_error_rate_of_holm():
    found = adjusted(np.array([0.01, 0.01, 0.01]), Control.HOLM, np.array([0, 0, 1]))
    assert found.tolist() == pytest.approx([0.04, 0.04, 0.02])


def test_false_discoveries_are_those_of_benjamini_and_hochberg():
    chance = np.random.default_rng(0).random(50) ** 3
    found = adjusted(chance, Control.DISCOVERY, np.zeros(50, int))
    np.testing.assert_allclose(found, stats.false_discovery_control(chance))


def null(rng, runs, correlation, deviation=0.1):
    """Return medians of mpiruns that correlate over sizes, [guidelines * sizes, runs]."""
    common = rng.standard_normal((GUIDELINES, 1, runs))
    own = rng.standard_normal((GUIDELINES, SIZES, runs))
    scatter = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    return np.exp(deviation * scatter).reshape(-1, runs)


def judged(left, right, rate=0.05, **options):
    rows = np.arange(len(left)).reshape(GUIDELINES, -1)
    return permutation_test(left, right, np.ones(len(left), bool), [*rows], rate, **options)


def flagged(found, rate=0.05):
    rates = np.concatenate([found.rate, found.means])
    return bool((np.nan_to_num(rates, nan=1.0) <= rate).any())


@pytest.mark.parametrize(("runs", "correlation"), [(5, 0.9), (10, 0.0)])
def test_a_library_that_meets_all_guidelines_is_rarely_flagged(runs, correlation):
    rng, count = np.random.default_rng(7), 100
    times = sum(
        flagged(judged(null(rng, runs, correlation), null(rng, runs, correlation)))
        for _ in range(count)
    )
    assert times / count <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / count)


def test_means_of_separate_sizes_would_be_flagged_too_often():
    # The method that this one replaces: sizes are taken as independent.
    rng, times = np.random.default_rng(7), 0
    for _ in range(40):
        logs = np.log(null(rng, 5, 0.9)) - np.log(null(rng, 5, 0.9))
        ratios = logs.mean(axis=1).reshape(GUIDELINES, SIZES)
        error = logs.std(axis=1, ddof=1).reshape(GUIDELINES, SIZES) / np.sqrt(5)
        z = ratios.mean(axis=1) / (np.sqrt((error**2).sum(axis=1)) / SIZES)
        times += bool((stats.norm.sf(z) * GUIDELINES <= 0.05).any())
    assert times > 20


@pytest.mark.parametrize(("where", "slower"), [("one", 1.5), ("all", 1.15)])
def test_violations_are_found_at_one_size_and_at_all_sizes(where, slower):
    rng, found = np.random.default_rng(3), 0
    for _ in range(20):
        left = null(rng, 10, 0.5, 0.05)
        left[slice(0, 1 if where == "one" else SIZES)] *= slower
        done = judged(left, null(rng, 10, 0.5, 0.05))
        found += bool((done.rate[0] if where == "one" else done.means[0]) <= 0.05)
    assert found >= 18


def test_few_mpiruns_show_nothing():
    rng = np.random.default_rng(0)
    left, right = null(rng, 3, 0.5), null(rng, 3, 0.5)
    found = judged(100 * left, right)
    assert np.isnan(found.rate).all()
    assert smallest_rate(3, 3) > 0.05 >= smallest_rate(4, 4)


def test_much_faster_sides_neither_hide_a_violation_nor_make_one():
    found, false, count = 0, 0, 60
    for seed in range(count):
        rng = np.random.default_rng(seed)
        left, right = null(rng, 5, 0.0, 0.02), null(rng, 5, 0.0, 0.02)
        left[SIZES:] *= 0.01
        left[0] *= 2.0
        done = judged(left, right)
        found += bool(done.rate[0] <= 0.05)
        false += bool((done.rate[1:] <= 0.05).any())
    assert found == count
    assert false / count <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / count)


def test_every_number_of_mpiruns_is_permuted_by_itself():
    rng = np.random.default_rng(0)
    left, right = null(rng, 10, 0.5, 0.05), null(rng, 10, 0.5, 0.05)
    left[::2, 6:], right[1::3, 8:] = np.nan, np.nan
    left[0] *= 1.6
    found = judged(left, right)
    assert found.rate[0] <= 0.05
    assert not (np.delete(found.rate, 0) <= 0.05).any()


def test_exhaustive_permutations_are_those_by_hand():
    left, right = np.array([[4.0, 5.0, 7.0, 6.0]]), np.array([[1.0, 2.0, 3.0, 2.5]])
    found = permutation_test(left, right, np.ones(1, bool), [np.array([0])], 0.05)
    # Complete separation is one of 70 labellings, and its exchange is as extreme.
    assert found.rate[0] == pytest.approx(2 / 70)
    assert np.isnan(found.means[0])


def test_equal_sides_without_scatter_are_no_violation():
    found = judged(np.ones((30, 5)), np.ones((30, 5)))
    assert not flagged(found)


def test_ranks_are_permuted_too():
    rng = np.random.default_rng(5)
    left, right = null(rng, 10, 0.5, 0.05), null(rng, 10, 0.5, 0.05)
    left[0] *= 3.0
    left[5, 0] *= 1e6
    found = judged(left, right, by_ranks=True)
    assert found.rate[0] <= 0.05
    assert found.rate[5] > 0.05


def test_halves_of_measured_mpiruns_are_not_slower_than_each_other(shared_data):
    """Divide the mpiruns of a campaign in some of the 252 ways: nothing differs but the mpiruns."""
    home = shared_data / "mpi_guidelines" / "openmpi414_p4" / "results" / "summary.csv"
    medians = {}
    with home.open() as file:
        for row in csv.DictReader(file):
            if row["test"] in {"MPI_Bcast", "MPI_Scatter", "MPI_Scan", "MPI_Gather"}:
                cell = medians.setdefault((row["test"], row["msize"]), [np.nan] * 10)
                cell[int(row["nexp"]) - 1] = float(row["tmedian"])
    table, names = np.array([*medians.values()]), np.array([name for name, _ in medians])
    rows = [np.flatnonzero(names == name) for name in np.unique(names)]
    halves = [*combinations(range(10), 5)][::6]
    times, published = 0, 0
    for half in halves:
        left, right = table[:, half], np.delete(table, half, axis=1)
        found = permutation_test(left, right, np.ones(len(table), bool), rows, 0.05)
        times += flagged(found)
        published += bool((rank_sum_chances(left, right) <= 0.05).any())
    assert times / len(halves) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(halves))
    # The published method takes each check on its own.
    assert published / len(halves) > 0.3
