"""Comparison of two experiments in several parameters on the command line."""

from __future__ import annotations

import csv
import json

import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import UsageError
from callpath_modeler.studies.study import Study
from several_laws import LAWS, SLOW, N, P, stored, write_runs


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Write runs of laws in p and n, with noise."""
    directory = tmp_path_factory.mktemp("tables")

    def table(name, laws=LAWS, seed=1, **other):
        return write_runs(directory / f"{name}.csv", laws, seed, **other)

    return table


@pytest.fixture(scope="module")
def before(table):
    return stored(table("before"))


@pytest.fixture(scope="module")
def slow(table):
    return stored(table("slow", SLOW, 2))


def words(text):
    return " ".join(text.split())


def rows(outcome):
    return {row["callpath"]: row for row in csv.DictReader(outcome.out.splitlines())}


def test_what_is_slower_at_large_sizes_is_worse_there_and_only_there(run, before, slow):
    limits = ("--fail-on", "worse>5%")
    large = run("diff", before, slow, "--at", "p=1024,n=40", *limits)
    assert large.status == 1
    assert "At p = 128, n = 40 (measured): " in words(large.out)
    assert "1 call path worse in these runs: main/work (+5" in words(large.out)
    assert "worse: main/work: +50 % at p = 128, n = 40" in large.err
    small = run("diff", before, slow, "--at", "p=1024,n=10", *limits)
    assert small.status == 0
    assert "At p = 128, n = 10 (measured): " in words(small.out)
    assert "no call path is shown to differ" in small.out


def test_fresh_noise_alone_is_no_difference(run, before, table):
    again = table("again", LAWS, 3)
    told = run("diff", before, again, "--at", "p=1024,n=40", "--fail-on", "worse>5%,growth")
    assert told.status == 0
    assert "no call path is shown to differ" in told.out


def test_growth_is_compared_along_the_parameter_asked_for(run, before, table):
    other = stored(table("other", {**LAWS, "main/work": lambda p, n: 0.1 * n**4 / p}, 4))
    along_n = rows(run("diff", before, other, "--at", "n=400", "-f", "csv"))["main/work"]
    assert (along_n["growth_base"], along_n["growth_new"]) == ("O(n^3)", "O(n^4)")
    assert along_n["verdict_of_growth"] == "faster"
    along_p = rows(run("diff", before, other, "--at", "p=1024,n=40", "-f", "csv"))["main/work"]
    assert (along_p["growth_base"], along_p["growth_new"]) == ("O(p^-1)", "O(p^-1)")
    assert along_p["verdict_of_growth"] == "not shown"


def test_predictions_are_where_others_are_held_and_measurements_nearest_to_that(run, before, slow):
    told = run("diff", before, slow, "--at", "p=1024,n=400")
    assert told.out.startswith("At p = 1024, n = 400 (predicted): ")
    assert "At p = 128, n = 40 (measured)" in words(told.out)
    assert "p=128,n=40" in told.out
    assert "p=1024,n=400" in told.out
    document = json.loads(run("diff", before, slow, "--at", "p=1024,n=400", "-f", "json").out)
    assert (document["parameter"], document["scale"], document["target"]) == ("p", 128, 1024)
    assert document["held"] == {"n": 400}
    assert document["measured_at"] == {"n": 40}
    (work,) = (row for row in document["rows"] if row["callpath"] == "main/work")
    assert work["base_at_target"] == pytest.approx(400**3 / 1024, rel=0.05)


def test_what_is_not_said_is_held_at_the_largest_value_of_both(run, before, table):
    fewer = stored(table("fewer", LAWS, 5, p=P[:4], n=N[:3]))
    told = run("diff", before, fewer, "--target", "1024")
    assert "At p = 1024, n = 30 (predicted): " in words(told.out)
    assert "At p = 64, n = 30 (measured): " in words(told.out)
    assert "measured in both: p = 8, 16, 32, 64, n = 30" in words(told.out)
    assert "CPM206" in told.err
    assert "n = 30, the largest of both" in told.err
    said = run("diff", before, fewer, "--at", "p=1024,n=30")
    assert "CPM206" not in said.err


def test_a_comparison_works_where_one_experiment_has_one_size_only(run, before, table):
    one = table("one", LAWS, 6, n=(30,))
    told = run("diff", before, one, "--target", "1024")
    assert told.status == 0
    assert "At p = 1024, n = 30 (predicted): " in words(told.out)
    refused = run("diff", before, one, "--at", "p=1024,n=40")
    refused.fails(4, "new was run at n = 30 only: nothing is known of it at n = 40", "n=30")


def test_runs_of_too_few_sizes_for_models_are_compared_as_measured(run, before, table):
    two = table("two", SLOW, 7, n=(10, 40))
    told = run("diff", before, two)
    assert told.out.startswith("At p = 128, n = 40 (measured): ")
    assert "1 call path worse in these runs: main/work" in words(told.out)
    run("diff", before, two, "--target", "1024").fails(4, "2 points of n (10, 40)", "--where")


def test_without_a_common_setting_predictions_are_compared(run, before, table):
    apart = stored(table("apart", SLOW, 8, p=(10, 20, 40, 80, 160)))
    told = run("diff", before, apart, "--at", "p=1024,n=40")
    assert told.status == 0
    assert told.out.startswith("At p = 1024, n = 40 (predicted): ")
    assert "no p, n measured in both, so predictions are compared" in words(told.out)
    run("diff", before, apart).fails(4, "no common scale of p, n", "--target")
    sizes = table("sizes", SLOW, 9, n=(11, 22, 33))
    run("diff", before, sizes, "--target", "1024").fails(4, "no common n", "--at")


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--at", "p=1024,q=3"], 2, "do not vary in 'q'"),
        (["--at", "p=inf,n=40"], 2, "no difference at infinity"),
        (["--at", "p=1024,n=inf"], 2, "only p may be infinite"),
        (["--parameter", "q"], 2, "base: no parameter 'q' varies"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(run, before, slow, options, status, said):
    run("diff", before, slow, *options).fails(status, said)


def test_experiments_of_other_parameters_are_refused(run, table, tmp_path):
    other, before = tmp_path / "other.csv", table("before")
    other.write_text(before.read_text().replace("callpath,p,n,", "callpath,k,m,"))
    run("diff", before, other).fails(4, "base varies in p and n, new in k and m", "--parameter")
    other.write_text(before.read_text().replace("callpath,p,n,", "callpath,p,m,"))
    run("diff", before, other, "--where", "n=20").fails(2, "no parameter 'n' in --where")
    run("diff", before, other).fails(
        4, "new: nothing says at which n its runs were made", "cpmodel fit --where n=..."
    )
    for runs, where in ((before, "n=20"), (other, "m=20")):
        run("fit", runs, "--where", where, "-o", tmp_path / f"{where}.cpm")
    assert run("diff", tmp_path / "n=20.cpm", tmp_path / "m=20.cpm").status == 0
    follows = tmp_path / "follows.csv"
    lines = [f"main/work,{p},{p * 10},1,{1.0 * p}" for p in P]
    follows.write_text("\n".join(["callpath,p,n,rep,time[s]", *lines]) + "\n")
    run("diff", before, follows).fails(4, "new: n does not vary independently of p", "--where")


def test_models_that_are_stored_are_compared_along_the_parameter_asked_for(run, before, slow):
    asked = ("diff", before, slow, "--parameter", "n", "-f", "json")
    document = json.loads(run(*asked).out)
    assert (document["parameter"], document["scale"], document["held"]) == ("n", 40, {"p": 128})
    growths = {row["callpath"]: row["growth_base"] for row in document["rows"]}
    assert growths["main/work"] == "O(n^3)"


def test_models_that_are_there_are_compared_where_they_are_held(before, slow):
    after = Study(slow).models()
    for held, mark in (({"n": 10.0}, 0), ({"n": 40.0}, 1)):
        found = Study(slow).differences(before, after.holding(held)).at(1024)
        assert found.measured.at == {"p": 128, **held}
        assert found.predicted.at == {"p": 1024, **held}
        assert found.measured.mark.max() == mark


def test_from_python_models_are_compared_where_they_are_held(before, slow):
    base, new = (Study(path).models() for path in (before, slow))
    found = cpm.compare(base.holding({"n": 20}), new, 1024).difference
    assert found.predicted.at == {"p": 1024, "n": 20}
    assert found.measured.at == {"p": 128, "n": 20}
    assert not found.measured.mark.any()
    larger = cpm.compare(base, new, held={"n": 40}).difference
    assert larger.measured.mark.max() == 1
    with pytest.raises(UsageError, match="base are held at n = 20, of new at 30"):
        cpm.compare(base.holding({"n": 20}), new.holding({"n": 30}))
