"""GPU streams of Score-P profiles: metrics of their own, in both layouts of location groups."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from brute_force import OVER, reduce, reduce_longest

import cube_writer as cw
from callpath_modeler.errors import DataError, InputError
from callpath_modeler.profile.schema import COMPUTED, Extent, Reduction
from cpmodel_scorep import CubexReader, anchor_expat, anchor_fast

TREE = cw.Tree(
    [-1, 0, 1, 0, 3, 3],
    ["app", "main", "MPI_Barrier", "KERNELS", "gpu_stencil", "gpu_copy"],
    roles={"app": "artificial", "KERNELS": "artificial"},
)
KERNELS = slice(4, 6)
RANKS = ["MPI Rank 0", "MPI Rank 1", "MPI Rank 2"]
MACHINES = {
    "streams in the groups of processes": cw.Machine([2, 1, 2], gpus=2),
    "streams in groups of their own": cw.Machine([2, 1, 2], gpus=2, creators=RANKS),
    "two groups of one process": cw.Machine([1, 2, 1], gpus=2, creators=[*RANKS[:1], *RANKS[:2]]),
    "processes without streams": cw.Machine([1, 1, 1], gpus=[3, 0, 1]),
    "shuffled ids": cw.Machine([1, 1], gpus=2, ids=[5, 1, 4, 0, 3, 2], creators=RANKS[:2]),
    "one process, which no group names": cw.Machine([2], gpus=3, creators=[None]),
}
GPU = " on GPU streams"
ADDITIVE = {"time": "max", "visits": "sum", "bytes_put": "sum"}
"""Reduction from threads or streams to a process, by metric."""


def costs(machine, seed=0):
    """Return exclusive values [call paths, locations]: threads compute, streams run kernels."""
    values = np.random.default_rng(seed).integers(1, 50, (len(TREE), machine.locations))
    is_stream = np.full(machine.locations, True)
    is_stream[list(itertools.chain(*machine.columns()))] = False
    values[KERNELS.start :, ~is_stream] = 0
    values[: KERNELS.start, is_stream] = 0
    values[3] = 0
    return values.astype(float)


def metrics_of(own):
    row = np.arange(len(TREE))[:, np.newaxis]
    sent, copied = own * (row == 2), own * (row == 5)
    return [
        cw.MetricToWrite("time", TREE.subtree_sums(own), "INCLUSIVE", unit="sec"),
        cw.MetricToWrite("visits", own, dtype="UINT64"),
        cw.MetricToWrite("bytes_sent", sent, dtype="UINT64", unit="bytes"),
        cw.MetricToWrite("bytes_put", copied, dtype="UINT64", unit="bytes"),
        cw.MetricToWrite("min_time", own, dtype="MINDOUBLE", unit="sec"),
        cw.MetricToWrite("max_time", own, dtype="MAXDOUBLE", unit="sec"),
    ]


@pytest.fixture
def opened(tmp_path):
    def opened(machine, metrics, **variant):
        path = cw.write(tmp_path / "profile.cubex", TREE, metrics, machine, **variant)
        return CubexReader().open(path)

    return opened


def names(profile):
    return [declared.metric.name for declared in profile.metrics]


def found(profile):
    return [(finding.code, finding.message) for finding in profile.findings()]


@pytest.mark.parametrize("codec", ["raw", "zlib"])
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_values_of_threads_and_of_streams_equal_brute_force(opened, machine, codec):
    own = costs(machine)
    by_name = {metric.name: metric for metric in metrics_of(own)}
    with opened(machine, by_name.values(), codec=codec) as profile:
        for name, reduction, on_gpu in itertools.product(ADDITIVE, COMPUTED, (False, True)):
            values = own if name == "time" else by_name[name].values
            whole = values.sum(axis=0)[np.newaxis]
            fold = OVER["sum" if on_gpu else ADDITIVE[name]]
            got = profile.reduce(name + GPU * on_gpu, reduction)
            is_time = name == "time" and not on_gpu

            def reduced(cells, reduction=reduction, fold=fold, on_gpu=on_gpu, is_time=is_time):
                if is_time:
                    return reduce_longest(cells, machine, reduction, own.sum(axis=0))
                return reduce(cells, machine, reduction, fold, on_gpu=on_gpu)

            expected, about = reduced(values), f"{name}{GPU * on_gpu} {reduction}"
            np.testing.assert_allclose(got.exclusive, expected, 1e-12, err_msg=about)
            assert got.total == pytest.approx(reduced(whole)[0], nan_ok=True), about
            slowest = reduce(whole, machine, Reduction.MAX, fold)[0]
            assert got.run_time == pytest.approx(slowest if is_time else np.nan, nan_ok=True)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_inclusive_values_of_streams_equal_brute_force(opened, machine):
    own = costs(machine)
    with opened(machine, metrics_of(own)) as profile:
        for name, stored in (("time", own), ("visits", own)):
            fold = OVER["sum"]
            expected = reduce(TREE.subtree_sums(stored), machine, "mean", fold, on_gpu=True)
            got = profile.inclusive(name + GPU, Reduction.MEAN)
            np.testing.assert_allclose(got, expected, 1e-12)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_extremes_of_streams_are_those_of_visited_kernels(opened, machine):
    own = costs(machine)
    streams = list(itertools.chain(*machine.stream_columns()))
    with opened(machine, metrics_of(own)) as profile:
        least = profile.reduce("min_time" + GPU, Reduction.MIN).exclusive
        most = profile.reduce("max_time" + GPU, Reduction.MAX).exclusive
    assert most.tolist() == own[:, streams].max(axis=1).tolist()
    np.testing.assert_array_equal(least[KERNELS], own[KERNELS, streams].min(axis=1))
    assert np.isnan(least[: KERNELS.start]).all()


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES.keys())
def test_metrics_of_streams_come_last_and_only_if_they_are_not_zero(opened, machine):
    own = costs(machine)
    measured = [metric.name for metric in metrics_of(own)]
    on_gpu = [name + GPU for name in measured if name != "bytes_sent"]
    with opened(machine, metrics_of(own)) as profile:
        threads, processes = max(machine.threads), len(machine.threads)
        sums = ["time of all threads"] * (threads > 1)
        assert names(profile) == [*measured, *sums, *on_gpu]
        assert profile.extent == Extent(processes, threads, nodes=1)
        count = sum(machine.streams)
        assert found(profile) == [
            ("CPM110", f"{count} GPU streams, whose values are separate metrics")
        ]


def without_streams(machine, metrics):
    """Return the same run without GPUs."""
    chosen = sorted(itertools.chain(*machine.columns()))
    return cw.Machine(machine.threads), [replace(m, values=m.values[:, chosen]) for m in metrics]


def test_metrics_of_threads_are_those_of_a_run_without_gpus(tmp_path, opened):
    machine = MACHINES["streams in groups of their own"]
    metrics = metrics_of(costs(machine))
    plain = cw.write(tmp_path / "plain.cubex", TREE, *reversed(without_streams(machine, metrics)))
    with opened(machine, metrics) as profile, CubexReader().open(plain) as other:
        assert names(other) == [*(metric.name for metric in metrics), "time of all threads"]
        assert not other.findings()
        assert other.extent == profile.extent
        for name, reduction in itertools.product(names(other), COMPUTED):
            one, same = profile.reduce(name, reduction), other.reduce(name, reduction)
            np.testing.assert_array_equal(one.exclusive, same.exclusive)
            np.testing.assert_array_equal(
                [one.total, one.run_time], [same.total, same.run_time], strict=True
            )
            if same.imbalance is not None:
                np.testing.assert_array_equal(one.imbalance, same.imbalance)
        group = np.arange(len(TREE))
        for name in ("time", "visits"):
            sums = [each.sums_of_threads(name, group, len(TREE)) for each in (profile, other)]
            np.testing.assert_array_equal(sums[0].values, sums[1].values)
            np.testing.assert_array_equal(sums[0].process, sums[1].process)


@pytest.mark.parametrize("creators", [None, RANKS])
def test_streams_with_zeros_alone_change_nothing(opened, creators):
    machine = cw.Machine([1, 1, 1], gpus=2, creators=creators)
    own = costs(machine)
    own[KERNELS] = 0
    with opened(machine, metrics_of(own)) as profile:
        assert names(profile) == [metric.name for metric in metrics_of(own)]
        assert not profile.findings()


def test_a_metric_that_is_cut_off_before_its_streams_does_not_prevent_opening(tmp_path):
    machine = cw.Machine([1, 1], gpus=1)
    members = dict(cw.members_of(TREE, metrics_of(costs(machine)), machine, codec="zlib"))
    members["1.data"] = members["1.data"][:-8] + bytes(8)
    path = cw.pack(tmp_path / "profile.cubex", members.items())
    with CubexReader().open(path) as profile:
        assert profile.reduce("time" + GPU, Reduction.MAX).total > 0
        with pytest.raises(InputError, match="broken"):
            profile.reduce("visits" + GPU, Reduction.MAX)


@pytest.mark.parametrize(
    "creators",
    [
        [None, None],
        ["MPI Rank 7", ""],
        # Groups that created each other, and a group that created itself.
        ["CUDA Context 3", "CUDA Context 2"],
        ["CUDA Context 2", "CUDA Context 3"],
    ],
)
def test_streams_of_an_unknown_process_are_excluded(opened, creators):
    machine = cw.Machine([1, 1], gpus=2, creators=creators)
    own = costs(machine)
    with opened(machine, metrics_of(own)) as profile:
        assert names(profile) == [metric.name for metric in metrics_of(own)]
        message = "the process of 4 GPU streams is unknown, so values are excluded"
        assert found(profile) == [("CPM110", message)]


def test_a_process_is_known_only_by_a_name_of_its_own(tmp_path):
    machine = cw.Machine([1, 1, 1], gpus=1, creators=["MPI Rank 0", "MPI Rank 2", "MPI Rank 0"])
    own = costs(machine)
    members = dict(cw.members_of(TREE, metrics_of(own), machine))
    renamed = members["anchor.xml"].replace(b"<name>MPI Rank 1<", b"<name>MPI Rank 0<")
    path = cw.pack(tmp_path / "profile.cubex", {**members, "anchor.xml": renamed}.items())
    with CubexReader().open(path) as profile:
        got = profile.reduce("time" + GPU, Reduction.MAX)
        assert got.exclusive.tolist() == own[:, 4].tolist()
        assert [(f.code, f.count) for f in profile.findings()] == [("CPM110", 1), ("CPM110", 2)]


def test_negative_values_are_reported_for_the_metric_that_has_them(opened):
    machine = cw.Machine([1, 1], gpus=1)
    own = costs(machine)
    threads, streams = (
        list(itertools.chain(*c)) for c in (machine.columns(), machine.stream_columns())
    )
    time = TREE.subtree_sums(own)
    time[3, streams] -= 1000
    work = own.copy()
    work[5, streams[0]] = np.nan
    work[1, threads] = np.inf
    metrics = [
        cw.MetricToWrite("time", time, "INCLUSIVE", unit="sec"),
        cw.MetricToWrite("work", work, unit="sec"),
    ]
    with opened(machine, metrics) as profile:
        before = {finding.code for finding in profile.findings()}
        profile.reduce("time", Reduction.MAX)
        assert {finding.code for finding in profile.findings()} == before
        for name in ("time" + GPU, "work", "work" + GPU):
            profile.reduce(name, Reduction.MAX)
        counts = {(f.code, f.message.split(":")[0]): f.count for f in profile.findings()}
    assert counts == {
        ("CPM110", "2 GPU streams, whose values are separate metrics"): 2,
        ("CPM105", "time" + GPU): 2,
        ("CPM117", "work"): 2,
        ("CPM117", "work" + GPU): 1,
    }


def test_single_threads_of_a_metric_of_streams_are_refused(opened):
    machine = cw.Machine([1, 1], gpus=1)
    with (
        opened(machine, metrics_of(costs(machine))) as profile,
        pytest.raises(DataError, match="GPU streams, not of single threads") as caught,
    ):
        profile.sums_of_threads("time" + GPU, np.zeros(len(TREE), np.intp), 1)
    assert "cpmodel info" in caught.value.hint


def test_a_stored_metric_keeps_a_name_that_a_metric_of_streams_would_have(opened):
    machine = cw.Machine([1], gpus=1)
    own = costs(machine)
    metrics = [
        cw.MetricToWrite("work", own, unit="sec"),
        cw.MetricToWrite("work" + GPU, 2 * own, unit="sec"),
    ]
    with opened(machine, metrics) as profile:
        assert names(profile) == ["work", "work" + GPU, "work" + GPU + GPU]
        assert profile.reduce("work" + GPU, Reduction.MAX).total == 2 * own[:, 0].sum()
        assert "CPM118" in {finding.code for finding in profile.findings()}


def test_sums_over_the_streams_of_an_accelerator_are_its_values(tmp_path):
    """Score-P with SCOREP_PROFILING_FORMAT=thread_sum writes one thread for each group."""
    machine = cw.Machine([1, 1], gpus=1, creators=RANKS[:2], thread_names=("aggregated threads",))
    own = costs(machine)
    members = dict(cw.members_of(TREE, metrics_of(own), machine))
    changed = members["anchor.xml"].replace(b"<type>accelerator stream<", b"<type>thread<")
    assert changed != members["anchor.xml"]
    path = cw.pack(tmp_path / "profile.cubex", {**members, "anchor.xml": changed}.items())
    with CubexReader().open(path) as profile:
        assert profile.extent.processes == 2
        got = profile.reduce("time" + GPU, Reduction.SUM)
    assert got.exclusive.tolist() == own[:, 2:].sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ('value="MPI Rank 1"/>', 'value=" MPI Rank &#49; "></attr>'),
        ('<attr key="Creating', '<attr key="other" value="x"/>\n<attr key="Creating'),
        ("MPI Rank", "process &lt;&amp;&gt;"),
    ],
)
def test_both_parsers_agree_on_the_creators_of_groups(old, new):
    machine = cw.Machine([2, 1, 1], gpus=2, creators=RANKS)
    text = cw.anchor(TREE, [], machine).replace(old, new) if old else cw.anchor(TREE, [], machine)
    slow = anchor_expat.parse(text.encode()).locations
    assert slow.process_of_streams.tolist() == [-1] * 4 + [0, 0, 1, 1, 2, 2]
    fast = anchor_fast.parse(text.encode())
    if fast is None:
        assert "</attr>" in new
    else:
        assert fast.locations.process_of_streams.tolist() == slow.process_of_streams.tolist()
        assert fast.locations.creators == slow.creators
        assert fast.locations.group_names == slow.group_names


def test_thousands_of_streams_find_their_processes(tmp_path):
    n = 20_000
    names_ = [f"MPI Rank {p}" for p in range(n)]
    machine = cw.Machine([1] * n, gpus=1, creators=names_)
    tree = cw.Tree([-1, 0], ["app", "gpu_stencil"])
    values = np.ones((2, machine.locations))
    path = cw.write(
        tmp_path / "p.cubex", tree, [cw.MetricToWrite("time", values, unit="sec")], machine
    )
    with CubexReader().open(path) as profile:
        assert profile.reduce("time" + GPU, Reduction.SUM).total == 2 * n
