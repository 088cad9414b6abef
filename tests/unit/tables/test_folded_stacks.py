"""Folded stacks as profilers and their scripts write them, and as cpmodel writes them."""

from __future__ import annotations

import re

import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Match
from callpath_modeler.report import exports
from callpath_modeler.studies.loading import load as load_runs
from cpmodel_tables import FoldedReader


def test_fractions_are_read(load, value_of):
    experiment = load("x.folded", "main 0.25\nmain;solve 11.5\nmain;io 3\nmain;io 1e-3\n")
    assert value_of(experiment, "samples", "main/solve") == 11.5
    assert value_of(experiment, "samples", "main/io") == 3.001


def test_two_counts_are_two_metrics_with_a_finding(load, value_of):
    experiment = load("x.folded", "main 1 2\nmain;a b 3 5\n")
    assert value_of(experiment, "samples", "main/a b") == 3
    assert value_of(experiment, "samples_2", "main/a b") == 5
    assert [finding.code for finding in experiment.findings] == ["CPM163"]


def test_a_number_that_ends_some_names_is_no_second_count(load, value_of):
    experiment = load("x.folded", "main;thread 1 2\nmain;solve 5\n")
    assert value_of(experiment, "samples", "main/thread 1") == 2
    assert not experiment.findings


def test_frames_without_a_name_are_kept_with_a_finding(load, value_of):
    experiment = load("x.folded", "main;;x 4\nmain;y; 2\n;main;y 1\n")
    assert value_of(experiment, "samples", "main/(unnamed)/x") == 4
    assert value_of(experiment, "samples", "main/y") == 2
    assert value_of(experiment, "samples", "(unnamed)/main/y") == 1
    assert [(finding.code, finding.count) for finding in experiment.findings] == [("CPM162", 2)]


@pytest.mark.parametrize("text", ["main;f 1\n;;; 5\n", "main;f 1\n 5\n", "main;f 1\nmain;f\n"])
def test_a_line_without_a_stack_or_a_count_is_named(load, text):
    with pytest.raises(InputError, match="line 2: not a stack with a number"):
        load("x.folded", text)


def test_a_long_line_of_blanks_is_refused_in_linear_time(load):
    with pytest.raises(InputError, match="line 1"):
        load("x.folded", "a" + " " * 300_000 + "b\n")


def test_a_number_of_very_many_digits_is_refused_with_its_line(load):
    with pytest.raises(InputError, match="line 2: not a stack with a number"):
        load("x.folded", f"main;f 3\nmain;g {'4' * 500}\n")


@pytest.mark.parametrize("name", ["x.folded", "x.collapsed", "X.FOLDED"])
def test_a_first_line_of_any_length_is_recognised(tmp_path, name):
    deep = ";".join(f"frame{k:06d}" for k in range(10_000))
    assert len(deep) > 1 << 16
    for p in (1, 2, 4):
        folder = tmp_path / f"app.p{p}"
        folder.mkdir()
        (folder / name).write_text(f"# taken by a profiler\n{deep} {p}\nframe000000 1\n")
    assert FoldedReader().match(tmp_path / "app.p4" / name) is Match.CONTENT
    assert len(load_runs(tmp_path).runs) == 3


def test_files_that_no_reader_recognises_are_named(tmp_path):
    for p in (1, 2, 4):
        (tmp_path / f"app.p{p}.folded").write_text("main 1\nmain;solve 2\n")
        (tmp_path / f"notes{p}.json").write_text("{}")
    (tmp_path / "plain.folded").write_text("no stack at all\n")
    found = load_runs(tmp_path)
    assert len(found.runs) == 3
    (finding,) = [each for each in found.findings if each.code == "CPM164"]
    assert finding.count == 4
    assert finding.message == "notes1.json, notes2.json, notes4.json and 1 more"


def test_the_reported_table_is_written_in_whole_microseconds(shared_data):
    folder = shared_data / "reports/b06_folded_fractions"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/reports")
    experiment = load_runs(folder / "t.csv")
    values = exports.at_largest(experiment, "time")
    text = exports.folded(experiment.tree, values, "s")
    assert text == "main 250000\nmain;solve 11500000\nmain;io 3000000\n"
    # Lines that speedscope and inferno accept.
    assert all(re.fullmatch(r".* \d+", line) for line in text.splitlines())
    assert load_runs(folder / "t.folded").values("samples").sum() == 14.75
