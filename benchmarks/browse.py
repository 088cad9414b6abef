"""The browser on 10^6 call paths: start, keys, memory."""

from __future__ import annotations

import shutil
import sys

from environments import WORK
from measure import TASKS, cheapest, run
from results import Row

CALL_PATHS = 1_000_000
MODELS = WORK / "browse"
START_GOAL = 0.5
KEY_GOAL = 0.1
MEMORY_GOAL = 300_000_000

NOTES = """\
The browser shows a generated tree with up to 40 levels of calls and 20,000 functions. Its models
are in a `.cpm`. Keys are pressed on a screen of 160 x 50. Times are processor seconds of the
drawing thread, the least of 3 runs. The first screen includes everything after the start of the
interpreter. Another thread predicts a new target while the screen remains. Bands follow, and all
bands take five seconds. Memory is the largest private memory of the process in that time, with the
interpreter and all libraries.
"""


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    MODELS.mkdir(parents=True, exist_ok=True)
    store = MODELS / f"generated{CALL_PATHS}.cpm"
    shutil.rmtree(store, ignore_errors=True)
    command = [sys.executable, TASKS / "browse_ours.py", str(CALL_PATHS), store]
    run(command)
    done = cheapest(command, 3).report
    took = done["seconds"]
    found = [
        _row("first screen", took["first screen"], START_GOAL),
        Row("browse: of that, reading the store", f"{1000 * took['load']:.0f} ms"),
        Row("browse: of that, importing", f"{1000 * took['imports']:.0f} ms"),
        *(_row(name, seconds, KEY_GOAL) for name, seconds in done["keys"].items()),
        _row("values at a new target, in a thread", took["retarget"], KEY_GOAL),
    ]
    memory = done["memory"]
    told = f"{memory / 1e6:.0f} MB"
    goal = f"≤ {MEMORY_GOAL / 1e6:.0f} MB"
    return [*found, Row("browse: memory", told, goal=goal, met=memory <= MEMORY_GOAL)]


def _row(what: str, seconds: float, goal: float) -> Row:
    told, limit = f"{1000 * seconds:.3g} ms", f"< {1000 * goal:.0f} ms"
    return Row(f"browse: {what}", told, goal=limit, met=seconds < goal)
