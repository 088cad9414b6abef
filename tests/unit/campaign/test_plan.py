"""Plans of series: the program in a command line, placeholders, names of runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from callpath_modeler.campaign import plan as plans
from callpath_modeler.campaign.launch import RunRecord, record_text
from callpath_modeler.campaign.plan import Plan, PlannedRun

PYTHON = sys.executable


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("app", "app.py"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)


def plan(*command: str, **changes: object) -> Plan:
    values = {"schema": 1, "place": "", "command": [*command], "folder": "", "scales": [2, 4],
              "varied": {}, "repetitions": 2, "profiler": "time", "seed": 1, **changes}  # fmt: skip
    return Plan(**values)


@pytest.mark.parametrize(
    ("command", "position", "name"),
    [
        (("./app", "{p}"), 0, "app"),
        (("srun", "-n", "{p}", "./app"), 3, "app"),
        (("mpirun", "-np", "{p}", "--host", "a:4,b:4", "./app", "-x"), 5, "app"),
        (("mpirun", "-n", "{p}", PYTHON, "app.py"), 3, "app.py"),
        (("mpirun", "-n", "{p}", PYTHON, "-m", "solver.main", "x"), 3, "solver.main"),
        ((PYTHON, "-u", "app.py", "{p}"), 0, "app.py"),
        (("sh", "-c", "echo {p}"), 0, "sh"),
        (("srun", "-J", "test", "-n", "{p}", "env", "A=1", "./app"), 7, "app"),
        (("srun", "-n", "{p}", "ls"), 3, "ls"),
        (("mpirun", "-n", "{p}", "./absent"), 0, "mpirun"),
    ],
)
def test_the_program_stands_behind_its_launchers(place, command, position, name):  # noqa: ARG001
    assert plans.program_position(command) == position
    assert plans.program_name(command) == name


def test_wrappers_stand_in_front_of_the_program_or_where_the_command_says(place):  # noqa: ARG001
    run = PlannedRun({"p": 4}, 1)
    words = plan("srun", "-n", "{p}", "./app", "{dir}/x", "{other}").words(run, Path("/d"), ["w"])
    assert words == ["srun", "-n", "4", "w", "./app", "/d/x", "{other}"]
    words = plan("srun", "{profiler}", "-n", "{p}", "./app").words(run, Path("/d"), ["w", "-o"])
    assert words == ["srun", "w", "-o", "-n", "4", "./app"]
    assert plan("srun", "{profiler}", "./app").words(run, Path("/d")) == ["srun", "./app"]


def test_values_are_not_placeholders_again(place):  # noqa: ARG001
    run = PlannedRun({"p": 4}, 1)
    assert plans.filled("{dir}", run, Path("/a/{p}")) == "/a/{p}"


def test_all_settings_are_run_and_named():
    runs = plan("app", varied={"n": [10, 20]}).runs()
    assert len(runs) == len({run.name for run in runs}) == 8
    assert {run.processes for run in runs} == {2, 4}
    assert "p4.n20.r2" in {run.name for run in runs}


def test_a_record_of_odd_texts_is_toml_that_reads_back():
    import msgspec

    odd = 'quote " back \\ tab \t line \n bell \x07 del \x7f ä \U0001f600'
    record = RunRecord("p2.r1", {"p": 2}, 1, [odd, ""], odd, odd, "", 1.5e-7, -9,
                       environment={"A": odd})  # fmt: skip
    found = msgspec.toml.decode(record_text(record), type=RunRecord)
    assert (found.seconds, found.status, len(found.command)) == (1.5e-7, -9, 2)
    assert found.environment["A"].startswith('quote " back \\')
    assert found.environment["A"].isprintable()
