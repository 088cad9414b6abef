"""Both methods of modelling on the command line: their output, and their labels."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from callpath_modeler.modeling.compiled import library
from callpath_modeler.modeling.compiled.library import is_outdated
from callpath_modeler.modeling.compiled.sources import libraries
from callpath_modeler.printable import csv_text

AT = ("--target", "1000")
DIGITS = re.compile(r"(?<![\w(/^.])\d+\.\d+(e-?\d+)?")

CLASSIC = {
    "lulesh": {
        "@1e17f5b": ("O(p^(3/2))", "0.27 + 0.009176 * p^(3/2)"),
        "@e956069": ("O(log p)", "5.932e-06 * log2(p)"),
        "@88411fc": ("O(p^(1/2) log^2 p)", "0.0001056 + 0.007395 * p^(1/2) * log2(p)^2"),
        "@6983acf": ("O(p^(1/3))", "-0.0002432 + 0.0002553 * p^(1/3)"),
        "@7fd5afb": ("O(p^(1/2) log^2 p)", "0.006275 * p^(1/2) * log2(p)^2"),
        "@30baf69": ("O(p^2)", "3.615e-05 + 3.387e-09 * p^2"),
        "@eb34e1d": ("O(1)", "1.011e-06"),
        "@3784469": ("O(1)", "0.0001442 - 9.259e-05 * p^(-1/2)"),
    },
    "snap": {
        "@30f0efd": ("O(p^(1/2) log^2 p)", "0.2617 + 0.00999 * p^(1/2) * log2(p)^2"),
        "@ae0e0f7": ("O(log^2 p)", "1.551e-06 + 2.16e-07 * log2(p)^2"),
        "@b60c314": ("O(log p)", "5.657e-06 + 1.031e-05 * log2(p)"),
        "@029e4af": ("O(p log p)", "0.0006653 + 0.0001843 * p * log2(p)"),
        "@f605084": ("O(1)", "0.0001255"),
    },
}
"""Models of the classic method for the sample profiles, from the time when it was the only one."""


def four_digits(formula: str) -> str:
    return DIGITS.sub(lambda found: f"{float(found.group()):.4g}", formula)


@pytest.mark.parametrize("program", list(CLASSIC))
def test_the_classic_method_says_what_it_always_said(run, samples, program):
    said = run(
        *("export", samples / program, "--locations", "max"),
        *("--method", "classic", "--aggregate", "median", "-f", "csv"),
    )
    assert said.status == 0
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(said.out))}
    found = {
        path: (rows[path]["growth"], csv_text(rows[path]["model"])) for path in CLASSIC[program]
    }
    assert {
        path: (growth, four_digits(model)) for path, (growth, model) in found.items()
    } == CLASSIC[program]


@pytest.mark.parametrize("method", ["mixture", "classic"])
def test_json_names_the_method_and_the_centre_that_was_modelled(run, stored, method):
    asked = run("rank", stored, *AT, "--method", method, "-f", "json")
    fit = json.loads(asked.out)["fit"]
    assert fit["method"] == method
    assert fit["repetitions"] == fit["centre"] == "mean"
    told = run("rank", stored, *AT, "--method", method, "--aggregate", "min", "-f", "json")
    assert json.loads(told.out)["fit"]["centre"] == "min"


def test_stored_models_of_one_method_do_not_pass_for_those_of_the_other(run, stored, lulesh):
    def ranked(path, *options):
        return json.loads(run("rank", path, *AT, *options, "-f", "json").out)["rows"]

    classic = ("--method", "classic")
    assert ranked(stored) != ranked(stored, *classic)
    assert ranked(stored, *classic) == ranked(lulesh, *classic)
    assert ranked(stored) == ranked(lulesh)


def test_without_a_compiled_engine_models_are_an_error_that_says_what_to_do(
    run, series, tmp_path, monkeypatch
):
    runs = series()
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    library.engine.cache_clear()
    words = "rank", runs, "--target", "64"
    try:
        run(*words).fails(9, "no compiled engine for this machine", "pip install .")
        (tmp_path / "modeler-of-others-any.so").touch()
        run(*words).fails(9, "have changed since they were compiled", "pip install -e .")
        assert run("plugins").status == 0
    finally:
        library.engine.cache_clear()


def test_libraries_are_outdated_where_there_are_some_but_none_of_these_sources(tmp_path):
    source = tmp_path / "model.c"
    source.write_text("int one;")
    assert not is_outdated(tmp_path)
    made = libraries(tmp_path)["any"]
    made.touch()
    assert not is_outdated(tmp_path)
    source.write_text("int two;")
    assert is_outdated(tmp_path)
    libraries(tmp_path)["any"].touch()
    assert not is_outdated(tmp_path)
