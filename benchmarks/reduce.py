"""Reduction of one large metric to maxima over locations: 100,000 call paths x 512 doubles."""

from __future__ import annotations

import sys
from pathlib import Path

from environments import PYCUBEXR, WORK
from ingest import same_sums
from measure import TASKS, Cost, cheapest, run
from results import Row

LARGE = WORK / "large"
GOALS = {"energy": 3.0, "time": 2.0}
"""Gigabytes per processor second."""

MEMORY_GOAL = 64_000_000
"""Private bytes, in addition to those for each call path."""

NOTES = """\
Rates are bytes of the metric per processor second (user and system), the best of 2 runs. Times are
processor seconds. Private memory is the memory that the process shares with no other (`Private_*`
of smaps_rollup, sampled by a thread), less that before the reduction. The reduction uses one
thread. Files are in the page cache.
"""

_CALL_PATHS, _LOCATIONS = 100_000, 512
_METRIC_BYTES = _CALL_PATHS * _LOCATIONS * 8
_PER_CALL_PATH = 100
"""Bytes per call path during the reduction of a metric: a dozen columns of numbers."""

_METRICS = {"energy": "EXCLUSIVE, as stored", "time": "INCLUSIVE, made exclusive"}


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    python = PYCUBEXR.executable()
    writer = TASKS.parent / "write_series.py"
    told = ["--call-paths", str(_CALL_PATHS), "--scales", str(_LOCATIONS), "--metrics", *_METRICS]
    run([sys.executable, writer, LARGE, *told], reports=False)
    (profile,) = LARGE.glob("*/profile.cubex")
    # Otherwise, the first program would read pages that are not in the cache yet.
    with profile.open("rb") as file:
        while file.read(1 << 24):
            pass
    found = []
    for metric, form in _METRICS.items():
        found += _speed(metric, form, profile, python)
        found += _memory(metric, form, profile, python)
    return found


def _speed(metric: str, form: str, profile: Path, python: Path) -> list[Row]:
    ours = cheapest([sys.executable, TASKS / "reduce_ours.py", profile, metric, "time"], 2)
    peer = cheapest([python, TASKS / "reduce_pycubexr.py", profile, metric, "time"], 2)
    same_sums({metric: ours.report["sum"]}, {metric: peer.report["sum"]})
    best, others = min(ours.report["seconds"]), min(peer.report["seconds"])
    first, first_peer = ours.report["seconds"][0], peer.report["seconds"][0]
    return [
        Row(
            f"reduce: max of 410 MB, {form}",
            _rate(best),
            f"{_rate(others)} {PYCUBEXR.name}",
            others / best,
            f"≥ {GOALS[metric]:g} GB/s",
            _METRIC_BYTES / best / 1e9 >= GOALS[metric],
        ),
        Row(
            "reduce: the same, first call in a process",
            _rate(first),
            f"{_rate(first_peer)} {PYCUBEXR.name}",
            first_peer / first,
        ),
        Row(
            "reduce: opening the profile",
            f"{ours.report['open']:.3g} s",
            f"{peer.report['open']:.3g} s {PYCUBEXR.name}",
            peer.report["open"] / ours.report["open"],
        ),
    ]


def _memory(metric: str, form: str, profile: Path, python: Path) -> list[Row]:
    ours = run([sys.executable, TASKS / "reduce_ours.py", profile, metric, "memory"])
    peer = run([python, TASKS / "reduce_pycubexr.py", profile, metric, "memory"])
    allowed = MEMORY_GOAL + _PER_CALL_PATH * _CALL_PATHS
    return [
        Row(
            f"reduce: private memory, {form}",
            _megabytes(ours.report["reduce"]),
            f"{_megabytes(peer.report['reduce'])} {PYCUBEXR.name}",
            peer.report["reduce"] / ours.report["reduce"],
            f"≤ {_megabytes(MEMORY_GOAL)} + {_PER_CALL_PATH} B/call path",
            ours.report["reduce"] <= allowed,
        ),
        _both("reduce: private memory with opening", ours, peer, "open and reduce"),
        Row(
            "reduce: largest resident set of the process",
            _megabytes(ours.resident),
            f"{_megabytes(peer.resident)} {PYCUBEXR.name}",
            peer.resident / ours.resident,
        ),
    ]


def _both(what: str, ours: Cost, peer: Cost, key: str) -> Row:
    return Row(
        what,
        _megabytes(ours.report[key]),
        f"{_megabytes(peer.report[key])} {PYCUBEXR.name}",
        peer.report[key] / ours.report[key],
    )


def _rate(seconds: float) -> str:
    return f"{_METRIC_BYTES / seconds / 1e9:.3g} GB/s"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.0f} MB"
