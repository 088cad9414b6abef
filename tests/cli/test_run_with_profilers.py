"""`cpmodel run --profiler`: stand-ins of profilers record their environment and arguments."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from callpath_modeler.campaign.profilers import PROFILERS
from callpath_modeler.cli.run import _PROFILERS

LULESH = Path(__file__).parents[2] / "sample_profiles" / "lulesh" / "lulesh.p8.r1"
_RECORD = """#!{python}
import json, os, sys
from pathlib import Path
name, words = Path(sys.argv[0]).name, sys.argv[1:]
told = {{"words": words, "environment": {{k: v for k, v in os.environ.items() if "runs" in v
        or k.startswith(("SCOREP", "TAU", "CALI"))}}}}
with open({calls!r}, "a") as calls:
    calls.write(json.dumps({{"name": name, **told}}) + "\\n")
for kind, option in (("measurements", "-o"), ("database", "-o"), ("report", "-o")):
    if option in words and kind in words[words.index(option) + 1]:
        path = Path(words[words.index(option) + 1].replace("%q{{OMPI_COMM_WORLD_RANK}}", "0"))
        if kind == "report":
            path.with_name(path.name + ".sqlite").touch()
        else:
            path.mkdir()
            (path / "experiment.xml").touch()
if name in ("hpcrun", "tau_exec"):
    words = words[words.index("-o") + 2 :] if "-o" in words else words
    os.execvp(words[0], words)
if name == "nsys":
    words = words[words.index("-o") + 2 :]
    os.execvp(words[0], words)
"""

_PROGRAM = """#!{python}
import json, os, sys
from pathlib import Path
kinds = "SCOREP", "TAU", "CALI", "CPM_", "PROFILEDIR"
told = {{k: v for k, v in os.environ.items() if k.startswith(kinds)}}
with open({calls!r}, "a") as calls:
    calls.write(json.dumps({{"name": "app", "words": sys.argv[1:], "environment": told}}) + "\\n")
place, = Path("runs/.series/running").iterdir()
for name in {written!r}:
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).touch()
"""


@pytest.fixture
def measured(run, tmp_path, monkeypatch):
    """Run a program once under a stand-in of a profiler, and return what was recorded."""
    monkeypatch.chdir(tmp_path)
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    calls = tmp_path / "calls"

    def measured(profiler: str, *written: str, launcher: tuple[str, ...] = ()):
        for name in ("hpcrun", "hpcstruct", "hpcprof", "tau_exec", "nsys"):
            path = tools / name
            path.write_text(_RECORD.format(python=sys.executable, calls=str(calls)))
            path.chmod(0o755)
        app = tmp_path / "app"
        app.write_text(_PROGRAM.format(python=sys.executable, calls=str(calls), written=written))
        app.chmod(0o755)
        done = run("run", "--scales", "4", "--repeat", "1", "--attempts", "1", "--profiler",
                   profiler, "--", *launcher, "./app", "{p}")  # fmt: skip
        lines = calls.read_text().splitlines() if calls.exists() else []
        return done, {each["name"]: each for each in map(json.loads, lines)}

    return measured


def test_score_p_writes_into_the_directory_of_the_run(measured):
    done, told = measured("scorep", "scorep/profile.cubex")
    assert done.status == 0, done.err
    environment = told["app"]["environment"]
    assert environment["SCOREP_EXPERIMENT_DIRECTORY"].endswith("runs/.series/running/p4.r1/scorep")
    assert environment["SCOREP_ENABLE_PROFILING"] == "true"
    assert Path("runs/p4.r1/scorep/profile.cubex").exists()


def test_caliper_writes_into_the_directory_of_the_run(measured):
    done, told = measured("caliper", "profile.cali")
    assert done.status == 0
    config = told["app"]["environment"]["CALI_CONFIG"]
    assert config.startswith("spot(output=")
    assert config.endswith("p4.r1/profile.cali,profile.mpi=true)")


def test_tau_wraps_the_program_and_records_call_paths(measured):
    done, told = measured("tau", "profile.0.0.0")
    assert done.status == 0
    assert told["tau_exec"]["words"] == ["./app", "4"]
    environment = told["app"]["environment"]
    assert environment["PROFILEDIR"].endswith("p4.r1")
    assert (environment["TAU_CALLPATH"], environment["TAU_THROTTLE"]) == ("1", "0")


def test_hpctoolkit_wraps_the_program_behind_its_launcher_and_makes_a_database(measured):
    done, told = measured("hpctoolkit", launcher=("env", "A=1"))
    assert done.status == 0, done.err
    words = told["hpcrun"]["words"]
    assert words[:3] == ["-e", "REALTIME", "-o"]
    assert words[4:] == ["./app", "4"]
    assert told["hpcstruct"]["words"] == [words[3]]
    assert told["hpcprof"]["words"][2] == words[3]
    assert Path("runs/p4.r1/database/experiment.xml").exists()


def test_nsight_writes_one_report_per_process(measured):
    done, told = measured("nsys")
    assert done.status == 0, done.err
    words = told["nsys"]["words"]
    assert words[-2:] == ["./app", "4"]
    assert words[-3].endswith("p4.r1/report.%q{OMPI_COMM_WORLD_RANK}")


def test_pytorch_learns_the_directory_of_the_run(measured):
    done, told = measured("kineto", "rank-0.pt.trace.json.gz")
    assert done.status == 0
    assert told["app"]["environment"]["CPM_RUN_DIRECTORY"].endswith("p4.r1")


@pytest.mark.parametrize("profiler", ["scorep", "caliper", "tau", "kineto", "timer"])
def test_a_run_without_a_profile_has_failed(measured, profiler):
    done, _ = measured(profiler)
    assert done.status == 1
    assert "left out: p4.r1: the run wrote no profile: " in done.out


def test_wall_time_sets_no_variable_that_a_timer_in_the_program_would_heed(measured, monkeypatch):
    monkeypatch.setenv("CPM_RUN_DIRECTORY", "elsewhere")
    done, told = measured("time")
    assert done.status == 0
    assert "CPM_RUN_DIRECTORY" not in told["app"]["environment"]


def test_the_help_names_all_profilers():
    assert tuple(PROFILERS) == _PROFILERS


_COPIES = """#!{python}
import json, os, shutil, sys
from pathlib import Path
with open({calls!r}, "a") as calls:
    calls.write(json.dumps([sys.argv[1], os.environ.get("SCOREP_FILTERING_FILE")]) + "\\n")
