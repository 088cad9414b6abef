"""Reading of a series: 5 runs on 16 ... 256 processes, 5,000 call paths, 4 metrics."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

from environments import EXTRAP, PYCUBEXR, WORK
from measure import TASKS, Cost, cheapest, run
from results import Row

SERIES = WORK / "series"
GOAL = 100

NOTES = """\
The benchmark computes the exclusive maximum over locations for every call path, metric and run.
Extra-P imports CUBE files (mean and median over locations). pycubexr runs a loop over call paths.
The values of pycubexr and cpmodel are compared before the table is printed. Times are processor
seconds (user and system), the least of 2 or 3 runs, with one thread. Files are in the page cache.
"""

_SCALES = ("16", "32", "64", "128", "256")
_CALL_PATHS = 5000
_TOLERANCE = 1e-9


class DisagreementError(Exception):
    """Two programs read different values, so that a comparison of their costs means nothing."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The cost of reading the series, for each program."""

    ours: Cost
    extrap: Cost
    pycubexr: Cost


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    reading = _measured()
    _check(reading)
    return [
        _read(reading.ours, reading.extrap, EXTRAP.name, GOAL),
        _whole(reading.ours, reading.extrap, EXTRAP.name),
        _read(reading.ours, reading.pycubexr, PYCUBEXR.name),
        _whole(reading.ours, reading.pycubexr, PYCUBEXR.name),
        Row(
            "ingest: start and imports alone",
            _seconds(reading.ours.report["import"]),
            f"{_seconds(reading.extrap.report['import'])} {EXTRAP.name}",
        ),
        Row(
            "ingest: largest resident set",
            f"{reading.ours.resident / 1e6:.0f} MB",
            f"{reading.extrap.resident / 1e6:.0f} MB {EXTRAP.name}",
            reading.extrap.resident / reading.ours.resident,
        ),
    ]


def _measured() -> Reading:
    extrap, pycubexr = EXTRAP.executable(), PYCUBEXR.executable()
    writer = TASKS.parent / "write_series.py"
    told = ["--call-paths", str(_CALL_PATHS), "--scales", *_SCALES]
    run([sys.executable, writer, SERIES, *told], reports=False)
    return Reading(
        ours=cheapest([sys.executable, TASKS / "ingest_ours.py", SERIES], 3),
        extrap=cheapest([extrap, TASKS / "ingest_extrap.py", SERIES], 2),
        pycubexr=cheapest([pycubexr, TASKS / "ingest_pycubexr.py", SERIES], 3),
    )


def _check(reading: Reading) -> None:
    for cost in (reading.ours, reading.extrap, reading.pycubexr):
        if cost.report["call paths"] != _CALL_PATHS:
            raise DisagreementError(f"{cost.report['call paths']} call paths, not {_CALL_PATHS}")
    same_sums(reading.ours.report["sums"], reading.pycubexr.report["sums"])


def same_sums(ours: dict[str, float], peer: dict[str, float]) -> None:
    """Check that two programs read the same values.

    Raises
    ------
    DisagreementError
        If the values differ.
    """
    for metric in ours.keys() | peer.keys():
        found = ours.get(metric, math.nan), peer.get(metric, math.nan)
        if not math.isclose(*found, rel_tol=_TOLERANCE):
            raise DisagreementError(f"{metric}: {found[0]} here, {found[1]} there")


def _read(ours: Cost, peer: Cost, name: str, goal: int | None = None) -> Row:
    """Compare the cost of reading, without the start of the process."""
    mine, others = float(ours.report["read"]), float(peer.report["read"])
    return Row(
        "ingest: 5 runs, 5,000 call paths, 4 metrics",
        _seconds(mine),
        f"{_seconds(others)} {name}",
        others / mine,
        f"≥ {goal} x" if goal else "",
        others / mine >= goal if goal else None,
    )


def _whole(ours: Cost, peer: Cost, name: str) -> Row:
    return Row(
        "ingest: the same with start and imports",
        _seconds(ours.cpu),
        f"{_seconds(peer.cpu)} {name}",
        peer.cpu / ours.cpu,
    )


def _seconds(value: float) -> str:
    return f"{value:.3g} s"
