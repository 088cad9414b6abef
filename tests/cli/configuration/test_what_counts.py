"""Priority of configuration files and variables, and errors in them."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from callpath_modeler import config
from callpath_modeler.cli.group import cpmodel
from configured import target, told, trust, write


def test_each_level_counts_before_the_next(run, runs, ours, tmp_path, monkeypatch):
    def is_at(scale: int, origin: str, *words: str) -> None:
        assert target(run("rank", runs, *words)) == f"at p = {scale}"
        if not words:
            assert told(run, "info", runs)["target"] == (str(scale), origin)

    assert target(run("rank", runs)) == "at p = 64"
    site = write(tmp_path / "etc" / "config.toml", "[defaults]\ntarget = 100\n")
    monkeypatch.setattr(config, "SITE", site)
    is_at(100, f"{site}:2")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    user = write(
        tmp_path / "home" / "cpmodel" / "config.toml",
        f'[defaults]\n\ntarget = 200\n[trust]\ndirectories = ["{tmp_path.resolve()}"]\n',
    )
    is_at(200, f"{user}:3")
    path = ours("[defaults]\n\n\ntarget = 300\n")
    is_at(300, f"{path}:4")
    monkeypatch.setenv("CPMODEL_TARGET", "400")
    is_at(400, "CPMODEL_TARGET")
    monkeypatch.setenv("CPMODEL_RANK_TARGET", "500")
    assert target(run("rank", runs)) == "at p = 500"
    settings = told(run, "info", runs)
    assert settings["target"] == ("400", "CPMODEL_TARGET")
    assert settings["target (rank)"] == ("500", "CPMODEL_RANK_TARGET")
    is_at(600, "", "--target", "600")


def test_the_file_is_found_from_the_experiment_not_from_here(
    run, runs, ours, tmp_path, monkeypatch
):
    ours("[defaults]\ntarget = 300\n")
    here = write(tmp_path / "here" / "cpmodel.toml", "[defaults]\ntarget = 9\n").parent
    monkeypatch.chdir(here)
    assert target(run("rank", runs)) == "at p = 300"
    assert target(run("rank", Path("..") / "series")) == "at p = 300"
    assert target(run("rank", f"{runs}/*/profile.cubex")) == "at p = 300"
    profiles = sorted(runs.glob("*/profile.cubex"))
    assert target(run("rank", *profiles)) == "at p = 300"


def test_a_named_file_takes_the_place_of_the_one_that_is_found(run, runs, ours, tmp_path):
    ours("[defaults]\ntarget = 300\nmethod = 'classic'\n")
    other = write(tmp_path / "else" / "mine.toml", "[defaults]\ntarget = 40\n")
    assert target(run("--config", other, "rank", runs)) == "at p = 40"
    assert "method" not in {
        key for key, (_, origin) in told(run, "--config", other, "info", runs).items()
        if origin.startswith(str(tmp_path))
    }  # fmt: skip
    # Without a setting, the target is 4 times the largest scale.
    assert target(run("--config", "/dev/null", "rank", runs)) == "at p = 64"
    run("--config", tmp_path / "none.toml", "rank", runs).fails(2, "none.toml: No such file")
    run("--config", tmp_path, "rank", runs).fails(2, "is a directory")
    assert target(run("rank", runs, "--config", other)) == "at p = 40"


@pytest.mark.parametrize(
    ("low", "line", "shown"),
    [
        ("at = { p = 300 }", ["--target", "40"], "at p = 40"),
        ("target = 300", ["--at", "p=40"], "at p = 40"),
        ("target = inf", ["--at", "p=40"], "at p = 40"),
        ("target = 300\ninclusive = true", ["-e"], "exclusive"),
        ("target = 300\nexclusive = true", ["-i"], "inclusive"),
    ],
)
def test_what_says_the_same_takes_its_place(run, runs, ours, low, line, shown):
    ours(f"[defaults]\n{low}\n")
    done = run("rank", runs, *line)
    assert done.status == 0, done.err
    assert shown in "\n".join(done.out.splitlines()[:2])


def test_variables_and_files_that_say_the_same_do_not_clash(run, runs, ours, monkeypatch):
    ours("[defaults]\nat = { p = 300 }\n")
    monkeypatch.setenv("CPMODEL_TARGET", "40")
    assert target(run("rank", runs)) == "at p = 40"
    monkeypatch.setenv("CPMODEL_RANK_AT", "p=50")
    assert target(run("rank", runs)) == "at p = 50"
    assert target(run("rank", runs, "--target", "60")) == "at p = 60"
    monkeypatch.setenv("CPMODEL_RANK_INCLUSIVE", "1")
    assert ", inclusive" in run("rank", runs).out
    monkeypatch.setenv("CPMODEL_RANK_INCLUSIVE", "0")
    assert ", exclusive" in run("rank", runs).out
    ours("[defaults]\ninclusive = true\n")
    monkeypatch.delenv("CPMODEL_RANK_INCLUSIVE")
    assert ", inclusive" in run("rank", runs).out
    monkeypatch.setenv("CPMODEL_INCLUSIVE", "0")
    assert ", exclusive" in run("rank", runs).out


def test_what_the_runs_are_called_stands_in_tables_of_its_own(run, series, ours, tmp_path):
    runs = series(name="app.n3")
    ours('[experiment]\nname = "app.n{m}.p{q}.r{rep}"\nscaling = "strong"\n'
         '[parameters]\np = { from = "processes" }\nq = { from = "name" }\n')  # fmt: skip
    header = json.loads(run("info", runs, "-f", "json").out)
    assert (header["scaling"], header["scaling_reason"]) == ("strong", "as told")
    assert {one["name"]: one["from"] for one in header["parameters"]} == {
        "p": "processes", "q": "name",
    }  # fmt: skip
    # Another source of one parameter does not change the sources of the others.
    settings = told(run, "info", runs, "--param", "q=processes", "--scaling", "weak")
    path = tmp_path / "cpmodel.toml"
    assert settings["parameters.q"] == ("processes", "command line")
    assert settings["parameters.p"] == ("processes", f"{path}:5")
    assert settings["experiment.scaling"] == ("weak", "command line")
    assert settings["experiment.name"] == ("app.n{m}.p{q}.r{rep}", f"{path}:2")


def test_what_says_how_profiles_are_read_does_not_keep_a_store_from_opening(run, runs, ours):
    ours('[experiment]\nname = "app.p{p}.r{rep}"\n[parameters]\np = { from = "name" }\n'
         '[defaults]\ntarget = 64\nreader = "scorep"\nlocations = "mean"\n')  # fmt: skip
    kept = runs.parent / "kept.cpm"
    assert run("fit", runs, "-o", kept).status == 0
    ours('[experiment]\nname = "app.p{p}.r{rep}"\n[defaults]\ntarget = 64\nlocations = "max"\n')
    assert ", mean over processes" in run("rank", kept).out
    run("rank", kept, "--name", "app.p{p}.r{rep}").fails(2, "--name is for reading profiles")


ERRORS = {
    "unknown key": ('metrik = "x"', "2: no key 'metrik'", "did you mean 'metric'?"),
    "key with a dash": ('min-share = "1%"', "2: no key 'min-share'", "'min_share'"),
    "key of one run": ('output = "x"', "2: no key 'output'", "an option of the command line only"),
    "key of another table": ('name = "x"', "2: no key 'name'", "[experiment]"),
    "table of a command": ("[rank]\ntop = 3", "2: no key 'rank'", "[defaults]"),
    "type": ("jobs = 1.5", "2: jobs must be a whole number", "jobs = 4"),
    "range": ("jobs = -1", "2: Invalid value for '-j' / '--jobs': -1 is not in the range", "help"),
    "choice": ('method = "x"', "2: Invalid value for '--method': 'x' is not one of", "--help"),
    "range of numbers": ("confidence = 2", "2: Invalid value for '--confidence'", "--help"),
    "word for a number": ('top = "most"', "2: Invalid value for '-n' / '--top'", "--help"),
    "target": ("target = 0", "2: target 0 is not positive", "e.g. 4096"),
    "named target": ("at = { p = -1 }", "2: target -1 is not positive", "e.g. 4096"),
    "code": ('ignore_findings = ["CPM999"]', "2: Invalid value for '--ignore-findings'", "help"),
    "source": ("[parameters]\np = { from = 'x' }", "3: unknown source 'x'", "metadata:KEY"),
    "code of one's own": ('reader = "own.py"', "2: reader 'own.py'", "--reader FILE.py"),
    "metric": ('metric = "tiem"', "2: no metric 'tiem'", "did you mean 'time'?"),
    "condition": ('where = ["p>1", "p>x"]', "2: p: 'x' is not a number", "1e6"),
    "empty choice": ('where = "p>1e9"', "2: no run is left where p>1e9", "info"),
    "parameter": ('parameter = "zz"', "2: no parameter 'zz'", "varying: p"),
    "pattern": ('select = "no/such"', "2: no call path matches 'no/such'", "rank"),
    "other method": ("folds = 3", "2: --folds", "--method classic"),
    "exponents": ('exponents = ["a"]', "2: invalid space of hypotheses", "--exponents"),
    "reader": ('reader = "x"', "2: no reader is called 'x'", "scorep"),
    "name": ("[experiment]\nname = 'a.{p'", "3: run name pattern", "braces"),
    "clash": ("inclusive = true\nexclusive = true", "--inclusive and --exclusive", "one of them"),
    "syntax": ("jobs = ", "2: ", "TOML"),
}


@pytest.mark.parametrize(("text", "message", "hint"), ERRORS.values(), ids=ERRORS)
def test_what_is_wrong_in_a_file_is_said_with_its_line(run, runs, ours, text, message, hint):
    path = ours(f"[defaults]\n{text}\n")
    line = () if text.startswith(("target", "at")) else ("--target", "64")
    done = run("rank", runs, *line)
    status = 4 if "no run is left" in message else 2
    done.fails(status, message, hint)
    assert done.complaint.startswith(f"cpmodel: {path}:")


def test_a_value_of_the_command_line_is_not_blamed_on_a_file(run, runs, ours):
    ours('[defaults]\nmetric = "time"\ntarget = 64\ntop = 100\njobs = 1\n')
    done = run("rank", runs, "-m", "tiem")
    done.fails(2, "no metric 'tiem'")
    assert "cpmodel.toml" not in done.complaint
    done = run("rank", runs, "--where", "p>100")
    done.fails(4, "no run is left")
    assert "cpmodel.toml" not in done.complaint


def test_what_no_file_sets_is_not_read_for_help(run, runs, ours):
    ours("nonsense")
    assert run("rank", runs, "--help").status == 0
    run("rank", runs).fails(2, "cpmodel.toml:1: ")


def test_a_wrong_variable_is_named(run, runs, monkeypatch):
    monkeypatch.setenv("CPMODEL_JOBS", "many")
    run("rank", runs, "--target", "64").fails(2, "CPMODEL_JOBS: Invalid value for '-j' / '--jobs'")


def test_options_that_a_command_lacks_or_means_otherwise_are_passed_over(run, runs, ours, tmp_path):
    ours("""
