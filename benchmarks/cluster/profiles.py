"""Profiles of simulated runs: from the records of `measure.c` to a Cube file."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

METRICS = {
    "visits": ("UINT64", "<u8", "occ", "Number of visits"),
    "time": ("DOUBLE", "<f8", "sec", "Virtual time"),
    "bytes_sent": ("UINT64", "<u8", "bytes", "Bytes sent"),
    "bytes_received": ("UINT64", "<u8", "bytes", "Bytes received"),
    "messages": ("UINT64", "<u8", "occ", "Messages sent from process to process"),
}
"""Type in Cube, stored type, unit and description of metrics, which are exclusive."""

_ROLES = {
    "MPI_Alltoall": "all2all",
    "MPI_Allreduce": "all2all",
    "MPI_Barrier": "barrier",
    "MPI_Bcast": "one2all",
    "MPI_Gather": "all2one",
    "MPI_Irecv": "point2point",
    "MPI_Isend": "point2point",
    "MPI_Reduce": "all2one",
    "MPI_Scatter": "one2all",
}
"""Roles of MPI functions in Score-P; others are ``"function"``."""

_MAIN = "smpi_simulated_main_"
"""Name of ``main`` in the library of a rank."""

_NANOSECOND = 1e-9


@dataclass(frozen=True, slots=True)
class Measured:
    """A run.

    Attributes
    ----------
    parents : [call paths] row of the caller, in preorder; -1 = root
    names : [call paths] function
    values : [call paths, processes] values of each metric, as stored
    """

    parents: list[int]
    names: list[str]
    values: dict[str, NDArray[np.generic]]


class _Node:
    """A call path with the columns of ranks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.callees: dict[str, _Node] = {}
        self.of_ranks: list[tuple[int, list[int]]] = []


def read_records(path: Path, processes: int, program: str) -> Measured:
    """Return the call paths of all ranks; callees are in the order of the lowest rank.

    Raises
    ------
    ValueError
        If ranks are missing.
    """
    lines = [line.split() for line in path.read_text().splitlines()]
    lines.sort(key=lambda line: (int(line[0]), int(line[1])))
    root = _Node(program)
    root.of_ranks = [(rank, [1, 0, 0, 0, 0]) for rank in range(processes)]
    known: dict[tuple[str, int], _Node] = {}
    for rank, number, caller, function, *numbers in lines:
        above = root if caller == "-1" else known[rank, int(caller)]
        name = "main" if function == _MAIN else function
        node = above.callees.setdefault(name, _Node(name))
        known[rank, int(number)] = node
        node.of_ranks.append((int(rank), [*map(int, numbers)]))
    if len({rank for rank, _ in known}) != processes:
        raise ValueError(f"{path} lacks ranks")
    parents, nodes = zip(*_preorder(root), strict=True)
    table = np.zeros((len(nodes), processes, len(METRICS)), np.int64)
    for row, node in enumerate(nodes):
        for rank, numbers in node.of_ranks:
            table[row, rank] = numbers
    values: dict[str, NDArray[np.generic]] = {}
    for column, (name, (_, stored, _, _)) in enumerate(METRICS.items()):
        found = table[:, :, column]
        values[name] = (found * _NANOSECOND if name == "time" else found).astype(stored)
    return Measured([*parents], [node.name for node in nodes], values)


def _preorder(root: _Node) -> Iterator[tuple[int, _Node]]:
    waiting, row = [(-1, root)], 0
    while waiting:
        caller, node = waiting.pop()
        yield caller, node
        waiting += [(row, callee) for callee in reversed(node.callees.values())]
        row += 1


def write_cubex(path: Path, run: Measured, creator: str) -> None:
    """Write a profile, the same bytes for the same run."""
    members = []
    for number, name in enumerate(METRICS):
        rows = np.flatnonzero(run.values[name].any(axis=1))
        index = b"CUBEX.INDEX" + struct.pack("<IHBI", 1, 0, 1, len(rows))
        members.append((f"{number}.index", index + rows.astype("<u4").tobytes()))
        members.append((f"{number}.data", _compressed(run.values[name][rows])))
    text = "".join(_definitions(run, creator)).encode()
    members.append(("anchor.xml", gzip.compress(text, mtime=0)))
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o600
            archive.addfile(entry, io.BytesIO(content))


def _compressed(values: NDArray[np.generic]) -> bytes:
    rows = [row.tobytes() for row in values]
    packed = [zlib.compress(row, 9) for row in rows]
    lengths = [0, *map(len, packed)]
    places = [
        (k * len(row), start, len(part))
        for k, (row, start, part) in enumerate(zip(rows, np.cumsum(lengths), packed, strict=False))
    ]
    table = np.array(places, "<u8").tobytes()
    return b"ZCUBEX.DATA" + struct.pack("<Q", len(packed)) + table + b"".join(packed)


def _definitions(run: Measured, creator: str) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<cube version="4.4">\n'
    yield f'<attr key="Creator" value="{creator}"/>\n<metrics>\n'
    for number, (name, (kind, _, unit, words)) in enumerate(METRICS.items()):
        yield (
            f'<metric id="{number}" type="EXCLUSIVE">\n<disp_name>{name}</disp_name>\n'
            f"<uniq_name>{name}</uniq_name>\n<dtype>{kind}</dtype>\n<uom>{unit}</uom>\n"
            f"<url></url>\n<descr>{words}</descr>\n</metric>\n"
        )
    yield "</metrics>\n<program>\n"
    names = list(dict.fromkeys(run.names))
    program = run.names[0]
    for number, name in enumerate(names):
        is_mpi = name.startswith("MPI_")
        paradigm = "measurement" if name == program else "mpi" if is_mpi else "compiler"
        role = "artificial" if name == program else _ROLES.get(name, "function")
        module = "" if name == program else "MPI" if is_mpi else f"{program}.c"
        yield (
            f'<region id="{number}" mod="{module}" begin="-1" end="-1">\n<name>{name}</name>\n'
            f"<mangled_name>{name}</mangled_name>\n<paradigm>{paradigm}</paradigm>\n"
            f"<role>{role}</role>\n<url></url>\n<descr></descr>\n</region>\n"
        )
    yield from _call_paths(run.parents, [names.index(name) for name in run.names])
    yield "</program>\n<system>\n"
    yield '<systemtreenode Id="0">\n<name>simulated cluster</name>\n<class>machine</class>\n'
    processes = run.values["time"].shape[1]
    for rank in range(processes):
        yield (
            f'<systemtreenode Id="{rank + 1}">\n<name>node {rank}</name>\n<class>node</class>\n'
            f'<locationgroup Id="{rank}">\n<name>MPI Rank {rank}</name>\n<rank>{rank}</rank>\n'
            f'<type>process</type>\n<location Id="{rank}">\n<name>Master thread</name>\n'
            "<rank>0</rank>\n<type>thread</type>\n</location>\n</locationgroup>\n"
            "</systemtreenode>\n"
        )
    yield "</systemtreenode>\n<topologies>\n</topologies>\n</system>\n</cube>\n"


def _call_paths(parents: Iterable[int], regions: Iterable[int]) -> Iterator[str]:
    path: list[int] = []
    for row, (caller, region) in enumerate(zip(parents, regions, strict=True)):
        while path and path[-1] != caller:
            path.pop()
            yield "</cnode>\n"
        yield f'<cnode id="{row}" calleeId="{region}">\n'
        path.append(row)
    yield "</cnode>\n" * len(path)
