"""Tables of many rows, which are parsed piece by piece."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.support.input_limits import UNLIMITED
from cpmodel_tables import grid
from cpmodel_tables.grid import CellColumns

ROWS = 300


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("cpmodel_tables.delimited.CHUNK", 7)
    monkeypatch.setattr(grid, "CHUNK", 7)
    monkeypatch.setattr(grid, "_AT_ONCE", 50)
    monkeypatch.setattr(grid, "_FEW", 2)
    monkeypatch.setattr(grid, "_MANY", 4)


def csv_of(*, comments=False):
    rows = [f"main/f{k},{p},{k + p}" for p in (2, 4, 8) for k in range(ROWS // 3)]
    between = "\n\n" if comments else "\n"
    return ("# measured\n\n" * comments) + "callpath,p,time\n" + between.join(rows) + "\n"


def lines_of():
    return [
        {"params": {"p": p}, "callpath": f"main->f{k}", "metric": "time", "value": k + p}
        for p in (2, 4, 8)
        for k in range(ROWS // 3)
    ]


def expected():
    return np.array([[k + p for p in (2, 4, 8)] for k in range(ROWS // 3)], float)


def written(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", csv_of()),
        ("a.csv", csv_of(comments=True)),
        ("a.csv", csv_of().rstrip("\n")),
        ("a.csv.gz", gzip.compress(csv_of().encode())),
        ("a.csv", csv_of().encode("utf-16")),
        ("a.jsonl", written(lines_of())),
        ("a.jsonl", written(lines_of()).rstrip("\n")),
        ("a.jsonl", written(lines_of()).replace("\n", "\r\n\r\n")),
        ("a.jsonl", "\ufeff" + written(lines_of())),
        ("a.jsonl.gz", gzip.compress(written(lines_of()).encode())),
        ("a.json", json.dumps(lines_of())),
    ],
)
def test_every_value_is_found_again_however_the_text_is_cut(load, name, content):
    experiment = load(name, content)
    np.testing.assert_array_equal(experiment.values("time")[1:], expected())


def test_every_value_of_parquet_is_found_again(load, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    flat = [{"p": row["params"]["p"], **row} for row in lines_of()]
    for held in ("params", "p"):
        rows = [{key: row[key] for key in (held, "callpath", "metric", "value")} for row in flat]
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a", row_group_size=11)
        experiment = load(f"{held}.parquet", (tmp_path / "a").read_bytes())
        np.testing.assert_array_equal(experiment.values("time")[1:], expected())


def test_values_that_are_missing_and_titles_that_come_up_late_count_from_their_row(load):
    rows = [{"callpath": "main", "p": p, "time": 1 + p} for p in range(1, 31)]
    rows[20] |= {"visits": 5}
    text = written(rows).replace('"time": 10}', '"time": NaN}')
    experiment = load("a.jsonl", text)
    assert np.flatnonzero(np.isnan(experiment.values("time")[0])).tolist() == [8]
    assert np.flatnonzero(~np.isnan(experiment.values("visits")[0])).tolist() == [20]


def test_what_stands_in_the_row_itself_counts_before_parameters_held_together(load):
    rows = [{"params": {"p": 1, "n": 7}, "callpath": "main", "value": p} for p in (2, 4, 8)]
    for row, p in zip(rows[:2], (2, 4), strict=True):
        row["p"] = p
    assert load("a.jsonl", written(rows)).points("p").tolist() == [1, 2, 4]


@pytest.mark.parametrize("held", [(), (2,), (2, 4)])
def test_parameters_held_in_some_rows_only_leave_no_column(load, held):
    rows = [
        {"params": {"p": p} if p in held else {}, "callpath": "main", "time": p}
        | ({} if p in held else {"p": p})
        for p in (2, 4, 8)
    ]
    experiment = load("a.jsonl", written(rows))
    assert experiment.points("p").tolist() == [2, 4, 8]
    assert experiment.values("time").tolist() == [[2, 4, 8]]
    assert experiment.findings == ()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz"])
@pytest.mark.parametrize("at", [2, 8, 9, 200, 300])
def test_the_line_of_an_error_is_that_of_the_file(load, name, at):
    text = written(lines_of()) if "jsonl" in name else csv_of()
    lines = text.split("\n")
    lines[at - 1] = lines[at - 1].rsplit(",", 1)[0]
    content = "\n".join(lines)
    with pytest.raises(InputError, match=rf": line {at}: "):
        load(name, gzip.compress(content.encode()) if name.endswith("gz") else content)


def test_bytes_that_are_no_text_are_counted_from_the_beginning(load):
    content = csv_of().encode() * 400
    with pytest.raises(InputError, match=rf"byte {len(content)} is not valid utf-8"):
        load("a.csv", content + b"\xff")


def test_null_bytes_in_call_paths_are_refused_with_the_line(load):
    rows = [f"main/f{k},2,1\n" for k in range(10_000)]
    with pytest.raises(InputError, match=r"line 10002: callpath: .* contains null bytes"):
        load("a.csv", "".join(["callpath,p,time\n", *rows, "ma\0in,4,2\n"]))


def test_a_text_that_comes_again_is_kept_once():
    gathered = CellColumns(UNLIMITED)
    for _ in range(3):
        gathered.extend({"a": ["".join(["x", str(k)]) for k in range(3)]}, 3)
    assert len({id(cell) for cell in gathered.cells["a"]}) == 3
    assert gathered.cells["a"] == ["x0", "x1", "x2"] * 3
