"""Values of single processes: `cpmodel show --per-process`, and the key r of the browser."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import shutil

import numpy as np
import pytest

import caliper_writer
import configured
import cube_writer as cw
from callpath_modeler.cli.browse import browser_services
from cells import cells

NAMES = ["main", "solve", "MPI_Wait", "other", "solve"]
TREE = cw.Tree([-1, 0, 1, 0, 3], NAMES)
SLOW = 11
P = 16


def exact(p, *, slow=SLOW, noise=0.02, seed=1):
    """Return times [call paths, processes]; one process is twice as slow in main/solve."""
    draw = np.random.default_rng(seed)
    values = np.array([0.1, 1.0, 0.3, 0.2, 0.05])[:, None] * np.exp(
        noise * draw.standard_normal((len(NAMES), p))
    )
    if slow < p:
        values[1, slow] *= 2
    return values


def one(folder, p, repetition, values=None, machine=None, tree=TREE):
    values = exact(p, seed=100 * p + repetition) if values is None else values
    path = folder / f"app.p{p}.r{repetition}" / "profile.cubex"
    path.parent.mkdir(parents=True, exist_ok=True)
    cw.write(path, tree, [
        cw.MetricToWrite("visits", np.ones_like(values), dtype="UINT64"),
        cw.MetricToWrite("time", values, unit="sec"),
        cw.MetricToWrite("largest", values, dtype="MAXDOUBLE", unit="sec"),
    ], machine or cw.Machine([1] * p))  # fmt: skip
    return path


@pytest.fixture
def runs(tmp_path):
    for p in (4, 8, P):
        for repetition in (1, 2, 3):
            one(tmp_path / "runs", p, repetition)
    return tmp_path / "runs"


def table(done):
    assert done.status == 0, done.err
    return list(csv.DictReader(io.StringIO(done.out)))


def test_the_slow_rank_is_named_in_the_first_lines(run, runs):
    out = run("show", runs, "main/solve", "--per-process").out.splitlines()
    assert out[0].startswith("main/solve   @")
    assert out[1] == "time of each process, exclusive, p = 16: median of 3 repetitions"
    assert out[2] == f"1 of 16 ranks is outlying: {SLOW}."
    assert any(line.split()[0:1] == [str(SLOW)] and line.endswith("3 of 3") for line in out)


def test_a_call_path_without_a_slow_rank_has_none(run, runs):
    out = run("show", runs, "main/other", "--per-process").out
    assert "No rank is outlying" in out
    assert "at most 5 % of" in " ".join(out.split())


def test_every_value_is_in_the_table(run, runs):
    rows = table(run("show", runs, "main/solve", "--per-process", "-f", "csv"))
    assert len(rows) == 3 * P
    assert list(rows[0]) == ["run", "repetition", "rank", "node", "value[s]", "threads",
                             "thread_min[s]", "thread_max[s]", "outlying"]  # fmt: skip
    for repetition in (1, 2, 3):
        own = [row for row in rows if row["repetition"] == str(repetition)]
        values = exact(P, seed=100 * P + repetition)
        assert [float(row["value[s]"]) for row in own] == pytest.approx(values[1].tolist())
        assert [int(row["rank"]) for row in own] == list(range(P))
        assert [k for k, row in enumerate(own) if row["outlying"] == "true"] == [SLOW]


def test_inclusive_values_contain_the_callees(run, runs):
    rows = table(run("show", runs, "main/solve", "--per-process", "-i", "-f", "csv"))
    values = exact(P, seed=100 * P + 1)
    expected = (values[1] + values[2]).tolist()
    assert [float(row["value[s]"]) for row in rows[:P]] == pytest.approx(expected)


def test_several_call_paths_are_summed_and_said_so(run, runs):
    out = run("show", runs, "**/solve", "--per-process").out
    assert out.startswith("sum of 2 call paths, the first is main/solve   @")
    rows = table(run("show", runs, "**/solve", "--per-process", "-f", "csv"))
    values = exact(P, seed=100 * P + 1)
    expected = (values[1] + values[4]).tolist()
    assert [float(row["value[s]"]) for row in rows[:P]] == pytest.approx(expected)


def test_json_has_the_answer(run, runs):
    found = json.loads(run("show", runs, "main/solve", "--per-process", "-f", "json").out)
    assert found["outlying"] == [SLOW]
    assert found["at"] == {"p": 16.0}
    assert found["false_rate"] == 0.05
    assert found["limits"][0] < found["median"] < found["limits"][1]
    assert found["units"]["value"] == "s"
    assert len(found["rows"]) == 3 * P


def test_another_measured_scale_and_another_metric(run, runs):
    out = run("show", runs, "main/solve", "--per-process", "--target", "8", "-m", "visits").out
    assert "visits of each process, exclusive, p = 8: median of 3 repetitions" in out
    assert "8 of 8 processes have the same value, 1.00." in out


def test_a_scale_that_was_not_measured_is_refused(run, runs):
    asked = ("show", runs, "main/solve", "--per-process")
    run(*asked, "--target", "32").fails(4, "p = 32 was not measured", "4, 8, 16")
    run(*asked, "--at", "q=1").fails(2, "no parameter 'q'")
    run(*asked, "--target", "inf").fails(4, "was not measured")


def test_options_of_models_are_refused(run, runs, tmp_path):
    for words in (["--predicted"], ["--pair", "4,8"], ["--linear"], ["--plot", tmp_path / "a.svg"]):
        run("show", runs, "main/solve", "--per-process", *words).fails(2, words[0])
    run("show", runs, "main/solve", "--per-process", "--split-ranks", "rank == 0").fails(
        2, "omit --split-ranks"
    )


def test_a_configured_target_is_no_measured_scale(run, runs, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "me"))
    configured.trust(runs)
    (runs / "cpmodel.toml").write_text("[defaults]\nat = { p = 4096 }\nlinear = true\n")
    assert "p = 16" in run("show", runs, "main/solve", "--per-process").out


def test_selected_ranks_are_the_ones_shown(run, runs):
    asked = ("show", runs, "main/solve", "--per-process", "--ranks", "rank % 2 == 1", "-f", "csv")
    rows = table(run(*asked))
    assert [int(row["rank"]) for row in rows[: P // 2]] == list(range(1, P, 2))


def test_ignored_and_hidden_call_paths_are_as_in_the_experiment(run, runs):
    values = exact(P, seed=100 * P + 1)
    asked = ("show", runs, "main/solve", "--per-process", "-f", "csv")
    rows = table(run(*asked, "-i", "--ignore", "**/MPI_Wait"))
    assert [float(row["value[s]"]) for row in rows[:P]] == pytest.approx(values[1].tolist())
    rows = table(run(*asked, "--hide", "**/MPI_Wait"))
    expected = (values[1] + values[2]).tolist()
    assert [float(row["value[s]"]) for row in rows[:P]] == pytest.approx(expected)


def test_a_stored_experiment_finds_its_profiles_or_says_that_they_are_gone(run, runs, tmp_path):
    kept = tmp_path / "kept.cpm"
    assert run("fit", runs, "-o", kept).status == 0
    asked = ("show", kept, "main/solve", "--per-process")
    assert f"outlying: {SLOW}." in run(*asked).out
    one(runs, P, 1, 2 * exact(P))
    done = run(*asked)
    assert "the profile has changed since it was read" in done.out
    assert "median of 2 repetitions" in done.out
    shutil.rmtree(runs)
    run(*asked).fails(3, "profile.cubex: the profile is not there", "hint: give the profiles")


def test_a_pipe_in_place_of_a_profile_is_not_opened(run, runs, tmp_path):
    kept = tmp_path / "kept.cpm"
    assert run("fit", runs, "-o", kept).status == 0
    path = runs / f"app.p{P}.r1" / "profile.cubex"
    path.unlink()
    os.mkfifo(path)
    run("show", kept, "main/solve", "--per-process").fails(3, "the profile is not there")


def test_a_call_path_that_one_run_lacks(run, runs, tmp_path):
    small = cw.Tree([-1, 0], ["main", "other"])
    one(runs, P, 3, exact(P)[:2], tree=small)
    done = run("show", runs, "main/solve", "--per-process")
    assert "median of 2 repetitions" in done.out
    assert "the call path does not occur in this run" in done.out
    lone = tmp_path / "lone"
    for repetition in (1, 2):
        one(lone, 32, repetition, exact(32)[:2], tree=small)
    run("show", runs, lone, "main/solve", "--per-process").fails(
        4, "p32.r1", "the call path does not occur in this run"
    )


def test_one_process_has_a_value_and_no_chart(run, tmp_path):
    path = one(tmp_path, 1, 1, exact(1))
    out = run("show", path, "main/solve", "--per-process").out
    assert "1 process with a cost" in out
    assert "ranks 0" not in out


def test_values_that_are_not_numbers_do_not_end_in_a_traceback(run, tmp_path):
    values = exact(P)
    values[1, 3] = np.nan
    values[1, 5] = np.inf
    done = run("show", one(tmp_path, P, 1, values), "main/solve", "--per-process")
    assert done.status == 0, done.err
    assert "2 processes have no cost or no valid value here: 3, 5" in done.out
    assert "not finite" in done.err or "CPM104" in done.err or "CPM117" in done.err


def test_a_call_path_of_a_single_rank(run, tmp_path):
    values = exact(P)
    values[1] = 0.0
    values[1, 6] = 3.0
    out = run("show", one(tmp_path, P, 1, values), "main/solve", "--per-process").out
    assert "Only rank 6 of 16 processes has a cost here." in out


def test_a_metric_that_does_not_add_up_is_refused(run, runs):
    done = run("show", runs, "main/solve", "--per-process", "-m", "largest")
    done.fails(4, "largest does not add up over call paths")


def test_a_table_has_no_values_of_processes(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("callpath,p,time[s]\nmain,2,1\nmain,4,2\nmain,8,3\n")
    run("show", path, "main", "--per-process").fails(
        4, "the profile has no values of single processes"
    )


def cyclic(p):
    """Processes in the order of their nodes, as if ranks were dealt out to two nodes in turn."""
    return [*range(0, p, 2), *range(1, p, 2)]


def test_ranks_are_those_of_the_profile_in_any_order_of_its_processes(run, tmp_path):
    values, order = exact(P), cyclic(P)
    path = one(tmp_path, P, 1, values[:, order], cw.Machine([1] * P, ranks=order))
    rows = table(run("show", path, "main/solve", "--per-process", "-f", "csv"))
    assert [int(row["rank"]) for row in rows] == list(range(P))
    assert [float(row["value[s]"]) for row in rows] == pytest.approx(values[1].tolist())
    asked = ("show", path, "main/solve", "--per-process", "--ranks", "rank < 3", "-f", "csv")
    assert [int(row["rank"]) for row in table(run(*asked))] == [0, 1, 2]


def test_a_topology_is_a_grid_of_all_processes(run, tmp_path):
    coordinates = "".join(f'<coord locId="{k}">{k % 4} {k // 4}</coord>\n' for k in range(P))
    cart = '<cart name="grid" ndims="2"><dim name="x" size="4"/><dim name="y" size="4"/>\n'
    values = exact(P, slow=P, noise=0.0)
    values[1, 6] *= 2.0
    machine = cw.Machine([1] * P, topologies=f"{cart}{coordinates}</cart>\n")
    path = one(tmp_path, P, 1, values, machine)
    out = run("--ascii", "show", path, "main/solve", "--per-process").out.splitlines()
    at = out.index("grid, 4 x 4: dimension 0 down, dimension 1 to the right")
    assert out[at + 1 : at + 5] == ["  55555555", "  55555555", "  55995555", "  55555555"]


@cells(
    "content",
    [
        '<dim size="4"/><dim size="4"/>',
        '<dim size="4"/><dim size="99999999999"/>',
        '<dim size="4"/><dim size="4"/><coord locId="0">9 9</coord>',
        "",
        '<dim size="4"/><dim size="4"/><coord locId="0">a b</coord>',
    ],
)
def test_a_topology_that_is_not_complete_is_left_out(run, tmp_path, content):
    cart = f'<cart name="g" ndims="2">{content}</cart>'
    path = one(tmp_path, P, 1, machine=cw.Machine([1] * P, topologies=cart))
    done = run("show", path, "main/solve", "--per-process")
    assert done.status == 0, done.err
    assert "g, 4 x" not in done.out


def test_threads_have_their_smallest_and_largest_value(run, tmp_path):
    values = np.abs(np.random.default_rng(3).standard_normal((len(NAMES), 2 * P))) + 0.1
    path = one(tmp_path, P, 1, values, cw.Machine([2] * P))
    rows = table(run("show", path, "main/solve", "--per-process", "-f", "csv"))
    pairs = values[1].reshape(P, 2)
    totals = values.sum(axis=0).reshape(P, 2)
    is_first = totals[:, 0] >= 0.98 * totals[:, 1]
    longest = np.where(is_first, *pairs.T)
    assert 0 < is_first.sum() < P
    assert [float(row["value[s]"]) for row in rows] == pytest.approx(longest.tolist())
    assert [float(row["thread_min[s]"]) for row in rows] == pytest.approx(pairs.min(axis=1))
    assert {row["threads"] for row in rows} == {"2"}
    out = run("show", path, "main/solve", "--per-process").out
    assert "The value of a process is that of its longest thread." in out


def test_caliper_files_with_ranks_have_values_of_processes(run, tmp_path):
    times = {("main",): [1.0, 1.5, 2.0], ("main", "solve"): [4.0, 0.0, 6.0]}
    path = tmp_path / "run.cali"
    path.write_text(caliper_writer.per_rank(times))
    rows = table(run("show", path, "**/solve", "--per-process", "-f", "csv"))
    assert [float(row["value[s]"]) for row in rows] == [4.0, 0.0, 6.0]


def test_ascii_has_no_other_characters(run, runs):
    out = run("--ascii", "show", runs, "main/solve", "--per-process").out
    assert out.isascii()
    assert "?" not in out
    assert "#" in out


def test_the_browser_shows_the_same_and_its_command_repeats_it(run, runs, monkeypatch):
    from callpath_modeler.analysis.answer import answer_at
    from callpath_modeler.analysis.answer_bands import AnswerInputs
    from callpath_modeler.cli import browse

    seen = {}

    def services(*given):
        seen["services"] = browser_services(*given)
        seen["fitted"] = given[-1]
        return seen["services"]

    monkeypatch.setattr(browse, "browser_services", services)
    monkeypatch.setattr(browse, "_refuse_pipes", lambda *_: None)
    monkeypatch.setattr("callpath_modeler.tui.app.Browser.run", lambda _: None)
    assert run("browse", runs).status == 0
    made = answer_at(AnswerInputs(seen["fitted"]), 64.0)
    tree = made.fitted.experiment.tree
    both = np.flatnonzero([tree.name(row) == "solve" for row in range(len(tree))])
    for names, rows, inclusive in ((["main", "solve"], both[:1], True), (["solve"], both, False)):
        answer = seen["services"].processes(names, rows, made, inclusive)
        shown = answer.listing(80)
        lines = [line.plain for line in (*shown.head, *(e.lines[0] for e in shown.entries))]
        again = run(*shlex.split(answer.command)[1:])
        assert again.status == 0, again.err
        assert again.out.split() == " ".join(lines).split()
