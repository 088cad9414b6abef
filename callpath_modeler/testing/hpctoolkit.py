"""A small writer of HPCToolkit databases of version 4, for test files of any shape and size."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from callpath_modeler.arrays import FloatArray, IntArray

_KINDS = ("SUMMARY", "NODE", "RANK", "THREAD", "GPUDEVICE", "GPUCONTEXT", "GPUSTREAM", "CORE")
_SCOPES = ("point", "function", "lex_aware", "execution")
_VALUE = np.dtype([("metric", "<u2"), ("value", "<f8")])
_INDEX = np.dtype([("context", "<u4"), ("start", "<u8")])
_BY_CONTEXT = np.dtype([("profile", "<u4"), ("value", "<f8")])
_BY_METRIC = np.dtype([("metric", "<u2"), ("start", "<u8")])
_Stored = tuple[IntArray, IntArray, FloatArray]
"""Contexts, numbers of metrics and values of one profile, in order of the contexts."""
_CALL, _INLINED = 1, 2
_ENTRY_POINTS = {"main thread": 1, "application thread": 2}


class Kind(Enum):
    """Kind of a context: relation to its parent, and lexical type."""

    FUNCTION = (_CALL, 0)
    INLINED = (_INLINED, 0)
    LOOP = (0, 1)
    LINE = (0, 2)
    INSTRUCTION = (0, 3)
    CALLED_INSTRUCTION = (_CALL, 3)


@dataclass(frozen=True, slots=True)
class Scope:
    """A calling context.

    Attributes
    ----------
    parent : number of the parent context, which comes first; -1 = an entry point
    kind : kind of the context
    name : name of a function, or of an entry point such as ``"main thread"``. A function without a
        name is anonymous code, and without a module also an unknown procedure
    file, line : definition of a function, or position of a loop or line
    module : executable or library of a function
    """

    parent: int
    kind: Kind
    name: str = ""
    file: str = ""
    line: int = 0
    module: str = "/bin/app"


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one thread or one accelerator stream.

    Attributes
    ----------
    ids : its identifiers, e.g. ``{"NODE": 0, "RANK": 3, "THREAD": 0}``
    costs : exclusive cost of every context, by name of the metric in the database
    """

    ids: Mapping[str, int]
    costs: Mapping[str, ArrayLike]


@dataclass(frozen=True, slots=True)
class Layout:
    """Differences between databases of one version.

    Attributes
    ----------
    early : layout of the first releases: no entry points, summaries within scopes, no flags
    elide : omit instructions from `meta.db`, but not from the values, as hpcprof does
    spare : bytes that a later release might have added to each structure, a multiple of 8
    scopes : propagation scopes that are stored, by metric; default all
    """

    early: bool = False
    elide: bool = True
    spare: int = 0
    scopes: Mapping[str, Sequence[str]] = field(default_factory=dict)


def write_database(
    directory: Path,
    contexts: Sequence[Scope],
    measured: Sequence[Measured],
    *,
    title: str = "app",
    layout: Layout | None = None,
) -> Path:
    """Write `meta.db`, `profile.db` and `cct.db` and return the directory.

    The number of context `i` is `i` + 1; 0 is the whole program.
    """
    layout = layout or Layout()
    directory.mkdir(parents=True, exist_ok=True)
    metrics = list(dict.fromkeys(name for one in measured for name in one.costs))
    (directory / "meta.db").write_bytes(_MetaWriter(contexts, metrics, title, layout).content())
    spread = _Propagation(contexts)
    profiles = [spread.values(one, metrics, layout) for one in measured]
    (directory / "profile.db").write_bytes(_profile_file(measured, profiles, layout))
    (directory / "cct.db").write_bytes(_context_file(profiles, len(contexts) + 1))
    return directory


