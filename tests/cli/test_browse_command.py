"""`cpmodel browse`, and commands that print the rows of its view."""

from __future__ import annotations

import csv
import io
import shlex

import numpy as np
import pytest
from click import Context

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.analysis.pair_forecast import pair_forecast
from callpath_modeler.cli import browse
from callpath_modeler.cli.console import Console
from callpath_modeler.errors import CallpathModelerError, UsageError
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.report.outlined_view import node_columns
from callpath_modeler.studies.pipeline import FitOptions
from callpath_modeler.studies.study import Study
from callpath_modeler.tui.session import Session
from cells import cells


def test_without_a_terminal_the_command_that_prints_the_same_is_named(run, stored):
    words = ("--view", "flat", "--close", "a", "--close", "b", "--target", "1000")
    told = run("browse", stored, *words)
    same = f"cpmodel views {stored} {' '.join(words)} prints the same view"
    told.fails(2, "browse needs a terminal", same)
    run("browse", stored).fails(2, f"cpmodel views {stored} prints the same view")


@pytest.fixture
def surroundings(stored, clean):  # noqa: ARG001
    """The services of the browser for `stored`."""
    line = [str(stored), "--target", "1000", "-m", "time", "--confidence", "0.9"]
    ctx: Context = browse.command.make_context("browse", line, obj=Console())
    with ctx:
        study = Study(stored, fit_options=FitOptions(confidence=0.9))
        yield browse.browser_services(Console(), ctx, study)


@pytest.fixture
def session(stored):
    fitted = Study(stored, fit_options=FitOptions(confidence=0.9)).models("time")
    return Session(answer_at(AnswerInputs(fitted), 1000.0))


def printed(run, surroundings, session):
    """Return the output of the command under the key `y`."""
    shown = session.forecast
    line = surroundings.command(session.view_request(), shown.inputs, shown.target)
    program, *words = shlex.split(line)
    assert program == "cpmodel"
    outcome = run(*words, "-f", "csv")
    assert outcome.status == 0, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out)))


def check_rows(rows, session):
    ours = node_columns(session.outline)
    for name in ("path", "depth", "more", "callpaths"):
        assert [row[name] for row in rows] == [str(cell) for cell in ours[name]]
    own, whole = session.forecast.of_outline(session.outline)
    for name, values in (("exclusive", own), ("inclusive", whole)):
        for column, numbers in (("value_at_target", values.value), ("high", values.high)):
            shown = [row[f"{column}_{name}[s]"] for row in rows]
            assert [float(cell or "nan") for cell in shown] == pytest.approx(
                numbers.tolist(), rel=1e-12, nan_ok=True
            )


@pytest.mark.parametrize("kind", ViewKind)
def test_the_command_of_a_view_prints_its_rows(run, surroundings, session, kind):
    session.show(kind)
    check_rows(printed(run, surroundings, session), session)
    session.go(0)
    session.open_all()
    session.sort_next()
    session.turn_round()
    session.hide_or_show_small()
    check_rows(printed(run, surroundings, session), session)
    session.go(1)
    session.close()
    session.filter("**/MPI_*")
    session.lead_with_other()
    check_rows(printed(run, surroundings, session), session)


def test_the_command_of_a_view_that_is_zoomed_prints_its_rows(run, surroundings, session):
    session.search("CalcForceForNodes")
    session.zoom()
    session.follow_hot_path()
    rows = printed(run, surroundings, session)
    assert rows[0]["path"].endswith("/void CalcForceForNodes(Domain&)")
    assert session.view_request().zoom == "main/LagrangeLeapFrog/LagrangeNodal/CalcForceForNodes"
    assert rows[0]["depth"] == "0"
    check_rows(rows, session)


def test_a_target_that_was_halved_often_is_said_in_full(surroundings, session):
    line = surroundings.command(session.view_request(), session.forecast.inputs, 1000 / 2**11)
    assert f"--target {1000 / 2**11!r} " in line


