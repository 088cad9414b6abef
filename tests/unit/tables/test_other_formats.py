"""Extra-P's JSON and experiments, folded stacks, Hatchet's literal."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Match
from callpath_modeler.readers.registry import Registry
from cpmodel_tables import ExtrapReader, FoldedReader, HatchetReader, TableReader

NEW = {
    "parameters": ["p", "n"],
    "measurements": {
        "main": {"time": [{"point": [2, 9], "values": [1.0, 1.5]}, {"point": [4, 9], "values": 3}]},
        "main->f": {"visits": [{"point": [2, 9], "values": [7]}]},
    },
}
OLD = {
    "parameters": [{"id": 2, "name": "n"}, {"id": 1, "name": "p"}],
    "metrics": [{"id": 1, "name": "time"}],
    "callpaths": [{"id": 1, "name": "main"}, {"id": 2, "name": "main->f"}],
    "coordinates": [
        {
            "id": k,
            "parameter_value_pairs": [
                {"parameter_id": 2, "parameter_value": "9"},
                {"parameter_id": 1, "parameter_value": str(2 * k)},
            ],
        }
        for k in (1, 2)
    ],
    "measurements": [
        {"id": 1, "coordinate_id": 1, "callpath_id": 1, "metric_id": 1, "value": 1.0},
        {"id": 2, "coordinate_id": 1, "callpath_id": 1, "metric_id": 1, "value": "1.5"},
        {"id": 3, "coordinate_id": 2, "callpath_id": 1, "metric_id": 1, "value": 3},
        {"id": 4, "coordinate_id": 2, "callpath_id": 2, "metric_id": 1, "value": 4},
    ],
}
LITERAL = [
    {
        "frame": {"name": "main", "type": "function"},
        "metrics": {"time (inc)": 10.0, "time": 2.0, "_hatchet_nid": 0, "note": "x"},
        "children": [
            {"name": "f", "frame": {"type": "loop"}, "metrics": {"time (inc)": 8.0, "time": 3.0},
             "children": [{"frame": {"name": "g"}, "metrics": {"time (inc)": 5, "time": 5}}]},
        ],
    }
]  # fmt: skip


def archive(document, **members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr(
            "experiment.json", document if isinstance(document, str) else json.dumps(document)
        )
        for name, data in members.items():
            file.writestr(f"values/0.{name}", data)
    return content.getvalue()


def summaries(values=None):
    one = {"coordinate": [2.0], "mean": 5.0, "median": 1.0, "std": float("nan")}
    if values is not None:
        one["values"] = values
    return {"Extra-P": "4", "parameters": ["p"], "measurements": {"main": {"time": [one]}}}


def test_the_new_layout_of_json_is_read(load, value_of):
    experiment = load("a.json", json.dumps(NEW))
    assert experiment.constants == {"n": 9}
    assert value_of(experiment, "time", "main", p=2, repetition=2) == 1.5
    assert value_of(experiment, "visits", "main/f", p=2) == 7
    assert np.isnan(value_of(experiment, "visits", "main/f", p=4))


def test_the_old_layout_of_json_is_read(load, value_of):
    experiment = load("a.json", json.dumps(OLD))
    assert experiment.points("p").tolist() == [2, 4]
    assert value_of(experiment, "time", "main", p=2, repetition=2) == 1.5
    assert value_of(experiment, "time", "main/f", p=4) == 4


def test_an_experiment_without_repetitions_gives_means_and_says_so(load):
    experiment = load("a.extra-p", archive(summaries()))
    assert experiment.values("time").tolist() == [[5.0]]
    assert [f.code for f in experiment.findings] == ["CPM130"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 and no more", "damaged"),
        (b"no archive", "damaged: File is not a zip file"),
        (archive("{"), "not JSON"),
        (archive("[]"), "not in Extra-P's layout"),
        (archive(summaries([0, 0])), "not an Extra-P experiment"),
        (archive(summaries([0, 0]), indx=b"x", vals=b"y"), "has an unknown format"),
        (
            archive(
                summaries([0, 3]),
                indx=b"Extra-P INDEX\0\0\0" + bytes(8),
                vals=b"Extra-P VALUES\0\0",
            ),
            "has no array 3",
        ),
        (
            archive(
                summaries([0, 0]),
                indx=b"Extra-P INDEX\0\0\0" + bytes(8) + b"\xff" * 7 + b"\0",
                vals=b"Extra-P VALUES\0\0",
            ),
            "damaged",
        ),
        (
            archive(
                summaries([0, 0]),
                indx=b"Extra-P INDEX\0\0\0" + bytes(8) + (16).to_bytes(8, "little"),
                vals=b"Extra-P VALUES\0\0\x93NUMPY\1\0\5\0{'a(\n",
            ),
            "damaged",
        ),
        (
            archive({**summaries(), "parameters": ["p", "n"]}),
            "a point has 1 numbers for 2 parameters",
        ),
    ],
)
def test_a_bad_experiment_is_an_input_error(load, content, message):
    with pytest.raises(InputError) as caught:
        load("a.extra-p", content)
    assert message in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measurements": {}}, "the file has no values"),
        ({"measurements": {"main": {"time": [{"point": [2], "values": [1]}]}}}, "a point has 1"),
        ({"measurements": {"main": {"time": [{"point": ["x"], "values": 1}]}}}, "layout"),
        ({"measurements": {"main": 5}}, "not in Extra-P's layout"),
        ({"parameters": [5]}, "not in Extra-P's layout"),
        ({"measurements": {"main->": {"time": [{"point": [2, 9], "values": 1}]}}}, "empty name"),
        (
            {"measurements": {"main": {"time": [{"point": [2, 1e999], "values": 1}]}}},
            "parameter n is not a number",
        ),
    ],
)
def test_bad_json_of_extrap_is_an_input_error(load, change, message):
    with pytest.raises(InputError) as caught:
        load("a.json", json.dumps({**NEW, **change}))
    assert message in caught.value.message


def test_a_number_without_a_name_is_an_input_error(load):
    with pytest.raises(InputError, match="number 2, which has no name"):
        load("a.json", json.dumps({**OLD, "callpaths": OLD["callpaths"][:1]}))


def test_the_literal_of_hatchet_is_read(load):
    experiment = load("app.p4.json", json.dumps(LITERAL))
    assert experiment.constants == {"p": 4}
    assert list(experiment.columns) == ["time"]
    assert experiment.values("time").ravel().tolist() == [2, 3, 5]
    assert experiment.columns["time"].total.tolist() == [10]


def test_siblings_of_one_name_in_a_literal_are_added_and_said(load):
    twice = [{**LITERAL[0], "children": LITERAL[0]["children"] * 2}]
    experiment = load("a.json", json.dumps(twice))
    assert experiment.values("time").ravel().tolist() == [2, 6, 10]
    assert [(f.code, f.count) for f in experiment.findings] == [("CPM112", 2)]


@pytest.mark.parametrize(
    "node",
    [5, {}, {"frame": {"name": "x"}}, {"frame": {"name": 5}, "metrics": {}},
     {"frame": {"name": "x"}, "metrics": {}, "children": 5}],
)  # fmt: skip
def test_a_bad_literal_is_an_input_error(load, node):
    literal = [{**LITERAL[0], "children": [node]}]
    with pytest.raises(InputError, match=r"bad\.json"):
        load("bad.json", json.dumps(literal))


def test_a_literal_that_is_nested_too_deeply_is_an_input_error(load):
    start = '[{"frame": {"name": "f"}, "metrics": {"time": 1}, "children": '
    with pytest.raises(InputError, match="nested too deeply"):
        load("bad.json", start * 50_000)


def test_folded_stacks_add_up(load):
    text = "# perf\nmain;f;g 5\nmain;operator new(unsigned long) 2\nmain;f;g 1\nmain 1.5\n"
    experiment = load("app.p8.folded", text)
    assert experiment.constants == {"p": 8}
    paths = [experiment.tree.path(row) for row in range(4)]
    assert paths == ["main", "main/f", "main/f/g", "main/operator new(unsigned long)"]
    assert experiment.values("samples").ravel().tolist() == [1.5, 0, 6, 2]


@pytest.mark.parametrize("line", ["main;f", ";; 5", "12", "main;f 5x"])
def test_a_line_that_is_no_stack_is_an_input_error(load, line):
    with pytest.raises(InputError, match="line 2: not a stack with a number"):
        load("bad.folded", f"main 1\n{line}\n")


def test_every_json_goes_to_the_reader_it_is_for(tmp_path):
    registry = Registry((TableReader(), ExtrapReader(), HatchetReader(), FoldedReader()))
    rows = [{"callpath": "main", "p": 2, "time": 1.0}]
    ours = {"schema": 1, "units": {"value": "s"}, "rows": rows}
    caliper = {"data": [[1]], "columns": ["path", "time"], "nodes": []}
    settings = {"name": "x", "parameters": {"p": 1}}
    expected = [
        (NEW, "extra-p"), (OLD, "extra-p"), (LITERAL, "hatchet"), (rows, "tables"),
        (ours, "tables"), (caliper, None), (settings, None),
        ([], None), ({}, None), (5, None),
    ]  # fmt: skip
    for k, (document, name) in enumerate(expected):
        path = tmp_path / f"{k}.json"
        path.write_text(json.dumps(document))
        found = registry.match(path)
        assert (found.name if found else None) == name
        for reader in registry.readers:
            assert reader.match(path) in {Match.NO, Match.CONTENT}


def test_json_of_rows_is_a_table(load):
    rows = [{"callpath": "main", "p": p, "time": 1.0 * p} for p in (2, 4)]
    assert load("a.json", json.dumps(rows)).values("time").tolist() == [[2, 4]]
    with pytest.raises(InputError, match="row 3: time: 'x' is not a number"):
        load("b.json", json.dumps([*rows, {"callpath": "main", "p": 8, "time": "x"}]))


def test_damaged_parquet_is_an_input_error(load):
    pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match="not a Parquet file"):
        load("a.parquet", b"PAR1 and no more PAR1")


def test_the_measured_experiment_of_extrap_is_read_whole(shared_data):
    from callpath_modeler.studies import loading

    path = shared_data / "third_party/extrap_text/lulesh-cpu_demangled.extra-p"
    with zipfile.ZipFile(path) as file:
        document = json.loads(file.read("experiment.json"))
    everything = loading.ReadOptions(metrics=None)
    experiment = loading.load([path], loading.LoadOptions(everything))
    tree = experiment.tree
    assert len(tree) == 868 == len(document["measurements"])
    row_of = {"->".join(tree.names(row)): row for row in range(len(tree))}
    for callpath, metrics in document["measurements"].items():
        for metric, summaries_ in metrics.items():
            means = [summary["mean"] for summary in summaries_]
            assert experiment.values(metric)[row_of[callpath]].tolist() == means
