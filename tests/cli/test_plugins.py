"""Plugins for users and authors: installed plugins, and readers in a single file."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from callpath_modeler.cli.plugins import Plugin, plugins_text

EXAMPLE = Path(__file__).resolve().parents[2] / "plugins" / "example"
READER = EXAMPLE / "cpmodel_timings.py"


@pytest.fixture(scope="session")
def scratch(tmp_path_factory) -> str:
    """A directory with the installed example plugin, for PYTHONPATH."""
    if find_spec("pip") is None or find_spec("hatchling") is None:
        pytest.skip("needs pip and hatchling to install the example plugin")
    target = tmp_path_factory.mktemp("scratch")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(target), str(EXAMPLE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return str(target)


@pytest.fixture
def timings(tmp_path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    for p in (2, 4, 8, 16, 32):
        same = " ".join(["2.5"] * p)
        growing = " ".join([f"{0.1 * p}"] * p)
        text = f"timings of app\nmain = {same}\n  solve = {same}\n    exchange = {growing}\n"
        (folder / f"app.p{p}.timings").write_text(text)
    return folder


def broken(tmp_path, entries, code=""):
    """Write an installed package with these entry points."""
    (tmp_path / "third_party.py").write_text(code)
    installed = tmp_path / "third_party-2.1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 2.1\n")
    (installed / "entry_points.txt").write_text(entries)
    return str(tmp_path)


def listed(outcome):
    return {(row["kind"], row["name"]): row for row in csv.DictReader(io.StringIO(outcome.out))}


# Installed ones.


def test_an_installed_plugin_reads_its_profiles_without_being_named(spawn, scratch, timings):
    info = spawn("info", timings, PYTHONPATH=scratch)
    assert info.status == 0, info.err
    assert "5 runs of 5 points" in info.out
    ranked = spawn("rank", timings, "--target", "64", "-f", "csv", PYTHONPATH=scratch)
    worst = next(csv.DictReader(io.StringIO(ranked.out)))
    assert worst["callpath"] == "main/solve/exchange"
    assert worst["growth"] == "O(p)"
    assert float(worst["value_at_target[s]"]) == pytest.approx(6.4, rel=1e-6)


def test_an_installed_plugin_adds_its_command(spawn, scratch, timings):
    done = spawn("hottest", timings, PYTHONPATH=scratch)
    assert (done.status, done.out) == (0, "main/solve/exchange\n"), done.err


def test_the_list_names_package_version_suffixes_and_commands(spawn, scratch):
    found = listed(spawn("plugins", "-f", "csv", PYTHONPATH=scratch))
    timings = found["reader", "timings"]
    assert timings["package"] == "cpmodel-timings"
    assert timings["version"] == "1.0"
    assert timings["suffixes"] == ".timings"
    assert timings["status"] == "ok"
    assert found["command", "hottest"]["description"].startswith("Print the call path")
    assert found["reader", "scorep"]["package"] == "callpath-modeler"
    text = spawn("plugins", PYTHONPATH=scratch).out
    lines = [line.strip() for line in text.splitlines()]
    at = next(k for k, line in enumerate(lines) if line.startswith("timings "))
    assert lines[at].endswith("  Timings: seconds per call path and process")
    assert lines[at + 1] == ".timings · cpmodel-timings 1.0"


def test_the_list_says_what_does_not_load_and_why(spawn, tmp_path):
    entries = """
    [callpath_modeler.readers]
    gone = module_that_is_not_there:Reader
    empty = third_party:Empty
    scorep = third_party:Empty
    [callpath_modeler.commands]
    rank = third_party:Empty
    seven = third_party:Empty
    """
    where = broken(tmp_path, entries, "class Empty: pass\n")
    done = spawn("plugins", PYTHONPATH=where)
    assert done.status == 0
    assert "5 plugins cannot be used:" in done.out
    assert "No module named 'module_that_is_not_there'" in done.out
    found = json.loads(spawn("plugins", "-f", "json", PYTHONPATH=where).out)["rows"]
    problem = {row["name"]: row["problem"] for row in found if row["package"] == "third-party"}
    assert "lacks api_version, name, description, suffixes, match" in problem["empty"]
    assert "reader 'scorep' of callpath-modeler is used instead" in problem["scorep"]
    assert "there is another command 'rank'" in problem["rank"]
    assert "is not a click command" in problem["seven"]
    ours = [row for row in found if row["package"] == "callpath-modeler"]
    assert all(row["status"] == "ok" for row in ours)


def test_a_broken_plugin_keeps_nobody_from_reading(spawn, tmp_path, lulesh):
    entries = "[callpath_modeler.readers]\ngone = module_that_is_not_there:Reader\n"
    run = lulesh / "lulesh.p8.r1"
    assert spawn("info", run, PYTHONPATH=broken(tmp_path, entries)).status == 0


# In a single file.


def test_a_reader_in_a_file_needs_no_installation(spawn, timings):
    assert spawn("info", timings).status == 3
    done = spawn("info", timings, "--reader", READER)
    assert done.status == 0, done.err
    assert "5 runs of 5 points" in done.out


def test_the_list_shows_the_readers_of_a_file(run):
    done = run("plugins", READER)
    assert "timings  Timings: seconds per call path and process\n" in done.out
    assert "cpmodel_timings.py" in done.out


def test_the_list_fits_a_terminal_and_goes_on_below_its_beginning():
    plugin = Plugin("reader", "mine", "p", "1.0", "what it reads", tuple([".longer"] * 20))
    lines = [line.plain for line in plugins_text([plugin], 40)]
    assert max(map(len, lines)) <= 40
    assert lines[:2] == ["readers", "  mine  what it reads"]
    assert len(lines) > 4
    assert all(line.startswith(" " * 8 + ".longer") for line in lines[2:-1])


def test_a_file_that_is_not_there_is_a_usage_error(run, timings):
    run("info", timings, "--reader", "nowhere.py").fails(2, "nowhere.py: no such file")


HEAD = "class R:\n api_version = 1\n name = 'r'\n description = 'd'\n suffixes = ('.timings',)\n"
MATCH = " def match(self, path): return 2\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("def", "SyntaxError"),
        ("import nothing_of_that_name", "No module named 'nothing_of_that_name' (mine.py:1)"),
        ("x = 1\nx.y", "AttributeError: 'int' object has no attribute 'y' (mine.py:2)"),
        ("raise SystemExit(0)", "SystemExit"),
        ("x = 1", "holds no reader"),
        ("class R:\n def match(self, path): return 0", "R lacks api_version, name"),
        (HEAD + MATCH, "R lacks open"),
        (HEAD.replace("1", "99") + MATCH + " open = match", "is for plugin API 99, this is 1"),
        (
            HEAD.replace("('.timings',)", "'.x'") + MATCH + " open = match",
            "suffixes is not a tuple",
        ),
        (HEAD + MATCH + " def open(self, path): return 1 / 0", "reader 'r' failed: ZeroDivision"),
        (HEAD + " def match(self, path): return 1 / 0\n open = match", "(mine.py:6)"),
        (HEAD + " def __init__(self): 1 / 0\n" + MATCH + " open = match", "ZeroDivisionError"),
    ],
)
def test_what_is_wrong_in_the_file_is_one_clear_line(run, tmp_path, timings, code, words):
    mine = tmp_path / "mine.py"
    mine.write_text(code)
    run("info", timings, "--reader", mine).fails(5, words, "mine.py")


def test_authors_see_where_their_reader_failed(run, tmp_path, timings):
    mine = tmp_path / "mine.py"
    mine.write_text(HEAD + MATCH + " def open(self, path):\n  return 1 / 0\n")
    assert "return 1 / 0" in run("-v", "info", timings, "--reader", mine).err
