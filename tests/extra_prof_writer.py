"""Small call trees of Extra-Prof."""

from __future__ import annotations

from pathlib import Path

import msgspec

CALL, LAUNCH, KERNEL, COPY, SET, SYNCHRONISATION, OVERHEAD, OVERLAP = range(8)
ASYNCHRONOUS, OVERLAPPING = 1, 2


def node(
    name: str, duration: object, *callees: list[object], kind: int = CALL, flags: int = 0,
    visits: object = 1, size: object = 0, counters: object = (), energy: object = ((0,), (0,)),
) -> list[object]:  # fmt: skip
    """Return a node; `duration` is inclusive."""
    return [name, list(callees), kind, flags, duration, visits, size, counters, energy]


def small(threads: int = 1) -> list[object]:
    """Return a tree of a program with a kernel, a copy and energy; a second thread works, too."""
    overlap = node("OVERLAP", 90, kind=OVERLAP, flags=OVERLAPPING, visits=0)
    kernel = node("_Z4testPdmm", [400], overlap, kind=KERNEL, flags=ASYNCHRONOUS, visits=[5],
                  energy=[[0], [7]])  # fmt: skip
    launch = node("_Z4testPdmm", [50], kernel, kind=LAUNCH, visits=[5])
    second = [120] if threads > 1 else []
    work = node("work", [200, *second], launch, visits=[3, *([0] * len(second))])
    copied = node("Memcpy HtoD", [60], kind=COPY, visits=[2], size=[4096])
    copy = node("cudaMemcpy", [100], copied, visits=[2], energy=[[4], [0]])
    main = node("main", [600], work, copy, energy=[[10], [0]])
    overhead = node("OVERHEAD_CUPTI_RESOURCE", [30], kind=OVERHEAD)
    return node("", [], main, overhead, visits=[])


def write(path: Path, tree: list[object]) -> Path:
    """Write a profile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = ["EXTRA PROF", "1.0", tree, [], [["energy_cpu", 1], ["energy_gpu", 2]]]
    path.write_bytes(msgspec.msgpack.encode(content))
    return path
