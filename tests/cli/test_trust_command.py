"""`cpmodel trust`: a file beside profiles describes them; in a trusted directory it decides."""

from __future__ import annotations

import json
import shlex
import shutil
import stat
import tomllib
from pathlib import Path

import click
import pytest

from callpath_modeler.cli.group import cpmodel
from callpath_modeler.cli.settings import catalogue, describes, place_of
from configured import target, told, write

DEFAULT = "at p = 64"
"""Target of a ranking that has none: 4 times the largest scale of the runs."""

VALUES = {
    "case": '["quick"]',
    "define": '["twice = 2 * time"]',
    "unit": "[]", "metric": '"time"', "ignore": '["**/f"]', "hide": '["**/f"]',
    "ignore_findings": '["CPM205"]', "where": '"p>2"', "at": "{ p = 64 }", "jobs": "2",
    "fold": '["recursion"]', "split_ranks": '["rank == 0"]', "source_path": '["/a=/b"]',
    "rule": '["Bcast <= Gather"]', "executor": '"mpi"',
    "drop": '["host"]', "sbatch": '["--partition=short"]',
}  # fmt: skip


@pytest.fixture
def runs(series, tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "me"))
    return series()


@pytest.fixture
def mine(tmp_path) -> Path:
    return tmp_path / "me" / "cpmodel" / "config.toml"


def value_of(key, option):
    if key in VALUES:
        return VALUES[key]
    if option.is_flag:
        return "true"
    if isinstance(option.type, click.Choice):
        return f'"{option.type.choices[0]}"'
    is_number = isinstance(option.type, click.types.IntParamType)
    return "3" if is_number else "0.5" if option.type.name.startswith("float") else '"64"'


def test_of_all_keys_only_those_that_describe_come_from_a_file_beside_profiles(run, runs):
    keys = {key: each for key, each in catalogue(click.Context(cpmodel)).items()
            if place_of(each)[0] == "defaults"}  # fmt: skip
    lines = [f"{key} = {value_of(key, option)}" for key, option in keys.items()]
    path = write(runs / "cpmodel.toml",
                 "\n".join(["[experiment]", 'scaling = "strong"', "[parameters]",
                            'p = { from = "processes" }', "[defaults]", *lines]))  # fmt: skip
    settings = told(run, "info", runs)
    used = {key for key, (_, origin) in settings.items() if origin.startswith(str(path))}
    described = {key for key, option in keys.items() if describes(option)}
    assert used == {*described, "experiment.scaling", "parameters.p"}
    shown = json.loads(run("info", runs, "--config", "-f", "json").out)
    assert {each["setting"] for each in shown["not_used"]} == {*keys} - described
    done = run("info", runs)
    assert done.status == 0
    (note,) = (line for line in done.err.splitlines() if "(CPM181" in line)
    assert all(key in note for key in {*keys} - described)