def write_few_values(
    directory: Path,
    contexts: Sequence[Scope],
    metric: str,
    locations: Sequence[tuple[Mapping[str, int], IntArray, FloatArray]],
    *,
    title: str = "app",
) -> Path:
    """Write `meta.db` and `profile.db` of threads with values in few contexts.

    Returns the directory.
    The file `cct.db`, which holds the same values by context, is left out.

    Parameters
    ----------
    directory : the database
    contexts : its contexts, parents first
    metric : name of the only metric
    locations : identifiers of each thread, its contexts [k], and their exclusive costs [k]
    title : title of the database
    """
    layout, spread = Layout(), _Propagation(contexts)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "meta.db").write_bytes(_MetaWriter(contexts, [metric], title, layout).content())
    total = np.zeros(len(contexts))
    for _, rows, costs in locations:
        np.add.at(total, rows, costs)
    stored = [_stored_of(spread.values(Measured({}, {metric: total}), [metric], layout))]
    stored += [spread.of_few(rows, costs) for _, rows, costs in locations]
    content = _profiles([ids for ids, *_ in locations], stored, layout)
    (directory / "profile.db").write_bytes(content)
    return directory


class _Buffer:
    """A buffer that returns positions."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)
        self._texts: dict[str, int] = {}

    def put(self, data: bytes) -> int:
        """Append `data` at the next multiple of 8 and return the position."""
        self.content += bytes(-len(self.content) % 8)
        self.content += data
        return len(self.content) - len(data)

    def section(self, size: int) -> int:
        """Start a section with an empty header of `size` bytes, and return its position."""
        self._texts.clear()
        return self.put(bytes(size))

    def fill(self, place: int, data: bytes) -> tuple[int, int]:
        """Fill in the header of the section that ends here; return its size and position."""
        self.content[place : place + len(data)] = data
        return len(self.content) - place, place

    def text(self, text: str) -> int:
        """Append a text, once per section, and return its position."""
        if text not in self._texts:
            self._texts[text] = len(self.content)
            self.content += text.encode() + b"\0"
        return self._texts[text]

    def finish(self, kind: bytes, sections: Sequence[tuple[int, int]], footer: bytes) -> bytes:
        """Fill in the header, append the footer, and return everything."""
        numbers = [number for section in sections for number in section]
        head = struct.pack(f"<10s4sBB{len(numbers)}Q", b"HPCTOOLKIT", kind, 4, 0, *numbers)
        self.content[: len(head)] = head
        return bytes(self.content) + footer


class _MetaWriter:
    """A writer of `meta.db`."""

    def __init__(
        self, contexts: Sequence[Scope], metrics: Sequence[str], title: str, layout: Layout
    ) -> None:
        self._contexts = contexts
        self._metrics = metrics
        self._title = title
        self._layout = layout
        self._buffer = _Buffer(0x90)
        self._modules: dict[str, int] = {}
        self._files: dict[str, int] = {}
        self._functions: dict[tuple[str, str, int, str], int] = {}

    def content(self) -> bytes:
        """Return the content of the file."""
        metrics = self._early_metrics if self._layout.early else self._all_metrics
        sections = [self._general(), self._kinds(), metrics(), self._tree(), *[(0, 0)] * 4]
        return self._buffer.finish(b"meta", sections, b"_meta.db")

    def _general(self) -> tuple[int, int]:
        place, text = self._buffer.section(16), self._buffer.text
        return self._buffer.fill(place, struct.pack("<QQ", text(self._title), text("for a test")))

    def _kinds(self) -> tuple[int, int]:
        place = self._buffer.section(16)
        names = [self._buffer.text(kind) for kind in _KINDS]
        first = self._buffer.put(struct.pack(f"<{len(names)}Q", *names))
        return self._buffer.fill(place, struct.pack("<QB", first, len(names)))

    def _stored(self, metric: str) -> list[tuple[int, str]]:
        """Return the scopes of a metric with their numbers."""
        first = self._metrics.index(metric) * len(_SCOPES)
        scopes = self._layout.scopes.get(metric, _SCOPES)
        return [(first + k, scope) for k, scope in enumerate(_SCOPES) if scope in scopes]

    def _all_metrics(self) -> tuple[int, int]:
        place = self._buffer.section(32)
        put, text, spare = self._buffer.put, self._buffer.text, bytes(self._layout.spare)
        formula, one = text("$$"), text("1")
        scope = {name: put(struct.pack("<QBB6x", text(name), 1, 0)) for name in _SCOPES}
        rows = b""
        for metric in self._metrics:
            stored = self._stored(metric)
            scopes = put(b"".join(struct.pack("<QH6x", scope[s], n) + spare for n, s in stored))
            sums = (struct.pack("<QQBxH4x", scope[s], formula, 0, n) + spare for n, s in stored)
            # A minimum and counts of threads under an unused number, which readers must skip.
            least = struct.pack("<QQBxH4x", scope[stored[0][1]], formula, 1, 60000) + spare
            counts = (struct.pack("<QQBxH4x", scope[s], one, 0, 60000) + spare for _, s in stored)
            summaries = put(b"".join([least, *sums, *counts]))
            sizes = len(stored), 2 * len(stored) + 1
            rows += struct.pack("<QQQHH4x", text(metric), scopes, summaries, *sizes)
            rows += spare
        size, first = self._layout.spare, put(rows)
        numbers = (first, len(self._metrics), 32 + size, 16 + size, 24 + size)
        return self._buffer.fill(
            place, struct.pack("<QLBBBxQHB", *numbers, scope["point"], len(_SCOPES), 16)
        )

    def _early_metrics(self) -> tuple[int, int]:
        place = self._buffer.section(32)
        put, text = self._buffer.put, self._buffer.text
        formula = text("$$")
        rows = b""
        for metric in self._metrics:
            scopes = b""
            for number, scope in self._stored(metric):
                summary = put(struct.pack("<QBxH4x", formula, 0, number))
                scopes += struct.pack("<QHH4xQ", text(scope), 1, number, summary)
            count = len(self._stored(metric))
            rows += struct.pack("<QH6xQ", text(metric), count, put(scopes))
        table = struct.pack("<QLBBB", put(rows), len(self._metrics), 24, 24, 16)
        return self._buffer.fill(place, table)

    def _tree(self) -> tuple[int, int]:
        """Write callees before their callers, because pointers must be known."""
        header = self._buffer.section(16)
        children: list[list[int]] = [[] for _ in self._contexts]
        entries: list[int] = []
        for number, context in enumerate(self._contexts):
            (entries if context.parent < 0 else children[context.parent]).append(number)
        places = [(0, 0)] * len(self._contexts)
        for number in range(len(self._contexts) - 1, -1, -1):
            records = [self._record(child, *places[child]) for child in children[number]]
            block = b"".join(records)
            if block:
                places[number] = (len(block), self._buffer.put(block))
        if self._layout.early:
            block = b"".join(self._record(entry, *places[entry]) for entry in entries)
            roots = struct.pack("<QQ", len(block), self._buffer.put(block))
        else:
            first = self._entry_points(entries, places)
            roots = struct.pack("<QHB", first, len(entries), 32 + self._layout.spare)
        return self._buffer.fill(header, roots)

    def _entry_points(self, entries: Sequence[int], places: Sequence[tuple[int, int]]) -> int:
        rows = b""
        for entry in entries:
            name = self._contexts[entry].name
            kind, text = _ENTRY_POINTS.get(name, 0), self._buffer.text(name)
            rows += struct.pack("<QQLH2xQ", *places[entry], entry + 1, kind, text)
            rows += bytes(self._layout.spare)
        return self._buffer.put(rows)

    def _record(self, number: int, size: int, first: int) -> bytes:
        context = self._contexts[number]
        if context.kind is Kind.INSTRUCTION and self._layout.elide:
            return b""
        relation, lexical_type = context.kind.value
        flags, flexible = 0, b""
        if context.kind in {Kind.FUNCTION, Kind.INLINED} and (context.name or context.module):
            flags, flexible = 1, struct.pack("<Q", self._function(context))
        elif lexical_type in {1, 2}:
            flags, flexible = 2, struct.pack("<QLL", self._file(context.file), context.line, 0)
        elif lexical_type == 3:
            flags, flexible = 4, struct.pack("<QQ", self._module(context.module), context.line)
        fixed = "<QQLBBBB" if self._layout.early else "<QQLBBBBH6x"
        words = len(flexible) // 8
        values = (size, first, number + 1, flags, relation, lexical_type, words)
        last = () if self._layout.early else (0,)
        return struct.pack(fixed, *values, *last) + flexible

    def _function(self, context: Scope) -> int:
        key = (context.name, context.file, context.line, context.module)
        if key not in self._functions:
            name = self._buffer.text(context.name) if context.name else 0
            module, file = self._module(context.module), self._file(context.file)
            data = struct.pack("<QQQQLL", name, module, 0x40, file, context.line, 0)
            self._functions[key] = self._buffer.put(data)
        return self._functions[key]

    def _module(self, path: str) -> int:
        return self._path(self._modules, path)

    def _file(self, path: str) -> int:
        return self._path(self._files, path)

    def _path(self, known: dict[str, int], path: str) -> int:
        if path and path not in known:
            known[path] = self._buffer.put(struct.pack("<L4xQ", 0, self._buffer.text(path)))
        return known.get(path, 0)


class _Propagation:
    """Sums of costs over subtrees, and over the contexts within each function."""

    def __init__(self, contexts: Sequence[Scope]) -> None:
        self._parent = np.array([context.parent for context in contexts], np.int64)
        self._lexical = np.array([context.kind.value[0] == 0 for context in contexts])
        depth = np.zeros(len(contexts), np.int64)
        for number, parent in enumerate(self._parent.tolist()):
            depth[number] = depth[parent] + 1 if parent >= 0 else 0
        order = np.argsort(depth, kind="stable")
        self._levels = np.split(order, np.cumsum(np.bincount(depth))[:-1])

    def values(self, one: Measured, metrics: Sequence[str], layout: Layout) -> FloatArray:
        """Return stored values of a thread, [1 + contexts, numbers]; row 0 is the whole."""
        table = np.zeros((len(self._parent) + 1, len(metrics) * len(_SCOPES)))
        for k, metric in enumerate(metrics):
            if metric not in one.costs:
                continue
            own = np.asarray(one.costs[metric], np.float64)
            within = self._sums(own, lexical_only=True)
            columns = {
                "point": own,
                "function": within,
                "lex_aware": within,  # as in real profiles, against the specification
                "execution": self._sums(own, lexical_only=False),
            }
            for j, scope in enumerate(_SCOPES):
                if scope in layout.scopes.get(metric, _SCOPES):
                    table[1:, k * len(_SCOPES) + j] = columns[scope]
            if "execution" in layout.scopes.get(metric, _SCOPES):
                roots = self._parent < 0
                table[0, k * len(_SCOPES) + 3] = columns["execution"][roots].sum()
        return table

    def of_few(self, rows: IntArray, costs: FloatArray) -> _Stored:
        """Return the stored values of a thread with costs in few contexts."""
        whole = self._above(rows, costs, lexical_only=False)
        within = self._above(rows, costs, lexical_only=True)
        columns = [(rows, costs), within, within, whole]
        contexts = np.concatenate([[-1], *(where for where, _ in columns)]) + 1
        numbers = np.repeat([3, *range(len(columns))], [1, *(len(c) for c, _ in columns)])
        values = np.concatenate([[costs.sum()], *(value for _, value in columns)])
        order = np.lexsort((numbers, contexts))
        return contexts[order], numbers[order], values[order]

    def _above(
        self, rows: IntArray, costs: FloatArray, *, lexical_only: bool
    ) -> tuple[IntArray, FloatArray]:
        """Return contexts and their sums over what is below them."""
        where, values = [rows], [costs]
        while len(rows):
            if lexical_only:
                rows, costs = rows[self._lexical[rows]], costs[self._lexical[rows]]
            above = self._parent[rows]
            rows, costs = above[above >= 0], costs[above >= 0]
            where.append(rows)
            values.append(costs)
        found, place = np.unique(np.concatenate(where), return_inverse=True)
        return found, np.bincount(place, np.concatenate(values)).astype(np.float64)

    def _sums(self, own: FloatArray, *, lexical_only: bool) -> FloatArray:
        total = own.copy()
        for level in reversed(self._levels[1:]):
            rows = level[self._lexical[level]] if lexical_only else level
            np.add.at(total, self._parent[rows], total[rows])
        return total


def _profile_file(
    measured: Sequence[Measured], profiles: Sequence[FloatArray], layout: Layout
) -> bytes:
    tables = [np.sum(profiles, axis=0), *profiles]
    return _profiles([one.ids for one in measured], [*map(_stored_of, tables)], layout)


def _stored_of(table: FloatArray) -> _Stored:
    """Return the values of a table [contexts, numbers] that are not zero."""
    contexts, numbers = np.nonzero(table)
    return contexts, numbers, table[contexts, numbers]


def _profiles(
    ids_of: Sequence[Mapping[str, int]], stored: Sequence[_Stored], layout: Layout
) -> bytes:
    """Return the file of profiles: of the summary, then of threads with these identifiers."""
    buffer = _Buffer(0x30)
    size = 40 if layout.early else 48 + layout.spare
    identifiers = [0, *(buffer.put(_identifiers(ids)) for ids in ids_of)]
    tuples = (len(buffer.content) - 0x30, 0x30)
    infos = buffer.section(16)
    first = buffer.put(bytes(size * len(stored)))
    section = len(buffer.content) - infos
    rows = []
    for number, ((contexts, metrics, costs), ids) in enumerate(
        zip(stored, identifiers, strict=True)
    ):
        values = np.empty(len(contexts), _VALUE)
        values["metric"], values["value"] = metrics, costs
        index = _starts(contexts, _INDEX, "context")
        place = buffer.put(values.tobytes()), buffer.put(index.tobytes())
        row = struct.pack(
            "<QQL4xQQL4x", len(values), place[0], len(index), place[1], ids, number == 0
        )
        rows.append(row[:size] + bytes(max(0, size - 48)))
    # Real databases have the profiles in any order.
    buffer.fill(first, b"".join([rows[0], *reversed(rows[1:])]))
    buffer.fill(infos, struct.pack("<QLB", first, len(rows), size))
    return buffer.finish(b"prof", [(section, infos), tuples], b"_prof.db")


def _identifiers(ids: Mapping[str, int]) -> bytes:
    parts = [
        struct.pack("<BBHLQ", _KINDS.index(kind), 0, 0, number, number)
        for kind, number in ids.items()
    ]
    return struct.pack("<H6x", len(parts)) + b"".join(parts)


def _starts(keys: IntArray, dtype: np.dtype[np.void], name: str) -> NDArray[np.void]:
    distinct, first = np.unique(keys, return_index=True)
    index = np.empty(len(distinct), dtype)
    index[name], index["start"] = distinct, first
    return index


def _context_file(profiles: Sequence[FloatArray], contexts: int) -> bytes:
    """Return the same values, ordered by context."""
    buffer = _Buffer(0x20)
    infos = buffer.section(16)
    first = buffer.put(bytes(32 * contexts))
    section = len(buffer.content) - infos
    rows = []
    for context in range(contexts):
        table = np.stack([profile[context] for profile in profiles], axis=1)
        metrics, places = np.nonzero(table)
        values = np.empty(len(metrics), _BY_CONTEXT)
        # Profile 0 is the summary; the others were written in reverse order.
        values["profile"], values["value"] = len(profiles) - places, table[metrics, places]
        order = np.lexsort((values["profile"], metrics))
        index = _starts(metrics, _BY_METRIC, "metric")
        place = buffer.put(values[order].tobytes()), buffer.put(index.tobytes())
        rows.append(struct.pack("<QQH6xQ", len(values), place[0], len(index), place[1]))
    buffer.fill(first, b"".join(rows))
    buffer.fill(infos, struct.pack("<QLB", first, contexts, 32))
    return buffer.finish(b"ctxt", [(section, infos)], b"__ctx.db")
