"""An installed `cpmodel`, used as a program from a folder that has nothing to do with it.

The tests use the installed package, the README and the sample profiles. The command
`python tests/tools/installations.py` runs them in new environments, without the sources.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, entry_points
from pathlib import Path

import numpy as np
import pytest

import benchmark_output
import caliper_writer
import tau_writer
from callpath_modeler.cli.group import cpmodel
from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database
from trace_writer import Comm, Thread, Trace, write_trace

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample_profiles"
BIN = Path(sys.executable).parent
MAN = Path(sys.prefix) / "share" / "man"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs `cpmodel` in an empty folder and returns what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str | Path) -> str:
        done = subprocess.run(
            [BIN / "cpmodel", *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "COLUMNS": "100", "XDG_CONFIG_HOME": str(tmp_path / "none")},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def first_answer() -> tuple[list[str], str]:
    """Return the words of the first command in the README, and the text below it."""
    page = (ROOT / "README.md").read_text("utf-8")
    block = page.split("\n```\n$ cpmodel rank ")[1].split("\n```")[0]
    command, _, answer = block.partition("\n")
    words = command.replace("sample_profiles", str(SAMPLES)).split()
    return words, answer


def test_the_first_example_of_the_readme_is_printed(run):
    words, answer = first_answer()
    # The last line repeats the command, with the folder of the samples.
    assert run("rank", *words).splitlines()[:-1] == answer.splitlines()[:-1]


def test_the_version_is_that_of_the_sources(run):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert run("--version") == f"cpmodel, version {version}\n"


@pytest.mark.parametrize("words", [["-c", "import callpath_modeler"], ["-m", "callpath_modeler"]])
def test_python_finds_the_package(words, tmp_path):
    subprocess.run([sys.executable, *words], check=True, cwd=tmp_path, capture_output=True)


def test_each_command_prints_its_help(run, capsys):
    assert "rank" in run("--help")
    names = [path.stem for path in (MAN / "man1").glob("cpmodel*.1")]
    assert len(names) > 30
    for name in names:
        words = name.split("-")[1:]
        with pytest.raises(SystemExit) as end:
            cpmodel([*words, "--help"], prog_name="cpmodel")
        shown = capsys.readouterr().out
        assert end.value.code == 0
        assert f"Usage: {' '.join(['cpmodel', *words])} " in shown


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_man_finds_the_pages_beside_the_program():
    """`man` looks beside each folder of PATH, so no variable has to be set."""
    places = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": places, "MANPAGER": "cat", "MAN_KEEP_FORMATTING": ""}
    environment.pop("MANPATH", None)
    for name in ("cpmodel", "cpmodel-trace-spec"):
        done = subprocess.run(
            [shutil.which("man"), name],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        assert "DESCRIPTION" in done.stdout


def test_no_plugin_is_missing_or_broken(run):
    listed = run("plugins", "-f", "tsv")
    offered = [*entry_points(group="callpath_modeler.readers")]
    offered += entry_points(group="callpath_modeler.commands")
    ours = [entry for entry in offered if entry.dist and entry.dist.name == "callpath-modeler"]
    assert len(ours) == 21
    header, *rows = [line.split("\t") for line in listed.splitlines()]
    problems = {row[header.index("name")]: row[header.index("problem")] for row in rows}
    assert {entry.name for entry in ours} <= problems.keys()
    assert all(not problems[entry.name] for entry in ours)


NEEDED = {
    "callpath_modeler.testing.contract": "pytest",
    "callpath_modeler.modeling.compiled.build": "hatchling",
}
"""Modules that need a library which `pip install` does not install, and this library."""


def test_every_module_is_installed_with_what_it_imports():
    entries = distribution("callpath-modeler").entry_points
    packages = {entry.value.partition(":")[0].partition(".")[0] for entry in entries}
    assert len(packages) == 11
    for package in sorted(packages):
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            library = NEEDED.get(module.name, package)
            # A library in C is a file of another kind, and `__main__` would run.
            is_other = module.name.endswith(".__main__") or "modeler-" in module.name
            if not is_other and importlib.util.find_spec(library):
                importlib.import_module(module.name)


def test_profiles_of_score_p_are_read(run):
    assert "5 points" in run("rank", SAMPLES / "lulesh", "--target", "1000")


def test_tables_are_read(run):
    rows = [f"{p},{8 + p}" for p in (2, 4, 8, 16, 32)]
    Path("times.csv").write_text("\n".join(["p,time", *rows]) + "\n")
    assert "O(p)" in run("rank", "times.csv", "--target", "64")


def test_profiles_of_tau_are_read(run):
    for p in (2, 4, 8):
        threads = {(rank, 0, 0): tau_writer.call_paths({"main": (1, 1e6)}) for rank in range(p)}
        tau_writer.write(Path(f"app.p{p}"), threads)
    assert "main" in run("rank", *sorted(Path().glob("app.p*")), "--target", "64")


def test_profiles_of_caliper_are_read(run):
    Path("small.cali").write_text(caliper_writer.summed(problem_size=30))
    assert "Caliper" in run("info", "small.cali")


def test_traces_are_read_and_specified(run):
    def process(rank: int) -> list[Thread]:
        name = ("MPI_Send", "MPI_Recv")[rank]
        events = [
            ("enter", 0, "main"),
            ("enter", 10, name),
            (name.lower(), 15 + rank, 1 - rank, Comm("WORLD"), 7, 1000),
            ("leave", 20, name),
            ("leave", 30, "main"),
        ]
        return [Thread(events)]

    trace = write_trace(Path("app.p2"), Trace([process(0), process(1)]))
    assert "MPI_Send" in run("rank", trace)
    assert "1000 bytes" in run("trace", "spec", trace)


def test_databases_of_hpctoolkit_are_read(run):
    tree = [Scope(-1, Kind.FUNCTION, "main thread"), Scope(0, Kind.FUNCTION, "main", "/a.c", 3)]
    seconds = {"CPUTIME (sec)": np.array([0.0, 1.5])}
    measured = [Measured({"NODE": 0, "RANK": rank, "THREAD": 0}, seconds) for rank in range(2)]
    write_database(Path("app.p2"), tree, measured)
    assert "1.5" in run("rank", "app.p2")


def test_guidelines_are_checked(run):
    benchmark_output.write(Path(), "osu", benchmark_output.planted)
    assert "Allreduce" in run("guidelines", "osu.p4", "-f", "csv")
