"""Errors in tables: one line, with the line number."""

from __future__ import annotations

import warnings
from contextlib import suppress

import numpy as np
import pytest

from callpath_modeler.errors import DataError, InputError, UsageError
from callpath_modeler.readers.base import Match
from callpath_modeler.studies import loading, pipeline
from cells import cells
from cpmodel_tables import ExtrapReader, TableReader

GOOD = "callpath,p,time\nmain,2,1\nmain/f,2,2\nmain,4,3\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty file"),
        ("callpath,p,time\n", "the table has no rows"),
        ("callpath,p,time\n# nothing\n", "the table has no rows"),
        (GOOD + "main,8\n", "line 5: 2 fields, but the header has 3"),
        (GOOD + "main,8,12x\n", "line 5: time: '12x' is not a number"),
        (GOOD + "main,eight,1\n", "line 5: p: 'eight' is not a number"),
        (GOOD + "main,,1\n", "line 5: parameter p has no finite value"),
        ("callpath,p,time\nmain,8x,1\nmain,16x,2\n", "line 2: p: '8x' is not a number"),
        ("callpath,n,Ranks,time\nmain,1,8 x 2,1\n", "line 2: Ranks: '8 x 2' is not a number"),
        (GOOD + ",8,1\n", "line 5: no callpath"),
        (GOOD + "main//f,8,1\n", "line 5: callpath: 'main//f' contains an empty name"),
        (GOOD + '"main,8,1\n', "line 5: unexpected end of data"),
        ("name,age\nAnn,30\n", "not a table of measurements"),
        ("city,population\nUlm,130000\n", "not a table of measurements"),
        ("callpath,p\nmain,x\n", "no column has values"),
        ("callpath,p\nmain,2\n", "no column has values"),
        ("callpath;p;time\nmain;2;1,5x\n", "line 2: time: '1,5x' is not a number"),
        ("callpath,p,p\nmain,2,1\n", "two columns have the title 'p'"),
        ("callpath,p,rank,time\nmain,2,0,1\n", "column 'rank' separates processes or threads"),
        ("rank,callpath,growth,model\n1,main,O(p),p\n", "a table of results"),
        ("callpath,p,time\nmain,2,\n", "holds no values"),
        ("callpath,p,r,time\nmain,2,1,5\nmain,2,1,6\n", "line 3: a second value of time for main"),
        ("callpath,p,rep,time\nmain,2,1.5,5\n", "line 2: rep is not a whole number"),
        ("callpath,p,metric,a,b\nmain,2,time,1,x\n", None),
        ("callpath,metric,time,bytes\nmain,t,1,2\n", "several columns may hold the values"),
        (
            "callpath,p,metric,value,unit\nmain,2,t,1,s\nmain,4,t,1,bytes\n",
            "line 3: t is in B, but in s before",
        ),
        (b"callpath,p,time\nma\xffin,2,1\n", "not a text file: byte 18"),
    ],
)
def test_a_bad_table_is_an_input_error_with_its_line(load, text, message):
    if message is None:
        assert load("bad.csv", text)
        return
    with pytest.raises(InputError) as caught:
        load("bad.csv", text)
    assert message in caught.value.message


