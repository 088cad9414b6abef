"""Reading a trace of the PyTorch profiler of 1 GB, and a database of as many kernels."""

from __future__ import annotations

import sys

from environments import HTA, WORK
from ingest import same_sums
from measure import TASKS, cheapest, run
from results import Row

PROFILES = WORK / "gpu"

NOTES = """\
A trace of 1 GB has 1.6 million kernels with their launches and operators. cpmodel makes a call tree
with host time, time on GPU streams, busy and idle time. HolisticTraceAnalysis computes the temporal
breakdown and that of kernels, without a call tree. The busy times of the GPU are compared before
the table is printed. The database of Nsight Systems has the same kernels and launches. Times are
processor seconds without start and imports. Memory includes start and imports.
"""

_KERNELS = 1_600_000
_BUSY = "GPU busy"


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    writer = TASKS.parent / "write_gpu.py"
    run([sys.executable, writer, PROFILES, "--kernels", str(_KERNELS)], reports=False)
    trace, database = PROFILES / "kineto", PROFILES / "nsight" / "app.s1.sqlite"
    ours = cheapest([sys.executable, TASKS / "gpu_ours.py", "kineto", trace], 2)
    own = cheapest([sys.executable, TASKS / "gpu_ours.py", "nsight", database], 2)
    peer = cheapest([HTA.executable(), TASKS / "gpu_hta.py", trace], 1)
    busy = [{_BUSY: each.report["sums"][_BUSY]} for each in (ours, own, peer)]
    same_sums(busy[0], busy[2])
    same_sums(busy[0], busy[1])
    mine, others = float(ours.report["read"]), float(peer.report["read"])
    return [
        Row(
            "Kineto: trace of 1 GB",
            f"{mine:.3g} s",
            f"{others:.3g} s {HTA.name}",
            others / mine,
        ),
        Row(
            "Kineto: the same with start and imports",
            f"{ours.cpu:.3g} s",
            f"{peer.cpu:.3g} s {HTA.name}",
            peer.cpu / ours.cpu,
        ),
        Row(
            "Kineto: largest resident set",
            f"{ours.resident / 1e6:.0f} MB",
            f"{peer.resident / 1e6:.0f} MB {HTA.name}",
            peer.resident / ours.resident,
        ),
        Row("Nsight: database of the same kernels", f"{float(own.report['read']):.3g} s"),
        Row("Nsight: largest resident set", f"{own.resident / 1e6:.0f} MB"),
    ]
