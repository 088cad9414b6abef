"""Configuration files: their discovery, their priority, and origins of values."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callpath_modeler import config
from callpath_modeler.config import DEFAULTS, EXPERIMENT, PARAMETERS, config_paths, find_upwards
from callpath_modeler.errors import UsageError

OPTIONS = msgspec.defstruct(
    "Options", [("metric", str, None), ("jobs", int, None)], forbid_unknown_fields=True
)
FORM = config.format_of(OPTIONS, {"jobs": "jobs = 4"}, {"output": "on the command line"})


@pytest.fixture(autouse=True)
def homeless(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(config, "SITE", tmp_path / "etc.toml")


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_nearest_file_above_an_experiment_is_found(tmp_path):
    outer = write(tmp_path / "cpmodel.toml")
    runs = tmp_path / "project" / "runs"
    runs.mkdir(parents=True)
    assert find_upwards(runs) == outer
    inner = write(tmp_path / "project" / "cpmodel.toml")
    assert find_upwards(runs) == inner
    assert find_upwards(runs / "not" / "there") == inner
    beside = write(runs / "cpmodel.toml")
    assert find_upwards(runs) == beside


def test_a_directory_of_that_name_is_no_file(tmp_path):
    outer = write(tmp_path / "cpmodel.toml")
    (tmp_path / "runs" / "cpmodel.toml").mkdir(parents=True)
    assert find_upwards(tmp_path / "runs") == outer


def test_the_working_directory_does_not_count(tmp_path, monkeypatch):
    write(tmp_path / "here" / "cpmodel.toml")
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert find_upwards(tmp_path / "there") is None
    assert find_upwards(Path("../there")) is None


def test_a_relative_start_finds_a_relative_file(tmp_path, monkeypatch):
    write(tmp_path / "cpmodel.toml")
    (tmp_path / "a" / "runs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a")
    assert find_upwards(Path("runs")) == Path("../cpmodel.toml")


def test_links_are_followed_as_they_are_written(tmp_path):
    real, project = tmp_path / "scratch" / "runs", tmp_path / "project"
    for folder in (real, project):
        folder.mkdir(parents=True)
    (project / "runs").symlink_to(real)
    ours = write(project / "cpmodel.toml")
    assert find_upwards(project / "runs") == ours
    theirs = write(tmp_path / "scratch" / "cpmodel.toml")
    assert find_upwards(project / "runs") == ours
    # The directories above a link are those above its target.
    assert find_upwards(project / "runs" / ".." / "other") == theirs


def test_files_of_user_and_machine_follow_that_of_the_experiment(tmp_path, monkeypatch):
    ours = write(tmp_path / "project" / "cpmodel.toml")
    user = write(tmp_path / "home" / "cpmodel" / "config.toml")
    site = write(tmp_path / "etc.toml")
    start = tmp_path / "project" / "runs"
    assert config_paths(start).files() == (ours, user, site)
    assert config_paths().files() == (user, site)
    named = tmp_path / "named.toml"
    assert config_paths(start, named).files() == (named, user, site)
    user.unlink()
    assert config_paths(start).files() == (ours, site)
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    user = write(tmp_path / "me" / ".config" / "cpmodel" / "config.toml")
    assert config_paths().files() == (user, site)


def test_every_value_comes_from_the_first_file_that_gives_it(tmp_path):
    first = write(tmp_path / "a.toml", '[parameters]\np = { from = "name" }\n[defaults]\njobs = 4')
    second = write(
        tmp_path / "b.toml",
        '[experiment]\nname = "x.{p}"\n[defaults]\n\nmetric = "time"\njobs = 2\n'
        '[parameters]\np.from = "processes"\nn = { from = "metadata:n" }',
    )
    files = config.read([first, second], FORM)
    found = config.merge_settings(each for file in files for each in file.settings())
    told = {place: (each.value, each.origin, each.rank) for place, each in found.items()}
    assert told == {
        (PARAMETERS, "p"): ("name", f"{first}:2", 0),
        (DEFAULTS, "jobs"): (4, f"{first}:4", 0),
        (EXPERIMENT, "name"): ("x.{p}", f"{second}:2", 1),
        (DEFAULTS, "metric"): ("time", f"{second}:5", 1),
        (PARAMETERS, "n"): ("metadata:n", f"{second}:9", 1),
    }
    assert found[DEFAULTS, "jobs"].folder == tmp_path


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"jobs": st.integers(0, 99), "metric": st.text("ab")}),
        max_size=4,
    )
)
def test_merging_is_looking_in_one_file_after_the_other(tmp_path_factory, tables):
    folder = tmp_path_factory.mktemp("files")
    paths = []
    for number, table in enumerate(tables):
        lines = [f"{key} = {value!r}" for key, value in table.items()]
        paths.append(write(folder / f"{number}.toml", "\n".join(["[defaults]", *lines])))
    files = config.read(paths, FORM)
    found = config.merge_settings(each for file in files for each in file.settings())
    for key in ("jobs", "metric"):
        values = [(table[key], rank) for rank, table in enumerate(tables) if key in table]
        setting = found.get((DEFAULTS, key))
        assert (None if setting is None else (setting.value, setting.rank)) == next(
            iter(values), None
        )


def test_a_file_has_the_hash_of_what_was_read(tmp_path):
    path = write(tmp_path / "a.toml", "[defaults]\n")
    (file,) = config.read([path], FORM)
    assert file.fingerprint.path == str(path)
    assert file.fingerprint.size == 11
    assert file.fingerprint.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[defaults]\njobs = true", "a.toml:2: jobs must be a whole number"),
        ("[default]\njobs = 4", "a.toml:1: no key 'default'"),
        ("[defaults]\noutput = 'x'", "a.toml:2: no key 'output'"),
        ("[experiment]\nnam = 'x'", "a.toml:2: no key 'nam'"),
        ("[parameters]\np = 'name'", "a.toml:2: p must be a table"),
        ("[parameters]\np = { from = 'name', unit = 's' }", "a.toml:2: no key 'unit'"),
    ],
)
def test_what_no_file_may_hold_is_a_usage_error_with_its_line(tmp_path, text, words):
    path = write(tmp_path / "a.toml", text)
    with pytest.raises(UsageError) as refused:
        config.read([path], FORM)
    assert words in refused.value.message
    assert refused.value.hint


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        config.read([tmp_path / "none.toml"], FORM)
    if os.geteuid():
        path = write(tmp_path / "a.toml")
        path.chmod(0)
        with pytest.raises(UsageError, match="denied"):
            config.read([path], FORM)
