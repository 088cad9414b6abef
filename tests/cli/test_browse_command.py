"""`cpmodel browse` as it is typed, and the commands that print what it shows."""

from __future__ import annotations

import csv
import io
import shlex

import pytest
from click import Context

from callpath_modeler import pipeline
from callpath_modeler.analysis.forecast import Known, forecast
from callpath_modeler.cli import browse
from callpath_modeler.cli.console import Console
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.report.outlines import node_columns
from callpath_modeler.tui.session import Session


def test_without_a_terminal_the_command_that_prints_the_same_is_named(run, stored):
    told = run("browse", stored, "--target", "1000", "--view", "flat")
    told.fails(2, "browse needs a terminal", f"cpmodel views {stored} --target 1000")


@pytest.fixture
def surroundings(stored, clean):  # noqa: ARG001
    """What the browser is given when it is started for `stored`."""
    line = [str(stored), "--target", "1000", "-m", "time", "--confidence", "0.9"]
    ctx: Context = browse.command.make_context("browse", line, obj=Console())
    with ctx:
        fitting = pipeline.FitOptions(confidence=0.9)
        yield browse._surroundings(Console(), ctx, pipeline.LoadOptions(), fitting)


@pytest.fixture
def session(stored):
    fitted = pipeline.models_of([stored], "time", None, pipeline.FitOptions(confidence=0.9))
    return Session(forecast(Known(fitted), 1000.0))


def printed(run, surroundings, session):
    """What the command that `y` shows prints."""
    metric = session.forecast.fitted.metric.name
    line = surroundings.command(session.wanted(), session.forecast.target, metric)
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
        for column, cells in (("value_at_target", values.value), ("high", values.high)):
            shown = [row[f"{column}_{name}[s]"] for row in rows]
            assert [float(cell or "nan") for cell in shown] == pytest.approx(
                cells.tolist(), rel=1e-12, nan_ok=True
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
    assert session.wanted().zoom == "main/LagrangeLeapFrog/LagrangeNodal/CalcForceForNodes"
    assert rows[0]["depth"] == "0"
    check_rows(rows, session)


def test_a_target_that_was_halved_often_is_said_in_full(surroundings, session):
    line = surroundings.command(session.wanted(), 1000 / 2**11, "time")
    assert f"--target {1000 / 2**11!r} " in line


def test_the_view_is_kept_in_a_file_of_any_format(surroundings, session, tmp_path):
    for name, start in (("v.txt", "At p = 1000: "), ("v.csv", "view,path,"), ("v.json", "{")):
        path = tmp_path / name
        said = surroundings.save(session.forecast, session.wanted(), path)
        assert said == f"{path}: {len(session.outline)} lines"
        assert path.read_text(encoding="utf-8").startswith(start)


def test_targets_are_read_as_on_the_command_line(surroundings, session):
    fitted = session.forecast.fitted
    assert surroundings.target_of("1e6", fitted) == 1e6
    assert surroundings.target_of("inf", fitted) == float("inf")
    for wrong in ("x", "-4", "0.5", "1e90"):
        with pytest.raises(browse.UsageError):
            surroundings.target_of(wrong, fitted)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--zoom", "main/nothing"), "no 'nothing' there in the top-down view"),
        (("--zoom", "main/LagrangeLeapfrog"), "did you mean 'LagrangeLeapFrog'?"),
        (("--filter", "nonsense"), "no call path matches 'nonsense'"),
        (("--open", "@0000000"), "no call path matches"),
        (("--view", "flat", "--close", "nothing"), "in the flat view"),
    ],
)
def test_what_a_view_does_not_have_is_one_clear_error(run, stored, options, said):
    run("views", stored, "--target", "1000", *options).fails(2, said)


def test_a_zoomed_view_adds_up_to_what_it_is_zoomed_to(run, stored):
    told = run("views", stored, "--target", "1000", "--zoom", "main/LagrangeLeapFrog")
    assert "the lines add up to what the view is zoomed to" in told.out
    assert "the hot path leads to LagrangeLeapFrog/" in told.out.splitlines()[0]
