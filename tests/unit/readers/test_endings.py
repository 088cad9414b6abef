"""Endings of file names in capitals, as on copies from other systems."""

from __future__ import annotations

import gzip
import json

import numpy as np

import caliper_writer
import cube_writer as cw
from callpath_modeler.studies.loading import load
from cells import cells

TREE = cw.random_tree(4, seed=1)
COST = np.ones((4, 1))
EXTRAP = {
    "parameters": ["n"],
    "measurements": {"main": {"time": [{"point": [1], "values": [2]}]}},
}
CALIPER = [{"path": "main", "sum#time.duration.ns": 5}]
LINE = json.dumps({"params": {"n": 1}, "callpath": "main", "value": 1}) + "\n"
CSV = "callpath,time\nmain,1\n"
TEXT = "PARAMETER n\nPOINTS 1\nREGION main\nMETRIC time\nDATA 2\n"


def cubex(path):
    cw.write(path, TREE, [cw.MetricToWrite("time", COST, unit="sec")], cw.Machine([1]))


def cube(path):
    metric = cw.MetricToWrite("time", COST, unit="sec")
    path.write_bytes(cw.cube3(TREE, [metric], cw.Machine([1])))


def text(content):
    return lambda path: path.write_text(content)


def packed(content):
    return lambda path: path.write_bytes(gzip.compress(content.encode()))


@cells(
    ("name", "write"),
    [
        ("PROFILE.CUBEX", cubex),
        ("Profile.Cube", cube),
        ("RUN.CALI", text(caliper_writer.per_rank({("main",): [1.0]}))),
        ("RUN.JSON", text(json.dumps(CALIPER))),
        ("RUN.JSON", text(json.dumps(EXTRAP))),
        ("RUN.JSON.GZ", packed(json.dumps(EXTRAP))),
        ("RUN.JSONL", text(LINE)),
        ("RUN.NDJSON.GZ", packed(LINE)),
        ("RUN.CSV", text(CSV)),
        ("RUN.CSV.GZ", packed(CSV)),
        ("RUN.TSV", text(CSV.replace(",", "\t"))),
        ("RUN.TXT", text(TEXT)),
        ("RUN.FOLDED", text("main 1\n")),
        ("RUN.FOLDED.GZ", packed("main 1\n")),
        ("RUN.COLLAPSED", text("main 1\n")),
    ],
)
def test_endings_in_capitals_are_those_in_small_letters(tmp_path, name, write):
    for p in (1, 2, 4):
        folder = tmp_path / "runs" / f"app.p{p}"
        folder.mkdir(parents=True)
        write(folder / name)
    from_directory = load(tmp_path / "runs")
    assert len(from_directory.runs) == 3
    assert [f for f in from_directory.findings if f.code in {"CPM101", "CPM164"}] == []
    assert len(load(sorted((tmp_path / "runs").glob("*/*"))).runs) == 3
