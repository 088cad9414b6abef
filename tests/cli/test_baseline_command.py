"""`cpmodel baseline`, and `cpmodel check` of its output."""

from __future__ import annotations

import shutil
import tomllib

import numpy as np
import pytest


def test_what_baseline_writes_is_checked_and_kept(run, lulesh, tmp_path):
    path = tmp_path / "expectations.toml"
    written = run("baseline", lulesh, "-o", path)
    assert written.status == 0
    assert written.out == ""
    checked = run("check", lulesh, path)
    assert checked.status == 0
    assert checked.out.splitlines()[-1].endswith("passed — p = 125, 95 % confidence")


def test_a_regression_is_a_failure_with_status_one(run, series, tmp_path):
    path = tmp_path / "expectations.toml"
    assert run("baseline", series(), "-o", path).status == 0

    def slower(metrics, p):
        values = metrics[0].values.copy()
        values[1] *= np.sqrt(p)
        metrics[0].values = values
        return metrics

    shutil.rmtree(tmp_path / "series")
    outcome = run("check", series(slower), path)
    assert outcome.status == 1
    assert "FAIL    main/f " in outcome.out


def test_without_a_file_it_goes_to_standard_output(run, stored):
    text = run("baseline", stored, "-n", 2).out
    assert [entry["name"] for entry in tomllib.loads(text)["expect"]][:1] == ["whole program"]
    assert len(tomllib.loads(text)["expect"]) == 4
    assert text.startswith("# Limits for lulesh")


def test_the_target_and_the_parameter_are_those_that_are_asked_for(run, stored):
    assert tomllib.loads(run("baseline", stored, "--target", 1000).out)["target"] == {"p": 1000}
    assert tomllib.loads(run("baseline", stored, "--at", "p=512").out)["target"] == {"p": 512}


def test_a_file_is_not_replaced_without_force(run, stored, tmp_path):
    path = tmp_path / "expectations.toml"
    path.write_text("mine")
    run("baseline", stored, "-o", path).fails(6, "expectations.toml", "--force")
    assert path.read_text() == "mine"
    assert run("baseline", stored, "-o", path, "--force").status == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cover", "much"), "--cover 'much' is not a share"),
        (("--margin", "-1"), "--margin '-1' is not a share"),
        (("--target", "inf"), "--target inf"),
        (("-i",), "--inclusive"),
    ],
)
def test_what_makes_no_sense_is_refused(run, stored, options, words):
    run("baseline", stored, *options).fails(2, words)


def test_an_unclear_kind_of_scaling_needs_no_choice(run, tmp_path):
    runs, path = tmp_path / "runs.csv", tmp_path / "expectations.toml"
    runs.write_text("p,time,io\n4,10,1\n8,8.1,1\n16,6.4,1\n32,5.2,1\n")
    assert "scaling unclear" in run("rank", runs, "--target", "64").out
    outcome = run("baseline", runs, "--target", "64", "-o", path)
    assert outcome.status == 0, outcome.err
    assert run("check", runs, path).status == 0
    expected = "[[expect]]\ncallpath = '**/io'\nshare = '<= 50 %'\n"
    path.write_text(f"schema = 1\ntarget = {{ p = 64 }}\n{expected}")
    assert run("check", runs, path).status == 0


def test_the_program_is_expected_to_grow_as_its_part_that_matters(run, samples, tmp_path):
    path = tmp_path / "expectations.toml"
    stencil = samples / "stencil"
    assert run("baseline", stencil, "--target", "2048", "-o", path).status == 0
    whole = tomllib.loads(path.read_text())["expect"][0]
    assert (whole["name"], whole["growth"]) == ("whole program", "<= O(p)")
    assert run("check", stencil, path, "--all").out.startswith("PASS    whole program ")
