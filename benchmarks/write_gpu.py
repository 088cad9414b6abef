"""Write a Kineto trace and a database of Nsight Systems of a synthetic GPU program.

python benchmarks/write_gpu.py DIRECTORY --kernels 100000
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

_KERNELS_OF_STEP = 1000
_NAMES = 50
_US = 1000
_GLOBAL = 1 << 56 | 100 << 24

Activity = tuple[int, int, int, int, int]
"""Name, start and end of a launch, start and end of its kernel, in ns."""


def main() -> None:
    """Write the files of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kernels", type=int, default=100_000)
    told = parser.parse_args()
    (told.directory / "kineto").mkdir(parents=True, exist_ok=True)
    (told.directory / "nsight").mkdir(parents=True, exist_ok=True)
    launched = [*_launched(told.kernels)]
    _write_trace(told.directory / "kineto" / "rank-0.json", launched)
    _write_database(told.directory / "nsight" / "app.s1.sqlite", launched)


def _launched(kernels: int) -> Iterator[Activity]:
    # Whole microseconds, because HolisticTraceAnalysis rounds to them.
    rng, at, free = random.Random(1), 1_000, 0
    for _ in range(kernels):
        end = at + rng.randrange(3, 6)
        start = max(end + 1, free)
        free = start + rng.randrange(1, 20)
        yield rng.randrange(_NAMES), at * _US, end * _US, start * _US, free * _US
        at = end + rng.randrange(1, 12)


def _write_trace(path: Path, launched: list[Activity]) -> None:
    def event(category: str, name: str, thread: int, start: int, end: int, **args: Any) -> str:
        told = {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 0 if category == "kernel" else 100,
            "tid": thread,
            "ts": start / 1000,
            "dur": (end - start) / 1000,
            "args": args,
        }
        return json.dumps(told)

    def events() -> Iterator[str]:
        for first in range(0, len(launched), _KERNELS_OF_STEP):
            part = launched[first : first + _KERNELS_OF_STEP]
            number = first // _KERNELS_OF_STEP
            start, end = part[0][1] - 500, part[-1][2] + 500
            yield event("user_annotation", f"ProfilerStep#{number}", 100, start, end)
        for k, (name, start, end, begin, stop) in enumerate(launched):
            link = {"External id": k, "correlation": k + 1}
            shape = {"External id": k, "Input Dims": [[64, 64]], "Input type": ["float"]}
            yield event("cpu_op", f"aten::op{name}", 100, start - 200, end + 200, **shape)
            yield event("cuda_runtime", "cudaLaunchKernel", 100, start, end, cbid=211, **link)
            yield event("kernel", f"void kernel{name}<4>(float*, int)", 7, begin, stop, device=0,
                        stream=7, context=1, queued=0, grid=[64, 1, 1], block=[256, 1, 1],
                        **link)  # fmt: skip

    head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1}}
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        for k, text in enumerate(events()):
            file.write(",\n" * (k > 0) + text)
        file.write("\n]}\n")


def _write_database(path: Path, launched: list[Activity]) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER,"
            " eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER,"
            " returnValue INTEGER, callchainId INTEGER);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER,"
            " deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER,"
            " globalPid INTEGER, demangledName INTEGER, shortName INTEGER, mangledName INTEGER);"
            "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER,"
            " rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,"
            " endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);"
        )
        thread = _GLOBAL | 100
        texts = [(1, "cudaLaunchKernel"), *((2 + k, f"kernel{k}") for k in range(_NAMES))]
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", texts)
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 1, 0, NULL)",
            ((start, end, thread, k) for k, (_, start, end, *_) in enumerate(launched, 1)),
        )
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, ?, ?, ?, ?)",
            (
                (begin, stop, k, _GLOBAL, 2 + name, 2 + name, 2 + name)
                for k, (name, _, _, begin, stop) in enumerate(launched, 1)
            ),
        )
        end = launched[-1][2] + 500
        for first in range(0, len(launched), _KERNELS_OF_STEP):
            part = launched[first : first + _KERNELS_OF_STEP]
            window = part[0][1] - 500, part[-1][2] + 500
            database.execute(
                "INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 0, 0, 0, 'solve', ?, NULL, NULL, 0)",
                (*window, thread),
            )
        database.execute(
            "INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 0, 0, 0, 'main', ?, NULL, NULL, 0)",
            (launched[0][1] - 1000, end + 500, thread),
        )
        database.commit()


if __name__ == "__main__":
    main()