def test_the_command_that_the_note_prints_makes_the_keys_count(run, runs, mine):
    write(runs / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    refused = run("rank", runs)
    assert target(refused) == DEFAULT
    (line,) = (each.partition("after you have read the file: ")[2] for each in
               refused.err.splitlines() if "cpmodel trust" in each)  # fmt: skip
    words = shlex.split(line)
    assert words[:2] == ["cpmodel", "trust"]
    done = run(*words[1:])
    assert done.err == f"{mine}: {runs.resolve()} is trusted\n"
    used = run("rank", runs)
    assert target(used) == "at p = 48"
    assert "CPM181" not in used.err
    assert run("trust").out == f"{runs.resolve()}\n"
    assert run("trust", "--remove", runs).status == 0
    assert run("trust").out == ""
    assert "CPM181" in run("rank", runs, "--target", "64").err


def test_a_file_that_the_user_names_may_decide(run, runs, mine):
    path = write(runs / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    assert target(run("--config", path, "rank", runs)) == "at p = 48"
    write(mine, "[defaults]\ntarget = 32\n")
    assert target(run("rank", runs)) == "at p = 32"


def test_a_directory_below_a_trusted_one_is_not_trusted(run, runs):
    assert run("trust", runs.parent).status == 0
    write(runs / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    run_of = run("rank", runs)
    assert target(run_of) == DEFAULT
    assert "CPM181" in run_of.err


def test_profiles_below_a_trusted_directory_use_its_file(run, runs):
    write(runs.parent / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    assert run("trust", runs.parent).status == 0
    assert target(run("rank", runs)) == "at p = 48"


def test_a_link_is_trusted_where_it_leads(run, runs, tmp_path):
    write(runs / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    link = tmp_path / "link"
    link.symlink_to(runs)
    assert run("trust", link).status == 0
    assert run("trust").out == f"{runs.resolve()}\n"
    assert target(run("rank", link)) == target(run("rank", runs)) == "at p = 48"
    other = tmp_path / "other"
    shutil.copytree(runs, other)
    link.unlink()
    link.symlink_to(other)
    assert "CPM181" in run("rank", link, "--target", "64").err


def test_a_link_to_a_trusted_file_makes_no_directory_trusted(run, runs, tmp_path):
    kept = tmp_path / "kept"
    write(kept / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    assert run("trust", kept).status == 0
    (runs / "cpmodel.toml").symlink_to(kept / "cpmodel.toml")
    assert "CPM181" in run("rank", runs, "--target", "64").err


def test_a_file_beside_profiles_trusts_no_directory(run, runs):
    text = f'[trust]\ndirectories = ["{runs.resolve()}", "", ".", "~"]\n[defaults]\ntarget = 48\n'
    write(runs / "cpmodel.toml", text)
    done = run("rank", runs)
    assert target(done) == DEFAULT
    assert "target, directories" in done.err
    assert f"{runs / 'cpmodel.toml'}:2: [trust] counts in your own configuration file" in done.err
    assert "cpmodel trust" in done.err
    write(runs / "cpmodel.toml", text.partition("[defaults]")[0])
    alone = run("info", runs).err
    assert "[trust] counts in your own configuration file" in alone
    assert "cpmodel trust" not in alone


def test_a_relative_entry_trusts_nothing(run, runs, mine, monkeypatch):
    monkeypatch.chdir(runs)
    write(runs / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    write(mine, '[trust]\ndirectories = ["", ".", "series"]\n')
    assert run("trust").out == ""
    assert "CPM181" in run("rank", ".", "--target", "64").err


def test_a_file_beside_profiles_hides_no_note_about_itself(run, runs):
    write(runs / "cpmodel.toml",
          '[defaults]\nignore_findings = ["CPM181"]\nquiet = true\nverbose = false\n')  # fmt: skip
    assert "CPM181" in run("info", runs).err
    assert "CPM181" not in run("-q", "info", runs).err
    assert "CPM181" not in run("--ignore-findings", "CPM181", "info", runs).err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\n[defaults]\njobs = 2  # few",
        '[trust]  # my own\ndirectories = ["/a"]  # old\n\n[defaults]\njobs = 2\n',
        '[defaults]\njobs = 2\n[trust]\n\n# all\ndirectories = [\n "/a", # a ]\n "/b"\n]\n# end\n',
        "[trust]\n[defaults]\r\njobs = 2\r\n",
        '[trust]\n"directories" = []\n[experiment]\nname = "x[trust].{p}"\n',
    ],
)
def test_the_rest_of_the_file_stays_as_it_is(run, runs, mine, text):
    write(mine, text)
    mine.chmod(0o600)
    before = tomllib.loads(mine.read_text())
    listed = before.pop("trust", {}).get("directories", [])
    assert run("trust", runs, runs.parent, runs).status == 0
    after = tomllib.loads(mine.read_text())
    added = [str(runs.resolve()), str(runs.parent.resolve())]
    assert after.pop("trust") == {"directories": [*listed, *added]}
    assert after == before
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert [line for line in mine.read_text().splitlines() if line.startswith("#")] == comments
    assert stat.S_IMODE(mine.stat().st_mode) == 0o600
    assert run("trust", "--remove", runs, runs.parent).status == 0
    assert tomllib.loads(mine.read_text())["trust"] == {"directories": listed}


def test_a_list_that_cannot_be_edited_is_left_alone(run, runs, mine):
    text = 'trust = { directories = ["/a"] }\n'
    write(mine, text)
    run("trust", runs).fails(2, "cannot be edited", "[trust]")
    assert mine.read_text() == text


def test_a_file_that_is_a_link_stays_one(run, runs, mine, tmp_path):
    real = write(tmp_path / "dotfiles" / "cpmodel.toml", "[defaults]\njobs = 1\n")
    mine.parent.mkdir(parents=True)
    mine.symlink_to(real)
    assert run("trust", runs).status == 0
    assert mine.is_symlink()
    assert str(runs.resolve()) in real.read_text()


def test_an_empty_name_trusts_nothing(run, runs, mine, monkeypatch):
    monkeypatch.chdir(runs)
    run("trust", "").fails(2, "the name of a directory is empty", "shell variable")
    run("trust", runs, "").fails(2, "the name of a directory is empty")
    assert not mine.exists()


def test_trust_without_an_effect_is_said(run, runs):
    applies = write(runs.parent / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    done = run("trust", runs)
    assert f"{runs.resolve()} has no cpmodel.toml" in done.err
    assert str(applies.resolve()) in done.err
    words = shlex.split(done.err.rstrip().splitlines()[-1].partition("read that file: ")[2])
    assert run(*words[1:]).err.count("\n") == 1
    assert target(run("rank", runs)) == "at p = 48"
    assert "has no cpmodel.toml" not in run("trust", "--remove", runs).err


@pytest.mark.parametrize("is_file", [False, True])
def test_trust_in_what_others_can_write_is_a_warning(run, runs, is_file):
    path = write(runs / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    open_to_all = path if is_file else runs
    open_to_all.chmod(0o666 if is_file else 0o777)
    done = run("trust", runs)
    assert done.status == 0
    assert f"can write to {open_to_all.resolve()}," in done.err
    assert f"chmod o-w {open_to_all.resolve()}" in done.err


def test_a_nearer_file_replaces_no_trusted_one_in_silence(run, runs):
    above = write(runs.parent / "cpmodel.toml", "[defaults]\ntarget = 48\n")
    assert run("trust", runs.parent).status == 0
    nearer = write(runs / "cpmodel.toml", "")
    done = run("rank", runs, "--target", "32")
    assert f"{above} is not used, although you trust it: {nearer}" in done.err
    nearer.unlink()
    assert "although you trust it" not in run("rank", runs).err


def test_a_relative_home_has_no_file_of_the_user(run, runs, monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", ".")
    monkeypatch.chdir(runs)
    write(runs / ".config" / "cpmodel" / "config.toml", "[defaults]\ntarget = 48\n")
    assert target(run("rank", ".")) == DEFAULT
    monkeypatch.setenv("HOME", str(runs))
    assert target(run("rank", ".")) == "at p = 48"


def test_what_cannot_be_trusted_is_one_error(run, runs, monkeypatch):
    run("trust", runs / "none").fails(2, "no directory")
    run("trust", write(runs / "cpmodel.toml", "")).fails(2, "no directory", "name the directory")
    run("trust", "--remove", runs).fails(2, "not trusted", "`cpmodel trust` lists")
    run("trust", "--remove").fails(2, "no directory is named")
    assert "no directory is trusted" in run("trust").err
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr("callpath_modeler.config._of_user", lambda: None)
    run("trust", runs).fails(2, "no directory for configuration files")
