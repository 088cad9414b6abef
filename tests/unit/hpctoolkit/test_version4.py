"""Version 4: values of the database, and facts that its specification omits."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.errors import DataError, InputError
from callpath_modeler.profile.schema import PROGRAM, Extent, MetricStatus, Reduction
from callpath_modeler.testing.hpctoolkit import Kind, Layout, Measured, Scope, write_database
from cpmodel_hpctoolkit import HpctoolkitLoopsReader

TIME = "CPUTIME (sec)"


def exclusive(source, metric="CPUTIME", reduction=Reduction.SUM):
    """Return the values by call path; two rows with one path are an error."""
    tree = source.call_tree
    paths = [tree.path(row) for row in range(len(tree))]
    assert len(set(paths)) == len(paths)
    return dict(zip(paths, source.reduce(metric, reduction).exclusive.tolist(), strict=True))


def thread(rank, values, **ids):
    return Measured({"NODE": rank // 2, "RANK": rank, "THREAD": 0, **ids}, {TIME: values})


def test_functions_hold_their_lines_loops_and_instructions(reader, tmp_path, contexts, costs):
    write_database(tmp_path, contexts, [thread(0, costs)])
    with reader.open(tmp_path) as source:
        assert exclusive(source) == {
            PROGRAM: 0.0,
            "main": 1 + 2 + 3 + 4,
            "main/solve": 5 + 6 + 7,
            "main/solve/norm": 8.0,
            "main/solve/norm/MPI_Allreduce": 9.0,
        }
        assert source.reduce("CPUTIME", Reduction.SUM).total == costs.sum()


def test_loops_are_kept_on_request_each_with_what_is_its_own(tmp_path, contexts, costs):
    write_database(tmp_path, contexts, [thread(0, costs)])
    with HpctoolkitLoopsReader().open(tmp_path) as source:
        loop = "main/loop at main.c:7"
        found = exclusive(source)
        assert found["main"] == 1
        assert found[loop] == 2
        assert found[f"{loop}/loop at main.c:8"] == 3 + 4
        assert found[f"{loop}/loop at main.c:8/solve"] == 6 + 7
        assert found["main/solve"] == 5
        assert sum(found.values()) == costs.sum()


def test_contexts_that_were_left_out_of_the_tree_are_passed_over(reader, tmp_path, contexts, costs):
    for elide in (True, False):
        path = write_database(
            tmp_path / str(elide), contexts, [thread(0, costs)], layout=Layout(elide=elide)
        )
        with reader.open(path) as source:
            assert exclusive(source)["main/solve"] == 18


def test_cost_is_not_taken_from_the_scope_point(reader, tmp_path):
    contexts = [
        Scope(-1, Kind.FUNCTION, "main thread"),
        Scope(0, Kind.FUNCTION, "main"),
        Scope(1, Kind.LINE, line=4),
        Scope(2, Kind.INSTRUCTION, line=0x10),
    ]
    write_database(tmp_path, contexts, [thread(0, [0, 0, 0, 2.5])])
    with reader.open(tmp_path) as source:
        assert exclusive(source) == {PROGRAM: 0.0, "main": 2.5}


def test_an_instruction_that_is_called_is_a_function(reader, tmp_path):
    contexts = [
        Scope(-1, Kind.FUNCTION, "main thread"),
        Scope(0, Kind.FUNCTION, "main"),
        Scope(1, Kind.CALLED_INSTRUCTION, line=0x1F, module="/lib/libx.so"),
        Scope(1, Kind.FUNCTION, module="/lib/liby.so"),
    ]
    write_database(tmp_path, contexts, [thread(0, [0, 1, 2, 4])])
    with reader.open(tmp_path) as source:
        assert exclusive(source) == {
            PROGRAM: 0.0,
            "main": 1.0,
            r"main/<libx.so+0x1f>": 2.0,
            r"main/<liby.so+0x40>": 4.0,
        }


def test_a_function_that_nobody_knows_has_a_name(reader, tmp_path):
    contexts = [
        Scope(-1, Kind.FUNCTION, "main thread"),
        Scope(0, Kind.FUNCTION, "main"),
        Scope(1, Kind.FUNCTION, module=""),
    ]
    write_database(tmp_path, contexts, [thread(0, [0, 1, 2])])
    with reader.open(tmp_path) as source:
        assert exclusive(source)["main/<unknown procedure>"] == 2


def test_names_are_utf_8(reader, tmp_path):
    contexts = [Scope(-1, Kind.FUNCTION, "main thread"), Scope(0, Kind.FUNCTION, "größe<µ>()")]
    write_database(tmp_path, contexts, [thread(0, [0, 1])])
    with reader.open(tmp_path) as source:
        assert "größe<µ>()" in exclusive(source)


def test_the_order_of_contexts_means_nothing(reader, tmp_path, contexts, costs):
    # Siblings in another order have other numbers, and other offsets in every file.
    order = [0, 1, 3, 2, 4, 6, 5, 7, 10, 8, 9, 11, 12, 13]
    place = {old: new for new, old in enumerate(order)}
    parents = [place.get(contexts[old].parent, -1) for old in order]
    assert all(parent < number for number, parent in enumerate(parents))
    shuffled = [
        replace(contexts[old], parent=parent) for old, parent in zip(order, parents, strict=True)
    ]
    write_database(tmp_path / "one", contexts, [thread(0, costs)])
    write_database(tmp_path / "two", shuffled, [thread(0, costs[order])])
    with reader.open(tmp_path / "one") as one, reader.open(tmp_path / "two") as two:
        assert exclusive(one) == exclusive(two)


def test_every_entry_point_counts(reader, tmp_path):
    contexts = [
        Scope(-1, Kind.FUNCTION, "main thread"),
        Scope(0, Kind.FUNCTION, "main"),
        Scope(-1, Kind.FUNCTION, "application thread"),
        Scope(2, Kind.FUNCTION, "worker"),
    ]
    write_database(tmp_path, contexts, [thread(0, [0, 1, 0, 2])])
    with reader.open(tmp_path) as source:
        found = exclusive(source)
        assert (found["main"], found["application thread/worker"]) == (1, 2)


@pytest.mark.parametrize("missing", ["function", "execution", "lex_aware"])
def test_a_metric_without_one_of_the_scopes_is_read_from_the_others(
    reader, tmp_path, contexts, costs, missing
):
    stored = {TIME: [s for s in ("point", "function", "lex_aware", "execution") if s != missing]}
    write_database(tmp_path / "full", contexts, [thread(0, costs)])
    write_database(tmp_path / "less", contexts, [thread(0, costs)], layout=Layout(scopes=stored))
    with reader.open(tmp_path / "full") as full, reader.open(tmp_path / "less") as less:
        assert exclusive(less) == pytest.approx(exclusive(full))
        assert less.reduce("CPUTIME", Reduction.MAX).total == pytest.approx(costs.sum())


def test_a_metric_with_neither_scope_is_not_declared(reader, tmp_path, contexts, costs):
    both = Measured({"RANK": 0, "THREAD": 0}, {TIME: costs, "odd": costs})
    layout = Layout(scopes={"odd": ["point", "lex_aware"]})
    write_database(tmp_path, contexts, [both], layout=layout)
    with reader.open(tmp_path) as source:
        assert [declared.metric.name for declared in source.metrics] == ["CPUTIME"]


def test_the_wrong_exclusive_values_of_nested_loops_are_not_used(tmp_path, contexts, costs):
    # In profiles of threads, lex_aware repeats the values of inner loops.
    write_database(tmp_path, contexts, [thread(rank, costs) for rank in range(2)])
    with HpctoolkitLoopsReader().open(tmp_path) as source:
        for reduction in (Reduction.MAX, Reduction.MEAN):
            assert exclusive(source, reduction=reduction)["main/loop at main.c:7"] == 2


def test_minimum_and_mean_count_processes_without_cost(reader, tmp_path, contexts, costs):
    write_database(tmp_path, contexts, [thread(0, costs), thread(1, 0 * costs)])
    with reader.open(tmp_path) as source:
        assert source.extent == Extent(2, 1, 1)
        assert exclusive(source, reduction=Reduction.MIN)["main"] == 0
        assert exclusive(source, reduction=Reduction.MEAN)["main"] == 5


@pytest.mark.parametrize(
    ("reduction", "of_one_to_four"),
    [
        (Reduction.MAX, 4.0),
        (Reduction.MIN, 1.0),
        (Reduction.SUM, 10.0),
        (Reduction.MEAN, 2.5),
        (Reduction.MEDIAN, 2.5),
        (Reduction.GEOMEAN, 24**0.25),
        (Reduction.IMBALANCE, 1.6),
    ],
)
def test_processes_are_reduced_in_every_way(
    reader, tmp_path, contexts, ranks, reduction, of_one_to_four
):
    write_database(tmp_path, contexts, ranks)
    with reader.open(tmp_path) as source:
        factor = 1 if reduction is Reduction.IMBALANCE else 9
        found = exclusive(source, reduction=reduction)["main/solve/norm/MPI_Allreduce"]
        assert found == pytest.approx(of_one_to_four * factor)


def test_medians_are_the_same_in_blocks(reader, tmp_path, contexts, ranks, monkeypatch):
    write_database(tmp_path, contexts, ranks)
    with reader.open(tmp_path) as source:
        whole = exclusive(source, reduction=Reduction.MEDIAN)
        monkeypatch.setattr("cpmodel_hpctoolkit.reduce._HELD", 64)
        assert exclusive(source, reduction=Reduction.MEDIAN) == whole


def test_the_slowest_thread_of_a_process_counts_for_times_and_all_for_counts(
    reader, tmp_path, contexts, costs
):
    def measured(rank, thread, factor):
        values = {TIME: costs * factor, "cycles": costs * factor}
        return Measured({"RANK": rank, "THREAD": thread}, values)

    write_database(tmp_path, contexts, [measured(0, 0, 1), measured(0, 1, 3), measured(1, 0, 2)])
    with reader.open(tmp_path) as source:
        assert source.extent == Extent(2, 2, 0)
        assert exclusive(source, "CPUTIME", Reduction.SUM)["main"] == 10 * (3 + 2)
        assert exclusive(source, "cycles", Reduction.SUM)["main"] == 10 * (1 + 3 + 2)
        assert exclusive(source, "cycles", Reduction.MAX)["main"] == 10 * 4


def test_processes_are_told_by_identifiers_whatever_their_order(reader, tmp_path, contexts, costs):
    measured = [thread(rank, costs * (rank + 1)) for rank in (7, 2, 30)]
    write_database(tmp_path, contexts, measured)
    with reader.open(tmp_path) as source:
        assert source.extent == Extent(3, 1, 3)


def test_a_run_without_ranks_is_one_process(reader, tmp_path, contexts, costs):
    measured = [Measured({"NODE": 0, "THREAD": t}, {TIME: costs}) for t in range(3)]
    write_database(tmp_path, contexts, measured)
    with reader.open(tmp_path) as source:
        assert source.extent == Extent(1, 3, 1)


def test_streams_of_accelerators_are_kept_apart(reader, tmp_path, contexts, costs):
    stream = {"NODE": 0, "RANK": 0, "GPUCONTEXT": 1, "GPUSTREAM": 7}
    measured = [
        Measured({"NODE": 0, "RANK": 0, "THREAD": 0}, {TIME: costs, "GKER (sec)": costs}),
        Measured(stream, {"GKER (sec)": 5 * costs}),
    ]
    write_database(tmp_path, contexts, measured)
    with reader.open(tmp_path) as source:
        assert source.extent == Extent(1, 1, 1)
        assert exclusive(source, "CPUTIME")["main"] == 10
        assert exclusive(source, "GKER")["main"] == 10
        assert exclusive(source, "GKER on GPU streams")["main"] == 50
        assert [finding.code for finding in source.findings()] == ["CPM110"]


def test_one_metric_in_two_units_is_two_metrics_on_streams_too(reader, tmp_path, contexts, costs):
    names = ["T (sec)", "T (usec)"]
    measured = [
        Measured({"RANK": 0, "THREAD": 0}, dict.fromkeys(names, costs)),
        Measured({"RANK": 0, "GPUSTREAM": 7}, {names[0]: 2 * costs, names[1]: 3 * costs}),
    ]
    write_database(tmp_path, contexts, measured)
    with reader.open(tmp_path) as source:
        found = {d.metric.name: exclusive(source, d.metric.name)["main"] for d in source.metrics}
    assert found == {
        "T": 10,
        "T (usec)": pytest.approx(10e-6),
        "T on GPU streams": 20,
        "T (usec) on GPU streams": pytest.approx(30e-6),
    }


def test_single_threads_of_a_metric_of_streams_are_refused(reader, tmp_path, contexts, costs):
    stream = Measured({"RANK": 0, "GPUSTREAM": 7}, {TIME: costs})
    write_database(tmp_path, contexts, [thread(0, costs), stream])
    with (
        reader.open(tmp_path) as source,
        pytest.raises(DataError, match="GPU streams, not of single threads"),
    ):
        source.sums_of_threads("CPUTIME on GPU streams", np.zeros(len(contexts), np.intp), 1)


def test_streams_without_values_are_not_worth_a_word(reader, tmp_path, contexts, costs):
    idle = Measured({"RANK": 0, "GPUSTREAM": 7}, {})
    write_database(tmp_path, contexts, [thread(0, costs), idle])
    with reader.open(tmp_path) as source:
        assert [declared.metric.name for declared in source.metrics] == ["CPUTIME"]
        assert not source.findings()


def test_the_run_time_comes_first_and_what_is_zero_last(reader, tmp_path, contexts, costs):
    names = ["GKER (sec)", "cycles", "CPUTIME (sec)", "REALTIME (usec)", "GXCOPY:D2H (B)"]
    values = {name: costs * (name != "GKER (sec)") for name in names}
    write_database(tmp_path, contexts, [Measured({"RANK": 0}, values)])
    with reader.open(tmp_path) as source:
        found = [(d.metric.name, d.metric.unit, d.status) for d in source.metrics]
        data, absent = MetricStatus.DATA, MetricStatus.ABSENT
        assert found == [
            ("REALTIME", "s", data),
            ("CPUTIME", "s", data),
            ("GXCOPY:D2H", "B", data),
            ("cycles", "1", data),
            ("GKER", "s", absent),
        ]
        assert exclusive(source, "REALTIME")["main"] == pytest.approx(10e-6)
        assert not any(exclusive(source, "GKER").values())


@pytest.mark.parametrize("layout", [Layout(early=True), Layout(spare=16), Layout(elide=False)])
def test_databases_of_other_releases_are_read(reader, tmp_path, contexts, ranks, layout):
    write_database(tmp_path / "plain", contexts, ranks)
    write_database(tmp_path / "other", contexts, ranks, layout=layout)
    with reader.open(tmp_path / "plain") as plain, reader.open(tmp_path / "other") as other:
        for reduction in (Reduction.MAX, Reduction.SUM):
            assert exclusive(other, reduction=reduction) == exclusive(plain, reduction=reduction)


def test_regions_keep_names_in_full_with_file_line_and_module(reader, tmp_path):
    name = "ns::solve<double, std::vector<int> >(int, char const*) [clone .isra.3]"
    contexts = [
        Scope(-1, Kind.FUNCTION, "main thread"),
        Scope(0, Kind.FUNCTION, name, "/src/a/solve.cpp", 12, "/lib64/libsolve-1.2.so.3"),
    ]
    write_database(tmp_path, contexts, [thread(0, [0, 1])])
    with reader.open(tmp_path) as source:
        region = source.call_tree.regions[source.call_tree.region[1]]
        assert region.name == name
        assert region.key == "ns::solve<double, std::vector<int> >(int, char const*)"
        assert (region.file, region.line) == ("/src/a/solve.cpp", 12)
        assert region.module == "libsolve-1.2.so.3"


def test_a_stack_of_4000_frames_is_read(reader, tmp_path):
    contexts = [Scope(-1, Kind.FUNCTION, "main thread")]
    contexts += [Scope(k, Kind.FUNCTION, "down") for k in range(4000)]
    write_database(tmp_path, contexts, [thread(0, np.ones(4001))])
    with reader.open(tmp_path) as source:
        assert len(source.call_tree) == 4001
        assert source.reduce("CPUTIME", Reduction.MAX).total == 4001


def test_values_that_are_no_numbers_are_missing_and_counted(reader, tmp_path, contexts, costs):
    broken = costs.copy()
    broken[13] = np.inf
    write_database(tmp_path, contexts, [thread(0, costs), thread(1, broken)])
    with reader.open(tmp_path) as source:
        found = exclusive(source, reduction=Reduction.MAX)
        assert found["main/solve/norm/MPI_Allreduce"] == 9
        assert [finding.code for finding in source.findings()] == ["CPM117"]


def test_a_value_that_differs_between_the_two_files_is_counted(reader, tmp_path, contexts, ranks):
    write_database(tmp_path, contexts, ranks)
    assert [found.differing for found in reader.verify(tmp_path)] == [0]
    path = tmp_path / "cct.db"
    content = path.read_bytes()
    place = content.index(struct.pack("<d", 9.0))
    path.write_bytes(content[:place] + struct.pack("<d", 9.5) + content[place + 8 :])
    assert [found.differing for found in reader.verify(tmp_path)] == [1]


def test_without_the_second_file_there_is_nothing_to_verify_with(reader, tmp_path, contexts, ranks):
    (write_database(tmp_path, contexts, ranks) / "cct.db").unlink()
    with pytest.raises(InputError, match=r"cct\.db is missing"):
        reader.verify(tmp_path)


def test_values_below_zero_count_as_zero_and_are_said(reader, tmp_path, contexts, costs):
    odd = costs.copy()
    odd[11] = -3.0
    write_database(tmp_path, contexts, [thread(0, odd), thread(1, costs)])
    with reader.open(tmp_path) as source:
        assert exclusive(source, reduction=Reduction.MAX)["main/solve/norm"] == 8
        assert exclusive(source, reduction=Reduction.MIN)["main/solve/norm"] == 0
        (finding,) = source.findings()
        assert (finding.code, finding.count) == ("CPM105", 1)
        assert "-3 in main/solve/norm" in finding.message
