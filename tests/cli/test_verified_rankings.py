"""`rank --verify`: predictions against runs that the models have not seen."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

SCALES = (8, 16, 32, 64, 128)
COSTS = {"main": lambda _: 5.0, "main/f": lambda p: 0.01 * p, "main/g": lambda _: 1e-4}


def write(path, scales, *, costs=COSTS, repetitions=3, seed=1, noise=0.01, extra=""):
    random = np.random.default_rng(seed)
    lines = [f"callpath,p,rep{',n' if extra else ''},time"]
    lines += [
        f"{name},{p},{rep}{extra},{cost(p) * random.uniform(1 - noise, 1 + noise)}"
        for p in scales
        for rep in range(1, repetitions + 1)
        for name, cost in costs.items()
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def known(tmp_path):
    return write(tmp_path / "app.csv", SCALES)


def truth(tmp_path, **changes):
    return write(tmp_path / "far.csv", (1024,), repetitions=1, seed=2, noise=0, **changes)


def test_a_truth_in_the_band_holds(run, known, tmp_path):
    said = run("rank", known, "--target", "1024", "--verify", truth(tmp_path))
    assert said.status == 0, said.err
    assert "measured at 1024: 15.2 s; predicted: 15." in said.out
    assert "the band holds." in said.out
    assert "the bands of 2 of 2 call paths with at least 0.5 % of the measured" in said.out


def test_a_truth_outside_the_band_does_not_hold(run, known, tmp_path):
    slow = {**COSTS, "main/f": lambda p: 0.05 * p}
    far = truth(tmp_path, costs=slow)
    said = run("rank", known, "--target", "1024", "--verify", far)
    assert "the band does NOT hold" in said.out
    assert "the bands of 1 of 2 call paths" in said.out
    line = next(line for line in said.out.splitlines() if line.endswith(" main/f"))
    assert " 51.2 s  NO " in line


def test_columns_and_fields_state_the_verification(run, known, tmp_path):
    far = truth(tmp_path)
    asked = ("rank", known, "--target", "1024", "--verify", far, "-f")
    rows = {row["callpath"]: row for row in csv.DictReader(run(*asked, "csv").out.splitlines())}
    assert float(rows["main/f"]["verified_value[s]"]) == pytest.approx(10.24)
    assert rows["main/f"]["holds"] == "true"
    fields = json.loads(run(*asked, "json").out)["verification"]
    assert fields["total"]["measured"] == pytest.approx(15.2401)
    assert fields["total"]["low"] < 15.2401 < fields["total"]["high"]
    assert fields["total"]["holds"] is True
    assert (fields["runs"], fields["callpaths"], fields["held"]) == (1, 2, 2)


def test_without_runs_to_verify_there_are_no_columns(run, known):
    said = run("rank", known, "--target", "1024", "-f", "csv")
    assert "holds" not in said.out.splitlines()[0]


def test_inclusive_predictions_are_held_against_inclusive_values(run, known, tmp_path):
    asked = ("rank", known, "--target", "1024", "--verify", truth(tmp_path), "--inclusive")
    rows = {r["callpath"]: r for r in csv.DictReader(run(*asked, "-f", "csv").out.splitlines())}
    assert float(rows["main"]["verified_value[s]"]) == pytest.approx(15.2401)


def test_one_folder_has_both_if_a_condition_tells_them_apart(run, tmp_path):
    both = write(tmp_path / "app.csv", (*SCALES, 256))
    asked = ("rank", both, "--where", "p<=128", "--target", "256", "--verify", both)
    assert "measured at 256, 3 runs:" in run(*asked).out


def test_other_scales_do_not_verify(run, known, tmp_path):
    far = write(tmp_path / "far.csv", (512, 2048))
    told = run("rank", known, "--target", "1024", "--verify", far)
    told.fails(4, "--verify has no run at p = 1024", "p = 512, 2048")


def test_runs_that_the_models_have_seen_do_not_verify(run, known):
    told = run("rank", known, "--target", "128", "--verify", known)
    told.fails(2, "the models have seen runs at p = 128", "--where 'p<128'")


def test_nothing_is_verified_at_infinity(run, known, tmp_path):
    told = run("rank", known, "--target", "inf", "--verify", truth(tmp_path))
    told.fails(2, "--verify needs a finite target")


def test_groups_are_not_verified(run, known, tmp_path):
    asked = ("rank", known, "--target", "1024", "--group-by", "p", "--verify", truth(tmp_path))
    run(*asked).fails(2, "--verify and --group-by exclude each other")


def test_another_program_does_not_verify(run, known, tmp_path):
    far = truth(tmp_path, costs={"start": lambda _: 1.0})
    told = run("rank", known, "--target", "1024", "--verify", far)
    told.fails(4, "no call path in common")


def test_costs_that_the_models_have_never_seen_are_reported(run, known, tmp_path):
    far = truth(tmp_path, costs={**COSTS, "main/h": lambda _: 3.0})
    said = run("rank", known, "--target", "1024", "--verify", far)
    assert "Call paths that the models have never seen take 3.00 s there." in said.out


def test_only_runs_with_the_same_other_parameters_count(run, tmp_path):
    known = write(tmp_path / "app.csv", SCALES, extra=",50")
    far = write(tmp_path / "far.csv", (1024,), extra=",100")
    told = run("rank", known, "--target", "1024", "--verify", far)
    told.fails(4, "n = 50")


def test_runs_elsewhere_need_not_lie_in_a_directory_of_the_same_number(run, tmp_path):
    """`s44` names the directory of all runs, so it is no parameter of later runs."""
    for name in ("s44", "s45"):
        (tmp_path / name).mkdir()
    known = write(tmp_path / "s44" / "app.csv", SCALES)
    far = write(tmp_path / "s45" / "far.csv", (1024,))
    asked = ("rank", known, "--target", "1024", "--verify", far)
    done = run(*asked)
    assert (done.status, "the band holds." in done.out) == (0, True), done.err
    assert "models and measured runs: s = 44 and 45" in done.err
    run(*asked, "--param", "s").fails(4, "no run at s = 44")
    stated = write(tmp_path / "s44" / "app.s44.csv", SCALES)
    run("rank", stated, "--target", "1024", "--verify", far).fails(4, "no run at s = 44")


def test_a_file_that_is_not_there_is_one_error(run, known):
    told = run("rank", known, "--target", "1024", "--verify", "nowhere")
    told.fails(3, "nowhere")
