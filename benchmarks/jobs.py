"""The gain from a second process or thread, for reading and for modelling a series."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import hpctoolkit
from environments import WORK
from measure import TASKS, run
from results import Row

GOAL = 1.6

NOTES = """\
Two processes (`-j 2`) are compared with one, in turns. Models in one or two parameters use two
threads instead. Times are wall seconds with the start of the processes, the least of all turns. The
first line runs two independent sums, so it shows how much of the two processors was free.
Therefore, each measurement has a second line of processor time: the time of the first process or
thread alone, plus half of the time that both share. Reading: HPCToolkit databases of 20,000
contexts on 128 processes become one experiment. Models in two parameters: 25 points, three
repetitions; in three: a line of five points for each parameter and one inner point. Small profiles:
`info` of 3,000 profiles of 100 call paths (Score-P) or 25 (Caliper) on 2 to 64 processes. One
profile: `info` of 800 MB of values of 100,000 call paths, which two threads reduce. The dense one
has 1,000 processes. The sparse one has 100,000, and 1,000 of its call paths have values.
"""

_SCALES = tuple(str(p) for p in range(8, 128, 8))
_CONTEXTS, _RANKS = 20_000, 128
SMALL, HUGE = WORK / "small", WORK / "huge"
_SMALL_SCALES = ("2", "4", "8", "16", "32", "64")
_REPETITIONS = 500


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    series = hpctoolkit.written("jobs", _CONTEXTS, _RANKS, *_SCALES)
    return [
        next(_compared("two sums", 3, "sums", 30_000_000)),
        *_compared(f"read {len(_SCALES)} runs", 5, "read", series),
        *_compared("100,000 models", 3, "one", 100_000),
        *_compared("10,000 models in two parameters", 1, "two", 10_000),
        *_compared("2,000 models in three parameters", 1, "three", 2_000),
        *_compared("3,000 small Score-P profiles", 3, "info", _small_score_p()),
        *_compared("3,000 small Caliper profiles", 3, "info", _small_caliper()),
        *_compared("one dense profile", 3, "info", _huge(1_000)),
        *_compared("one sparse profile", 3, "info", _huge(100_000, 1_000)),
    ]


def _huge(processes: int, rows: int | None = None) -> Path:
    """Return a directory with a profile of 100,000 call paths and 800 MB of values."""
    directory = HUGE / str(processes)
    file = directory / f"app.p{processes}.cubex"
    if not file.exists():
        told = ["--processes", str(processes), *(("--rows", str(rows)) if rows else ())]
        run([sys.executable, TASKS.parent / "write_huge.py", file, *told], reports=False)
    return directory


def _small_score_p() -> Path:
    """Return a directory of 3,000 Score-P profiles, written once."""
    one, many = SMALL / "one", SMALL / "scorep"
    if not many.exists():
        told = ["--call-paths", "100", "--metrics", "time", "--scales", *_SMALL_SCALES]
        run([sys.executable, TASKS.parent / "write_series.py", one, *told], reports=False)
        for p in _SMALL_SCALES:
            _repeat(one / f"app.p{p}.r1" / "profile.cubex", many, p)
    return many


def _small_caliper() -> Path:
    """Return a directory of 3,000 Caliper profiles, written once."""
    one, many = SMALL / "one", SMALL / "caliper"
    if not many.exists():
        for p in _SMALL_SCALES:
            file = one / f"app.p{p}.cali"
            told = ["--call-paths", "25", "--ranks", p]
            run([sys.executable, TASKS.parent / "write_caliper.py", file, *told], reports=False)
            _repeat(file, many, p)
    return many


def _repeat(file: Path, many: Path, p: str) -> None:
    """Link a profile into a directory for each of the repetitions."""
    for repetition in range(1, _REPETITIONS + 1):
        folder = many / f"app.p{p}.r{repetition}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file.name).hardlink_to(file)


def _compared(what: str, times: int, task: str, size: int | Path) -> Iterator[Row]:
    costs: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(times):
        for jobs, found in costs.items():
            words = [sys.executable, TASKS / "jobs_ours.py", task, str(size), str(jobs)]
            found.append(run(words, one_core=False).report)
    one, two = (min(cost["wall"] for cost in found) for found in costs.values())
    yield Row(f"jobs: {what}", f"{two:.3g} s", f"{one:.3g} s one process", one / two)
    one, two = (
        min(cost["own"] + cost["others"] / jobs for cost in found) for jobs, found in costs.items()
    )
    yield Row(
        f"jobs: {what}, of processor time",
        f"{two:.3g} s",
        f"{one:.3g} s one process",
        one / two,
        f"≥ {GOAL} x",
        one / two >= GOAL,
    )
