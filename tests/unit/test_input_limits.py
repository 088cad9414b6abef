"""Limits of the work that a file may cause, by its size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.studies.loading import load
from callpath_modeler.support.input_limits import UNLIMITED, VARIABLE, InputLimits, Work
from cells import cells


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.json"


@cells("work", Work)
def test_a_limit_has_a_floor_and_grows_with_the_file(path, work):
    small, large = InputLimits(path, 1), InputLimits(path, 100 * 2**20)
    assert small.most(work) == work.floor
    assert large.most(work) == max(work.floor, work.growth * large.size)
    small.check(work, work.floor, "a hint")
    with pytest.raises(InputError, match=f"{work.words} are too many for its 1 bytes"):
        small.check(work, work.floor + 1, "a hint")


def test_the_hint_names_the_factor_with_which_the_file_is_read(path, monkeypatch):
    path.write_text("x")
    with pytest.raises(InputError) as caught:
        InputLimits.of(path).check(Work.RUNS, 3.5 * Work.RUNS.floor, "write fewer")
    assert caught.value.hint == f"write fewer; if you trust the file, set {VARIABLE} to 4"
    monkeypatch.setenv(VARIABLE, "4")
    InputLimits.of(path).check(Work.RUNS, 3.5 * Work.RUNS.floor, "write fewer")


@pytest.mark.parametrize("text", ["0", "-1", "1_0", "1.5", "1e3", "9" * 5000, "٣"])
def test_a_factor_that_is_not_one_is_refused(path, monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UsageError, match=VARIABLE):
        InputLimits.of(path)


def test_data_of_the_caller_have_no_limits():
    UNLIMITED.check(Work.CELLS, 1e30, "")


def rows_of(number, row):
    return json.dumps([row(k) for k in range(number)])


TOO_WIDE = {
    "a column for each record": (
        700, lambda k: {"callpath": "a", "p": 2, f"k{k}": 1.5}, "cells of rows and columns"
    ),
    "a metric for each run": (
        400, lambda k: {"callpath": "a", "p": 2 + k, f"m{k} [s]": 1.5}, "pairs of a run"
    ),
    "a call path, a run and a metric for each record": (
        200, lambda k: {"callpath": f"f{k}", "p": 2 + k, f"m{k} [s]": 1.5}, "values in a table"
    ),
    "a parameter for each record": (
        700,
        lambda k: {"callpath": "a", "params": {"p": 2, f"q{k}": k}, "time": 1},
        "cells of rows and columns",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_WIDE)
def test_a_table_of_more_cells_than_its_size_allows_is_refused(path, name):
    number, row, words = TOO_WIDE[name]
    path.write_text(rows_of(number, row))
    with pytest.raises(InputError, match=words):
        load([path])


def test_the_numbers_of_a_list_are_rows_of_all_columns(path):
    wide = {f"c{k}": 1 for k in range(60)}
    path.write_text(json.dumps([{"callpath": "a", "p": 2, "time": [1] * 7000, **wide}]))
    with pytest.raises(InputError, match="cells of rows and columns"):
        load([path])


def test_repetitions_in_a_list_are_numbered_without_copies_of_the_other_columns(path):
    path.write_text(json.dumps([{"callpath": "a" * 30_000, "p": 2, "time": [1, 2, 3]},
                                {"callpath": "a" * 30_000, "p": 2, "time": [4, 5]}]))  # fmt: skip
    assert [run.repetition for run in load([path]).runs] == [1, 2, 3, 4, 5]


def test_a_sparse_table_of_many_metrics_is_read(path):
    path.write_text(rows_of(200, lambda k: {"callpath": "a", "p": 2 + k, "time": 1, f"m{k}": 1.5}))
    found = load([path])
    assert len(found.declared) == 201
    assert len(found.runs) == 200


def test_a_comb_of_deep_call_paths_is_refused(path):
    node = {"frame": {"name": "f"}, "metrics": {"time": 1}, "children": []}
    tree = node | {"children": [node | {"frame": {"name": f"f{k}"}} for k in range(4000)]}
    for _ in range(300):
        tree = node | {"children": [tree]}
    path.write_text(json.dumps([tree]))
    with pytest.raises(InputError, match="names in call paths"):
        load([path])


@cells("work", Work)
def test_the_page_of_limits_has_the_numbers_of_the_code(work):
    page = Path(__file__).resolve().parents[2] / "docs/reference/configuration.md"
    floor = f"{work.floor >> 20} MiB" if work.floor % 2**20 == 0 else f"{work.floor:,}"
    assert f"| {work.words} | {floor} | {work.growth:g} |\n" in page.read_text()
