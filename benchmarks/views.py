"""Views of 10^6 call paths, as in the browser, and losses at five scales."""

from __future__ import annotations

import sys

from measure import TASKS, cheapest
from results import Row

CALL_PATHS = 1_000_000
START_GOAL = 0.5
"""Seconds until the first screen can be drawn, with sums."""
KEY_GOAL = 0.1
"""Maximum seconds per key."""
LOSSES_GOAL = 1.0
"""Seconds for reading, aligning and comparing five runs; the benchmark measures the comparison."""
MEMORY_GOAL = 300_000_000

NOTES = """\
The figures are processor times of the steps that a browser needs, in memory, for a generated tree
with up to 40 levels of calls, 20,000 functions and four columns of values. Memory is in addition to
the tree and the columns.
"""

_STEPS = {
    "open": ("opening the largest node shown", KEY_GOAL),
    "values": ("other values for 100 nodes", KEY_GOAL),
    "hot path": ("following the hot path", KEY_GOAL),
    "write": ("writing out what is above 0.1 %, 20 to a level", START_GOAL),
}


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    done = cheapest([sys.executable, TASKS / "views_ours.py", str(CALL_PATHS)], 3).report
    took = done["seconds"]
    found = []
    for kind in ("top-down", "bottom-up", "flat"):
        start = took["inclusive"] + took[f"{kind} start"]
        found.append(_row(f"{kind} of 10^6 call paths: first screen", start, START_GOAL))
        for key, (words, goal) in _STEPS.items():
            found.append(_row(f"{kind}: {words}", took[f"{kind} {key}"], goal))
    found.append(_row("new values of four columns, summed", took["retarget"], KEY_GOAL))
    memory = done["memory"]
    found.append(
        Row(
            "views: memory of all three with their values",
            f"{memory / 1e6:.0f} MB",
            goal=f"≤ {MEMORY_GOAL / 1e6:.0f} MB",
            met=memory <= MEMORY_GOAL,
        )
    )
    found.append(_row("losses of 5 scales x 10,000 call paths", took["losses"], LOSSES_GOAL))
    return found


def _row(what: str, seconds: float, goal: float) -> Row:
    return Row(
        f"views: {what}",
        f"{1000 * seconds:.3g} ms",
        goal=f"< {1000 * goal:.0f} ms",
        met=seconds < goal,
    )
