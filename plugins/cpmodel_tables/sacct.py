"""Accounts of Slurm: what ``sacct --parsable`` and ``sacct --parsable2`` print of jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from callpath_modeler.readers.base import RunSource
from cpmodel_tables.results import NODES, PROCESSES, Results
from cpmodel_tables.text import opened_lines

_TITLES = re.compile(
    r"(?=[^\n]*\bElapsed(?:Raw)?\b)(?=[^\n]*\bState\b)JobID\|[\w|]+$", re.MULTILINE
)
_ELAPSED = re.compile(r"(?:(?P<d>\d+)-)?(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d+(?:\.\d+)?)")
_STEP = re.compile(r"[\d_\[\]+]+\.(?P<step>\w+)")
_HELPERS = frozenset({"batch", "extern", "interactive"})
"""Steps without a parallel program."""
_COUNTS = ("NTasks", "ReqCPUS", "AllocCPUS", "NCPUS")
"""Titles of the number of processes; the first one that a job states counts."""
_LONGEST = 10_000


def is_one(text: str) -> bool:
    """Return whether a text is an account, by its first lines."""
    return bool(_TITLES.match(text))


def read(path: Path) -> list[RunSource]:
    """Return the runs of completed jobs: of their steps, or of jobs without steps.

    Raises
    ------
    InputError
        If no job completed.
    """
    results = Results(path, "sacct", all_vary=True)
    rows = list(_rows(path))
    with_steps = {str(row["JobID"]).partition(".")[0] for row in rows if _step(row)}
    repeated: dict[tuple[str, object], int] = {}
    for row in rows:
        job, step = str(row["JobID"]).partition(".")[0], _step(row)
        if (job in with_steps) != bool(step):
            continue
        results.listed += 1
        if row.get("State", "").split(" ")[0] != "COMPLETED":
            results.failed += 1
            continue
        run: dict[str, object] = {"program": row.get("JobName") or "job"}
        processes = next((row[each] for each in _COUNTS if row.get(each, "").isdecimal()), "")
        if processes:
            run[PROCESSES] = float(processes)
        nodes = row.get("NNodes", "") or row.get("AllocNodes", "")
        if nodes.isdecimal():
            run[NODES] = float(nodes)
        key = str(run["program"]), run.get(PROCESSES)
        repeated[key] = repeated.get(key, 0) + 1
        run["repetition"] = float(repeated[key])
        results.add(run, (), "time", _seconds(row), "s", int(row[""]))
    return results.runs()


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    """Yield the fields of each line by title; title "" is the number of the line."""
    titles: list[str] = []
    with opened_lines(path) as text:
        for number, line in enumerate(text, 1):
            cells = line[:_LONGEST].strip().split("|")
            if not titles:
                titles = cells
            elif len(cells) == len(titles):
                yield {**dict(zip(titles, cells, strict=True)), "": str(number)}


def _step(row: Mapping[str, str]) -> str:
    """Return the step of a row that is a parallel program, or ""."""
    match = _STEP.fullmatch(row["JobID"])
    return match["step"] if match and match["step"] not in _HELPERS else ""


def _seconds(row: Mapping[str, str]) -> float | None:
    """Return the duration of a row in seconds; None = not stated."""
    raw = row.get("ElapsedRaw", "")
    if raw.isdecimal():
        return float(raw)
    match = _ELAPSED.fullmatch(row.get("Elapsed", ""))
    if match is None:
        return None
    days, hours, minutes, seconds = (float(match[each] or 0) for each in "dhms")
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
