"""Streaming reductions, compared with brute force, for every variant of the format."""

from __future__ import annotations

import itertools
import tracemalloc
import warnings

import numpy as np
import pytest
from brute_force import OVER, reduce, reduce_longest

import cube_writer as cw
from callpath_modeler.profile.schema import COMPUTED, Reduction
from callpath_modeler.readers.reductions import is_plain, statistic_of_present
from cells import cells
from cpmodel_scorep import CubexReader, rows, stream

ALL = list(COMPUTED)


def metrics_for(tree, machine, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    n, columns = len(tree), machine.locations
    present = rng.random(n) > 0.4 if missing else None
    counts = rng.integers(0, 50, (n, columns)).astype(float)
    if missing:
        counts[~present] = 0
    cost = rng.random((n, columns)) + 0.1
    return [
        cw.MetricToWrite("visits", counts, dtype="UINT64", present=present),
        cw.MetricToWrite("time", tree.subtree_sums(cost), "INCLUSIVE", unit="sec"),
        cw.MetricToWrite("work", cost, unit="usec"),
        cw.MetricToWrite("ins", tree.subtree_sums(counts), "INCLUSIVE", "UINT64", unit="#"),
    ]


def expected(metric, tree, machine, reduction, totals):
    """Return the exclusive value per call path and the total of the roots, by brute force.

    Times are those of the longest threads, by the `totals` of the columns.
    """
    values = metric.values
    exclusive = values - tree.children_sums(values) if metric.kind == "INCLUSIVE" else values
    exclusive = np.where(np.abs(exclusive) < 1e-12, 0, exclusive)
    is_time = metric.unit in {"sec", "usec"}
    scale = 1e-6 if metric.unit == "usec" else 1.0

    def reduced(cells):
        if is_time:
            return reduce_longest(cells, machine, reduction, totals)
        return reduce(cells, machine, reduction, OVER["sum"])

    inclusive = values if metric.kind == "INCLUSIVE" else tree.subtree_sums(values)
    roots = [row for row, parent in enumerate(tree.parents) if parent < 0]
    total = reduced(inclusive[roots].sum(axis=0)[np.newaxis])[0]
    ratio = 1.0 if reduction is Reduction.IMBALANCE else scale
    return reduced(exclusive) * ratio, total * ratio


def check(path, tree, metrics, machine, reductions=ALL):
    time = next(metric for metric in metrics if metric.name == "time")
    totals = time.values[[row for row, parent in enumerate(tree.parents) if parent < 0]].sum(axis=0)
    with CubexReader().open(path) as profile:
        assert len(profile.call_tree) == len(tree)
        for metric, reduction in itertools.product(metrics, reductions):
            exclusive, total = expected(metric, tree, machine, reduction, totals)
            got = profile.reduce(metric.name, reduction)
            about = f"{metric.name} {reduction}"
            np.testing.assert_allclose(got.exclusive, exclusive, 1e-9, 1e-12, err_msg=about)
            assert got.total == pytest.approx(total, rel=1e-9, nan_ok=True), about
            if len(machine.threads) == 1 or reduction is Reduction.IMBALANCE:
                assert got.imbalance is None
                continue
            uneven, _ = expected(metric, tree, machine, Reduction.IMBALANCE, totals)
            np.testing.assert_allclose(got.imbalance, uneven, 1e-6, err_msg=about)
        assert not profile.findings() or machine.gpus


MACHINES = {
    "one thread per process": cw.Machine([1] * 5),
    "two threads per process": cw.Machine([2, 2, 2]),
    "unequal numbers of threads": cw.Machine([3, 1, 2]),
    "accelerator streams beside threads": cw.Machine([2, 2], gpus=1),
    "shuffled location ids": cw.Machine([2, 2, 1], ids=[0, 3, 1, 2, 4]),
    "location ids with gaps": cw.Machine([1, 1, 1], ids=[10, 30, 20]),
}


@cells("machine", MACHINES.values())
def test_reductions_equal_brute_force_on_every_shape_of_machine(tmp_path, machine):
    tree = cw.random_tree(40, roots=2, seed=3)
    metrics = metrics_for(tree, machine)
    check(cw.write(tmp_path / "a.cubex", tree, metrics, machine), tree, metrics, machine)


VARIANTS = list(
    itertools.product(
        ("raw", "zlib"), ("sparse", "dense"), "<>", (1, 3), (False, True), (False, True)
    )
)


@cells(("codec", "index", "endian", "roots", "missing", "gz"), VARIANTS)
def test_reductions_equal_brute_force_in_every_encoding(
    tmp_path, codec, index, endian, roots, missing, gz
):
    tree = cw.random_tree(30, roots=roots, seed=roots)
    machine = cw.Machine([2, 1, 2], ids=[0, 2, 1, 4, 3])
    metrics = metrics_for(tree, machine, seed=roots, missing=missing)
    tail = "cube" if missing else "tar"
    path = tmp_path / "a.cubex"
    cw.write(
        path, tree, metrics, machine, codec=codec, index=index, endian=endian, gz=gz, tail=tail
    )
    check(path, tree, metrics, machine)


@cells("codec", ["raw", "zlib"])
@cells("sparse_sums", [False, True])
@cells("block", [1, 200, 1000])
def test_families_may_reach_over_any_number_of_blocks(
    tmp_path, monkeypatch, codec, sparse_sums, block
):
    monkeypatch.setattr(rows, "BLOCK_BYTES", block)
    monkeypatch.setattr(stream, "_SPARSE_PAYS", 0 if sparse_sums else 1 << 30)
    tree = cw.random_tree(60, roots=2, seed=5)
    machine = cw.Machine([1] * 4)
    metrics = metrics_for(tree, machine)
    path = cw.write(tmp_path / "a.cubex", tree, metrics, machine, codec=codec)
    check(path, tree, metrics, machine, [Reduction.MAX, Reduction.SUM])


def test_rows_that_are_not_stored_are_zero(tmp_path):
    tree = cw.Tree([-1, 0, 0], ["main", "a", "b"])
    machine = cw.Machine([1, 1])
    present = np.array([True, False, True])
    values = np.array([[5.0, 6.0], [0, 0], [2.0, 3.0]])
    metrics = [cw.MetricToWrite("time", values, "INCLUSIVE", unit="sec", present=present)]
    with CubexReader().open(cw.write(tmp_path / "a.cubex", tree, metrics, machine)) as profile:
        got = profile.reduce("time", Reduction.SUM)
    assert got.exclusive.tolist() == [6.0, 0.0, 5.0]
    assert got.total == 11.0


def test_a_metric_without_any_row_is_zero_and_its_imbalance_unknown(tmp_path):
    tree, machine = cw.Tree([-1, 0], ["main", "a"]), cw.Machine([1, 1])
    empty = cw.MetricToWrite("bytes_put", np.zeros((2, 2)), present=np.zeros(2, bool))
    members = cw.members_of(tree, [empty], machine)
    absent = [member for member in members if member[0] == "anchor.xml"]
    for number, chosen in enumerate((members, absent)):
        with CubexReader().open(cw.pack(tmp_path / f"{number}.cubex", chosen)) as profile:
            got = profile.reduce("bytes_put", Reduction.SUM)
            assert got.exclusive.tolist() == [0, 0]
            assert got.total == 0
            assert np.isnan(profile.reduce("bytes_put", Reduction.IMBALANCE).exclusive).all()


def test_inclusive_values_equal_brute_force(tmp_path):
    tree = cw.random_tree(50, roots=2, seed=9)
    machine = cw.Machine([1, 1, 1])
    metrics = metrics_for(tree, machine, missing=True)
    path = cw.write(tmp_path / "a.cubex", tree, metrics, machine)
    with CubexReader().open(path) as profile:
        for metric in metrics:
            stored = metric.values
            inclusive = stored if metric.kind == "INCLUSIVE" else tree.subtree_sums(stored)
            scale = 1e-6 if metric.unit == "usec" else 1
            got = profile.inclusive(metric.name, Reduction.MAX)
            np.testing.assert_allclose(got, inclusive.max(axis=1) * scale, 1e-12)
            cells = profile.per_location(metric.name, inclusive=True)
            np.testing.assert_allclose(cells, inclusive * scale, 1e-12)


def test_minima_of_unvisited_call_paths_are_unknown_and_extremes_do_not_add_up(tmp_path):
    tree, machine = cw.Tree([-1, 0, 0], ["main", "a", "b"]), cw.Machine([1, 1])
    visits = np.array([[1.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
    low = np.array([[9.0, 8.0], [0.0, 2.0], [0.0, 0.0]])
    metrics = [
        cw.MetricToWrite("visits", visits, dtype="UINT64"),
        cw.MetricToWrite("min_time", low, dtype="MINDOUBLE", unit="sec"),
        cw.MetricToWrite("max_time", low, dtype="MAXDOUBLE", unit="sec"),
    ]
    with CubexReader().open(cw.write(tmp_path / "a.cubex", tree, metrics, machine)) as profile:
        assert [metric.metric.additive for metric in profile.metrics] == [True, False, False]
        got = profile.reduce("min_time", Reduction.MIN)
        np.testing.assert_array_equal(got.exclusive, [8.0, 2.0, np.nan])
        assert np.isnan(got.total)
        assert profile.reduce("max_time", Reduction.MAX).exclusive.tolist() == [9.0, 2.0, 0.0]


def test_values_that_are_not_finite_count_as_missing(tmp_path):
    tree, machine = cw.Tree([-1, 0, 0], ["main", "a", "b"]), cw.Machine([1, 1])
    values = np.array([[1.0, 4.0], [np.nan, 2.0], [np.inf, -np.inf]])
    metrics = [cw.MetricToWrite("work", values, unit="sec")]
    with CubexReader().open(cw.write(tmp_path / "a.cubex", tree, metrics, machine)) as profile:
        for reduction in ALL:
            got = profile.reduce("work", reduction)
            assert np.isnan(got.exclusive[2])
            assert got.exclusive[1] == (1.0 if reduction is Reduction.IMBALANCE else 2.0)
        assert profile.reduce("work", Reduction.SUM).total == 7.0
        assert [(f.code, f.count) for f in profile.findings()] == [("CPM117", 3)]


@cells("reduction", ALL)
@cells("processes", [1, 2, 5, 64])
def test_missing_values_are_left_out_of_every_reduction(reduction, processes):
    rng = np.random.default_rng(processes)
    block = rng.lognormal(size=(200, processes))
    block[rng.random(block.shape) < 0.4] = np.nan
    block[:3] = [[np.nan], [0.0], [1.0]]
    over = OVER[str(reduction)]
    present = [row[~np.isnan(row)].tolist() for row in block]
    expected = [over(row) if row else np.nan for row in present]
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("error")
        got = statistic_of_present(block, reduction)
    np.testing.assert_allclose(got, expected, 1e-13)


@cells("value", [-1.0, -0.0, np.inf, -np.inf, np.nan, -np.nan])
def test_a_block_with_one_odd_value_is_not_plain(value):
    block = np.array([[0.0, 5e-324, 1.0], [1.7976931348623157e308, 2.0, 3.0]])
    assert is_plain(block)
    assert is_plain(block[:0])
    block[1, 1] = value
    assert not is_plain(block)


@cells("sparse_sums", [False, True])
@cells("block", [1, 100, 1 << 20])
def test_missing_inclusive_values_leave_only_their_callers_and_themselves_unknown(
    tmp_path, monkeypatch, block, sparse_sums
):
    monkeypatch.setattr(rows, "BLOCK_BYTES", block)
    monkeypatch.setattr(stream, "_SPARSE_PAYS", 0 if sparse_sums else 1 << 30)
    tree, machine = cw.random_tree(60, roots=2, seed=7), cw.Machine([1, 1, 1])
    values = tree.subtree_sums(np.random.default_rng(1).random((60, 3)) + 0.1)
    for row, value in ((7, np.nan), (20, np.inf), (33, -np.inf), (50, -5.0)):
        values[row, 1] = value
    metrics = [cw.MetricToWrite("time", values, "INCLUSIVE", unit="sec")]
    with CubexReader().open(cw.write(tmp_path / "a.cubex", tree, metrics, machine)) as profile:
        got = profile.reduce("time", Reduction.SUM)
        found = {finding.code: finding.count for finding in profile.findings()}
    known = np.where(np.isfinite(values), values, np.nan)
    exclusive = known - tree.children_sums(known)
    expected = np.nansum(np.maximum(exclusive, 0.0), axis=1)
    np.testing.assert_allclose(got.exclusive, expected, 1e-9)
    below = int(np.count_nonzero(exclusive < -1e-9))
    assert found == {"CPM105": below, "CPM117": 3}
    assert below
    assert np.count_nonzero(np.isnan(exclusive)) > 3


def test_a_caller_of_thousands_keeps_its_digits(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1 << 10)
    n = 5000
    tree, machine = cw.Tree([-1, *[0] * (n - 1)], [f"f{k}" for k in range(n)]), cw.Machine([1])
    values = np.full((n, 1), 0.1)
    values[0] = 0.1 * (n - 1) + 1e-6
    metrics = [cw.MetricToWrite("time", values, "INCLUSIVE", unit="sec")]
    with CubexReader().open(cw.write(tmp_path / "a.cubex", tree, metrics, machine)) as profile:
        assert profile.reduce("time", Reduction.MAX).exclusive[0] == pytest.approx(1e-6, rel=1e-5)


def test_a_counter_that_ran_below_zero_counts_as_zero_and_is_reported(tmp_path):
    tree, machine = cw.Tree([-1, 0], ["main", "a"]), cw.Machine([1, 1])
    values = np.array([[100, 200], [-3, 5]]).astype("i8").view("u8")
    for kind, expected_values in (("EXCLUSIVE", [300, 5]), ("INCLUSIVE", [298, 5])):
        metrics = [cw.MetricToWrite("PAPI", values, kind, "UINT64", unit="#")]
        path = cw.write(tmp_path / f"{kind}.cubex", tree, metrics, machine)
        with CubexReader().open(path) as profile:
            got = profile.reduce("PAPI", Reduction.SUM)
            assert got.exclusive.tolist() == expected_values
            assert ("CPM104", 1) in [(f.code, f.count) for f in profile.findings()]


def test_rounding_noise_vanishes_and_larger_negative_values_are_reported(tmp_path):
    tree, machine = cw.Tree([-1, 0, -1, 2], ["main", "a", "other", "b"]), cw.Machine([1])
    values = np.array([[1.0], [1.0 + 1e-13], [1.0], [3.0]])
    metrics = [cw.MetricToWrite("time", values, "INCLUSIVE", unit="sec")]
    with CubexReader().open(cw.write(tmp_path / "a.cubex", tree, metrics, machine)) as profile:
        assert profile.reduce("time", Reduction.MAX).exclusive[[0, 2]].tolist() == [0.0, 0.0]
        (finding,) = profile.findings()
        assert (finding.code, finding.count) == ("CPM105", 1)
        assert "other" in finding.message
        assert profile.per_location("time", inclusive=False)[2, 0] == -2.0


def test_tuples_count_by_their_sum(tmp_path):
    tree, machine = cw.Tree([-1, 0], ["main", "a"]), cw.Machine([1, 1])
    values = np.array([[10.0, 20.0], [1.5, 2.5]])
    for endian in "<>":
        metrics = [cw.MetricToWrite("bytes_sent", values, dtype="TAU_ATOMIC", unit="bytes")]
        path = cw.write(tmp_path / "a.cubex", tree, metrics, machine, endian=endian)
        with CubexReader().open(path) as profile:
            assert profile.reduce("bytes_sent", Reduction.SUM).exclusive.tolist() == [30.0, 4.0]
            assert profile.metrics[0].metric.unit == "B"


def test_time_of_tuples_over_threads_is_inclusive_and_in_ticks(tmp_path):
    tree = cw.random_tree(12, seed=1)
    machine = cw.Machine([1, 1], thread_names=("aggregated threads",) * 3)
    cost = np.arange(24.0).reshape(12, 2) + 1
    inclusive = tree.subtree_sums(cost)
    metrics = [cw.MetricToWrite("time", inclusive, dtype="TAU_ATOMIC", unit="sec")]
    with CubexReader().open(cw.write(tmp_path / "a.cubex", tree, metrics, machine)) as profile:
        got = profile.reduce("time", Reduction.SUM)
        np.testing.assert_allclose(got.exclusive, cost.sum(axis=1))
        assert got.total == inclusive[0].sum()
        assert profile.metrics[0].metric.unit == "ticks"
        assert profile.extent.threads == 0
        assert {f.code for f in profile.findings()} == {"CPM108"}


@cells("dtype", ["INT64", "UINT32", "INT16", "UINT8"])
@cells("endian", ["<", ">"])
def test_every_integer_type_is_read(tmp_path, dtype, endian):
    tree, machine = cw.Tree([-1, 0], ["main", "a"]), cw.Machine([1, 1])
    values = np.array([[100.0, 20.0], [3.0, 7.0]])
    metrics = [cw.MetricToWrite("n", values, dtype=dtype)]
    path = cw.write(tmp_path / "a.cubex", tree, metrics, machine, endian=endian)
    with CubexReader().open(path) as profile:
        assert profile.reduce("n", Reduction.SUM).exclusive.tolist() == [120.0, 10.0]


def test_simple_metrics_come_in_order_of_ids_and_do_not_add_up(tmp_path):
    tree = cw.Tree([-1, 0, 0], ["main", "a", "b"], ids=[2, 0, 1])
    machine = cw.Machine([1])
    metrics = [cw.MetricToWrite("level", np.array([[1.0], [2.0], [3.0]]), "SIMPLE")]
    with CubexReader().open(cw.write(tmp_path / "a.cubex", tree, metrics, machine)) as profile:
        got = profile.reduce("level", Reduction.MAX)
        assert got.exclusive.tolist() == [1.0, 2.0, 3.0]
        assert np.isnan(got.total)


@pytest.mark.parametrize("codec", ["raw", "zlib"])
def test_memory_does_not_grow_with_the_number_of_locations(tmp_path, monkeypatch, codec):
    monkeypatch.setattr(rows, "BLOCK_BYTES", 1 << 18)
    monkeypatch.setattr(stream, "_SPARSE_PAYS", 0)
    tree, machine = cw.random_tree(100, seed=2), cw.Machine([1] * 20_000)
    cost = np.arange(100.0)[:, np.newaxis] + np.zeros(20_000)
    metrics = [cw.MetricToWrite("time", tree.subtree_sums(cost), "INCLUSIVE", unit="sec")]
    path = cw.write(tmp_path / "a.cubex", tree, metrics, machine, codec=codec)
    with CubexReader().open(path) as profile:
        profile.reduce("time", Reduction.MAX)
        tracemalloc.start()
        got = profile.reduce("time", Reduction.MAX)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert got.exclusive.tolist() == list(range(100))
    assert peak < 6 << 20 < cost.nbytes / 2
