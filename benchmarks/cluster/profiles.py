"""Profiles of simulated runs: from the records of `measure.c` to a Cube file."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.schema import Region
from callpath_modeler.report.cube_file import (
    CubeMetric,
    attribute_texts,
    call_path_texts,
    document,
    metric_texts,
    region_texts,
)

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
    members.append(("anchor.xml", gzip.compress(_definitions(run, creator), mtime=0)))
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


def _definitions(run: Measured, creator: str) -> bytes:
    names = list(dict.fromkeys(run.names))
    metrics = [
        CubeMetric(name, unit, dtype=kind, description=words)
        for name, (kind, _, unit, words) in METRICS.items()
    ]
    return document(
        attribute_texts({"Creator": creator}),
        metric_texts(metrics),
        ["<program>\n"],
        region_texts([_region(name, run.names[0]) for name in names]),
        call_path_texts(run.parents, [names.index(name) for name in run.names]),
        ["</program>\n"],
        _system(run.values["time"].shape[1]),
    )


def _region(name: str, program: str) -> Region:
    if name == program:
        return Region(name, name, paradigm="measurement", role="artificial")
    if name.startswith("MPI_"):
        return Region(name, name, "MPI", paradigm="mpi", role=_ROLES.get(name, "function"))
    return Region(name, name, f"{program}.c", paradigm="compiler", role="function")


def _system(processes: int) -> Iterator[str]:
    yield '<system>\n<systemtreenode Id="0">\n<name>simulated cluster</name>\n'
    yield "<class>machine</class>\n"
    for rank in range(processes):
        yield (
            f'<systemtreenode Id="{rank + 1}">\n<name>node {rank}</name>\n<class>node</class>\n'
            f'<locationgroup Id="{rank}">\n<name>MPI Rank {rank}</name>\n<rank>{rank}</rank>\n'
            f'<type>process</type>\n<location Id="{rank}">\n<name>Master thread</name>\n'
            "<rank>0</rank>\n<type>thread</type>\n</location>\n</locationgroup>\n"
            "</systemtreenode>\n"
        )
    yield "</systemtreenode>\n<topologies>\n</topologies>\n</system>\n"
