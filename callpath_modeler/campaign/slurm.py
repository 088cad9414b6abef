"""Jobs of Slurm: scripts, submission, and the state of jobs until their runs have ended.

A job needs no Python on the compute nodes: its script measures the time, and writes the exit status
in one step. Jobs outlive the command that submitted them, and the next command finds them.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from callpath_modeler.campaign import launch
from callpath_modeler.campaign.plan import Plan, PlannedRun, filled
from callpath_modeler.campaign.profilers import DIRECTORY_VARIABLE, profiler
from callpath_modeler.errors import DataError, reason_of
from callpath_modeler.printable import printable, shortened

_STATUS, _SCRIPT = "status", "job.sh"
_TOOL_SECONDS = 120.0
_QUEUED = frozenset({
    "PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED", "REQUEUE_HOLD",
    "REQUEUE_FED", "RESIZING", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "RESV_DEL_HOLD",
})  # fmt: skip
_VANISHED = 3
"""Number of polls after which a job that no tool knows is taken for lost."""
_MOST_ANSWER = 10_000_000
_MOST_STEPS = 100_000
_MOST_MEMORY = 1 << 50
"""Bytes that no task has."""
_SECONDS = re.compile(r"[0-9]{1,10}")
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([KMGT]?)")
_NUMBER_OF_TASKS = re.compile(r"(-n|-N|--ntasks|--nodes)(=|\d|$)")


def script(series: launch.SeriesFolder, plan: Plan, run: PlannedRun, limit: float) -> str:
    """Return the job script of a run.

    Parameters
    ----------
    series, plan, run : the run
    limit : longest time in seconds; 0 = that of the partition
    """
    folder = series.running(run)
    options = [filled(each, run, folder) for each in plan.scheduler_options]
    lines = ["#!/bin/bash", f"#SBATCH --job-name={run.name}", "#SBATCH --output=/dev/null"]
    if not any(_NUMBER_OF_TASKS.match(each) for each in options):
        lines.append(f"#SBATCH --ntasks={run.processes}")
    if limit:
        lines.append(f"#SBATCH --time={max(1, math.ceil(limit / 60))}")
    lines += [f"#SBATCH {option}" for option in options]
    paths = {
        name: shlex.quote(str(folder / name))
        for name in (launch.OUTPUT, launch.MESSAGES, _STATUS, "nodes")
    }
    lines += [
        "# shellcheck disable=SC2016 # the words of the command are literal",
        "# A requeued job begins again. Only the first part of a long output is kept.",
        f"rm -f -- {paths[_STATUS]}",
        f"exec > >(head -c {launch.HEAD} > {paths[launch.OUTPUT]}; exec cat > /dev/null)",
        f"exec 2> >(head -c {launch.HEAD} > {paths[launch.MESSAGES]}; exec cat > /dev/null)",
        f"cd -- {shlex.quote(plan.folder)} || exit 1",
    ]
    lines.append(f"unset {DIRECTORY_VARIABLE}")
    lines += [
        f"export {name}={shlex.quote(value)}"
        for name, value in series.variables(plan, folder).items()
    ]
    lines += [
        f'printf "%s\\n" "${{SLURM_JOB_NODELIST:-$HOSTNAME}}" > {paths["nodes"]}',
        "begin=$(date +%s.%N)",
        " ".join(map(shlex.quote, plan.full_words(run, folder))),
        "status=$?",
        "end=$(date +%s.%N)",
        f'printf "%s %s %s\\n" "$status" "$begin" "$end" > {paths[_STATUS]}.new',
        f"mv -- {paths[_STATUS]}.new {paths[_STATUS]}",
        'exit "$status"',
    ]
    return "\n".join(lines) + "\n"


class SlurmRunner:
    """Jobs for the runs of a series.

    Parameters
    ----------
    series, plan : the series
    seconds : time between two questions to the scheduler
    wait : function that waits for some seconds
    """

    def __init__(
        self,
        series: launch.SeriesFolder,
        plan: Plan,
        seconds: float,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._series = series
        self._plan = plan
        self._seconds = seconds
        self._wait = wait

    def results(self, runs: Sequence[PlannedRun], limit: float = 0.0) -> Iterator[launch.RunRecord]:
        """Submit runs that have no job yet, and yield the records of all as they end.

        Parameters
        ----------
        runs : the runs
        limit : longest time of each in seconds; 0 = that of the plan

        Raises
        ------
        DataError
            If sbatch refuses a job.
        """
        longest = self._plan.longest(limit)
        waiting = {self._job(run) or self._submitted(run, longest): run for run in runs}
        unknown = dict.fromkeys(waiting, 0)
        while waiting:
            states = _states([*waiting])
            for job, run in [*waiting.items()]:
                state = states.get(job, "")
                is_written = (self._series.running(run) / _STATUS).exists()
                unknown[job] = 0 if state else unknown[job] + 1
                is_lost = unknown[job] >= _VANISHED
                if state in _QUEUED or not (state or is_written or is_lost):
                    continue
                del waiting[job]
                yield self._collected(run, job, state)
            if waiting:
                self._wait(self._seconds)

    def is_submitted(self, run: PlannedRun) -> bool:
        """Return whether an earlier command submitted a job for a run."""
        return bool(self._job(run))

    def _job(self, run: PlannedRun) -> str:
        try:
            with (self._series.running(run) / launch.JOB).open(
                encoding="ascii", errors="replace"
            ) as file:
                job = file.read(100).strip()
        except OSError:
            return ""
        return job if re.fullmatch(r"[0-9]{1,18}", job) else ""

    def _submitted(self, run: PlannedRun, limit: float) -> str:
        """Submit a job, and return its number."""
        folder = self._series.begin(run)
        path = folder / _SCRIPT
        path.write_text(script(self._series, self._plan, run, limit), "utf-8")
        answer = _answer(["sbatch", "--parsable", str(path)])
        job = answer.strip().partition(";")[0]
        if not re.fullmatch(r"[0-9]{1,18}", job):
            self._series.discard(run)
            raise DataError(
                f"{run.name}: sbatch stated no number of the job: {printable(answer[:100])}",
                hint="try sbatch --parsable with the script of cpmodel run --dry-run",
            )
        (folder / f"{launch.JOB}.new").write_text(job + "\n", "ascii")
        (folder / f"{launch.JOB}.new").rename(folder / launch.JOB)
        return job

    def _collected(self, run: PlannedRun, job: str, state: str) -> launch.RunRecord:
        """Keep a run whose job has ended, and return its record."""
        plan, folder, tool = self._plan, self._series.running(run), profiler(self._plan.profiler)
        status, began, seconds = _measured(folder / _STATUS)
        if state not in {"", "COMPLETED", "FAILED"}:
            failure = f"job {job} ended as {state.lower().replace('_', ' ')}"
        elif status is None:
            failure = f"job {job} wrote no exit status"
        elif status:
            failure = f"{launch.status_text(status)}{launch.last_line(folder)}"
        else:
            failure = launch.after_run(tool, folder, plan.folder)
        elapsed, memory = _accounted(job)
        if status is None:
            seconds = elapsed
        elif not failure and plan.profiler == "time":
            launch.write_wall_time(folder, plan.program, seconds, memory)
        host = ""
        with suppress(OSError):
            host = printable((folder / "nodes").read_text("utf-8", "replace")[:1000].strip())
        record = launch.RunRecord(
            run.name, dict(run.parameters), run.repetition,
            plan.full_words(run, folder), plan.folder,
            host, began, seconds, -1 if status is None else status, failure, memory, job=job,
            environment=launch.told_environment(os.environ),
        )  # fmt: skip
        for name in ("nodes", _STATUS):
            (folder / name).unlink(missing_ok=True)
        self._series.finish(run, record)
        return record


def _measured(path: Path) -> tuple[int | None, str, float]:
    """Return exit status, begin and seconds that a script wrote; None = it wrote none."""
    try:
        words = path.read_text("ascii", "replace")[:200].split()
        status, begin, end = int(words[0]), float(words[1]), float(words[2])
        began = datetime.fromtimestamp(begin, UTC).isoformat(timespec="seconds")
    except (OSError, ValueError, IndexError, OverflowError):
        return None, "", 0.0
    return status, began, max(0.0, end - begin)


def _states(jobs: Sequence[str]) -> Mapping[str, str]:
    """Return the states of jobs by number, from squeue, and from sacct where squeue has none.

    squeue forgets jobs that have ended, and refuses a list that contains such a job alone.
    """
    found: dict[str, str] = {}
    listed = ",".join(jobs)
    for words in (
        ["squeue", "--noheader", "--format=%i %T", f"--jobs={listed}", "--states=all"],
        ["sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State",
         f"--jobs={listed}"],
    ):  # fmt: skip
        with suppress(DataError):
            for line in _answer(words).splitlines():
                job, _, state = line.strip().replace("|", " ").partition(" ")
                if job in jobs and state:
                    # sacct says "CANCELLED by 1000".
                    found.setdefault(job, printable(state.split()[0].rstrip("+")))
        if len(found) == len(jobs):
            break
    return found


def _accounted(job: str) -> tuple[float, int]:
    """Return the seconds of a job, and the largest memory of its tasks in bytes, from sacct.

    0 = not known. The first line is the job, and the others are its steps, which have the memory.
    """
    words = ["sacct", "--noheader", "--parsable2", "--format=ElapsedRaw,MaxRSS", f"--jobs={job}"]
    with suppress(DataError):
        lines = [line.strip().split("|") for line in _answer(words).splitlines()[:_MOST_STEPS]]
        of_job = lines[0][0] if lines else ""
        seconds = float(of_job) if _SECONDS.fullmatch(of_job) else 0.0
        sizes = [_SIZE.fullmatch(line[1]) for line in lines if len(line) > 1]
        memory = [float(size[1]) * 1024 ** " KMGT".index(size[2] or " ") for size in sizes if size]
        return seconds, round(max((size for size in memory if size < _MOST_MEMORY), default=0.0))
    return 0.0, 0


def _answer(words: Sequence[str]) -> str:
    """Return what a command of Slurm prints.

    Raises
    ------
    DataError
        If it is not there, or fails.
    """
    try:
        done = subprocess.run(  # noqa: S603 - a list of words, without a shell
            words, capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=_TOOL_SECONDS
        )
    except FileNotFoundError:
        raise DataError(
            f"{words[0]} is not installed here", hint="run on a login node of the cluster"
        ) from None
    except subprocess.TimeoutExpired:
        raise DataError(
            f"{words[0]} did not answer within {_TOOL_SECONDS:g} s", hint="repeat this command"
        ) from None
    except OSError as cause:
        raise DataError(f"{words[0]}: {reason_of(cause)}", hint="repeat this command") from cause
    if done.returncode:
        said = done.stderr[:_MOST_ANSWER].decode("utf-8", "replace").strip().splitlines()
        raise DataError(
            f"{words[0]}: {shortened(printable(said[-1] if said else ''), 200) or 'no message'}",
            hint="finished runs and submitted jobs are kept: repeat this command",
        )
    return done.stdout[:_MOST_ANSWER].decode("utf-8", "replace")
