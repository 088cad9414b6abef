"""Small profiles of profilers. Of each, `main/solve` has 2.5 s and `main` has 1 s."""

from __future__ import annotations

import cProfile
import gzip
import json
import marshal
from collections.abc import Sequence

SPEEDSCOPE = json.dumps(
    {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "py-spy",
        "shared": {"frames": [{"name": "main"}, {"name": "solve"}]},
        "profiles": [
            {"type": "sampled", "name": "Thread 1", "unit": "seconds", "startValue": 0,
             "endValue": 3.5, "samples": [[0], [0, 1], [0, 1]], "weights": [1.0, 1.5, 1.0]},
            {"type": "sampled", "name": "Thread 2", "unit": "seconds", "startValue": 0,
             "endValue": 3, "samples": [[0, 1]], "weights": [3.0]},
        ],
    }
)  # fmt: skip
EVENTED = json.dumps(
    {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "solve"}]},
        "profiles": [
            {"type": "evented", "name": "a", "unit": "milliseconds", "startValue": 0,
             "endValue": 3500, "events": [
                 {"type": "O", "frame": 0, "at": 0}, {"type": "O", "frame": 1, "at": 600},
                 {"type": "C", "frame": 1, "at": 3100}, {"type": "C", "frame": 0, "at": 3500},
             ]},
        ],
    }
)  # fmt: skip
PYINSTRUMENT = json.dumps(
    {
        "start_time": 1795962024.7, "duration": 3.5, "sample_count": 23, "cpu_time": 3.4,
        "root_frame": {
            "function": "main", "file_path_short": "app.py", "line_no": 1, "time": 3.5,
            "children": [
                {"function": "solve", "time": 2.5, "children": [
                    {"function": "[self]", "time": 2.5, "children": []}]},
            ],
        },
    }
)  # fmt: skip
CALLGRIND = """# callgrind format
version: 1
creator: callgrind-3.19.0
cmd:  ./main -n 8
positions: line
events: Ir Dr

fl=(1) main.c
fn=(1) main
10 400 7
+2 600
cfn=(2) solve
calls=3 20
+1 2500 9
jump=5 30
12

fn=(2)
20 2000 4
* 500 5
"""
PERF = """# cmdline: perf record -g ./main

main 22739 46175.733137:     250000 cpu-clock:u:
@1170 solve+0x37 (/tmp/main)
@124a main+0x3c (/tmp/main)

main 22739/22739 [001] 46175.733353:     1000000000 cpu-clock:
@124a main+0x3c (/tmp/main)

main 22739/22739 [001] 46175.733610:     2499750000 cpu-clock:
@1171 solve+0x38 (/tmp/main (deleted))
@124a main+0x3c (/tmp/main)

worker 22739/22740 [000] 46175.733610:     1500000000 cpu-clock:
@1171 other+0x38 (/tmp/main)
""".replace("@", "\t    ")


def pprof(values: Sequence[tuple[tuple[str, ...], int]]) -> bytes:
    """Return a packed profile with nanoseconds by stack; stacks begin with the root."""
    texts = ["", "samples", "count", "cpu", "nanoseconds"]
    names = list(dict.fromkeys(name for stack, _ in values for name in stack))
    texts += names
    out = _number(9, 5) + _message(1, _number(1, 1) + _number(2, 2))
    out += _message(1, _number(1, 3) + _number(2, 4))
    for stack, value in values:
        leaf_first = b"".join(_varint(names.index(name) + 1) for name in reversed(stack))
        out += _message(2, _message(1, leaf_first) + _message(2, _varint(1) + _varint(value)))
    for k, name in enumerate(names, 1):
        out += _message(4, _number(1, k) + _message(4, _number(1, k) + _number(2, 7)))
        out += _message(5, _number(1, k) + _number(2, texts.index(name)))
    out += b"".join(_message(6, text.encode()) for text in texts)
    return gzip.compress(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


PPROF = pprof([(("main",), 10**9), (("main", "solve"), 2 * 10**9 + 5 * 10**8)])


def cprofile() -> bytes:
    """Return a profile of Python's own profiler."""
    profile = cProfile.Profile()
    profile.runcall(sorted, [3, 1, 2], key=lambda x: -x)
    profile.create_stats()
    return marshal.dumps(profile.stats)


TIMINGS = {
    ("app.py", 7, "solve"): (2, 2, 2.5, 2.5, {("app.py", 1, "main"): (2, 2, 2.5, 2.5)}),
    ("app.py", 1, "main"): (1, 1, 1.0, 3.5, {}),
}
CPROFILE = marshal.dumps(TIMINGS)
FILES = {
    "threads.speedscope.json": SPEEDSCOPE.encode(),
    "events.speedscope.json": EVENTED.encode(),
    "session.json": PYINSTRUMENT.encode(),
    "callgrind.out.4711": CALLGRIND.encode(),
    "samples.perf": PERF.encode(),
    "cpu.pb.gz": PPROF,
    "app.prof": CPROFILE,
}
