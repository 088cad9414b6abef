"""Output about configuration files and variables, and invocations with the settings in them."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import click
import pytest

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.analysis.pair_forecast import pair_forecast
from callpath_modeler.cli import browse
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.group import cpmodel
from callpath_modeler.cli.settings import catalogue, commands_of, describes, place_of, settable
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.view_request import Sort, ViewRequest
from callpath_modeler.report.outlined_view import node_columns
from callpath_modeler.studies import pipeline
from callpath_modeler.studies.study import Study
from callpath_modeler.tui.session import Session
from configured import target, told, trust, write


def test_findings_that_are_ignored_are_not_spoken_of(run, runs, ours):
    def codes(*words: str) -> set[str]:
        err = run(*words, "rank", runs, "--target", "1000").err
        return set(re.findall(r"\((CPM\d+)[^()]*\)$", err, re.MULTILINE))

    every = codes()
    assert "CPM205" in every
    others = codes("--ignore-findings", "cpm205")
    assert "CPM205" not in others
    assert every - {"CPM205"} <= others
    ours('[defaults]\nignore_findings = ["CPM205"]\n')
    assert codes() == others
    assert "CPM205" in codes("-v")
    assert "CPM205" in codes("--ignore-findings", "CPM101")
    told_all = run("rank", runs, "--target", "1000", "-f", "json").out
    assert "CPM205" in told_all


def test_the_files_that_were_read_are_told_of_when_asked(run, runs, ours, mine):
    path = ours("[defaults]\ntarget = 64\n")
    assert f"configuration: {path}, {mine}\n" in run("-v", "rank", runs).err
    assert "configuration" not in run("rank", runs).err


def test_options_before_the_command_have_values_in_files_too(run, runs, ours):
    ours('[defaults]\ntarget = 64\ncolor = "always"\nascii = true\n')
    done = run("rank", runs)
    assert "\x1b[" in done.out
    assert done.out.isascii()
    assert "\x1b[" not in run("--color", "never", "rank", runs).out
    ours("[defaults]\ntarget = 64\nverbose = true\n")
    assert "configuration: " in run("rank", runs).err


def test_info_tells_every_value_and_where_it_is_from(run, runs, ours, mine):
    path = ours("[defaults]\njobs = 2\nat = { p = 64, n = 1e6 }\n")
    settings = told(run, "--color", "never", "info", runs, "--where", "p>1")
    assert settings["jobs"] == ("2", f"{path}:2")
    assert settings["at"] == ("p=64,n=1000000", f"{path}:3")
    assert settings["where"] == ("p>1", "command line")
    assert settings["color"] == ("never", "command line")
    assert settings["confidence"] == ("0.95", "default")
    assert settings["wide"] == ("false", "default")
    assert settings["metric"] == ("", "default")
    root = click.Context(cpmodel)
    assert {*catalogue(root)} - {"name", "scaling", "param"} <= {*settings}
    text = run("info", runs, "--config").out
    assert text.startswith(f"read  file\nyes   {path}\n")
    assert f"\njobs     {path}:2  2\n" in text
    assert json.loads(run("info", runs, "--config", "-f", "json").out)["files"] == [
        {"path": str(each), "sha256": hashlib.sha256(each.read_bytes()).hexdigest()}
        for each in (path, mine)
    ]
    assert "none was given" in run("info", "--config").out
    run("info").fails(2, "Missing argument 'EXP...'")


def test_a_command_has_a_variable_for_each_of_its_options(run, runs, monkeypatch):
    monkeypatch.setenv("CPMODEL_VIEWS_FILTER", "main/f")
    monkeypatch.setenv("CPMODEL_VIEWS_FORMAT", "csv")
    rows = csv.DictReader(io.StringIO(run("views", runs, "--target", "64").out))
    assert [row["path"] for row in rows][:2] == ["main", "main/f"]


def test_of_two_that_say_the_same_it_is_told_which_one_counts(run, runs, ours, monkeypatch):
    path = ours("[defaults]\nat = { p = 64 }\nexclusive = true\ninclusive = false\n")
    assert told(run, "info", runs)["at"] == ("p=64", f"{path}:2")
    monkeypatch.setenv("CPMODEL_TARGET", "32")
    settings = told(run, "info", runs)
    assert settings["at"] == ("p=64", f"{path}:2; target has priority")
    assert settings["target"] == ("32", "CPMODEL_TARGET")
    assert settings["exclusive"] == ("true", f"{path}:3")


def test_a_variable_names_the_file(run, runs, ours, tmp_path, monkeypatch):
    ours("[defaults]\ntarget = 64\n")
    other = write(tmp_path / "other.toml", "[defaults]\ntarget = 32\n")
    monkeypatch.setenv("CPMODEL_CONFIG", str(other))
    done = run("rank", runs)
    assert target(done) == "at p = 32"
    assert f"next: cpmodel --config {other} show {runs} " in done.out


def test_a_source_on_the_command_line_is_not_blamed_on_a_file(run, runs, ours):
    ours("[parameters]\np = { from = 'processes' }\n")
    done = run("rank", runs, "--target", "64", "--param", "p=nonsense")
    done.fails(2, "unknown source 'nonsense'")
    assert "cpmodel.toml" not in done.complaint


def test_an_experiment_of_any_name_is_looked_above(run):
    for name in ("x" * 5000, "*" * 5000, "no/such/*", "[", "-"):
        assert run("rank", name, "--target", "64").status in {2, 3}


def test_variables_that_set_nothing_are_told_of(run, runs, monkeypatch):
    assert "set nothing" not in run("info", runs, "--config").out
    for name in ("METRC", "RANK_TOP", "JOBS", "EXPORT_OUTPUT", "ASCII", "VIEWS_LINES"):
        monkeypatch.setenv(f"CPMODEL_{name}", "1")
    out = run("info", runs, "--config").out
    block = out.partition("variables that set nothing\n")[2].partition("\n\n")[0]
    assert block == "CPMODEL_METRC; did you mean CPMODEL_METRIC?"


def test_every_command_tells_of_variables_that_set_nothing(run, runs, monkeypatch):
    asked = ("rank", runs, "--target", "64")
    monkeypatch.setenv("CPMODEL_SHOW_PREDICTED", "1")  # of another command
    assert "sets nothing" not in run(*asked).err
    monkeypatch.setenv("CPMODEL_PREDICTED", "1")
    monkeypatch.setenv("CPMODEL_TARGTE", "1")
    monkeypatch.setenv("CPMODEL_HOME", "/opt/cpmodel")  # as modules of a machine do
    told = run(*asked)
    assert told.status == 0
    assert [line for line in told.err.splitlines() if "sets nothing" in line] == [
        "CPMODEL_PREDICTED sets nothing; for one command: CPMODEL_RANK_PREDICTED",
        "CPMODEL_TARGTE sets nothing; did you mean CPMODEL_TARGET?",
    ]
    assert "sets nothing" not in run("-q", *asked).err


def test_a_key_means_the_same_in_all_commands():
    root = click.Context(cpmodel)
    for key, first in catalogue(root).items():
        for command in commands_of(root):
            option = settable(command).get(key, first)
            described = [one.to_info_dict() for one in (option, first)]
            assert [each["type"] for each in described] == [described[0]["type"]] * 2, key
            assert (option.is_flag, option.multiple) == (first.is_flag, first.multiple), key
            assert describes(option) == describes(first), key


def test_the_reference_lists_every_key():
    page = Path(__file__).resolve().parents[3] / "docs" / "reference" / "configuration.md"
    listed = re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    known = catalogue(click.Context(cpmodel))
    keys = {key for key, option in known.items() if place_of(option)[0] == "defaults"}
    assert {*listed} - {"setting", "value", "from"} == keys


def test_the_reference_says_which_keys_a_file_beside_profiles_may_set():
    page = Path(__file__).resolve().parents[3] / "docs" / "reference" / "configuration.md"
    text = page.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| (yes|no) \|$", text, re.MULTILINE)
    known = catalogue(click.Context(cpmodel))
    assert dict(rows) == {
        key: "yes" if describes(option) else "no"
        for key, option in known.items()
        if place_of(option)[0] == "defaults"
    }
    assert {key for key, option in known.items() if describes(option)} == {
        "name", "scaling", "param", "unit", "define", "metric", "drop", "time_column", "repetition",
    }  # fmt: skip


def test_commands_of_others_have_keys_if_they_heed_configuration():
    heeding = Configured("a", params=[click.Option(["--fresh"])])
    other = click.Command("b", params=[click.Option(["--stale"])])
    group = click.Group("g", {"a": heeding, "b": other})
    assert {*catalogue(click.Context(group))} == {"fresh"}


def test_what_only_one_of_two_commands_takes_is_refused_by_the_other(tmp_path, trusted):
    assert trusted == tmp_path
    experiment = click.Argument(["experiment"], nargs=-1)
    first = Configured("a", params=[experiment, click.Option(["--size"], type=click.IntRange(0))])
    other = Configured("b", params=[experiment, click.Option(["--size"], type=click.Choice("xy"))])
    group = click.Group("g", {"a": first, "b": other})
    path = write(tmp_path / "cpmodel.toml", "[defaults]\nsize = 4\n")
    assert group.main(["a", str(tmp_path)], standalone_mode=False) is None
    with pytest.raises(UsageError, match=f"^{path}:2: Invalid value for '--size': '4' is not"):
        group.main(["b", str(tmp_path)], standalone_mode=False)


@pytest.mark.parametrize("word", ["next: ", "browse"])
def test_a_command_line_that_is_told_gives_the_same_with_its_configuration(
    run, runs, ours, tmp_path, word
):
    ours('[defaults]\nmetric = "visits"\ntarget = 64\n')
    named = write(
        tmp_path / "other" / "mine.toml",
        "[defaults]\nat = { p = 48 }\nconfidence = 0.8\ninclusive = true\n",
    )
    if word == "browse":
        line = run("--config", named, "browse", runs, "--view", "flat").complaint
        line = line.partition("hint: ")[2].partition(" prints")[0]
    else:
        done = run("--config", named, "views", runs)
        line = done.out.splitlines()[-1].removeprefix(word)
    program, *words = shlex.split(line)
    assert program == "cpmodel"
    again = run(*words)
    assert "at p = 48" in again.out
    assert "80% band" in again.out
    assert "time, " in again.out.splitlines()[1]


def test_the_command_of_a_view_in_the_browser_is_complete(run, stored, tmp_path, trusted):
    kept = shutil.copytree(stored, tmp_path / "kept.cpm")
    write(trusted / "cpmodel.toml",
          '[defaults]\nat = { p = 1000 }\nview = "flat"\nsort = "name"\ninclusive = true\n'
          'min_share = "5%"\nconfidence = 0.9\ntop = 1\nselect = "main"\n')  # fmt: skip
    above = cpmodel.make_context("cpmodel", ["browse"])
    ctx = browse.command.make_context("browse", [str(kept)], parent=above)
    question = ("target", "at", "metric", "inclusive", "exclusive")
    assert [ctx.params[name] for name in question] == [None, "p=1000", None, True, False]
    fitted = Study(kept, fit_options=pipeline.FitOptions(confidence=0.9)).models("time")
    session = Session(
        answer_at(AnswerInputs(fitted), 500.0), ViewRequest(least=0.01, inclusive=False)
    )
    with ctx:
        here = browse.browser_services(Console(), ctx, Study(kept))
    line = here.command(session.view_request(), session.forecast.inputs, 500.0)
    assert "--confidence" not in line
    rows = list(csv.DictReader(io.StringIO(run(*shlex.split(line)[1:], "-f", "csv").out)))
    shown = node_columns(session.outline)
    assert [row["path"] for row in rows] == shown["path"]
    of_time = session.forecast.of_outline(session.outline)[0]
    assert [float(row["high_exclusive[s]"] or "nan") for row in rows] == pytest.approx(
        of_time.high.tolist(), nan_ok=True
    )
    inputs = here.compare(str(stored), fitted, False)
    two = Session(
        pair_forecast(inputs, 500.0), replace(session.view_request(), sort=Sort.DIFFERENCE)
    )
    line = here.command(two.view_request(), inputs, 500.0)
    rows = list(csv.DictReader(io.StringIO(run(*shlex.split(line)[1:], "-f", "csv").out)))
    assert [row["path"] for row in rows] == node_columns(two.outline)["path"]


def test_what_is_told_of_the_newer_of_two_has_the_options_of_both(run, series, tmp_path, trusted):
    new = series()
    old = tmp_path / "old"
    old.mkdir()
    trust(trusted, old, new)
    base = (tmp_path / "series").rename(old / "series")
    new = series()
    write(old / "cpmodel.toml", "[defaults]\nat = { p = 64 }\nconfidence = 0.8\n")
    done = run("diff", base, new)
    line = next(line for line in done.out.splitlines() if line.startswith("next: "))
    assert "--at p=64" in line
    assert "--confidence 0.8" in line
    assert ": ignored" not in done.err
    write(tmp_path / "cpmodel.toml", "")
    theirs = write(new / "cpmodel.toml", "[defaults]\nconfidence = 0.7\n")
    told = run("diff", base, new).err
    assert f"{theirs}: ignored" in told
    assert f"{old / 'cpmodel.toml'} applies" in told
    (old / "cpmodel.toml").unlink()
    (tmp_path / "cpmodel.toml").unlink()
    told = run("diff", base, new, "--target", "64").err
    assert f"{theirs}: ignored" in told
    assert "it has no configuration file" in told


def test_a_real_process_reads_the_file_of_the_user(spawn, runs, tmp_path):
    write(tmp_path / "home" / "cpmodel" / "config.toml", "[defaults]\ntarget = 64\n")
    done = spawn("rank", runs, XDG_CONFIG_HOME=str(tmp_path / "home"))
    assert target(done) == "at p = 64"
