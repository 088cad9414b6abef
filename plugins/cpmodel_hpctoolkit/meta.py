"""The file `meta.db` of a version 4 database: names, metrics and calling contexts."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path

import numpy as np

from callpath_modeler.arrays import BoolArray, Int64Array, IntArray, UInt64Array
from callpath_modeler.profile.schema import Region
from cpmodel_hpctoolkit.binary import InMemoryFile
from cpmodel_hpctoolkit.contexts import Contexts
from cpmodel_hpctoolkit.names import anonymous, function_region, loop_region

_SECTIONS = struct.Struct("<16Q")
_NAMES = struct.Struct("<QB")
_METRICS = struct.Struct("<QLBBB")
_PATH = struct.Struct("<8xQ")
_FUNCTION = struct.Struct("<QQQQL")

_LEXICAL, _CALL = 0, 1
_IS_FUNCTION, _IS_LOOP, _IS_LINE = 0, 1, 2
_SPREAD = 64
"""Maximum ratio of an array over context numbers, which have gaps, to the size of the tree."""
_TOGETHER = 64
"""Number of blocks from which it is faster to walk them together."""


@dataclass(frozen=True, slots=True)
class MetricIds:
    """A metric and the numbers of its values.

    Attributes
    ----------
    name : as in the database, e.g. ``"CPUTIME (sec)"``
    in_profile : number in the profile of a thread, by propagation scope
    in_summary : number of the sum over all threads in the summary profile, by scope
    """

    name: str
    in_profile: dict[str, int]
    in_summary: dict[str, int]


@dataclass(frozen=True, slots=True)
class Meta:
    """Contents of a `meta.db`.

    Attributes
    ----------
    title : title of the database, mostly the name of the executable
    kinds : names of the kinds of identifiers
    metrics : in order of the file
    ids : [contexts], number of each context in profiles
    contexts : callers before callees
    lexical : [contexts], True if a context is a part of the one above
    """

    title: str
    kinds: tuple[str, ...]
    metrics: tuple[MetricIds, ...]
    ids: Int64Array
    contexts: Contexts
    lexical: BoolArray


def read_meta(path: Path) -> Meta:
    """Return the contents of a `meta.db`.

    Raises
    ------
    InputError
        If the file is not a `meta.db`, or damaged.
    """
    with InMemoryFile(path) as file:
        file.check_header(b"meta", b"_meta.db")
        numbers = file.unpack(_SECTIONS, 16, "the section table")
        general, kinds, metrics, context = numbers[1:8:2]
        (title,) = struct.unpack("<Q", file.read(general, 8, "the general section"))
        metrics_table, is_early = _metrics(file, metrics)
        records = _records(file, context, numbers[6], is_early=is_early)
        regions, region = _regions(file, records)
        is_line = (records.lexical_type == _IS_LINE) & (records.relation == _LEXICAL)
        (paths, source) = _distinct([np.where(is_line, records.file, 0)])
        texts = _Texts(file)
        return Meta(
            file.text(title, "the title"),
            _kinds(file, kinds),
            metrics_table,
            records.ids,
            Contexts(
                records.parent,
                records.depth,
                (records.lexical_type == _IS_FUNCTION) | (records.relation != _LEXICAL),
                (records.lexical_type == _IS_LOOP) & (records.relation == _LEXICAL),
                region,
                regions,
                np.where(is_line, records.line, 0),
                source.astype(np.int64),
                tuple(texts.file(path) for (path,) in paths),
            ),
            records.relation == _LEXICAL,
        )


def _kinds(file: InMemoryFile, at: int) -> tuple[str, ...]:
    pointers, count = file.unpack(_NAMES, at, "the identifier names")
    names = struct.unpack(f"<{count}Q", file.read(pointers, 8 * count, "the identifier names"))
    return tuple(file.text(name, "an identifier name") for name in names)


def _metrics(file: InMemoryFile, at: int) -> tuple[tuple[MetricIds, ...], bool]:
    """Return the metrics, and whether the file has the layout of the first releases.

    That layout nests the summaries of a metric in its scopes, and has no entry points.
    """
    first, count, size, scope_size, summary_size = file.unpack(_METRICS, at, "the metrics")
    is_early = size == 24
    if size < 24 or scope_size < 16 or summary_size < 16:
        file.refuse(at + 12, f"metrics of {size}, {scope_size} and {summary_size} bytes")
    file.check(first, count * size, "the table of metrics")
    read = _early_metric if is_early else _metric
    rows = range(first, first + count * size, size)
    return tuple(read(file, row, scope_size, summary_size) for row in rows), is_early


def _metric(file: InMemoryFile, at: int, scope_size: int, summary_size: int) -> MetricIds:
    name, scopes, summaries, n_scopes, n_summaries = file.unpack(
        struct.Struct("<QQQHH"), at, "a metric"
    )
    in_profile: dict[str, int] = {}
    for row in range(scopes, scopes + n_scopes * scope_size, scope_size):
        scope, number = file.unpack(struct.Struct("<QH"), row, "a scope of a metric")
        in_profile[_scope_name(file, scope)] = number
    in_summary: dict[str, int] = {}
    for row in range(summaries, summaries + n_summaries * summary_size, summary_size):
        scope, formula, combine, number = file.unpack(
            struct.Struct("<QQBxH"), row, "a summary of a metric"
        )
        if _is_sum(file, formula, combine):
            in_summary[_scope_name(file, scope)] = number
    return MetricIds(file.text(name, "the name of a metric"), in_profile, in_summary)


def _early_metric(file: InMemoryFile, at: int, scope_size: int, summary_size: int) -> MetricIds:
    name, n_scopes, scopes = file.unpack(struct.Struct("<QH6xQ"), at, "a metric")
    in_profile: dict[str, int] = {}
    in_summary: dict[str, int] = {}
    for row in range(scopes, scopes + n_scopes * scope_size, scope_size):
        called, n_summaries, number, summaries = file.unpack(
            struct.Struct("<QHH4xQ"), row, "a scope of a metric"
        )
        scope = file.text(called, "the name of a scope")
        in_profile[scope] = number
        for place in range(summaries, summaries + n_summaries * summary_size, summary_size):
            formula, combine, summary = file.unpack(
                struct.Struct("<QBxH"), place, "a summary of a metric"
            )
            if _is_sum(file, formula, combine):
                in_summary[scope] = summary
    return MetricIds(file.text(name, "the name of a metric"), in_profile, in_summary)


def _scope_name(file: InMemoryFile, at: int) -> str:
    (name,) = file.unpack(struct.Struct("<Q"), at, "a scope")
    return file.text(name, "the name of a scope")


def _is_sum(file: InMemoryFile, formula: int, combine: int) -> bool:
    return combine == 0 and file.text(formula, "a formula") == "$$"


@dataclass(frozen=True, slots=True)
class _Records:
    """Contexts as stored; columns [contexts], with pointer 0 = none."""

    ids: Int64Array
    parent: Int64Array
    depth: Int64Array
    relation: Int64Array
    lexical_type: Int64Array
    function: Int64Array
    file: Int64Array
    line: Int64Array
    module: Int64Array
    offset: Int64Array
    entry_name: Int64Array


def _records(file: InMemoryFile, at: int, section: int, *, is_early: bool) -> _Records:
    """Return the contexts, by following pointers from callers to callees, level by level."""
    fixed = 24 if is_early else 32
    most = min(section, file.size) // fixed + 1
    if is_early:
        size, first = file.unpack(struct.Struct("<QQ"), at, "the contexts")
        levels: list[tuple[Int64Array, Int64Array]] = []
        starts, sizes = np.array([first]), np.array([size])
        owners = np.array([-1])
        total = 0
    else:
        entries = _entry_points(file, at)
        levels = [(entries, np.full(len(entries), -1))]
        owners, starts, sizes = _blocks(file, entries, 0)
        total = len(entries)
    while len(starts):
        offsets, counts = _siblings(file, starts, sizes, fixed, most - total)
        levels.append((offsets, np.repeat(owners, counts)))
        owners, starts, sizes = _blocks(file, offsets, total)
        total += len(offsets)
    return _columns(file, levels, fixed, 0 if is_early else len(levels[0][0]))


def _entry_points(file: InMemoryFile, at: int) -> Int64Array:
    first, count, size = file.unpack(struct.Struct("<QHB"), at, "the entry points")
    if size < 32 or first % 8 or size % 8:
        file.refuse(at, f"entry points have {size} bytes from {first:#x} on")
    file.check(first, count * size, "the table of entry points")
    return np.arange(count, dtype=np.int64) * size + first


def _blocks(
    file: InMemoryFile, records: Int64Array, before: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the numbers of the records with callees, and the start and size of each block."""
    sizes, starts = file.words[records // 8], file.words[records // 8 + 1]
    owners = np.flatnonzero((sizes > 0) & (starts > 0))
    sizes, starts = sizes[owners], starts[owners]
    bad = np.flatnonzero((starts > file.size) | (sizes > file.size) | (starts % 8 != 0))
    if len(bad):
        place = int(records[owners[bad[0]]])
        file.refuse(place, f"a context has callees at {int(starts[bad[0]]):#x}")
    return owners + before, starts.astype(np.int64), sizes.astype(np.int64)


def _siblings(
    file: InMemoryFile,
    starts: Int64Array,
    sizes: Int64Array,
    fixed: int,
    most: int,
) -> tuple[Int64Array, IntArray]:
    """Return the positions of the contexts in the blocks, and the length of each block.

    All blocks are walked together, as most have few contexts; the last few are walked one by one.
    """
    ends = starts + sizes
    for block in np.flatnonzero(ends > file.size)[:1].tolist():
        file.check(int(starts[block]), int(sizes[block]), "a block of contexts")
    data = np.frombuffer(file.data, np.uint8)
    blocks, at = np.arange(len(starts)), starts
    walked = [(blocks[:0], at[:0])]
    total = 0
    while True:
        goes_on = at + fixed <= ends[blocks]
        if not goes_on.all():
            blocks, at = blocks[goes_on], at[goes_on]
        if len(blocks) < _TOGETHER:
            break
        walked.append((blocks, at))
        total += len(blocks)
        if total > most:
            file.refuse(int(starts[blocks[0]]), "contexts contain each other")
        at = at + fixed + 8 * data[at + 23].astype(np.int64)
    for block, first in zip(blocks.tolist(), at.tolist(), strict=True):
        offsets = _rest_of(file.data, first, int(ends[block]), fixed, most - total)
        total += len(offsets)
        if total > most:
            file.refuse(int(starts[block]), "contexts contain each other")
        walked.append((np.full(len(offsets), block), offsets))
    # Positions ascend in each step, so the order of blocks decides, then that of the steps.
    block = np.concatenate([blocks for blocks, _ in walked])
    order = np.argsort(block, kind="stable")
    offsets = np.concatenate([positions for _, positions in walked])[order]
    counts = np.bincount(block, minlength=len(starts))
    stops = starts.copy()
    last = np.cumsum(counts)[counts > 0] - 1
    stops[counts > 0] = offsets[last] + fixed + 8 * data[offsets[last] + 23].astype(np.int64)
    for block in np.flatnonzero(stops != ends)[:1].tolist():
        end = int(ends[block])
        file.refuse(int(starts[block]), f"a block of contexts does not end at {end:#x}")
    return offsets, counts


def _rest_of(data: bytes, at: int, end: int, fixed: int, most: int) -> Int64Array:
    """Return the positions of the contexts of a block from `at` on, at most one too many."""
    offsets: list[int] = []
    while at + fixed <= end and len(offsets) <= most:
        offsets.append(at)
        at += fixed + 8 * data[at + 23]
    return np.array(offsets, np.int64)


def _columns(
    file: InMemoryFile,
    levels: list[tuple[Int64Array, Int64Array]],
    fixed: int,
    entries: int,
) -> _Records:
    place = np.concatenate([offsets for offsets, _ in levels]) // 8
    if not len(place):
        file.refuse(0x40, "no contexts")
    packed = file.words[place + 2]
    ids = (packed & 0xFFFFFFFF).astype(np.int64)
    ordered = np.sort(ids)  # far faster than `np.unique`, which hashes
    if (ordered[1:] == ordered[:-1]).any() or ids.max() > _SPREAD * len(ids) + (1 << 16):
        file.refuse(
            int(place[int(ids.argmax())]) * 8 + 16, "a context number occurs twice or is too large"
        )
    flags, relation, kind, words = (
        ((packed >> np.uint64(shift)) & np.uint64(0xFF)).astype(np.int64)
        for shift in (32, 40, 48, 56)
    )
    # The kind of an entry point is in these four bytes.
    flags[:entries], words[:entries] = 0, 0
    relation[:entries], kind[:entries] = _CALL, _IS_FUNCTION
    entry_name = np.zeros(len(place), np.int64)
    entry_name[:entries] = _pointers(file.words[place[:entries] + 3])
    needed = (flags & 1) + (flags & 2) + (flags & 4) // 2
    short = np.flatnonzero(needed > words)
    if len(short):
        file.refuse(int(place[short[0]]) * 8, "a context is shorter than it declares")
    at = place + fixed // 8
    fields: list[Int64Array] = []
    for bit, count in ((1, 1), (2, 2), (4, 2)):
        has = np.flatnonzero(flags & bit)
        for _ in range(count):
            column = np.zeros(len(place), np.int64)
            column[has] = _pointers(file.words[at[has]])
            fields.append(column)
            at[has] += 1
    parent = np.concatenate([owners for _, owners in levels])
    depth = np.repeat(np.arange(len(levels)), [len(offsets) for offsets, _ in levels])
    function, source, line, module, offset = fields
    return _Records(
        ids, parent, depth, relation, kind, function, source, line & 0xFFFFFFFF, module, offset,
        entry_name,
    )  # fmt: skip


def _pointers(words: UInt64Array) -> Int64Array:
    # No file is this long, so the check against the file size detects larger values.
    return np.minimum(words, np.uint64(1 << 62)).astype(np.int64)


class _Texts:
    """Regions of the structures that contexts point to."""

    def __init__(self, file: InMemoryFile) -> None:
        self._file = file
        self._paths: dict[int, str] = {}

    def entry(self, name: int) -> Region:
        """Return the region of an entry point."""
        return function_region(self._file.text(name, "the name of an entry point"))

    def function(self, at: int) -> Region:
        """Return the region of a function structure."""
        name, module, offset, source, line = self._file.unpack(_FUNCTION, at, "a function")
        path = self._path(module, "a module")
        text = self._file.text(name, "the name of a function") or anonymous(path, offset)
        return function_region(text, path, self._path(source, "a source file"), line)

    def code(self, module: int, offset: int) -> Region:
        """Return the region of code without a function."""
        path = self._path(module, "a module")
        return function_region(anonymous(path, offset), path)

    def file(self, source: int) -> str:
        """Return the path of a source file."""
        return self._path(source, "a source file")

    def loop(self, source: int, line: int) -> Region:
        """Return the region of a loop."""
        return loop_region(self._path(source, "a source file"), line)

    def _path(self, at: int, what: str) -> str:
        if at == 0:
            return ""
        if at not in self._paths:
            (path,) = self._file.unpack(_PATH, at, what)
            self._paths[at] = self._file.text(path, f"the path of {what}")
        return self._paths[at]


def _regions(file: InMemoryFile, records: _Records) -> tuple[tuple[Region, ...], Int64Array]:
    """Return the regions, and the region of each context; each distinct structure is read once."""
    called = (records.lexical_type == _IS_FUNCTION) | (records.relation != _LEXICAL)
    is_entry, has_function = records.entry_name > 0, records.function > 0
    is_loop = (records.lexical_type == _IS_LOOP) & ~called
    nameless = ~is_entry & ~has_function & (called | (records.parent < 0)) & ~is_loop
    texts = _Texts(file)
    known: dict[Region, int] = {}
    region = np.zeros(len(records.ids), np.int64)
    kinds: tuple[tuple[BoolArray, Callable[..., Region], tuple[Int64Array, ...]], ...] = (
        (is_entry, texts.entry, (records.entry_name,)),
        (called & has_function & ~is_entry, texts.function, (records.function,)),
        (nameless, texts.code, (records.module, records.offset)),
        (is_loop, texts.loop, (records.file, records.line)),
    )
    for mask, make, columns in kinds:
        rows = np.flatnonzero(mask)
        distinct, which = _distinct([column[rows] for column in columns])
        numbers = [known.setdefault(made, len(known)) for made in starmap(make, distinct)]
        region[rows] = np.array(numbers, np.int64)[which]
    return tuple(known), region


def _distinct(columns: list[Int64Array]) -> tuple[list[tuple[int, ...]], IntArray]:
    """Return the distinct rows of `columns`, and the number of each row among them."""
    if len(columns) == 1:
        keys, which = np.unique(columns[0], return_inverse=True)
        return [(key,) for key in keys.tolist()], which
    first, second = columns
    numbers, of_first = np.unique(first, return_inverse=True)
    lowest = int(second.min(initial=0))
    spread = int(second.max(initial=0)) - lowest + 1
    if spread > np.iinfo(np.int64).max // (len(numbers) + 1):
        rows, which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        return [tuple(row) for row in rows.tolist()], which.reshape(-1)
    # Rows of two columns are sorted a hundred times slower than numbers.
    keys, which = np.unique(of_first * spread + (second - lowest), return_inverse=True)
    pairs = zip(numbers[keys // spread].tolist(), (keys % spread + lowest).tolist(), strict=True)
    return list(pairs), which
