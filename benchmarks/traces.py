"""Replay of a trace of 10^6 events, and of one four times as long."""

from __future__ import annotations

import sys

from environments import WORK
from ingest import same_sums
from measure import TASKS, Cost, cheapest, run
from results import Row

NOTES = """\
The traces have 16 locations and about 2,700 call paths. cpmodel makes the profile with all its
metrics. The package `otf2` (same release and interpreter) only returns each event. Counts of calls
and bytes are compared before the table is printed. Times are processor seconds without start and
imports, the least of 2 or 3 runs. Memory includes start and imports.
"""

TRACES = WORK / "traces"
GOAL = 5
MEMORY_GOAL = 100e6
"""Bytes in addition to the interpreter."""

_EVENTS = 1_000_000
_PEER = "otf2"


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    short, long = _written("short", _EVENTS), _written("long", 4 * _EVENTS)
    ours = cheapest([sys.executable, TASKS / "traces_ours.py", short], 3)
    peer = cheapest([sys.executable, TASKS / "traces_otf2.py", short], 2)
    longer = cheapest([sys.executable, TASKS / "traces_ours.py", long], 1)
    same_sums(ours.report["sums"], peer.report["sums"])
    bare = run([sys.executable, "-c", "pass"], reports=False).resident
    mine, others = float(ours.report["read"]), float(peer.report["read"])
    return [
        Row(
            "traces: 10^6 events into a profile",
            f"{mine:.3g} s",
            f"{others:.3g} s {_PEER}, reading alone",
            others / mine,
            f"≥ {GOAL} x",
            others / mine >= GOAL,
        ),
        Row("traces: events a second", _rate(mine, 1), f"{_rate(others, 1)} {_PEER}"),
        Row("traces: the same with 4 x 10^6 events", _rate(float(longer.report["read"]), 4)),
        Row(
            "traces: start and imports alone",
            f"{ours.report['import']:.3g} s",
            f"{peer.report['import']:.3g} s {_PEER}",
        ),
        _memory("traces: memory above the bare interpreter", ours, bare, peer),
        _memory("traces: the same with 4 x 10^6 events", longer, bare),
    ]


def _written(name: str, events: int) -> str:
    folder = TRACES / name
    if not (folder / "traces.otf2").exists():
        TRACES.mkdir(parents=True, exist_ok=True)
        writer = TASKS.parent / "write_trace.py"
        run([sys.executable, writer, folder, "--events", str(events)], reports=False)
    return str(folder / "traces.otf2")


def _rate(seconds: float, millions: int) -> str:
    return f"{millions / seconds:.2f} x 10^6"


def _memory(what: str, ours: Cost, bare: int, peer: Cost | None = None) -> Row:
    above = ours.resident - bare
    return Row(
        what,
        f"{above / 1e6:.0f} MB",
        f"{(peer.resident - bare) / 1e6:.0f} MB {_PEER}" if peer else "",
        None,
        f"≤ {MEMORY_GOAL / 1e6:.0f} MB",
        above <= MEMORY_GOAL,
    )
