"""Expectations of programs in several parameters, written and checked on the command line."""

from __future__ import annotations

import csv
import json
import tomllib

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.expectations.subjects import Subjects, SumModels
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.studies.study import Study
from several_laws import LAWS, SLOW, stored, write_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Store runs of laws, with their models."""

    def runs(laws, seed):
        return stored(write_runs(tmp_path_factory.mktemp("runs") / "app.csv", laws, seed))

    return runs


@pytest.fixture(scope="module")
def today(runs):
    return runs(LAWS, 1)


@pytest.fixture(scope="module")
def again(runs):
    return runs(LAWS, 2)


@pytest.fixture(scope="module")
def slow(runs):
    return runs(SLOW, 3)


@pytest.fixture
def write(tmp_path):
    """Write an expectation file."""

    def write(text):
        path = tmp_path / "expectations.toml"
        path.write_text("schema = 1\n" + text)
        return path

    return write


def checked(run, runs, file, *options):
    outcome = run("check", runs, file, *options, "-f", "csv")
    assert outcome.status in (0, 1), outcome.err
    return {row["name"]: row for row in csv.DictReader(outcome.out.splitlines())}


WORK = "[[expect]]\nname = 'work'\ncallpath = 'main/work'\n"


def test_a_baseline_names_all_parameters_and_unchanged_runs_keep_it(run, today, again, tmp_path):
    file = tmp_path / "baseline.toml"
    written = run("baseline", today, "-o", file)
    assert written.status == 0
    assert "CPM206" in written.err
    assert "# at p = 8 to 128, n = 40; written by" in file.read_text()
    assert tomllib.loads(file.read_text())["target"] == {"p": 128, "n": 40}
    assert run("check", today, file).status == 0
    kept = run("check", again, file)
    assert kept.status == 0
    assert kept.out.rstrip().endswith("— p = 128, n = 40, 95 % confidence")
    assert "CPM206" not in kept.err


def test_a_regression_at_large_sizes_breaks_the_baseline_and_is_named(run, today, slow, tmp_path):
    file = tmp_path / "baseline.toml"
    assert run("baseline", today, "-o", file).status == 0
    broken = run("check", slow, file)
    assert broken.status == 1
    failed = [line for line in broken.out.splitlines() if line.startswith("FAIL")]
    assert [line.split()[1] for line in failed] == ["whole", "main/work"]
    assert "at p = 128, n = 40, expected <= " in broken.out
    small = tmp_path / "small.toml"
    assert run("baseline", today, "--at", "p=128,n=20", "-o", small).status == 0
    assert run("check", slow, small).status == 0


def test_a_baseline_can_be_along_another_parameter_and_beyond_the_runs(run, today, again, tmp_path):
    file = tmp_path / "baseline.toml"
    assert run("baseline", today, "--at", "n=400,q=3").status == 2
    asked = ("--parameter", "n", "-o", file)
    assert run("baseline", today, *asked).status == 0
    document = tomllib.loads(file.read_text())
    assert document["target"] == {"n": 40, "p": 128}
    (work,) = (each for each in document["expect"] if each.get("callpath") == "main/work")
    assert "n^3" in work["growth"]
    assert run("check", again, file).status == 0
    assert run("baseline", today, "--at", "p=1024,n=400", "--force", "-o", file).status == 0
    assert tomllib.loads(file.read_text())["target"] == {"p": 1024, "n": 400}
    assert run("check", again, file).status == 0


def test_a_target_names_several_parameters_and_verdicts_say_all_of_it(run, today, write):
    file = write(f"target = {{ p = 4096, n = 400 }}\n{WORK}value = '<= 15 s'\n")
    broken = run("check", today, file)
    assert broken.status == 1
    assert "at p = 4096, n = 400, expected <= 15 s" in broken.out
    work = checked(run, today, file)["work"]
    assert float(work["value"]) == pytest.approx(400**3 / 4096, rel=0.05)
    assert (work["parameter"], float(work["target"])) == ("p", 4096)
    assert work["at"] == "p=4096,n=400"
    junit = file.with_suffix(".xml")
    github = run("check", today, file, "-f", "github", "--junit", junit)
    for text in (github.out, junit.read_text()):
        assert "at p = 4096, n = 400, expected" in text
    document = json.loads(run("check", today, file, "-f", "json").out)
    assert document["parameter"] == "p"
    assert document["rows"][0]["at"] == "p=4096,n=400"


def test_an_expectation_may_have_a_target_of_its_own(run, today, write):
    own = WORK.replace("work'\nc", "small'\nc") + "target = { p = 128, n = 10 }\nvalue = '<= 9 s'\n"
    file = write(f"target = {{ p = 128, n = 40 }}\n{WORK}value = '<= 600 s'\n{own}")
    rows = checked(run, today, file)
    assert [rows[name]["at"] for name in ("work", "small")] == ["p=128,n=40", "p=128,n=10"]
    assert float(rows["small"]["value"]) == pytest.approx(1000 / 128, rel=0.05)
    both = run("check", today, file, "--all")
    assert both.out.rstrip().endswith("— p = 128, n = 40 and p = 128, n = 10, 95 % confidence")


def test_targets_of_one_file_may_be_along_different_parameters(run, today, write):
    along_n = "[[expect]]\nname = 'large'\ncallpath = 'main/work'\ntarget = { n = 400 }\n"
    text = f"target = {{ p = 4096, n = 10 }}\n{WORK}value = '<= 600 s'\n{along_n}"
    file = write(f"{text}value = '<= 1 s'\ngrowth = '<= O(n^3)'\n")
    rows = checked(run, today, file)
    assert [rows[name]["at"] for name in ("work", "large")] == ["p=4096,n=10", "n=400,p=128"]
    assert [rows[name]["parameter"] for name in ("work", "large")] == ["p", "n"]
    assert float(rows["large"]["value"]) == pytest.approx(400**3 / 128, rel=0.05)
    assert "CPM206" in run("check", today, file).err
    # Values from the command line are fixed for all expectations.
    rows = checked(run, today, file, "--at", "p=64")
    assert [rows[name]["at"] for name in ("work", "large")] == ["p=64,n=10", "n=400,p=64"]


def test_the_command_line_takes_the_place_of_what_it_names(run, today, write):
    file = write(f"target = {{ p = 64, n = 20 }}\n{WORK}value = '<= 1 us'\n")
    asked = {
        (): "p=64,n=20",
        ("--target", "1024"): "p=1024,n=20",
        ("--at", "p=1024"): "p=1024,n=20",
        ("--at", "p=1024,n=30"): "p=1024,n=30",
    }
    for options, at in asked.items():
        assert checked(run, today, file, *options)["work"]["at"] == at
    along_n = checked(run, today, file, "--at", "n=30")["work"]
    assert (along_n["parameter"], along_n["at"]) == ("n", "n=30,p=64")


def test_growth_is_in_the_parameter_that_it_is_written_in(run, today, write):
    file = write(
        "target = { p = 128, n = 40 }\n"
        f"{WORK}growth = '<= O(n^3)'\n"
        "[[expect]]\nname = 'too much'\ncallpath = 'main/work'\ngrowth = '<= O(n^2)'\n"
        "[[expect]]\nname = 'send'\ncallpath = 'main/send'\ngrowth = '<= O(log p)'\n"
    )
    rows = checked(run, today, file)
    assert {name: (row["status"], row["growth"]) for name, row in rows.items()} == {
        "work": ("pass", "O(n^3)"),
        "too much": ("fail", "O(n^3)"),
        "send": ("pass", "O(log p)"),
    }
    assert rows["too much"]["message"] == "O(n^3), expected <= O(n^2) at p = 128: off by O(n)"
    assert (rows["send"]["parameter"], rows["send"]["at"]) == ("p", "n=40")


@pytest.mark.parametrize("n", [40.0, 400.0])
def test_sums_are_modelled_where_they_are_held(today, n):
    fitted = Study(today).models().holding({"n": n})
    program = SumModels(fitted).of_subjects(Subjects(Measured(fitted), None))
    points = np.array([8.0, 128.0])
    law = sum(each(points, n) for each in LAWS.values())
    assert program.values(points)[0] == pytest.approx(law, rel=0.1)


def test_what_is_held_has_a_value_in_bounds_and_rules(run, today, write):
    file = write(
        "target = { p = 128, n = 40 }\n"
        f"{WORK}bound = 'time / n / n / n <= 0.01 s'\n"
        "[[rule]]\nname = 'rule'\nrule = '{main/work} <= n * n * n / p * 1.1 s'\n"
        "[[rule]]\nname = 'broken'\nrule = '{main/work} <= n * n / p * 1 s'\n"
    )
    rows = checked(run, today, file)
    assert [rows[name]["status"] for name in ("work", "rule", "broken")] == ["pass", "pass", "fail"]
    assert (
        "measured to be broken at p = 8, 16, 32, 64, 128, n = 40" in run("check", today, file).out
    )


def test_what_is_not_held_by_a_target_is_said_to_be(run, today, write):
    file = write(f"target = {{ p = 128 }}\n{WORK}value = '<= 600 s'\n")
    outcome = run("check", today, file, "--all")
    assert "at p = 128, n = 40, expected" in outcome.out
    assert "CPM206" in outcome.err


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("target = {}\n", 2, "a target names no parameter"),
        ("target = { p = 4, n = 0 }\n", 2, "n = 0 is no scale"),
        ("target = { p = 4, n = inf }\n", 2, "only p may be infinite"),
        ("target = { p = 4, q = 3 }\n" + WORK + "value = '<= 1 s'\n", 3, "a target of q"),
        (
            "target = { p = 4, n = 3 }\n" + WORK + "growth = 'O(q)'\n",
            6,
            "is of q, the others are of p and n",
        ),
        (WORK + "growth = 'O(q)'\n", 5, "a growth in q; the models are functions of p and n"),
        (
            "target = { p = inf, n = 3 }\n" + WORK + "growth = 'O(n)'\n",
            3,
            "p = inf: a parameter is held at a finite value",
        ),
        (
            "target = { p = 4, n = 3 }\n" + WORK + "target = { q = 4 }\nvalue = '<= 1 s'\n",
            6,
            "a target of q; the models are functions of p and n",
        ),
    ],
)
def test_targets_that_cannot_be_are_refused_by_their_line(run, today, write, text, line, said):
    file = write(text)
    run("check", today, file).fails(
        3, f"{file}:{line}: {said}" if line != 6 else f":{line}: ", said
    )


def test_from_python_a_target_may_be_named(today, write):
    file = write(f"target = {{ p = 64, n = 20 }}\n{WORK}value = '<= 600 s'\n")
    models = Study(today).models()
    for target, at in ((None, (64, 20)), (1024, (1024, 20)), ({"p": 1024, "n": 30}, (1024, 30))):
        (outcome,) = cpm.check(models, file, target=target).outcomes
        assert (outcome.judgements[0].target, outcome.fitted.held["n"]) == at
