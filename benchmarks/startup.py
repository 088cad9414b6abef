"""Start: the time of ``cpmodel --help``, and whether it imports NumPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from environments import EXTRAP
from measure import Cost, run
from results import Row

GOAL = 0.150
"""Seconds."""

NOTES = """\
The figures are the least wall time of 10 runs.
"""

_TIMES = 10


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    ours = _quickest([Path(sys.executable).parent / "cpmodel", "--help"])
    peer = _quickest([EXTRAP.executable("extrap"), "--help"])
    numpy = "numpy" in imported_modules()
    return [
        Row(
            "startup: --help, wall",
            f"{1000 * ours.wall:.0f} ms",
            f"{1000 * peer.wall:.0f} ms {EXTRAP.name}",
            peer.wall / ours.wall,
            f"< {1000 * GOAL:.0f} ms",
            ours.wall < GOAL,
        ),
        Row(
            "startup: --help imports numpy",
            "yes" if numpy else "no",
            goal="no",
            met=not numpy,
        ),
    ]


def imported_modules() -> set[str]:
    """Return the modules that ``cpmodel --help`` imports."""
    command = [sys.executable, "-X", "importtime", "-m", "callpath_modeler", "--help"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def _quickest(command: list[str | Path]) -> Cost:
    costs = [run(command, reports=False) for _ in range(_TIMES)]
    return min(costs, key=lambda cost: cost.wall)