def test_the_view_is_kept_in_a_file_of_any_format(surroundings, session, tmp_path):
    for name, start in (
        ("v.txt", "lulesh2.0 will run "),
        ("v.csv", "view,path,"),
        ("v.json", "{"),
    ):
        path = tmp_path / name
        said = surroundings.save(session.forecast, session.view_request(), path)
        assert said == f"{path}: {len(session.outline)} lines"
        assert path.read_text(encoding="utf-8").startswith(start)


def test_targets_are_read_as_on_the_command_line(surroundings, session):
    fitted = session.forecast.fitted
    assert surroundings.target_of("1e6", fitted) == 1e6
    assert surroundings.target_of("inf", fitted) == float("inf")
    for wrong in ("x", "-4", "0.5", "1e90"):
        with pytest.raises(browse.UsageError):
            surroundings.target_of(wrong, fitted)


@cells(
    ("options", "said"),
    [
        (("--zoom", "main/nothing"), "the top-down view has no 'nothing' at this position"),
        (("--zoom", "main/LagrangeLeapfrog"), "did you mean 'LagrangeLeapFrog'?"),
        (("--filter", "nonsense"), "no call path matches 'nonsense'"),
        (("--open", "@0000000"), "no call path matches"),
        (("--view", "flat", "--close", "nothing"), "the flat view"),
    ],
)
def test_what_a_view_does_not_have_is_one_clear_error(run, stored, options, said):
    run("views", stored, "--target", "1000", *options).fails(2, said)


def test_a_zoomed_view_adds_up_to_what_it_is_zoomed_to(run, stored):
    told = run("views", stored, "--target", "1000", "--zoom", "main/LagrangeLeapFrog")
    assert "the lines add up to the total of the zoomed node" in told.out
    assert "The hot path leads to LagrangeLeapFrog/" in told.out.splitlines()[0]


WIDE = 100_000
"""Columns; output to a pipe is not cut, and neither is such a wide terminal."""

EXPECTATIONS = """
schema = 1
[[expect]]
name = "all of it"
value = "<= 1e9 s"
[[expect]]
name = "messages do not grow"
callpath = "**/MPI_*"
growth = "<= O(1)"
at_least = 0
"""


def said_by(run, line):
    """Return the output of a command line by line, for any exit status."""
    program, *words = shlex.split(line)
    assert program == "cpmodel"
    return run(*words).out.splitlines()


def texts(lines):
    return [line.plain.rstrip() for line in lines]


def two(surroundings, session, stored, target=1000.0):
    """The session of an experiment beside itself."""
    shown = session.forecast
    inputs = surroundings.compare(str(stored), shown.fitted, shown.inputs.predicted)
    return Session(pair_forecast(inputs, target))


@pytest.mark.parametrize("inclusive", [False, True])
def test_the_command_of_two_experiments_prints_the_view_that_is_written(
    run, surroundings, session, stored, inclusive, tmp_path
):
    both = two(surroundings, session, stored)
    both.inclusive = inclusive
    both.refresh()
    both.open()
    request = both.view_request()
    line = surroundings.command(request, both.forecast.inputs, 1000.0)
    assert "--target 1000" in line
    assert ("-i" in shlex.split(line)) == inclusive
    path = tmp_path / "a.csv"
    assert f"{len(both.outline)} line" in surroundings.save(both.forecast, request, path)
    assert path.read_text() == run(*shlex.split(line)[1:], "-f", "csv").out
    told = list(csv.DictReader(path.read_text().splitlines()))
    own, whole = both.values(np.arange(len(both.outline)))
    for kind, values in (("exclusive", own), ("inclusive", whole)):
        for name, column in (("base", values.base), ("new", values.new), ("change", values.change)):
            found = [float(row[f"{name}_{kind}[s]"] or "nan") for row in told]
            assert found == pytest.approx(column.tolist(), nan_ok=True)
    path = tmp_path / "a.txt"
    surroundings.save(both.forecast, request, path)
    assert path.read_text().splitlines() == said_by(run, line)


