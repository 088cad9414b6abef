"""Exported experiments are equal after an import."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import Metric, Region
from callpath_modeler.readers.paths import join_with_arrows
from callpath_modeler.report import exports
from callpath_modeler.report.model_tables import values_table
from callpath_modeler.report.table_formats import to_csv, to_json, to_jsonl
from callpath_modeler.studies import loading
from cells import cells
from synthetic import TIME, call_tree, experiment

ABSENT = float("nan")
POINTS = (2.0, 4.0, 8.0)
WHOLE = {
    "main": [[1.0, 1.5], [1.25, 1.0], [1.0, 1.0]],
    "main/solve": [[2.0, 2.1], [4.0, 4.1], [8.0, 8.3]],
    "main/solve/MPI_Send": [[0.1, 0.2], [0.3, 1 / 3], [1e-9, 5e99]],
}
PARTLY = {**WHOLE, "main/late": [[ABSENT, ABSENT], [ABSENT, 7.0], [1.0, 2.0]]}


def read(directory, name, content):
    # The name of a directory tells parameters as well.
    path = directory / "runs" / name
    path.parent.mkdir(exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text("".join(content), encoding="utf-8")
    everything = loading.ReadOptions(metrics=None)
    return loading.load([path], loading.LoadOptions(everything))


def same(made, again):
    """Return whether two experiments have the same values of the same call paths and runs."""
    paths = [made.tree.path(row) for row in range(len(made.tree))]
    assert [again.tree.path(row) for row in range(len(again.tree))] == paths
    assert again.tree.parent.tolist() == made.tree.parent.tolist()
    assert list(again.columns) == list(made.columns)
    for name, values in made.columns.items():
        np.testing.assert_array_equal(again.values(name), values.exclusive)
        assert again.metric(name).unit == values.metric.unit
    for run, read_again in zip(made.runs, again.runs, strict=True):
        assert dict(read_again.parameters) == dict(run.parameters)
        assert read_again.repetition == run.repetition
    return True


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.jsonl", "a.extra-p"])
def test_extrap_formats_are_read_back_as_they_were(tmp_path, name):
    made = experiment(WHOLE, POINTS)
    content = exports.for_extrap(made, tmp_path / name)
    assert same(made, read(tmp_path, name, content))


def test_a_call_path_that_is_absent_somewhere_stays_so(tmp_path):
    made = experiment(PARTLY, POINTS)
    assert same(made, read(tmp_path, "a.jsonl", "".join(exports.extrap_json_lines(made))))
    with pytest.raises(UsageError, match="every point: 1 call path missing"):
        exports.extrap_text(made)


def test_a_unit_that_a_name_does_not_tell_is_written_down(tmp_path):
    from callpath_modeler.profile.schema import Metric

    made = experiment(WHOLE, POINTS, metric=Metric("energy", "J"))
    text = "".join(exports.extrap_text(made))
    assert "METRIC energy [J]" in text
    assert same(made, read(tmp_path, "a.txt", text))


def test_names_that_look_like_other_formats_survive(tmp_path):
    paths = ["main", "main/ptr::operator->()", "main/a;b", "main/f<a, b>(int)"]
    made = experiment({path: [1.0, 2.0, 3.0] for path in paths}, POINTS)
    for name in ("a.txt", "a.json", "a.jsonl", "a.extra-p"):
        assert same(made, read(tmp_path, name, exports.for_extrap(made, tmp_path / name)))


def test_an_arrow_inside_of_a_name_does_not_split_it(tmp_path):
    tree = call_tree(["main", "main/[](int) -> int", "main/operator->"])
    assert [join_with_arrows(tree.names(row)) for row in range(3)] == [
        "main",
        "main->[](int) → int",
        "main->operator->",
    ]
    made = experiment({"main": [1.0, 2.0, 3.0], "main/[](int) -> int": [1.0, 2.0, 3.0]}, POINTS)
    again = read(tmp_path, "a.jsonl", "".join(exports.extrap_json_lines(made)))
    assert [again.tree.path(row) for row in range(len(again.tree))] == [
        "main",
        "main/[](int) → int",
    ]


@cells(("name", "write"), [("a.csv", to_csv), ("a.json", to_json), ("a.jsonl", to_jsonl)])
@cells("inclusive", [False, True])
def test_tables_of_values_are_read_back_as_they_were(tmp_path, name, write, inclusive):
    made = experiment(WHOLE, POINTS)
    table = values_table(made, TIME, inclusive=inclusive)
    again = read(tmp_path, name, write(table))
    if inclusive:
        # Small values are lost in the rounding of a huge one.
        np.testing.assert_allclose(again.values("time")[:, :5], made.values("time")[:, :5])
    else:
        assert same(made, again)


def test_tables_in_parquet_are_read_back_as_they_were(tmp_path):
    pytest.importorskip("pyarrow")
    made = experiment(PARTLY, POINTS)
    path = tmp_path / "a.parquet"
    values_table(made, TIME).to_frame().to_parquet(path)
    assert same(made, read(tmp_path, "a.parquet", path.read_bytes()))


def test_the_largest_runs_are_the_profile_of_an_experiment():
    made = experiment(PARTLY, POINTS)
    largest = exports.at_largest(made, "time")
    np.testing.assert_allclose(largest[[0, 1, 3]], [1.0, (8.0 + 8.3) / 2, 1.5], rtol=1e-15)
    least = exports.at_largest(made, "time", "min")
    np.testing.assert_array_equal(least[[0, 1, 3]], [1.0, 8.0, 1.0])


def test_folded_stacks_add_up_to_the_profile(tmp_path):
    tree = call_tree(["main", "main/a;b", "main/a;b/c", "main/gone"])
    text = exports.folded(tree, np.array([2e-6, 2.5, 3.0, np.nan]), "s")
    assert text == "main 2\nmain;a:b 2500000\nmain;a:b;c 3000000\n"
    again = read(tmp_path, "a.folded", text)
    assert again.values("samples").ravel().tolist() == [2, 2_500_000, 3_000_000]


@pytest.mark.parametrize("unit", ["s", "1", "B"])
def test_numbers_of_folded_stacks_are_whole_and_add_up_to_the_rounded_total(unit):
    tree = call_tree([f"f{k}" for k in range(40)])
    values = np.random.default_rng(3).random(40) * (1e-6 if unit == "s" else 1.0)
    lines = exports.folded(tree, values, unit).splitlines()
    assert all(re.fullmatch(r"f\d+ [1-9]\d*", line) for line in lines)
    total = sum(int(line.split()[1]) for line in lines)
    assert total == round(values.sum() * (1e6 if unit == "s" else 1.0))


def test_values_that_are_no_finite_cost_are_in_no_folded_stack():
    tree = call_tree(["a", "b", "c", "d"])
    values = np.array([np.inf, np.nan, -5.0, 7.0])
    assert exports.folded(tree, values) == "d 7\n"


def test_the_literal_of_hatchet_is_read_back_as_it_was(tmp_path):
    tree = call_tree(["main", "main/f", "main/f/g", "main/h", "other"])
    exclusive = np.array([1.0, 2.0, 3.0, np.nan, 5.0])
    text = exports.hatchet_literal(tree, {TIME: exclusive})
    main, other = json.loads(text)
    assert main["metrics"] == {"time": 1.0, "time (inc)": 6.0}
    assert [child["name"] for child in main["children"]] == ["f", "h"]
    assert other["frame"] == {"name": "other", "type": "function"}
    again = read(tmp_path, "a.json", text)
    assert [again.tree.path(row) for row in range(4)] == ["main", "main/f", "main/f/g", "other"]
    assert again.values("time").ravel().tolist() == [1.0, 2.0, 3.0, 5.0]
    assert again.columns["time"].total.tolist() == [11.0]


def test_deep_programs_are_written_without_recursion():
    depth = 50_000
    chain = CallTree.from_parents(range(ROOT, depth - 1), np.zeros(depth, int), [Region("f")])
    text = exports.hatchet_literal(chain, {TIME: np.ones(depth)})
    assert text.count('"children": [') == depth == text.count("]}")


def test_without_a_parameter_there_is_nothing_for_extrap():
    with pytest.raises(UsageError, match="no parameter varies"):
        exports.extrap_json_lines(experiment({"main": [1.0]}, (2.0,)))


def calls(profile):
    """Return the cost of each call of a speedscope profile, in order of their ends."""
    stack, ended, before = [], [], 0.0
    for event in profile["events"]:
        assert event["at"] >= before
        before = event["at"]
        if event["type"] == "O":
            stack.append(event)
            continue
        opened = stack.pop()
        assert opened["frame"] == event["frame"]
        ended.append((event["frame"], event["at"] - opened["at"]))
    assert not stack
    return ended


def test_speedscope_has_every_call_as_long_as_it_costs_with_its_callees():
    tree = call_tree(["main", "main/f", "main/f/g", "main/h", "other"])
    exclusive = np.array([1.0, 2.0, 3.0, np.nan, 5.0])
    counts = Metric("visits", "1")
    found = json.loads(exports.speedscope(tree, {TIME: exclusive, counts: np.ones(5)}, "app"))
    time, visits = found["profiles"]
    names = [frame["name"] for frame in found["shared"]["frames"]]
    assert [(names[frame], cost) for frame, cost in calls(time)] == [
        ("g", 3.0), ("f", 5.0), ("h", 0.0), ("main", 6.0), ("other", 5.0),
    ]  # fmt: skip
    assert (time["unit"], time["endValue"]) == ("seconds", 11.0)
    assert (visits["name"], visits["unit"], visits["endValue"]) == ("visits", "none", 5.0)
    assert found["name"] == "app"


def test_in_speedscope_time_never_goes_back():
    tree = call_tree(["main", "main/f", "main/f/g", "main/h"])
    values = {TIME: np.array([0.1, -2.0, 0.2, 0.3])}
    (profile,) = json.loads(exports.speedscope(tree, values, "app"))["profiles"]
    assert [cost for _, cost in calls(profile)] == pytest.approx([0.2, 0.2, 0.3, 0.6])
    assert profile["endValue"] == profile["events"][-1]["at"]


def test_speedscope_takes_deep_programs_and_refuses_what_does_not_add_up():
    depth = 50_000
    chain = CallTree.from_parents(range(ROOT, depth - 1), np.zeros(depth, int), [Region("f")])
    (profile,) = json.loads(exports.speedscope(chain, {TIME: np.ones(depth)}, "x"))["profiles"]
    assert len(profile["events"]) == 2 * depth
    least = Metric("least", "s", additive=False)
    with pytest.raises(UsageError, match="no metric adds up"):
        exports.speedscope(chain, {least: np.ones(depth)}, "x")
