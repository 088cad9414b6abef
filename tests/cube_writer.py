"""A writer of small Cube profiles in every variant of the format; it keeps the written values."""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from callpath_modeler.report import cube_file as xml

DTYPES = {
    "DOUBLE": "f8",
    "MINDOUBLE": "f8",
    "MAXDOUBLE": "f8",
    "UINT64": "u8",
    "INT64": "i8",
    "UINT32": "u4",
    "INT16": "i2",
    "UINT8": "u1",
}
PARADIGMS = {
    "MPI_": "mpi",
    "!$omp": "openmp",
    "TRACE BUFFER": "measurement",
    "KERNELS": "measurement",
    "gpu_": "cuda",
}
"""Paradigm of a region by the beginning of its name; others were instrumented by the compiler."""
TUPLE = [("n", "u4"), ("min", "f8"), ("max", "f8"), ("sum", "f8"), ("sum2", "f8")]


@dataclass
class MetricToWrite:
    """A metric with `values` [call paths in preorder, locations by id], as stored."""

    name: str
    values: np.ndarray
    kind: str | None = "EXCLUSIVE"
    dtype: str = "DOUBLE"
    unit: str = "occ"
    present: np.ndarray | None = None
    ghost: bool = False


@dataclass
class Tree:
    """Call paths in preorder; `names[i]` is the region of call path i."""

    parents: list[int]
    names: list[str]
    roles: dict[str, str] = field(default_factory=dict)
    parameters: dict[int, str] = field(default_factory=dict)
    ids: list[int] | None = None
    line: str = ""

    def __len__(self):
        return len(self.parents)

    def wide(self):
        """Return the order of rows of inclusive metrics: roots, then callees by call path."""
        callees = {}
        for row, parent in enumerate(self.parents):
            callees.setdefault(parent, []).append(row)
        order = []
        for root in callees[-1]:
            order.append(root)
            stack = [root]
            while stack:
                row = stack.pop()
                order.extend(callees.get(row, []))
                stack.extend(reversed(callees.get(row, [])))
        return order

    def children_sums(self, inclusive):
        below = np.zeros_like(inclusive)
        for row, parent in enumerate(self.parents):
            if parent >= 0:
                below[parent] += inclusive[row]
        return below

    def subtree_sums(self, exclusive):
        total = np.array(exclusive)
        for row in range(len(self) - 1, -1, -1):
            if self.parents[row] >= 0:
                total[self.parents[row]] += total[row]
        return total


@dataclass
class Machine:
    """Processes with `threads[p]` CPU threads and `gpus` streams each.

    Streams are in the location groups of processes, as Score-P 7 writes them. With `creators`, they
    are in groups of accelerators after the processes, as Score-P 8 writes them. `creators[p]` is
    the name of the group that created those of process p; None = not stated.
    """

    threads: list[int]
    gpus: int | list[int] = 0
    ids: list[int] | None = None
    thread_names: tuple[str, ...] = ("Master thread", "OMP thread 1", "OMP thread 2")
    nodes: int = 1
    creators: list[str | None] | None = None
    ranks: list[int] | None = None
    topologies: str = ""

    @property
    def streams(self):
        """Return the number of streams of each process."""
        return self.gpus if isinstance(self.gpus, list) else [self.gpus] * len(self.threads)

    @property
    def locations(self):
        return sum(self.threads) + sum(self.streams)

    @property
    def groups(self):
        """Return (kind, process, numbers of its threads and streams) of each location group."""
        if self.creators is None:
            pairs = zip(self.threads, self.streams, strict=True)
            return [("process", p, *counts) for p, counts in enumerate(pairs)]
        return [
            *(("process", p, count, 0) for p, count in enumerate(self.threads)),
            *(("accelerator", p, 0, count) for p, count in enumerate(self.streams)),
        ]

    def columns(self):
        """Return the columns of the CPU threads of each process: ranks of their location ids."""
        return self._columns()[0]

    def stream_columns(self):
        """Return the columns of the streams of each process that has any."""
        own = self._columns()[1]
        if self.creators is not None and len(self.threads) > 1:
            names = [f"MPI Rank {p}" for p in range(len(own))]
            own = [
                [c for k, of_group in enumerate(own) if self.creators[k] == name for c in of_group]
                for name in names
            ]
        return [columns for columns in own if columns]

    def _columns(self):
        ids = self.ids or list(range(self.locations))
        rank = {number: column for column, number in enumerate(sorted(ids))}
        threads, streams = ([[] for _ in self.threads] for _ in range(2))
        places = iter(ids)
        for _, process, *counts in self.groups:
            for found, count in zip((threads, streams), counts, strict=True):
                found[process] += [rank[next(places)] for _ in range(count)]
        return threads, streams