if {fails}:
    sys.exit(3)
place = Path(os.environ["SCOREP_EXPERIMENT_DIRECTORY"])
place.mkdir()
shutil.copy({profile!r}, place / "profile.cubex")
"""


@pytest.fixture
def series(run, tmp_path, monkeypatch):
    """Make a series of runs of a stand-in that copies a measured profile."""
    monkeypatch.chdir(tmp_path)
    calls = tmp_path / "calls"

    def series(*options: str, fails: bool = False):
        app = tmp_path / "app"
        profile = str(LULESH / "profile.cubex")
        text = _COPIES.format(python=sys.executable, calls=str(calls), profile=profile, fails=fails)
        app.write_text(text)
        app.chmod(0o755)
        done = run("run", "--scales", "2,4", "--repeat", "2", "--profile-once", *options,
                   "--", "./app", "{p}")  # fmt: skip
        lines = calls.read_text().splitlines() if calls.exists() else []
        return done, [json.loads(line) for line in lines]

    return series


def test_the_first_run_chooses_the_filter_of_all_others(series, run, tmp_path):
    done, calls = series("--profiler", "scorep")
    assert done.status == 0, done.err
    assert "p2.r1 chose the filter: 6 functions will not be measured" in done.err
    chosen = tmp_path / "runs" / ".series" / "filter"
    assert calls[0] == ["2", None]
    assert [path for _, path in calls[1:]] == [str(chosen)] * 4
    assert "EXCLUDE" in chosen.read_text()
    proposed = tmp_path / "proposed"
    assert run("refine", str(LULESH), "-o", str(proposed)).status == 0
    assert proposed.read_text().partition("\n")[2] == chosen.read_text().partition("\n")[2]
    # The run that measured everything is no run of the series.
    assert sorted(path.name for path in (tmp_path / "runs").glob("p*")) == [
        "p2.r1", "p2.r2", "p4.r1", "p4.r2",
    ]  # fmt: skip
    again, calls = series("--profiler", "scorep")
    assert again.status == 0
    assert len(calls) == 5


def test_a_first_run_that_fails_ends_the_series(series):
    done, calls = series("--profiler", "scorep", fails=True)
    assert done.status == 4
    assert "the run that chooses the filter failed: exit status 3" in done.err
    assert len(calls) == 1


def test_only_score_p_filters_functions(series):
    done, calls = series("--profiler", "time")
    assert done.status == 2
    assert "--profile-once" in done.err
    assert not calls
