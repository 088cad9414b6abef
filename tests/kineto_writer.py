"""Traces in the format of PyTorch (Kineto), for tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

PID, BACKWARD, COMMUNICATION = 100, 101, 102


class TraceToWrite:
    """A trace, to which events are added; times are in microseconds."""

    def __init__(self, **entries: Any) -> None:
        self.entries = {"schemaVersion": 1, **entries}
        self.events: list[dict[str, Any]] = []

    def event(self, cat, name, start, duration, tid=PID, pid=PID, **args):
        each = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start,
                "dur": duration, "args": args}  # fmt: skip
        self.events.append(each)

    def text(self) -> str:
        return json.dumps(self.entries | {"traceEvents": self.events})

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = self.text().encode()
        path.write_bytes(gzip.compress(content, mtime=0) if path.name.endswith(".gz") else content)
        return path


def training(rank: int = 0, world: int = 2, steps: int = 2, origin: float = 1000.0) -> TraceToWrite:
    """Return two steps of 1000 us with a kernel, a copy, a backward thread and an all-reduce."""
    info = {"backend": "gloo", "rank": rank, "world_size": world}
    trace = TraceToWrite(distributedInfo=info)
    for step in range(steps):
        at, number = origin + 1000 * step, 10 * step
        trace.event("user_annotation", f"ProfilerStep#{step + 3}", at, 900)
        trace.event("user_annotation", "forward", at, 400)
        trace.event("cpu_op", "aten::mm", at + 100, 100, **{"External id": number})
        trace.event("cuda_runtime", "cudaLaunchKernel", at + 110, 10.5, correlation=number + 1)
        trace.event("kernel", "void mm<4>(int)", at + 150, 80, 7, 0, correlation=number + 1,
                    device=0, stream=7)  # fmt: skip
        trace.event("cuda_runtime", "cudaMemcpyAsync", at + 250, 5, correlation=number + 2)
        trace.event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 300, 20, 7, 0,
                    correlation=number + 2, device=0, stream=7, bytes=4096)  # fmt: skip
        trace.event("user_annotation", "backward", at + 400, 500)
        trace.event("cpu_op", "aten::sum", at + 410, 90)
        trace.event("cpu_op", "AddmmBackward0", at + 420, 60, BACKWARD)
        trace.event("user_annotation", "gloo:all_reduce", at + 450, 350, COMMUNICATION,
                    **{"Input Dims": [[250]], "Input type": ["float"]})  # fmt: skip
        trace.event("cpu_op", "aten::div", at + 800, 50)
    trace.event("Trace", "PyTorch Profiler (0)", origin, 1000 * steps, "PyTorch Profiler", "Spans")
    return trace


def run(folder: Path, world: int = 2) -> Path:
    """Write the traces of all ranks of a run."""
    for rank in range(world):
        training(rank, world).write(folder / f"rank-{rank}.pt.trace.json.gz")
    return folder
