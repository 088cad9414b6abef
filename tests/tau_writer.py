"""A writer of TAU profiles as in the description of the format: text files and packed profiles."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

Timer = tuple[str, float, float, float, str]
"""Name, calls, exclusive and inclusive value in the unit of the metric, groups."""

METADATA = {"Executable": "/opt/app/solver", "Command Line": "./solver 30", "Hostname": "n1"}


def text(
    timers: Sequence[Timer],
    metric: str = "TIME",
    metadata: Mapping[str, str] = METADATA,
    events: Sequence[str] = ("Message size",),
) -> str:
    pieces = "".join(
        f"<attribute><name>{name}</name><value>{value}</value></attribute>"
        for name, value in metadata.items()
    )
    lines = [
        f"{len(timers)} templated_functions_MULTI_{metric}",
        f"# Name Calls Subrs Excl Incl ProfileCalls # <metadata>{pieces}</metadata>",
        *(
            f'"{name}" {calls:.16G} 0 {excl:.16G} {incl:.16G} 0 GROUP="{group}" '
            for name, calls, excl, incl, group in timers
        ),
        "0 aggregates",
        f"{len(events)} userevents",
        "# eventname numevents max min mean sumsqr",
        *(f'"{event}" 2 8 4 6 80' for event in events),
    ]
    return "\n".join(lines) + "\n"


def call_paths(
    times: Mapping[str, tuple[float, float]], groups: Mapping[str, str] | None = None
) -> list[Timer]:
    """Return the timers of call paths, and the flat timers that TAU adds to them.

    Parameters
    ----------
    times : calls and exclusive microseconds by call path, ``a => b``
    groups : groups by function
    """
    groups = groups or {}
    below = dict.fromkeys(times, 0.0)
    for path, (_, value) in times.items():
        for other in below:
            if path == other or path.startswith(f"{other} => "):
                below[other] += value
    flat: dict[str, list[float]] = {}
    for path, (calls, value) in times.items():
        parts = path.split(" => ")
        mine = flat.setdefault(parts[-1], [0.0, 0.0, 0.0])
        outermost = parts[-1] not in parts[:-1]
        for k, amount in enumerate((calls, value, below[path] if outermost else 0.0)):
            mine[k] += amount
    found = [(name, *values, groups.get(name, "TAU_USER")) for name, values in flat.items()]
    for path, (calls, value) in times.items():
        if " => " in path:
            group = groups.get(path.split(" => ")[-1], "TAU_USER")
            found.append((path, calls, value, below[path], f"TAU_CALLPATH|{group}"))
    return found


def write(
    directory: Path, threads: Mapping[tuple[int, int, int], Sequence[Timer]], metric: str = "TIME"
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for (node, context, thread), timers in threads.items():
        path = directory / f"profile.{node}.{context}.{thread}"
        path.write_text(text(timers, metric, METADATA | {"Hostname": f"n{node // 2}"}))
    return directory


def packed(
    threads: Mapping[tuple[int, int, int], Mapping[str, Sequence[Timer]]],
    *,
    version: int = 2,
    metadata: Mapping[str, str] = METADATA,
) -> bytes:
    """Return a packed profile; the timers of a thread are ordered by metric."""
    metrics = list(next(iter(threads.values())))
    names = list(dict.fromkeys(t[0] for by in threads.values() for ts in by.values() for t in ts))
    group_of = {t[0]: t[4] for by in threads.values() for ts in by.values() for t in ts}
    groups = list(dict.fromkeys(g for text in group_of.values() for g in text.split("|")))
    out = "PPK".encode("utf-16-be") + struct.pack(">ii", version, min(version, 2))
    if version >= 2:
        out += struct.pack(">ii", 0, 0) + _pairs(metadata)
        out += struct.pack(">i", len(threads))
        for at in threads:
            out += struct.pack(">iii", *at) + _pairs({"Hostname": f"n{at[0] // 2}"})
    else:
        out += struct.pack(">i", 3) + b"abc"
    out += _texts(metrics) + _texts(groups)
    out += struct.pack(">i", len(names))
    for name in names:
        mine = [groups.index(group) for group in group_of[name].split("|")]
        out += _text(name) + struct.pack(f">i{len(mine)}i", len(mine), *mine)
    out += _texts(["Message size"])
    out += struct.pack(">i", len(threads))
    for at, by_metric in threads.items():
        first = by_metric[metrics[0]]
        out += struct.pack(">iiii", *at, len(first))
        for k, timer in enumerate(first):
            out += struct.pack(">idd", names.index(timer[0]), timer[1], 0.0)
            for metric in metrics:
                out += struct.pack(">dd", *by_metric[metric][k][2:4])
        out += struct.pack(">iiidddd", 1, 0, 2, 4.0, 8.0, 6.0, 80.0)
    return gzip.compress(out, mtime=0)


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack(">H", len(content)) + content


def _texts(texts: Sequence[str]) -> bytes:
    return struct.pack(">i", len(texts)) + b"".join(map(_text, texts))


def _pairs(pairs: Mapping[str, str]) -> bytes:
    content = b"".join(_text(name) + _text(value) for name, value in pairs.items())
    return struct.pack(">i", len(pairs)) + content
