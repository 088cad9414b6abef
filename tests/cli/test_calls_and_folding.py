"""Call sites and folded call paths on the command line."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import configured
from call_sites import COSTS, EXCESS, contexts, write_run, write_series, write_source
from callpath_modeler.cli.console import Console
from callpath_modeler.report.node import NodeReport
from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database
from callpath_modeler.tui import app
from callpath_modeler.tui.panes import source_lines

SITES = [f"main/exchange:{line}" for line in EXCESS]


@pytest.fixture
def runs(tmp_path):
    """Two scales of a function that is called from three lines."""
    return write_series(tmp_path / "runs")


@pytest.fixture
def series(tmp_path):
    """Five scales, so that there are models and stores."""
    folder = write_series(tmp_path / "series")
    for p in (8, 16, 32):
        write_run(folder / f"app.p{p}", p, (20.0, 4.0 * p / 4, 7.0, 10.0))
    return folder


def rows(shown, key="callpath"):
    assert shown.status == 0, shown.err
    return {row[key]: row for row in csv.DictReader(io.StringIO(shown.out))}


def test_three_calls_of_a_function_have_their_own_excess_work(run, runs):
    for command, key in (("rank", "callpath"), ("excess", "path"), ("views", "path")):
        found = rows(run(command, runs, "--scaling", "weak", "-f", "csv"), key)
        name = "excess" if "excess" in found[SITES[0]] else "excess_inclusive"
        for site, excess in zip(SITES, EXCESS.values(), strict=True):
            assert float(found[site][name]) == pytest.approx(excess, abs=1e-9)
    assert "exchange:31" in run("views", runs).out


@pytest.mark.parametrize("command", ["rank", "views", "excess"])
def test_calls_are_joined_by_fold(run, runs, command):
    key = "callpath" if command == "rank" else "path"
    joined = rows(run(command, runs, "--fold", "call-sites", "-f", "csv"), key)
    assert "main/exchange" in joined
    assert not any(":" in path for path in joined)


def test_fold_is_kept_in_configuration_and_in_the_next_command(run, runs, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(runs.parent / "me"))
    configured.trust(runs)
    (runs / "cpmodel.toml").write_text('[defaults]\nfold = ["call-sites"]\n')
    assert "exchange:31" not in run("views", runs).out
    (runs / "cpmodel.toml").unlink()
    monkeypatch.setenv("CPMODEL_FOLD", "call-sites")
    assert "exchange:31" not in run("views", runs).out
    monkeypatch.delenv("CPMODEL_FOLD")
    shown = run("views", runs, "--fold", "call-sites", "--fold", "recursion").out
    assert "--fold call-sites --fold recursion" in " ".join(shown.split())


def test_a_store_has_the_call_sites_of_its_profiles(run, series, tmp_path):
    for name, options in (("apart", ()), ("joined", ("--fold", "call-sites"))):
        store = tmp_path / f"{name}.cpm"
        assert run("fit", series, *options, "-o", store).status == 0
        assert (
            rows(run("rank", store, "-f", "csv", "--target", "64")).keys()
            == rows(run("rank", series, *options, "-f", "csv", "--target", "64")).keys()
        )
    at = ("-f", "csv", "--target", "64")
    again = rows(run("rank", tmp_path / "apart.cpm", "--fold", "call-sites", *at))
    joined = rows(run("rank", tmp_path / "joined.cpm", *at))
    assert again["main/exchange"]["model"] == joined["main/exchange"]["model"]


def test_a_store_of_maxima_is_not_joined_later(run, series, tmp_path):
    store = tmp_path / "max.cpm"
    assert run("fit", series, "--locations", "max", "-o", store).status == 0
    run("rank", store, "--fold", "call-sites").fails(2, "--fold call-sites", "is not known")


def test_an_experiment_without_lines_is_compared_without_them(run, series, tmp_path):
    older = tmp_path / "older"
    for p in (4, 64):
        write_run(older / f"app.p{p}", p, (20.0, sum(COSTS[p][1:])), contexts(sites=(0,)))
    shown = run("diff", older, series, "-f", "json")
    assert shown.status == 0, shown.err
    paths = {row["callpath"] for row in json.loads(shown.out)["rows"]}
    assert "main/exchange" in paths
    assert not any("exchange:" in path for path in paths)
    assert "CPM148" in shown.err


def test_expectations_name_all_calls_or_one(run, series, tmp_path):
    file = tmp_path / "expectations.toml"
    file.write_text(
        'schema = 1\n[[expect]]\ncallpath = "main/exchange"\ngrowth = "<= O(p)"\n'
        '[[expect]]\ncallpath = "main/exchange:57"\ngrowth = "<= O(p)"\n'
    )
    shown = run("check", series, file)
    assert shown.status == 0, shown.err
    first, second = shown.out.split("main/exchange:57: growth")
    assert "1 unsure of 3 call paths" in first
    assert "call paths" not in second


def test_costs_of_one_scale_only_have_their_own_lines(run, tmp_path):
    # p = 4 calls old, p = 64 calls new and new/inner instead; kept is called at both.
    folder = tmp_path / "runs"
    functions = {
        4: [("kept", 1, 10.0), ("old", 1, 30.0)],
        64: [("kept", 1, 12.0), ("new", 1, 20.0), ("inner", 3, 60.0)],
    }
    for p, called in functions.items():
        known = [Scope(-1, Kind.FUNCTION, "main thread"), Scope(0, Kind.FUNCTION, "main")]
        own = [0.0, 8.0]
        for name, parent, cost in called:
            known.append(Scope(parent, Kind.FUNCTION, name))
            own.append(cost)
        ranks = [Measured({"RANK": k, "THREAD": 0}, {"REALTIME (sec)": own}) for k in range(p)]
        write_database(folder / f"app.p{p}", known, ranks)
    found = rows(run("views", folder, "--scaling", "weak", "--min-share", "0", "-f", "csv"), "path")
    both = {
        path: (float(row["excess_inclusive"]), float(row["excess_exclusive"]))
        for path, row in found.items()
    }
    assert both["main"] == pytest.approx((0.52, 0.0))
    assert both["main/kept"] == pytest.approx((0.02, 0.02))
    assert both["main/old"] == pytest.approx((-0.30, -0.30))
    assert both["main/new"] == pytest.approx((0.80, 0.20))
    assert both["main/new/inner"] == pytest.approx((0.60, 0.60))
    text = " ".join(run("excess", folder, "--scaling", "weak").out.split())
    assert "unmatched: 1 call path at p = 4 only" in text
    assert "2 call paths at p = 64 only" in text


def test_a_malformed_fold_and_source_path_are_refused(run, runs):
    assert run("rank", runs, "--fold", "loops").status == 2
    run("browse", runs, "--source-path", "x").fails(2, "--source-path 'x' is malformed")


def test_browse_reads_lines_and_finds_the_source(run, runs, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(Console, "is_interactive", property(lambda _: True))
    monkeypatch.setattr(app.Browser, "__init__", lambda _, *given: shown.append(given))
    monkeypatch.setattr(app.Browser, "run", lambda _: None)
    monkeypatch.setattr(app.Browser, "failure", None)
    write_source(tmp_path / "moved")
    options = ("--scaling", "weak", "--source-path", f"/src={tmp_path / 'moved'}")
    left = run("browse", runs, *options)
    assert left.status == 0, left.err
    ((session, given),) = shown
    report = NodeReport(session.forecast, session.view, np.array([1]), inclusive=True)
    first, *rows = [row.plain for row in source_lines(report, 5, files=given.sources)]
    assert first == "main.c: excess by line, p = 4 to 64"
    assert [row.split() for row in rows] == [
        ["0", "%", "14", "smooth(grid);"],
        [">", "56", "%", "31", "exchange(border);"],
        ["3", "%", "57", "exchange(corner);"],
        ["0", "%", "80", "exchange(residual);"],
    ]


def test_the_printed_view_has_no_option_of_the_source(run, runs):
    told = run("browse", runs, "--source-path", "/a=/b", "--fold", "recursion")
    told.fails(2, f"cpmodel views {runs} --fold recursion prints the same view")


@pytest.mark.parametrize("shift", [0, 40])
def test_values_of_processes_are_those_of_one_call(run, runs, shift):
    # Lines were inserted above the caller between the two runs.
    write_run(runs / "app.p64", 64, COSTS[64], contexts(shift=shift))
    for site, cost in zip(SITES, COSTS[64][1:], strict=True):
        shown = rows(run("show", runs, site, "--per-process", "-f", "csv"), "rank")
        assert len(shown) == 64
        assert {float(row["value[s]"]) for row in shown.values()} == {cost}
    joined = rows(run("show", runs, "main/exchange", "--per-process", "-f", "csv"), "rank")
    assert {float(row["value[s]"]) for row in joined.values()} == {sum(COSTS[64][1:])}


def test_values_of_processes_of_joined_calls(run, runs):
    options = ("--fold", "call-sites", "--per-process", "-f", "csv")
    joined = rows(run("show", runs, "main/exchange", *options), "rank")
    assert {float(row["value[s]"]) for row in joined.values()} == {sum(COSTS[64][1:])}


def test_folded_call_paths_have_no_values_of_processes(run, runs):
    options = ("--fold", "recursion", "--per-process")
    run("show", runs, "main/exchange:31", *options).fails(2, "omit --fold recursion")
