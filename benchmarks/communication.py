"""Extraction of the communication in traces of 10^6 and 4 x 10^6 events."""

from __future__ import annotations

import sys

from environments import WORK
from measure import TASKS, Cost, cheapest, run
from results import Row

NOTES = """\
The traces have 16 locations. In the regular trace, each process of a ring exchanges with both
neighbours, and all processes compute a sum from time to time. The irregular trace has random calls,
and one call in ten is a message. cpmodel reads the trace, makes the specification, unrolls it and
compares it with the trace. The package `otf2` (same release and interpreter) only returns each
event. Times are processor seconds without start and imports, the least of 2 runs. Memory includes
start and imports.
"""

TRACES = WORK / "communication"
_EVENTS = 1_000_000
_PEER = "otf2"
_LINEAR = 1.5
"""Largest ratio of the time for four times as many events to four times the time."""


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    short, long = _written("halo", "short", 1), _written("halo", "long", 4)
    ours, longer = _told(short), _told(long)
    peer = cheapest([sys.executable, TASKS / "traces_otf2.py", short], 2)
    irregular = _told(_written("trace", "irregular", 1))
    bare = run([sys.executable, "-c", "pass"], reports=False).resident
    mine, others = float(ours.report["read"]), float(peer.report["read"])
    more = float(longer.report["read"])
    return [
        Row(
            "communication: 10^6 regular events",
            f"{mine:.3g} s",
            f"{others:.3g} s {_PEER}, reading alone",
            others / mine,
        ),
        Row("communication: lines of these", f"{ours.report['lines']}"),
        Row(
            "communication: 4 x 10^6 regular events",
            f"{more:.3g} s",
            "",
            None,
            f"≤ {4 * _LINEAR:.0f} x as long",
            more <= 4 * _LINEAR * mine,
        ),
        Row("communication: 10^6 irregular events", f"{irregular.report['read']:.3g} s"),
        Row("communication: lines of these", f"{irregular.report['lines']}"),
        Row("communication: memory above the bare interpreter", _memory(ours, bare)),
        Row("communication: the same with 4 x 10^6 events", _memory(longer, bare)),
    ]


def _told(trace: str) -> Cost:
    cost = cheapest([sys.executable, TASKS / "communication_ours.py", trace], 2)
    if cost.report["differing"]:
        raise ValueError(f"{trace}: the specification is not the trace")
    return cost


def _written(kind: str, name: str, millions: int) -> str:
    folder = TRACES / name
    if not (folder / "traces.otf2").exists():
        TRACES.mkdir(parents=True, exist_ok=True)
        writer = TASKS.parent / f"write_{kind}.py"
        events = str(millions * _EVENTS)
        run([sys.executable, writer, folder, "--events", events], reports=False)
    return str(folder / "traces.otf2")


def _memory(cost: Cost, bare: int) -> str:
    return f"{(cost.resident - bare) / 1e6:.0f} MB"