def test_a_filter_of_two_experiments_is_that_of_the_view(
    run, surroundings, session, stored, tmp_path
):
    both = two(surroundings, session, stored)
    name = both.forecast.tree.name(len(both.forecast.tree) - 1)
    both.hide_or_show_small()
    both.filter(f"**/{name}")
    both.go(0)
    both.open_all()
    line = surroundings.command(both.view_request(), both.forecast.inputs, 1000.0)
    path = tmp_path / "a.csv"
    surroundings.save(both.forecast, both.view_request(), path)
    assert path.read_text() == run(*shlex.split(line)[1:], "-f", "csv").out
    assert name in path.read_text()


def test_the_command_of_expectations_prints_their_list(run, surroundings, session, tmp_path):
    path = tmp_path / "a b.toml"
    path.write_text(EXPECTATIONS)
    answer = surroundings.check(str(path), session.forecast)
    listing = answer.listing(WIDE)
    shown = texts([*(line for one in listing.entries for line in one.lines), *listing.foot])
    assert shown == said_by(run, answer.command)
    assert "--target 1000" in answer.command
    path.write_text(EXPECTATIONS.replace("[[", "target = { p = 64 }\n[[", 1))
    answer = surroundings.check(str(path), session.forecast)
    assert "--target" not in answer.command
    assert "p = 64" in answer.listing(WIDE).foot[0].plain


def test_at_infinity_what_was_measured_is_compared(run, surroundings, session, stored):
    both = two(surroundings, session, stored, float("inf"))
    assert both.forecast.scale == session.forecast.fitted.points[-1]
    line = surroundings.command(both.view_request(), both.forecast.inputs, float("inf"))
    assert "--target" not in line
    assert said_by(run, line)


