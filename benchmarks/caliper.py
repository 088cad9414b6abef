"""Reading a Caliper profile of 2,000 call paths on 64 ranks: 128,000 records."""

from __future__ import annotations

import sys

from environments import CALIPER, WORK
from ingest import same_sums
from measure import TASKS, cheapest, run
from results import Row

PROFILES = WORK / "caliper"

NOTES = """\
The benchmark computes the time of every call path, summed over ranks, from one `.cali` file with
one record per rank. caliper-reader returns records, so both figures include the sum by call path.
The sums are compared before the table is printed. Times are processor seconds without start and
imports, the least of 2 or 3 runs. Memory includes start and imports.
"""

_CALL_PATHS, _RANKS = 2000, 64


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    file = PROFILES / "profile.cali"
    writer = TASKS.parent / "write_caliper.py"
    told = ["--call-paths", str(_CALL_PATHS), "--ranks", str(_RANKS)]
    run([sys.executable, writer, file, *told], reports=False)
    ours = cheapest([sys.executable, TASKS / "caliper_ours.py", file], 3)
    peer = cheapest([CALIPER.executable(), TASKS / "caliper_peer.py", file], 2)
    same_sums(ours.report["sums"], peer.report["sums"])
    mine, others = float(ours.report["read"]), float(peer.report["read"])
    return [
        Row(
            "caliper: 128,000 records, summed by call path",
            f"{mine:.3g} s",
            f"{others:.3g} s {CALIPER.name}",
            others / mine,
        ),
        Row(
            "caliper: the same with start and imports",
            f"{ours.cpu:.3g} s",
            f"{peer.cpu:.3g} s {CALIPER.name}",
            peer.cpu / ours.cpu,
        ),
        Row(
            "caliper: largest resident set",
            f"{ours.resident / 1e6:.0f} MB",
            f"{peer.resident / 1e6:.0f} MB {CALIPER.name}",
            peer.resident / ours.resident,
        ),
    ]
