"""Files that once caused a traceback or were ignored: each is read, or refused in one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.errors import InputError
from callpath_modeler.studies.loading import load
from cells import cells
from fuzz import seeds
from fuzz.forms import unzipped, zipped
from fuzz.judge import check_refusal

LONG = "f" * 70_000


def refused(path) -> str:
    """Return the error for a file that cannot be read."""
    with pytest.raises(InputError) as caught:
        load([path])
    check_refusal(caught.value, path)
    return caught.value.message


def written(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("first", [f"main;{LONG} 1", f"{LONG} 1", f"{'main;' * 20_000}f 2"])
def test_folded_stacks_with_a_very_long_first_line_are_read(tmp_path, first):
    for p in (2, 4):
        written(tmp_path / f"p{p}" / "a.folded", f"{first}\nmain;g {p}\n")
    experiment = load([tmp_path / "p2" / "a.folded", tmp_path / "p4" / "a.folded"])
    assert len(experiment.runs) == 2
    assert np.nansum(experiment.values("samples")[:, 1]) == float(first[-1]) + 4


@pytest.mark.parametrize("first", [f"main;{LONG} 1", f"{LONG} 1"])
def test_folded_stacks_in_a_directory_do_not_vanish(tmp_path, first):
    for p in (2, 4):
        written(tmp_path / f"app.p{p}.folded", f"{first}\nmain;g {p}\n")
    written(tmp_path / "app.p8.folded", "main;g 8\n")
    experiment = load([tmp_path])
    told = " ".join(finding.message for finding in experiment.findings if finding.code == "CPM164")
    read = {run.source for run in experiment.runs}
    for p in (2, 4):
        assert str(tmp_path / f"app.p{p}.folded") in read or f"app.p{p}.folded" in told


def caliper(**changed):
    document = json.loads(seeds.caliper_json()[0])
    return json.dumps({**document, **changed})


@cells(
    "changed",
    [
        {"columns": [["time"], "mpi.rank", "path"]},
        {"columns": {"time": 1}},
        {"columns": [None, {}, 5]},
        {"data": [[[0.5], 0, None]]},
        {"data": [["0.5x", 0, 0]]},
        {"data": [[1e400, 0, 0]]},
        {"data": [[0.5, 0, 99]]},
        {"data": [[0.5, 0, -1]]},
        {"data": [[0.5, 0, 0.5]]},
        {"data": [[0.5, 10**30, 0]]},
        {"nodes": [{"label": ["a"], "column": "path"}]},
        {"nodes": [{"label": "a", "column": "path", "parent": 0}]},
        {"column_metadata": [[], {}, 3]},
    ],
)
def test_damaged_cells_of_caliper_are_refused(tmp_path, changed):
    text = caliper(**changed).replace("Infinity", "1e400")
    try:
        load([written(tmp_path / "a.json", text)])
    except InputError as error:
        check_refusal(error, tmp_path / "a.json")


@cells(
    ("name", "content"),
    [
        ("a.json", seeds.extrap_json()[0]),
        ("a.json", seeds.extrap_json()[1]),
        ("a.json", seeds.json_rows()[0]),
        ("a.jsonl", seeds.json_lines()[0]),
        ("a.json", seeds.hatchet()[0]),
        ("a.json", seeds.caliper_json()[0]),
    ],
)
def test_half_a_character_in_json_is_refused(tmp_path, name, content):
    assert b"main" in content
    path = written(tmp_path / name, content.replace(b"main", b"ma\\ud800in"))
    assert "surrogate" in refused(path)


@cells(
    "header",
    [b"{'descr': (((((((((", b"{'descr': '<f8', 'shape': (1,}", b"\xff\xfe\0", b"{'a': lambda: 1}",
     b"{'descr': 'O', 'fortran_order': False, 'shape': (1,), }",
     b"{'descr': '<f8', 'fortran_order': False, 'shape': (-5,), }",
     b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }"],
)  # fmt: skip
def test_a_damaged_header_of_an_array_in_an_archive_is_refused(tmp_path, header):
    members = unzipped(seeds.extrap_experiment()[0])
    values = members["values/0.vals"]
    at = values.index(b"\x93NUMPY")
    size = int.from_bytes(values[at + 8 : at + 10], "little")
    text = header.ljust(size - 1) + b"\n"
    members["values/0.vals"] = values[: at + 10] + text + values[at + 10 + size :]
    assert "damaged" in refused(written(tmp_path / "a.extra-p", zipped(members)))


def test_a_header_of_an_array_by_an_old_python_is_read(tmp_path):
    members = unzipped(seeds.extrap_experiment()[0])
    values = members["values/0.vals"]
    members["values/0.vals"] = values.replace(b",), }  ", b"L,), } ")
    assert members["values/0.vals"] != values
    assert load([written(tmp_path / "a.extra-p", zipped(members))]).runs


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('n="5" lm', 'n="99" lm'),
        ('lm="2"', 'lm="99"'),
        ('f="3"', 'f="99"'),
        ('n="5" lm', 'n="-1" lm'),
    ],
)
def test_an_index_beyond_the_names_of_hpctoolkit_is_refused(tmp_path, old, new):
    xml = unzipped(seeds.hpctoolkit2()[0])["experiment.xml"].decode()
    assert old in xml
    written(tmp_path / "d" / "experiment.xml", xml.replace(old, new))
    try:
        load([tmp_path / "d"])
    except InputError as error:
        check_refusal(error, tmp_path / "d")


@pytest.mark.parametrize("digits", [19, 400, 5000, 100_000])
def test_a_size_of_many_digits_in_a_tar_header_is_refused_or_passed_over(tmp_path, digits):
    tree = cw.Tree([-1], ["main"])
    metric = cw.MetricToWrite("time", np.ones((1, 1)), unit="sec")
    path = cw.write(tmp_path / "a.cubex", tree, [metric], cw.Machine([1]))
    record = f" size={'9' * digits}\n"
    pax = f"{len(record)}{record}".encode()
    pax += bytes(-len(pax) % 512)
    path.write_bytes(cw.header("pax", len(pax), b"x") + pax + path.read_bytes())
    try:
        load([path])
    except InputError as error:
        check_refusal(error, path)


@pytest.mark.parametrize("name", ["x" * 5000, "a/" * 3000, "b\0c", "../" * 2000 + "x"])
def test_a_path_of_a_manifest_that_no_file_can_have_is_refused(tmp_path, name):
    text = f"schema = 1\n[[run]]\npath = {json.dumps(name)}\n"
    refused(written(tmp_path / "runs.toml", text))


@cells("value", ["1e400", "9" * 400, "9" * 5000, "nan", "inf", '"x"'])
def test_a_parameter_of_a_manifest_that_is_no_number_is_refused(tmp_path, value):
    written(tmp_path / "a.csv", "callpath,time\nmain,1\n")
    text = f'schema = 1\n[[run]]\npath = "a.csv"\nparameters = {{ p = {value} }}\n'
    refused(written(tmp_path / "runs.toml", text))