def test_of_a_cell_without_a_number_the_line_and_the_remedy_are_said(load):
    with pytest.raises(InputError, match="line 2: time: '1,5x' is not a number") as caught:
        load("bad.csv", "callpath;p;time\nmain;2;1,5x\n")
    assert "bad.csv" in caught.value.message
    assert "correct the cell" in caught.value.hint


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON: Expecting property name enclosed in double quotes in column 2"),
        ("[1]", "line 2: not a JSON object"),
        ("[" * 100_000, "line 2: the JSON is nested too deeply"),
        ('{"params": {"p": 1e999}, "callpath": "main", "value": 1}', "p has no finite value"),
        ('{"params": {"p": 4}, "callpath": 5, "value": ["1"]}', "line 2: value: ['1']"),
        ('{"params": {"p": 4}, "callpath": ["main", 3], "value": 1}', "callpath"),
        ('{"params": {"p": 4}, "value": 1}', "line 2: no callpath"),
        ('{"params": {"p": ' + "9" * 5000 + '}, "callpath": "main", "value": 1}', "line 2"),
    ],
)
def test_a_bad_line_of_json_is_an_input_error_with_its_number(load, line, message):
    good = '{"params": {"p": 2}, "callpath": "main", "value": 1}\n'
    with pytest.raises(InputError) as caught:
        load("bad.jsonl", good + line + "\n")
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PARAMETER p\nPOINTS 2 4\nDATA 1\nDATA 2\nDATA 3\n", "line 5: there are more DATA lines"),
        ("PARAMETER p\nPOINTS 2 4 x\n", "line 2: not a number"),
        ("PARAMETER p n\nPOINTS ( 2 )\n", "line 2: a point has 1 numbers for 2 parameters"),
        ("PARAMETER p p\n", "line 1: parameter p appears twice"),
        ("PARAMETER p\nPOINTS 1\nPARAMETER n\n", "line 3: PARAMETER after"),
        ("PARAMETER p\nPOINTS 2\nREGON main\n", "line 3: starts with 'REGON'"),
        ("PARAMETER p\nPOINTS 2\nREGION main\n", "the file has no values"),
        ("PARAMETER p\nPOINTS 2\nREGION main-> ->f\nDATA 1\n", "contains an empty name"),
        ("PARAMETER p\nPOINTS 2\nDATA 1\nREGION <root>\nDATA 2\n", "line 5: a second value"),
    ],
)
def test_bad_text_of_extrap_is_an_input_error(load, text, message):
    with pytest.raises(InputError) as caught:
        load("bad.txt", text)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", "Remember the milk.\n"),
        ("job.txt", "PARAMETERS of the job\n"),
        ("image.txt", b"\x89PNG\r\n\x1a\n\0\0"),
        ("image.csv", b"\x89PNG\r\n\x1a\n\0\0"),
    ],
)
def test_files_that_are_no_tables_are_not_taken(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert ExtrapReader().match(path) is Match.NO
    assert TableReader().match(path) is Match.NO


@cells(
    ("name", "content", "sure"),
    [
        ("a.csv", GOOD, Match.CONTENT),
        ("a.csv", "name,city\nAnn,Ulm\n", Match.NAME),
        ("a.csv", "rank,callpath,growth,model\n", Match.NAME),
        ("a.jsonl", '{"params": {"p": 2}, "callpath": "main", "value": 1}\n', Match.CONTENT),
        ("a.jsonl", '{"params": {"x": 2}, "value": 1}\n', Match.CONTENT),
        ("a.csv", "function,n,colour\nf,2,1\n", Match.NAME),
        ("a.csv", "function,n,time\nf,2,1\n", Match.CONTENT),
        ("a.jsonl", '{"level": "info", "message": "ready"}\n', Match.NAME),
    ],
)
def test_a_table_is_recognised_by_its_titles(tmp_path, name, content, sure):
    path = tmp_path / name
    path.write_text(content)
    assert TableReader().match(path) is sure


def test_a_directory_of_profiles_does_not_take_the_tables_beside_them(tmp_path, samples):
    for run in sorted((samples / "lulesh").glob("*.r1"))[:2]:
        target = tmp_path / run.name
        target.mkdir()
        (target / "profile.cubex").write_bytes((run / "profile.cubex").read_bytes())
        (target / "values.csv").write_text(GOOD)
        (target / "stdout.txt").touch()
    experiment = loading.load([tmp_path])
    assert {run.reader for run in experiment.runs} == {"scorep"}
    assert "CPM101" not in {finding.code for finding in experiment.findings}


def test_a_directory_of_tables_is_an_experiment(tmp_path):
    for p in (2, 4, 8):
        (tmp_path / f"app.p{p}.csv").write_text(f"callpath,time\nmain,{p}\n")
    (tmp_path / "notes.csv").write_text("name,city\nAnn,Ulm\n")
    (tmp_path / "empty.csv").touch()
    experiment = loading.load([tmp_path])
    assert experiment.points("p").tolist() == [2, 4, 8]
    found = [(finding.code, finding.message) for finding in experiment.findings]
    assert found == [("CPM164", "empty.csv, notes.csv")]


def test_endless_totals_and_parts_raise_no_warning(load):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        experiment = load("a.csv", "p,comm (s),total (s)\n2,1,inf\n4,1e308,1e308\n8,inf,inf\n")
    assert "CPM117" in {finding.code for finding in experiment.findings}


def test_a_number_of_processes_below_one_is_no_bug(load):
    assert "p is not positive" in load("a.csv", GOOD + "main,-8,1\n").scaling_reason


def test_random_damage_is_values_or_an_error_of_ours(load):
    rng = np.random.default_rng(0)
    texts = {
        "a.csv": GOOD + "main/f,8,7\n",
        "a.jsonl": '{"params": {"p": 2}, "callpath": "main->f", "metric": "t", "value": 1}\n' * 3,
        "a.txt": "PARAMETER p n\nPOINTS ( 2 3 ) (4 5)\nMETRIC t\nREGION f->g\nDATA 1 2\nDATA 3\n",
    }
    for name, text in texts.items():
        for _ in range(12):
            damaged = bytearray(text.encode())
            for _ in range(rng.integers(1, 4)):
                at = int(rng.integers(len(damaged)))
                if rng.random() < 0.3:
                    del damaged[at : at + int(rng.integers(1, 30))]
                    damaged = damaged or bytearray(b"x")
                else:
                    damaged[at] = int(rng.choice(np.frombuffer(b'0,;\n"-/{}[]().e\xff\0', "u1")))
            with suppress(InputError, DataError, UsageError):
                load(name, bytes(damaged))


def test_values_too_large_to_add_up_end_in_one_line_without_a_warning(load):
    text = "callpath,p,time\n" + "".join(f"main,{p},{p}e307\nmain/f,{p},1e308\n" for p in (2, 4, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        experiment = load("a.csv", text)
    assert np.isnan(experiment.values("time")).all()
    assert "CPM117" in {finding.code for finding in experiment.findings}
    with pytest.raises(DataError, match="no call path has a value of time"):
        pipeline.fit(experiment)
