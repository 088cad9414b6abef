"""Every form that the documentation of Extra-P describes, and what its users make of them."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Match
from callpath_modeler.studies.loading import load as load_runs
from cpmodel_tables import ExtrapReader, TableReader


def old_layout(paths):
    """Return an experiment in the old layout, keys in the documented order."""
    return {
        "callpaths": [{"id": k, "name": f"main->f{k:04d}"} for k in range(1, paths + 1)],
        "coordinates": [
            {"id": k, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": 2**k}]}
            for k in (1, 2, 3)
        ],
        "measurements": [
            {"callpath_id": path, "coordinate_id": k, "id": path, "metric_id": 1, "value": path * k}
            for path in range(1, paths + 1)
            for k in (1, 2, 3)
        ],
        "metrics": [{"id": 1, "name": "time"}],
        "parameters": [{"id": 1, "name": "p"}],
    }


def new_layout(paths):
    """Return an experiment in the new layout, keys sorted."""
    points = [{"point": [2**k], "values": [k, k + 0.5]} for k in (1, 2, 3)]
    return {
        "measurements": {f"main->f{k:04d}": {"time": points} for k in range(1, paths + 1)},
        "parameters": ["p"],
    }


@pytest.mark.parametrize("layout", [old_layout, new_layout])
@pytest.mark.parametrize("paths", [2, 1500])
@pytest.mark.parametrize("packed", [False, True])
def test_keys_may_stand_in_any_order_in_files_of_any_size(load, layout, paths, packed):
    text = json.dumps(layout(paths), indent=1).encode()
    assert paths == 2 or text.index(b'"parameters"') > 1 << 17
    name = "x.json.gz" if packed else "x.json"
    experiment = load(name, gzip.compress(text) if packed else text)
    assert len(experiment.tree) == paths + 1
    assert [parameter.name for parameter in experiment.parameters] == ["p"]
    assert len(experiment.runs) == (3 if layout is old_layout else 6)


def test_other_json_is_not_taken_for_extrap(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"metrics": ["time"], "rows": ["x" * 100] * 2000}))
    assert ExtrapReader().match(path) is Match.NO


LINES = [
    {"params": {"p": 4}, "callpath": "main->solve", "metric": "time", "value": [2.5, 2.6, 2.55]},
    {"params": {"p": 8}, "callpath": "main->solve", "metric": "time", "value": 5.0},
    {"params": {"p": 8}, "callpath": "main->io", "metric": "time", "value": [1.0]},
    {"params": {"p": 8}, "callpath": "main->solve", "metric": "time", "value": [7.0, 6.0]},
]


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.json"])
def test_lists_of_values_are_repetitions(load, value_of, name):
    experiment = load(name, "\n".join(map(json.dumps, LINES)))
    found = [value_of(experiment, "time", "main/solve", k, p=4) for k in (1, 2, 3)]
    assert found == [2.5, 2.6, 2.55]
    # Lists and single values of one call path go on counting.
    found = [value_of(experiment, "time", "main/solve", k, p=8) for k in (1, 2, 3)]
    assert found == [5.0, 7.0, 6.0]
    assert value_of(experiment, "time", "main/io", 1, p=8) == 1.0
    assert np.isnan(value_of(experiment, "time", "main/io", 2, p=8))


def test_lists_of_several_metrics_go_together(load, value_of):
    rows = [
        {"params": {"p": p}, "callpath": "main", "time": [p, p + 0.5], "visits": 3} for p in (2, 4)
    ]
    experiment = load("x.jsonl", "\n".join(map(json.dumps, rows)))
    assert value_of(experiment, "time", "main", 2, p=4) == 4.5
    assert value_of(experiment, "visits", "main", 2, p=4) == 3


def test_a_list_of_texts_is_no_list_of_values(load):
    rows = '{"params": {"p": 2}, "callpath": "main", "value": [1.0, "x"]}\n'
    with pytest.raises(InputError, match="no column has values"):
        load("x.jsonl", rows)


def test_an_empty_list_is_no_value(load, value_of):
    rows = [
        {"params": {"p": 2}, "callpath": "main", "value": []},
        {"params": {"p": 4}, "callpath": "main", "value": [1.0]},
    ]
    experiment = load("x.jsonl", "\n".join(map(json.dumps, rows)))
    assert value_of(experiment, "value", "main", 1, p=4) == 1.0


@pytest.mark.parametrize(
    "points",
    [
        "( 4 10 ) ( 8 10 ) ( 8 20 )",
        "(4 10)(8 10)(8 20)",
        "((4) (10)) ((8) (10)) ((8) (20))",
        "((4)(10))((8)(10))((8)(20))",
    ],
)
def test_points_may_have_parentheses_around_points_and_coordinates(load, value_of, points):
    text = f"# about\nPARAMETER p\nPARAMETER n\nPOINTS {points}\nREGION main\nMETRIC time\n"
    experiment = load("x.txt", text + "DATA 1 1.5\nDATA 2\nDATA 3\n")
    assert value_of(experiment, "time", "main", 2, p=4, n=10) == 1.5
    assert value_of(experiment, "time", "main", 1, p=8, n=20) == 3


def test_talpas_lines_are_read(load, value_of):
    lines = [
        f'{{"parameters":{{"p":{p}}};"metric":"time";"callpath":"main->f;g";"value":{p * 2.5}}}'
        for p in (2, 4, 4)
    ]
    experiment = load("x.txt", "\n".join(lines) + "\n")
    assert value_of(experiment, "time", "main/f;g", 1, p=2) == 5.0
    assert value_of(experiment, "time", "main/f;g", 2, p=4) == 10.0


def test_a_damaged_talpas_line_is_named(load):
    good = '{"parameters":{"p":2};"metric":"time";"callpath":"main";"value":1}'
    with pytest.raises(InputError, match="line 2"):
        load("x.txt", f"{good}\n{good[:-3]}\n")


@pytest.fixture
def reported(shared_data):
    folder = shared_data / "reports"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/reports")
    return folder


@pytest.mark.parametrize("name", ["run50", "run200", "new_natural", "new_sorted"])
def test_the_reported_order_of_keys_is_read(reported, name):
    path = reported / f"b01_extrap_json_key_order/{name}.json"
    assert ExtrapReader().match(path) is Match.CONTENT
    experiment = load_runs(path)
    assert [run.parameters["p"] for run in experiment.runs] == [4, 8, 16, 32, 64]
    assert len(experiment.tree) == (51 if name == "run50" else 201)


def test_the_reported_lists_of_values_are_read(reported, value_of):
    folder = reported / "b02_jsonl_value_list"
    assert TableReader().match(folder / "list.jsonl") is Match.CONTENT
    experiment = load_runs(folder / "list.jsonl")
    assert len(experiment.runs) == 12
    found = [value_of(experiment, "time", "main/solve", k, p=8) for k in (1, 2, 3)]
    assert found == [5.0, 5.1, 5.05]
    assert len(load_runs(folder / "mixed.jsonl").runs) == 6