def test_paths_that_lead_nowhere_are_said(surroundings, session, tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("schema = 1\n[[expect]]\ngrowth = 3\n")
    for name in (tmp_path / "none.toml", bad, tmp_path):
        with pytest.raises(CallpathModelerError):
            surroundings.check(str(name), session.forecast)
    for name in (tmp_path / "none", bad):
        with pytest.raises(CallpathModelerError):
            surroundings.compare(str(name), session.forecast.fitted, False)


def test_the_expectation_file_beside_the_runs_is_found(stored, clean):  # noqa: ARG001
    ctx = browse.command.make_context("browse", [str(stored)], obj=Console())

    def found():
        with ctx:
            return browse.browser_services(Console(), ctx, Study(stored)).expectations

    beside = stored.parent / "expectations.toml"
    assert found() == ""
    try:
        beside.write_text(EXPECTATIONS)
        assert found() == str(beside)
    finally:
        beside.unlink()


def test_commands_of_a_browser_that_asks_models_ask_them_where_they_can(run, stored, clean):  # noqa: ARG001
    line = [str(stored), "--target", "16", "--predicted"]
    fitted = Study(stored).models()
    session = Session(answer_at(AnswerInputs(fitted, predicted=True), 16.0))
    ctx: Context = browse.command.make_context("browse", line, obj=Console())
    with ctx:
        given = browse.browser_services(Console(), ctx, Study(stored))
        rows = printed(run, given, session)
        assert {row["basis"] for row in rows} == {"predicted"}
        path = stored.parent / "e.toml"
        path.write_text('schema = 1\n[[expect]]\ncallpath = "**"\ngrowth = "<= O(p^9)"\n')
        checked = given.check(str(path), session.forecast).command
        inputs = given.compare(str(stored), fitted, True)
        both = Session(pair_forecast(inputs, 16.0))
        compared = given.command(both.view_request(), inputs, 16.0)
    assert "--predicted" in compared
    for command in (checked, compared):
        outcome = run(*shlex.split(command)[1:])
        assert outcome.status in {0, 1}, outcome.err


def test_pairs_of_scales_are_typed_with_or_without_a_target(run, surroundings):
    models = surroundings.models_of("time", "8,64 8,125 1000")
    assert not models.is_measured_only
    assert models.pairs == ((8, 64), (8, 125))
    assert surroundings.models_of("time", "").pairs == ()
    compared = surroundings.models_of("time", "8,64 8,125")
    assert compared.is_measured_only
    assert compared.points.tolist() == [8, 125]
    for fitted, target in ((models, 1000.0), (compared, 125.0)):
        session = Session(answer_at(AnswerInputs(fitted), target))
        line = surroundings.command(session.view_request(), session.forecast.inputs, target)
        assert "--pair 8,64 --pair 8,125" in line
        assert ("--target 1000" in line) == (fitted is models)
        row = printed(run, surroundings, session)[0]
        assert float(row["excess_8_64_inclusive"]) == pytest.approx(0.804, abs=0.001)
    with pytest.raises(UsageError, match="no run at p = 9"):
        surroundings.models_of("time", "8,9 1000")


@pytest.mark.parametrize(("words", "typed"), [((), "8,125"), (("--target", "1000"), "8,125 1000")])
def test_a_configured_target_is_not_typed_behind_pairs(stored, clean, words, typed):  # noqa: ARG001
    line = [str(stored), "--pair", "8,125", *words]
    ctx: Context = browse.command.make_context("browse", line, obj=Console())
    ctx.params["target"] = "1000"  # also if only a file sets it
    study = Study(stored)
    fitted = study.models("time")
    if not words:
        fitted = study.measured("time", pairs=[(8.0, 125.0)])
    with ctx:
        given = browse.browser_services(Console(), ctx, study, fitted)
    assert given.pair == typed


def test_the_command_line_names_an_experiment_to_compare_with(run, stored, monkeypatch):
    seen = []

    def browse_(browser):
        seen.append(browser._given)

    monkeypatch.setattr(browse, "_refuse_pipes", lambda *_: None)
    monkeypatch.setattr("callpath_modeler.tui.app.Browser.run", browse_)
    assert run("browse", stored, "--compare", stored).status == 0
    assert seen[0].other == str(stored)


def test_without_a_terminal_the_command_that_compares_is_named(run, stored):
    words = f"cpmodel views {stored} --compare {stored} prints the same view"
    run("browse", stored, "--compare", stored).fails(2, "browse needs a terminal", words)


def test_single_runs_are_compared_as_measured_also_with_a_series(surroundings, lulesh, stored):
    """The largest common scale is that of the single run, and nothing is predicted."""
    run = min(lulesh.iterdir())
    options = FitOptions(confidence=0.9)
    alone = Study(run, fit_options=options).measured("time")
    whole = Study(stored, fit_options=options).models("time")
    for base, shown in ((run, alone), (stored, alone), (run, whole)):
        inputs = surroundings.compare(str(base), shown, False)
        made = pair_forecast(inputs, 1000.0)
        assert not inputs.has_models
        assert made.scale == alone.points[0]
        assert made.costs.total[:2] == pytest.approx(made.costs.total[0], rel=0.5)


def test_the_ranks_of_both_experiments_are_shown(surroundings, session, stored):
    both = two(surroundings, session, stored)
    answer = surroundings.processes(["main"], np.array([1]), both.forecast, True)
    lines = texts(answer.listing(80).head + [e.lines[0] for e in answer.listing(80).entries])
    assert lines[0].startswith("base: ")
    assert any(line.startswith("new: ") for line in lines)


def test_orders_of_two_experiments_are_for_two_experiments(run, stored):
    run("views", stored, "--sort", "base").fails(2, "for two experiments", "add --compare BASE")
    words = ("views", stored, "--compare", stored, "--sort", "growth")
    run(*words).fails(2, "two experiments have other orders", "difference, ratio, new, base, name")
    flat = ("--view", "flat", "--sort", "base", "--reverse", "-f", "csv")
    rows = run("views", stored, "--compare", stored, *flat).out
    costs = [float(row["base_exclusive[s]"]) for row in csv.DictReader(rows.splitlines())]
    assert len(costs) > 2
    assert costs == sorted(costs)
