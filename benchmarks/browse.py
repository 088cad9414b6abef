"""The browser on 10^6 call paths: start, keys, memory."""

from __future__ import annotations

import shutil
import sys

from environments import HATCHET, WORK
from hpctoolkit import written
from ingest import DisagreementError
from measure import TASKS, cheapest, run
from results import Row

CALL_PATHS = 1_000_000
MODELS = WORK / "browse"
START_GOAL = 0.5
KEY_GOAL = 0.1
MEMORY_GOAL = 300_000_000
CONTEXTS = 1_000_000
RANKS = 4
OPEN_GOAL = 2.0
MANY_RANKS = 10_000
FEW = 40

NOTES = """\
The browser shows a generated tree with up to 40 levels of calls and 20,000 functions. Its models
are in a `.cpm`. Keys are pressed on a screen of 160 x 50. Times are processor seconds of the
drawing thread, the least of 3 runs. The first screen includes everything after the start of the
interpreter. Another thread predicts a new target while the screen remains. Bands follow, and all
bands take two seconds. Memory is the largest private memory of the process in that time, with the
interpreter and all libraries.

The last rows open one HPCToolkit database of 10^6 contexts (functions, loops and lines), in the
same run as Hatchet. Ours is everything between the imports and the first screen. Hatchet's is its
reader alone. Both are processor seconds without start and imports, the least of 2 runs each. The
database of 10^4 processes has the same contexts. Each process has values of 40 lines and of their
callers, because a table of all processes would have 10^10 values.
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
    found.append(Row("browse: memory", told, goal=goal, met=memory <= MEMORY_GOAL))
    return [*found, *_opened(), _of_many_ranks()]


def _opened() -> list[Row]:
    """Return the cost of opening one profile, next to the peer's."""
    database = written("browse", CONTEXTS, RANKS, "64") / "app.p64"
    ours = cheapest([sys.executable, TASKS / "open_ours.py", database], 2)
    peer = cheapest([HATCHET.executable(), TASKS / "databases_hatchet.py", database], 2)
    if peer.report["nodes"] != CONTEXTS:
        raise DisagreementError(f"{peer.report['nodes']} contexts, not {CONTEXTS}")
    total = peer.report["sums"]["inclusive"] / RANKS
    if abs(ours.report["total"] - total) > 1e-6 * total:
        raise DisagreementError(f"totals {ours.report['total']} and {total}")
    mine, others = float(ours.report["opened"]), float(peer.report["read"])
    return [
        Row(
            "browse: opening 10^6 contexts",
            f"{mine:.3g} s",
            f"{others:.3g} s {HATCHET.name}",
            others / mine,
            f"< {OPEN_GOAL:g} s",
            mine < OPEN_GOAL,
        ),
        Row(
            f"browse: largest resident set ({ours.report['call paths']:,} call paths)",
            f"{ours.resident / 1e6:.0f} MB",
            f"{peer.resident / 1e6:.0f} MB {HATCHET.name}",
            peer.resident / ours.resident,
        ),
    ]


def _of_many_ranks() -> Row:
    """Return the cost of opening one profile of many processes."""
    directory = written("many", CONTEXTS, MANY_RANKS, str(MANY_RANKS), few=FEW)
    task = [sys.executable, TASKS / "open_ours.py", directory / f"app.p{MANY_RANKS}"]
    ours = cheapest(task, 2)
    seconds = float(ours.report["opened"])
    return Row(
        "browse: opening 10^6 contexts of 10^4 processes",
        f"{seconds:.3g} s, {ours.resident / 1e6:.0f} MB",
        goal=f"< {OPEN_GOAL:g} s",
        met=seconds < OPEN_GOAL,
    )


def _row(what: str, seconds: float, goal: float) -> Row:
    told, limit = f"{1000 * seconds:.3g} ms", f"< {1000 * goal:.0f} ms"
    return Row(f"browse: {what}", told, goal=limit, met=seconds < goal)