def random_tree(n, roots=1, seed=0, chain=False):
    rng = np.random.default_rng(seed)
    parents, stack = [], []
    starts = {i * n // roots for i in range(roots)}
    for row in range(n):
        if row in starts:
            stack = []
        elif not chain:
            del stack[max(1, len(stack) - int(rng.integers(0, 3))) :]
        parents.append(stack[-1] if stack else -1)
        stack.append(row)
    return Tree(parents, [f"f{row}" for row in range(n)])


def anchor(tree, metrics, machine, *, attributes="", version="4.4"):
    names = list(dict.fromkeys(tree.names))
    declared = [
        xml.CubeMetric(m.name, m.unit, m.kind or "", m.dtype, f"of {m.name}", m.ghost)
        for m in metrics
    ]
    return xml.document(
        xml.attribute_texts({"Creator": "test"}),
        [attributes],
        xml.metric_texts(declared),
        ["<program>\n"],
        _regions(tree, names),
        _cnodes(tree, names),
        ["</program>\n<system>\n"],
        _system(machine),
        ["</system>\n"],
        version=version,
    ).decode()


def _regions(tree, names):
    # The program replaces characters that XML forbids; readers meet them in files of other writers.
    for number, name in enumerate(names):
        role = tree.roles.get(name, "function")
        paradigm = next(
            (word for mark, word in PARADIGMS.items() if name.startswith(mark)), "compiler"
        )
        yield (
            f'<region id="{number}" mod="a.c" begin="{number}" end="99">\n'
            f"<name>{escape(name)}</name>\n<mangled_name>{escape(name)} -n 3</mangled_name>\n"
            f"<paradigm>{paradigm}</paradigm>\n<role>{role}</role>\n<url></url>\n</region>\n"
        )


def _cnodes(tree, names):
    position = {name: number for number, name in enumerate(names)}
    callees = [position[name] for name in tree.names]
    texts = xml.call_path_texts(tree.parents, callees, ids=tree.ids, contents=tree.parameters)
    return (text.replace('">', f'"{tree.line}>', 1) if "<cnode" in text else text for text in texts)


def _system(machine):
    ids = iter(machine.ids or range(machine.locations))
    yield '<systemtreenode Id="0">\n<name>m</name>\n<class>machine</class>\n'
    yield '<systemtreenode Id="1">\n<name>n</name>\n<class>node</class>\n' * machine.nodes
    for number, (group, process, threads, streams) in enumerate(machine.groups):
        name = f"MPI Rank {process}" if group == "process" else f"CUDA Context {number}"
        yield f'<locationgroup Id="{number}">\n<name>{name}</name>\n'
        of_process = group == "process" and machine.ranks is not None
        rank = machine.ranks[process] if of_process else number
        yield f"<rank>{rank}</rank>\n<type>{group}</type>\n"
        creator = machine.creators[process] if group == "accelerator" else None
        if creator is not None:
            yield f'<attr key="Creating location group" value="{escape(creator)}"/>\n'
        for place in range(threads + streams):
            name = machine.thread_names[min(place, 2)] if place < threads else "CUDA[0]"
            on_gpu = "gpu" if group == "process" else "accelerator stream"
            kind = "thread" if place < threads else on_gpu
            yield f'<location Id="{next(ids)}">\n<name>{name}</name>\n<rank>{place}</rank>\n'
            yield f"<type>{kind}</type>\n</location>\n"
        yield "</locationgroup>\n"
    yield "</systemtreenode>\n" * (machine.nodes + 1)
    yield f"<topologies>\n{machine.topologies}</topologies>\n"


def rows_of(metric, tree, *, codec="raw", index="sparse", endian="<"):
    """Return the index and the data of `metric`."""
    n = len(tree)
    ids = np.array(tree.ids or range(n))
    order = {"INCLUSIVE": tree.wide(), "SIMPLE": np.argsort(ids)}.get(metric.kind, range(n))
    values = np.array([metric.values[row] for row in order])
    present = np.ones(n, bool) if metric.present is None else metric.present[list(order)]
    numbers = np.flatnonzero(present) if index == "sparse" else np.arange(n)
    if metric.dtype == "TAU_ATOMIC":
        stored = np.zeros(values.shape, np.dtype(TUPLE).newbyteorder(endian))
        stored["n"], stored["sum"] = 1, values
    else:
        stored = values.astype(np.dtype(DTYPES[metric.dtype]).newbyteorder(endian))
    head = b"CUBEX.INDEX" + struct.pack(endian + "IHB", 1, 0, 1 if index == "sparse" else 3)
    if index == "sparse" and len(numbers):
        head += struct.pack(endian + "I", len(numbers)) + numbers.astype(endian + "u4").tobytes()
    if codec == "raw":
        return head, b"CUBEX.DATA" + stored[numbers].tobytes()
    packed = [zlib.compress(row.tobytes()) for row in stored[numbers]]
    starts = np.cumsum([0, *map(len, packed)])[: len(packed)]
    row_bytes = stored.shape[1] * stored.dtype.itemsize
    table = [(i * row_bytes, starts[i], len(row)) for i, row in enumerate(packed)]
    places = np.array(table, endian + "u8").tobytes()
    return head, b"ZCUBEX.DATA" + struct.pack(endian + "Q", len(packed)) + places + b"".join(packed)


def header(name, size, kind=b"0", checksum=b"0000000\0"):
    block = bytearray(512)
    block[: len(name)] = name.encode()
    block[100:108], block[124:136] = b"0000600\0", b"%011o\0" % size
    block[148:156], block[156:157], block[257:265] = checksum, kind, b"ustar\x000\0"
    return bytes(block)


def pack(path, members, *, tail="cube", prefix=""):
    """Write an archive; `tail` is the extra block that Cube writers add to members."""
    out = []
    for name, content in members:
        out.append(header(prefix + name, len(content)) + content)
        pad = (len(content) // 512 + 1) * 512 if tail == "cube" else -(-len(content) // 512) * 512
        out.append(bytes(pad - len(content)))
    Path(path).write_bytes(b"".join(out) + bytes(1024))
    return Path(path)


def members_of(tree, metrics, machine, *, gz=False, **variant):
    members = []
    for number, metric in enumerate(metrics):
        if metric.kind in {"POSTDERIVED", "PREDERIVED_EXCLUSIVE"} or metric.dtype not in {
            *DTYPES,
            "TAU_ATOMIC",
        }:
            continue
        index, data = rows_of(metric, tree, **variant)
        name = f"ghost_{number}" if metric.ghost else str(number)
        members += [(f"{name}.data", data), (f"{name}.index", index)]
    text = anchor(tree, metrics, machine).encode()
    return [*members, ("anchor.xml", gzip.compress(text, mtime=0) if gz else text)]


def write(path, tree, metrics, machine, *, tail="cube", prefix="", gz=False, **variant):
    members = members_of(tree, metrics, machine, gz=gz, **variant)
    return pack(path, members, tail=tail, prefix=prefix)


def cube3(tree, metrics, machine):
    """Return a Cube 3 document."""
    parts = ['<?xml version="1.0"?>\n<cube version="3.0">\n<metrics>\n']
    for number, metric in enumerate(metrics):
        parts.append(
            f'<metric id="{number}"><disp_name>{metric.name}</disp_name>'
            f"<uniq_name>{metric.name}</uniq_name><dtype>FLOAT</dtype><uom>{metric.unit}</uom>"
            "</metric>\n"
        )
    parts.append("</metrics>\n<program>\n")
    for row, name in enumerate(tree.names):
        parts.append(
            f'<region id="{row}" mod="a.c" begin="1" end="2"><name>{escape(name)}</name></region>\n'
        )
    parts.extend(_cnodes(tree, tree.names))
    parts.append('</program>\n<system>\n<machine Id="0"><name>m</name><node Id="0"><name>n</name>')
    number = 0
    for process, threads in enumerate(machine.threads):
        parts.append(f'<process Id="{process}"><name>p</name><rank>{process}</rank>')
        for thread in range(threads):
            parts.append(f'<thread Id="{number}"><name>t</name><rank>{thread}</rank></thread>')
            number += 1
        parts.append("</process>\n")
    parts.append("</node></machine>\n</system>\n<severity>\n")
    for number, metric in enumerate(metrics):
        parts.append(f'<matrix metricId="{number}">\n')
        for row in np.flatnonzero(metric.values.any(axis=1)):
            text = "\n".join(repr(float(value)) for value in metric.values[row])
            parts.append(f'<row cnodeId="{row}">{text}\n</row>\n')
        parts.append("</matrix>\n")
    parts.append("</severity>\n</cube>\n")
    return "".join(parts).encode()
