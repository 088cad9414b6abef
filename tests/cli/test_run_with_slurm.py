"""`cpmodel run --submit slurm`, with stand-ins of the scheduler."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from fake_slurm import scheduler  # noqa: F401

PROGRAM = "import sys; print('on', sys.argv[1])\n"


@pytest.fixture
def series(tmp_path, monkeypatch, scheduler):  # noqa: ARG001, F811
    """Return the words of a command that measures a series of jobs."""
    place = tmp_path / "it's a place"
    place.mkdir()
    monkeypatch.chdir(place)
    Path("app.py").write_text(PROGRAM)

    def series(*more: str, scales: str = "1,2", program: str = PROGRAM) -> tuple[str, ...]:
        Path("app.py").write_text(program)
        return ("run", "--submit", "slurm", "--poll", "0.01", "--scales", scales, "--repeat", "1",
                "--seed", "1", *more, "--", "srun", "-n", "{p}", sys.executable, "app.py",
                "{p}")  # fmt: skip

    return series


def calls(scheduler: Path, name: str) -> int:  # noqa: F811
    return (scheduler / "calls").read_text().count(f"{name} ")


def record(path: str) -> dict[str, object]:
    return msgspec.toml.decode((Path(path) / "run.toml").read_bytes())


def test_each_run_is_a_job_and_rank_reads_the_result(run, series, scheduler):  # noqa: F811
    done = run(*series(scales="1,2,4"))
    assert done.status == 0, done.err
    assert done.out.startswith("done: 3 of 3 runs")
    assert calls(scheduler, "sbatch") == 3
    assert Path("runs/p4.r1/stdout").read_text() == "on 4\n"
    told = record("runs/p4.r1")
    assert (told["host"], told["status"], told["parameters"]) == ("node[1-2]", 0, {"p": 4})
    assert int(told["job"]) > 1000
    assert 0 < told["seconds"] < 60
    assert told["max_memory"] == 2.5 * 1024**2
    assert run("rank", "runs", "--target", "16").status == 0
    assert run("rank", "runs", "--target", "16", "-m", "max_memory").status == 0


def test_a_requeued_job_is_waited_for(run, series, scheduler):  # noqa: F811
    (scheduler / "answers").write_text("PENDING RUNNING REQUEUED PENDING run\nPENDING run\n")
    assert run(*series()).out.startswith("done: 2 of 2 runs")
    assert calls(scheduler, "sbatch") == 2


def test_a_job_that_squeue_forgot_is_asked_of_sacct(run, series, scheduler):  # noqa: F811
    (scheduler / "answers").write_text("run forget\n")
    assert run(*series(scales="1")).out.startswith("done: 1 of 1 run")


@pytest.mark.parametrize(
    ("states", "complaint"),
    [
        ("TIMEOUT", "ended as timeout"),
        ("RUNNING NODE_FAIL", "ended as node fail"),
        ("forget CANCELLED", "ended as cancelled"),
        ("OUT_OF_MEMORY", "ended as out of memory"),
        ("lose lost", "wrote no exit status"),
        ("COMPLETED", "wrote no exit status"),
    ],
)
def test_a_job_that_fails_is_named_and_submitted_once_more(
    run, series, scheduler, states, complaint  # noqa: F811
):  # fmt: skip
    (scheduler / "answers").write_text(f"{states}\nrun\nrun\n")
    done = run(*series())
    assert done.status == 0, done.err
    assert complaint in done.err
    assert "failed: job 1001 " in done.err
    assert calls(scheduler, "sbatch") == 3


def test_a_program_that_fails_is_left_out(run, series):
    words = series(program="import sys; sys.exit('bad input' if sys.argv[1] == '2' else 0)")
    done = run(*words)
    assert done.status == 1
    assert "done: 1 of 2 runs" in done.out
    assert "left out: p2.r1: exit status 1: bad input" in done.out


def test_a_later_command_finds_the_jobs_of_a_killed_one(run, series, scheduler):  # noqa: F811
    (scheduler / "answers").write_text("PENDING\nPENDING\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "callpath_modeler", *series()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    for _ in range(600):
        jobs = [*Path("runs").glob(".series/running/*/job")] if Path("runs").exists() else []
        if len(jobs) == 2:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    for job in ("1001", "1002"):
        (scheduler / f"{job}.states").write_text("run")
    done = run("run", "--again", "runs", "--poll", "0.01")
    assert done.out.startswith("done: 2 of 2 runs")
    assert calls(scheduler, "sbatch") == 2


@pytest.mark.parametrize("tool", ["sbatch", "squeue"])
def test_a_scheduler_that_does_not_answer(run, series, scheduler, tool):  # noqa: F811
    (scheduler / "broken").write_text(tool)
    done = run(*series(scales="1"))
    if tool == "sbatch":
        done.fails(4, "sbatch: slurm_load_jobs error", "repeat this command")
    else:  # sacct knows nothing either; the job has not run
        assert done.status == 1
    (scheduler / "broken").unlink()
    assert run("run", "--again", "runs", "--poll", "0.01").out.startswith("done: 1 of 1 run")


def test_without_slurm_the_error_says_so(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if shutil.which("sbatch"):
        pytest.skip("Slurm is installed here")
    done = run("run", "--submit", "slurm", "--scales", "1", "--", "srun", "./app")
    done.fails(4, "sbatch is not installed here")


def test_a_dry_run_prints_scripts_that_bash_accepts(run, series, scheduler, tmp_path):  # noqa: F811
    words = series("--dry-run", "--time-limit", "90s", "--sbatch=--partition=short",
                   "--sbatch=--comment=p is {p}")  # fmt: skip
    done = run(*words[:-1], 'a\'b "c" $(touch made) `d`\n{p}')
    assert done.status == 0
    assert "#SBATCH --ntasks=2\n#SBATCH --time=2\n#SBATCH --partition=short\n" in done.out
    assert "#SBATCH --comment=p is 2\n" in done.out
    assert not Path("runs").exists()
    assert not (scheduler / "calls").exists()
    scripts = ["#!/bin/bash" + part for part in done.out.split("#!/bin/bash")[1:]]
    assert len(scripts) == 2
    for text in scripts:
        path = tmp_path / "job.sh"
        path.write_text(text)
        subprocess.run(["bash", "-n", path], check=True)  # noqa: S607
        if shutil.which("shellcheck"):
            subprocess.run(["shellcheck", path], check=True)  # noqa: S607


@pytest.mark.parametrize("option", ["--x\n#SBATCH --y", "partition", ""])
def test_options_of_sbatch_are_one_line_each(run, series, option):
    run(*series(f"--sbatch={option}")).fails(2, "is not an option of sbatch")


def test_a_budget_ends_a_series_of_jobs(run, series, scheduler):  # noqa: F811
    words = series("--budget", "0.0001 core-seconds", scales="1,2,4,8")
    done = run(*words)
    assert "no further run is within the budget" in done.out, done.err
    assert calls(scheduler, "sbatch") == 1
    assert run(*words).out.startswith("done: 1 of at most 4 runs")
    assert calls(scheduler, "sbatch") == 1
