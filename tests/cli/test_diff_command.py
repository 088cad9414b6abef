"""`cpmodel diff` on the command line."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler import store
from callpath_modeler.studies.loading import load
from callpath_modeler.studies.pipeline import fit

POINTS = (2, 4, 8, 16, 32)
LAWS = {"main": (1.0, 0), "main/solve": (4.0, 0), "main/halo": (0.2, 0.5), "main/io": (0.5, 0)}
SLOW = {**LAWS, "main/solve": (4.0, 0.5)}


@pytest.fixture
def table(tmp_path):
    """Write a table of runs with laws of a coefficient and an exponent each, with noise."""

    def table(name, laws, seed=1, *, points=POINTS, noise=0.01, repetitions=3):
        rng = np.random.default_rng(seed)
        lines = ["callpath,p,repetition,time[s]"]
        for path, (coefficient, exponent) in laws.items():
            for p in points:
                for k in range(repetitions):
                    value = coefficient * (p / 2) ** exponent * np.exp(noise * rng.normal())
                    lines.append(f"{path},{p},{k + 1},{float(value)!r}")
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return table


@pytest.fixture
def before(table):
    return table("before", LAWS)


@pytest.fixture
def after(table):
    return table("after", SLOW, 2)


def rows(text):
    return {row["callpath"]: row for row in csv.DictReader(io.StringIO(text))}


def test_a_planted_regression_is_named_and_ends_with_status_one(run, before, after):
    told = run("diff", before, after, "--target", "512", "--fail-on", "worse>5%,growth")
    assert told.status == 1
    assert told.out.startswith("At p = 512 (predicted): 8.69 s before, 68.6 s now, worse, +6")
    assert "1 call path worse: main/solve (×16)" in " ".join(told.out.split())
    assert "O(1) → O(p^½)" in told.out
    assert "worse: main/solve: +294 % at p = 32" in told.err
    assert "growth: main/solve: grows faster" in told.err
    assert f"next: cpmodel show {after} @" in told.out


def test_fresh_noise_alone_ends_with_status_zero(run, table, before):
    again = table("again", LAWS, 3)
    told = run("diff", before, again, "--target", "512", "--fail-on", "worse>5%,growth")
    assert told.status == 0
    assert "no call path is shown to differ" in told.out
    assert "worse:" not in told.err


def test_a_regression_without_a_limit_is_no_failure(run, before, after):
    assert run("diff", before, after).status == 0


def test_the_sample_profiles_do_not_differ_from_themselves(run, stored, lulesh):
    told = run("diff", stored, lulesh, "--target", "1000", "--fail-on", "worse,growth")
    assert told.status == 0
    assert "no difference is shown" in told.out
    assert "73 call paths in both" in " ".join(told.out.split())


def test_a_regression_planted_in_the_sample_profiles_is_caught(run, lulesh, tmp_path):
    experiment = load([lulesh])
    rng = np.random.default_rng(1)
    paths = []
    for name, exponent in (("base", 0.0), ("new", 0.5)):
        values = experiment.columns["time"]
        times = values.exclusive * np.exp(0.03 * rng.standard_normal(values.exclusive.shape))
        row = next(
            k for k in range(len(experiment.tree)) if experiment.tree.path(k).endswith("MPI_Init")
        )
        times[row] *= np.array([run.parameters["p"] for run in experiment.runs]) ** exponent
        changed = replace(values, exclusive=times)
        copy = replace(experiment, columns={**experiment.columns, "time": changed})
        paths.append(tmp_path / f"{name}.cpm")
        store.write([fit(copy, "time")], paths[-1])
    told = run("diff", *paths, "--fail-on", "worse>5%")
    assert told.status == 1
    assert "worse: main/MPI_Init" in told.err
    assert "1 call path worse in these runs: main/MPI_Init" in " ".join(told.out.split())


def test_machines_read_one_row_per_call_path(run, before, after):
    told = run("diff", before, after, "--target", "512", "-f", "csv")
    found = rows(told.out)
    assert list(found) == ["main/solve", *(path for path in found if path != "main/solve")]
    solve = found["main/solve"]
    assert solve["occurs"] == "both"
    assert solve["verdict_at_scale"] == solve["verdict_at_target"] == "worse"
    assert solve["verdict_of_growth"] == "faster"
    assert (solve["growth_base"], solve["growth_new"]) == ("O(1)", "O(p^(1/2))")
    assert float(solve["new_at_target[s]"]) == pytest.approx(64, rel=0.1)
    low, high = (float(solve[f"{end}_at_target"]) for end in ("low", "high"))
    assert low < 15 < high
    assert found["main/io"]["verdict_at_target"] == "not shown"


def test_json_says_what_was_compared_and_what_broke_a_limit(run, before, after):
    asked = ("diff", before, after, "--target", "512", "--fail-on", "worse>5%", "-f", "json")
    told = run(*asked)
    assert told.status == 1
    document = json.loads(told.out)
    assert document["schema"] == 1
    assert document["base"]["inputs"][0]["path"].startswith(str(before))
    assert document["new"]["inputs"][0]["path"].startswith(str(after))
    assert document["common_scales"] == list(POINTS)
    assert (document["scale"], document["target"]) == (32, 512)
    assert document["total"]["at_target"]["verdict"] == "worse"
    assert {(b["callpath"], b["scale"]) for b in document["breaches"]} == {
        (None, 32),
        ("main/solve", 32),
        (None, 512),
        ("main/solve", 512),
    }
    assert document["unmatched"] == document["left_out"] == []


def test_call_paths_of_one_experiment_only_are_listed(run, table, before):
    other = {path: law for path, law in LAWS.items() if path != "main/io"}
    told = run("diff", before, table("other", {**other, "main/pack": (2.0, 0)}))
    text = " ".join(told.out.split())
    assert "3 call paths in both, 1 only in base, 1 only in new" in text
    assert "only in new: 1 call path" in text
    assert "only in base: 1 call path" in text
    document = json.loads(run("diff", before, table("other", other), "-f", "json").out)
    (parted,) = document["unmatched"]
    assert (parted["callpath"], parted["occurs"]) == ("main/io", "base")


def test_scales_of_one_experiment_only_are_not_compared(run, table, before):
    told = run("diff", before, table("small", LAWS, 4, points=(4, 8, 64)))
    assert told.out.startswith("At p = 8 (measured)")
    assert "measured in both: p = 4, 8" in told.out


def test_two_scales_are_too_few_for_models_but_not_for_a_comparison(run, table):
    base = table("base", LAWS, 1, points=(4, 8))
    new = table("new", SLOW, 2, points=(4, 8))
    told = run("diff", base, new, "--fail-on", "worse>5%")
    assert told.status == 1
    assert "growth" not in told.out
    run("diff", base, new, "--target", "64").fails(4, "too few for a model")
    run("rank", base, "--target", "64").fails(4, "`cpmodel excess` compares two")
    assert run("excess", base).status == 0


def test_a_test_that_could_never_fail_is_refused(run, table):
    base, new = (table(name, LAWS, points=(8,), repetitions=1) for name in ("base", "new"))
    assert "any difference may be noise" in run("diff", base, new).out
    run("diff", base, new, "--fail-on", "worse>5%").fails(4, "nothing was repeated")
    run("diff", base, new, "--fail-on", "growth").fails(4, "too few scales")


def test_the_centre_of_repetitions_is_that_of_base_for_both(run, before, after, tmp_path):
    kept = tmp_path / "before.cpm"
    run("fit", before, "-o", kept, "--aggregate", "min")
    for pair in ((kept, after), (before, after)):
        document = json.loads(run("diff", *pair, "-f", "json").out)
        centres = [document[side]["fit"]["centre"] for side in ("base", "new")]
        assert centres == [centres[0]] * 2
        assert (centres[0] == "min") == (pair[0] == kept)


def test_worse_is_red_and_better_green_only_where_colour_is_wanted(run, before, after):
    red, green = "\x1b[31m", "\x1b[32m"
    assert red in run("--color", "always", "diff", before, after).out
    assert green in run("--color", "always", "diff", after, before).out
    assert "\x1b" not in run("diff", before, after).out


def test_characters_beyond_ascii_are_avoided_on_request(run, before, after):
    told = run("--ascii", "diff", before, after, "--target", "512")
    assert told.out.isascii()
    assert "->" in told.out


def test_selected_call_paths_are_shown_and_judged(run, before, after):
    asked = ("diff", before, after, "--fail-on", "worse>5%", "-f", "csv")
    told = run(*asked, "--select", "main/io")
    assert told.status == 0
    assert list(rows(told.out)) == ["main/io"]
    assert run(*asked, "--select", "main/solve").status == 1
    run(*asked, "--select", "main/sovle").fails(2, "main/sovle")


def test_nothing_is_half_written(run, before, after, tmp_path):
    there = tmp_path / "diff.md"
    assert run("diff", before, after, "-o", there).status == 0
    assert there.read_text().startswith("| base | new | p=32 |")
    run("diff", before, after, "-o", there).fails(6, "exists")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["BASE"], 2, "two experiments, not 1"),
        (["BASE", "NEW", "NEW"], 2, "two experiments, not 3"),
        (["BASE", "NEW", "--fail-on", "slower"], 2, "'slower' is no limit"),
        (["BASE", "NEW", "--target", "inf"], 2, "--target inf"),
        (["BASE", "NEW", "--at", "n=3"], 2, "'n'"),
        (["BASE", "NEW", "--predicted"], 2, "--predicted: there is no target"),
        (["BASE", "NEW", "-m", "bytes"], 2, "bytes"),
        (["BASE", "nowhere.cpm"], 3, "nowhere.cpm"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(run, before, after, arguments, status, words):
    known = {"BASE": before, "NEW": after}
    run("diff", *(known.get(word, word) for word in arguments)).fails(status, words)


@pytest.mark.parametrize("other", ["<program>/work", "<program>/main/solve"])
def test_experiments_without_a_common_call_path_are_not_compared(run, table, other):
    base = {f"<program>/{path}": law for path, law in LAWS.items()}
    told = run("diff", table("base", base), table("other", {other: (1.0, 0)}), "-f", "csv")
    if "solve" in other:
        assert told.status == 0
        assert "CPM121" not in told.err
    else:
        told.fails(4, "have no call path in common")


def test_two_programs_that_begin_alike_are_said_to_be_two(run, table, before):
    other = {"main": (1.0, 0)} | {f"main/other{k}": (1.0, 0) for k in range(9)}
    base = {"main": (1.0, 0)} | {f"main/f{k}": (1.0, 0) for k in range(9)}
    told = run("diff", table("base", base), table("new", other))
    assert told.status == 0
    assert "base and new: share hardly a function. " in told.err
    assert "CPM121" not in run("diff", before, table("again", LAWS, 2)).err


def test_a_changed_cause_of_growth_is_named(run, tmp_path):
    for name, grows in (("base", False), ("new", True)):
        rng = np.random.default_rng(3)
        for p in (8, 16, 32, 64, 128):
            for repetition in (1, 2, 3):
                length = 1e5 * (p / 8 if grows else 1)
                times = np.array([np.full(p, 0.01), np.full(p, 3.0), np.full(p, 1e-6 * length)])
                times *= np.exp(0.02 * rng.standard_normal(times.shape))
                visits = np.array([np.ones(p), np.full(p, 10), np.full(p, 10)])
                sent = np.array([np.zeros(p), np.zeros(p), np.full(p, 10 * length)])
                path = tmp_path / name / f"app.p{p}.r{repetition}" / "profile.cubex"
                path.parent.mkdir(parents=True)
                cw.write(
                    path,
                    cw.Tree([-1, 0, 0], ["main", "solve", "MPI_Send"]),
                    [
                        cw.MetricToWrite("visits", visits, dtype="UINT64"),
                        cw.MetricToWrite("time", times, unit="sec"),
                        cw.MetricToWrite("bytes_sent", sent, dtype="UINT64", unit="bytes"),
                    ],
                    cw.Machine([1] * p),
                )
    words = ("diff", tmp_path / "base", tmp_path / "new", "--target", "1024")
    text = " ".join(run(*words).out.split())
    assert "MPI_Send: the cause of its growth is now: longer messages" in text
    rows = list(csv.DictReader(io.StringIO(run(*words, "-f", "csv").out)))
    told = {row["callpath"]: (row["why_base"], row["why_new"]) for row in rows}
    assert told["main/MPI_Send"] == ("-", "longer messages")
    assert told["main/solve"] == ("-", "-")


def test_two_profiles_whose_scale_nothing_tells_are_compared_as_of_one_scale(run, tmp_path):
    base, new = tmp_path / "base.folded", tmp_path / "new.folded"
    base.write_text("main;a 10\nmain;b 20\n")
    new.write_text("main;a 15\nmain;c 20\n")
    found = run("diff", base, new, "-f", "csv")
    assert found.status == 0, found.err
    changes = {row["callpath"]: row for row in csv.DictReader(io.StringIO(found.out))}
    assert float(changes["main/a"]["change_at_scale[1]"]) == 5
    assert changes["main/c"]["occurs"] == "new"
    text = run("diff", base, new).out
    assert "At an unknown scale (measured): 30.0 before, 35.0 now" in " ".join(text.split())
    assert "scale =" not in text