[defaults]
metric = "visits"
at = { p = 64 }
inclusive = true
top = 1
wide = true
view = "flat"
sort = "name"
by = "growth"
min_share = 0.01
select = "main/**"
fail_on = ["worse>5%"]
linear = true
cover = "90%"
margin = 0.2
confidence = 0.9
aggregate = "median"
where = ["p>=1"]
color = "never"
no_progress = true
""")
    commands = {
        "info": [], "fit": ["-o", tmp_path / "k.cpm"], "rank": [], "show": ["main/f"], "views": [],
        "why": ["main/f"],
        "diff": [runs], "excess": [], "efficiency": [], "export": ["-f", "csv"],
        "baseline": ["-o", tmp_path / "e.toml"], "check": [tmp_path / "e.toml"],
        "report": ["-o", tmp_path / "r.html"], "refine": [],
    }  # fmt: skip
    without_runs = {"plugins": [], "completion": ["bash"], "explain": [], "trust": []}
    others = {"browse", "guidelines", "trace", "merge", "watch", "score", "run"}
    assert {*commands, *without_runs, *others} == set(cpmodel.list_commands(click.Context(cpmodel)))
    called = {command: [runs, *words] for command, words in commands.items()} | without_runs
    for command, words in called.items():
        done = run(command, *words)
        assert done.status in {0, 1 if command in {"diff", "check"} else 0}, (command, done.err)
    assert "visits" in run("views", runs).out.splitlines()[1]
    assert {"time", "visits"} <= {
        line.split(":")[0].strip()
        for line in run("fit", runs, "-o", tmp_path / "m.cpm").out.splitlines()
    }


def test_a_check_is_at_the_target_of_its_file(run, runs, ours, tmp_path):
    path = write(tmp_path / "e.toml",
                 'schema = 1\ntarget = { p = 32 }\n[[expect]]\nvalue = "<= 1 ms"\n')  # fmt: skip
    ours('[defaults]\nat = { p = 128 }\nexpect = "x.toml"\n')
    assert "p = 32" in run("check", runs, path).out
    page = run("report", runs, "--expect", path).out.replace("\N{NO-BREAK SPACE}", " ")
    assert "at p = 128" in page
    section = page.partition('id="expectations"')[2].partition("</section>")[0]
    assert "p = 32" in section
    assert "p = 128" not in section


def test_a_path_in_a_file_is_meant_from_there(run, runs, ours, tmp_path, monkeypatch):
    write(tmp_path / "sub" / "e.toml", 'schema = 1\n[[expect]]\nname = "short"\nvalue = "<= 1 h"\n')
    ours('[defaults]\ntarget = 64\nexpect = "sub/e.toml"\n')
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert "short" in run("report", runs).out


def test_a_page_names_the_configuration_and_its_hash(run, runs, ours):
    first = run("report", runs, "--target", "64").out
    assert "cpmodel.toml" not in first
    path = ours("[defaults]\ntarget = 64\n")
    page = run("report", runs).out
    assert str(path) in page
    assert hashlib.sha256(path.read_bytes()).hexdigest() in page


def test_what_is_exported_is_all_that_was_measured(run, runs, ours):
    ours('[defaults]\ntarget = 64\nmetric = "visits"\n')
    told = run("export", runs, "-f", "extra-p").out
    assert '"time"' in told
    assert '"visits"' in told
    one = run("export", runs, "-f", "extra-p", "-m", "visits").out
    assert '"time"' not in one
    measured = run("export", runs, "-f", "folded").out
    assert measured == run("--config", "/dev/null", "export", runs, "-f", "folded", "-m",
                           "visits").out  # fmt: skip
    assert measured != run("export", runs, "-f", "folded", "-m", "time", "--target", "64").out


def test_a_glob_that_takes_the_file_along_finds_the_runs(run, runs, trusted):
    trust(trusted, runs)
    write(runs / "cpmodel.toml", "[defaults]\ntarget = 64\n")
    assert target(run("rank", *sorted(runs.iterdir()))) == "at p = 64"
    assert target(run("rank", f"{runs}/*")) == "at p = 64"


def test_the_page_says_how_all_call_paths_are_listed(run, stored, ours, tmp_path):
    kept = shutil.copytree(stored, tmp_path / "kept.cpm")
    ours('[defaults]\ntarget = 64\ntop = 1\nselect = "main"\nby = "growth"\n')
    page = html.unescape(run("report", kept).out)
    line = re.search(r"cpmodel rank [^<]*", page)[0]
    rows = list(csv.DictReader(io.StringIO(run(*shlex.split(line)[1:]).out)))
    assert len(rows) == 73
    values = [float(row["value_at_target[s]"]) for row in rows if row["rank"]]
    assert values == sorted(values, reverse=True)


def test_a_configured_target_needs_no_models(run, runs, ours):
    ours("[defaults]\ntarget = 300\n")
    one_scale = ("--where", "p=8")
    for command in ("rank", "views"):
        assert "two more scales would allow models" in run(command, runs, *one_scale).out
        assert "omit --pair" in run(command, runs, "--pair", "8,16").out
    run("rank", runs, *one_scale, "--target", "300").fails(4, "omit the target")
