"""Stored rows of a metric: index, encodings, and reading in blocks."""

from __future__ import annotations

import re
import struct
import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, ByteArray, FloatArray, Int64Array, IntArray
from callpath_modeler.errors import InputError, MalformedError
from callpath_modeler.units import decimals_of
from cpmodel_scorep.container import COPY_IT_AGAIN, Container, Member
from cpmodel_scorep.definitions import Definitions

BLOCK_BYTES = 4 << 20
"""Size of the blocks in which data are processed, in bytes.

A few blocks fit into the last-level cache. Smaller blocks would need more calls than they save.
"""

SECTION_BYTES = 64 << 20
"""Smallest size of a section, in bytes; handing out a smaller one takes longer than its work."""

_MOST_SECTIONS = 256
"""Number of sections up to which the totals of all locations in each fit into memory."""

_SHORT_GAP = 1 << 14
"""Gap in bytes that is read and discarded, because another call would take longer."""

Section = tuple[int, int]
"""The first of some neighbouring stored rows, and the row after the last one."""

_INDEX, _RAW, _ZIPPED = b"CUBEX.INDEX", b"CUBEX.DATA", b"ZCUBEX.DATA"
_SPARSE, _DENSE = 1, 3
_TUPLE = [("n", "u4"), ("min", "f8"), ("max", "f8"), ("sum", "f8"), ("sum2", "f8")]
_TYPES: dict[str, np.dtype[np.generic]] = {
    name: np.dtype(code)
    for code, names in {
        "f8": "DOUBLE FLOAT MINDOUBLE MAXDOUBLE",
        "u8": "UINT64;UNSIGNED INTEGER",
        "i8": "INT64;INTEGER;SIGNED INTEGER",
        "u4": "UINT32;UNSIGNED INT",
        "i4": "INT32;INT;SIGNED INT",
        "u2": "UINT16;UNSIGNED SHORT INT",
        "i2": "INT16;SHORT INT;SIGNED SHORT INT",
        "u1": "UINT8;UNSIGNED CHAR",
        "i1": "INT8;CHAR;SIGNED CHAR",
    }.items()
    for name in (names.split(";") if ";" in names else names.split())
}
_TYPES["TAU_ATOMIC"] = np.dtype(_TUPLE)


def type_of(name: str) -> np.dtype[np.generic] | None:
    """Return the stored type for a Cube data type; None if it is not a number."""
    return _TYPES.get(name.upper().strip())


class Index(Struct, frozen=True):
    """Index of the stored rows.

    Attributes
    ----------
    byte_order : ``"<"`` or ``">"``, of the index and of the data
    numbers : int64 [stored rows], ascending row numbers in the order of the metric's kind
    """

    byte_order: str
    numbers: Int64Array


def read_index(container: Container, member: Member, call_paths: int) -> Index:
    """Return the index of the stored rows.

    Raises
    ------
    InputError
        If the index is damaged, or has more rows than there are call paths.
    """

    def broken(reason: str) -> InputError:
        return InputError(
            f"{container.path}: {member.name} at byte {member.offset}: {reason}",
            hint=COPY_IT_AGAIN,
        )

    raw = container.content(member)
    if not raw.startswith(_INDEX) or len(raw) < 18:
        raise broken("not an index")
    orders = {b"\1\0\0\0": "<", b"\0\0\0\1": ">"}
    order = orders.get(raw[11:15])
    if order is None:
        raise broken("the byte order mark of the index is broken")
    if raw[17] == _DENSE:
        return Index(order, np.arange(call_paths))
    if raw[17] != _SPARSE:
        raise broken(f"index format {raw[17]} is unknown")
    if len(raw) == 18:
        # Without any rows, the tools do not write a row count.
        return Index(order, np.arange(0))
    (count,) = struct.unpack(order + "I", raw[18:22].ljust(4, b"\xff"))
    if count > call_paths or 22 + 4 * count != len(raw):
        raise broken(f"{len(raw)} bytes for an index of {count} rows and {call_paths} call paths")
    numbers = np.frombuffer(raw, order + "u4", count, 22).astype(np.int64)
    if count and (numbers[-1] >= call_paths or np.any(np.diff(numbers) <= 0)):
        raise broken("the row numbers of the index are not ascending or out of range")
    return Index(order, numbers)


class StoredRows(Protocol):
    """Stored rows as numbers.

    Attributes
    ----------
    numbers : int64 [stored rows], see `Index`
    columns : number of values per row
    missing : number of rows in the index but not in the file; their values are zero
    """

    numbers: Int64Array
    columns: int
    missing: int

    def read(self, first: int, stop: int, out: FloatArray) -> None:
        """Fill `out`, contiguous, with stored rows, [stop - first x columns].

        64-bit counters are read as signed, so that a counter below zero is not a huge number.
        """
        ...


def open_rows(
    container: Container, index: Index, data: Member, dtype: np.dtype[np.generic], columns: int
) -> StoredRows:
    """Return the rows in `data`.

    Raises
    ------
    InputError
        If the member does not contain rows.
    """
    head = container.read(data.offset, min(data.size, len(_ZIPPED)))
    signed = np.dtype("i8") if dtype == np.dtype("u8") else dtype
    stored = signed.newbyteorder("<" if index.byte_order == "<" else ">")
    if head.startswith(_ZIPPED):
        return ZippedRows(container, data, index, stored, columns)
    if head.startswith(_RAW):
        return RawRows(container, data, index, stored, columns)
    if not len(head):
        return RawRows(container, data, index, stored, columns)
    raise InputError(
        f"{container.path}: {data.name} at byte {data.offset}: this is not the data of a metric",
        hint=COPY_IT_AGAIN,
    )


class _Converter(threading.local):
    """Conversion of stored bytes to numbers; doubles stay in the block they were read into.

    Each thread has its own buffer.
    """

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._dtype = dtype
        self._in_place = dtype.kind == "f"
        self._buffer = np.empty(0, np.uint8)

    def bytes_for(self, out: FloatArray) -> ByteArray:
        """Return the memory for the stored bytes of `out`."""
        if self._in_place:
            return out.reshape(-1).view(np.uint8)
        size = out.size * self._dtype.itemsize
        if len(self._buffer) < size:
            self._buffer = np.empty(size, np.uint8)
        return self._buffer[:size]

    def convert(self, raw: ByteArray, out: FloatArray) -> None:
        """Fill `out` with the numbers in `raw`, the memory from `bytes_for`; tuples become sums."""
        if not self._in_place:
            values = raw.view(self._dtype).reshape(out.shape)
            out[:] = values["sum"] if self._dtype.names else values
        elif not self._dtype.isnative:
            out.byteswap(inplace=True)


class _RowsOfMember(ABC):
    """Rows of a member of a container."""

    def __init__(
        self,
        container: Container,
        member: Member,
        index: Index,
        dtype: np.dtype[np.generic],
        columns: int,
    ) -> None:
        self.numbers, self.columns = index.numbers, columns
        self._container, self._member = container, member
        self._converter = _Converter(dtype)
        self._row_bytes = columns * dtype.itemsize
        self.missing = self._find_rows(index.byte_order)

    @abstractmethod
    def _find_rows(self, order: str) -> int:
        """Find the places of the rows, and return how many rows are missing."""

    def _broken(self, reason: str) -> InputError:
        return InputError(
            f"{self._container.path}: {self._member.name} at byte {self._member.offset}: {reason}",
            hint=COPY_IT_AGAIN,
        )


class RawRows(_RowsOfMember):
    """Uncompressed rows, stored one after the other."""

    def _find_rows(self, _order: str) -> int:
        self._start = self._member.offset + len(_RAW)
        held = max(0, self._member.size - len(_RAW)) // self._row_bytes
        if held > len(self.numbers) and not self._container.resynchronised:
            raise self._broken(f"{held} rows, of which the index names {len(self.numbers)}")
        self._held = min(held, len(self.numbers))
        return len(self.numbers) - self._held

    def read(self, first: int, stop: int, out: FloatArray) -> None:
        """Fill `out` with stored rows, [stop - first x columns]."""
        raw = self._converter.bytes_for(out)
        held = max(0, min(stop, self._held) - first) * self._row_bytes
        start = self._start + first * self._row_bytes
        got = self._container.read_into(start, raw[:held].data)
        raw[got:] = 0
        self._converter.convert(raw, out)


class ZippedRows(_RowsOfMember):
    """Individually compressed rows with a table of their positions."""

    def _find_rows(self, order: str) -> int:
        start, size = self._read_places(order)
        self._start, self._size = start, size
        member = self._member
        fits = (size > 0) & (start + size <= member.offset + member.size)
        self._held = fits & (start >= member.offset)
        # A row of size zero was never written, so it is not missing.
        return int(np.count_nonzero(~self._held & (size > 0)))

    def _read_places(self, order: str) -> tuple[Int64Array, Int64Array]:
        n = len(self.numbers)
        start, size = np.zeros(n, np.int64), np.zeros(n, np.int64)
        head = self._member.offset + len(_ZIPPED)
        room = self._member.size - len(_ZIPPED)
        raw = self._container.read(head, min(8, room))
        if len(raw) < 8:
            size[:] = 1
            return start - 1, size
        (count,) = struct.unpack(order + "Q", raw)
        if count > (room - 8) // 24:
            raise self._broken(f"the data declare {count} compressed rows")
        table = np.frombuffer(self._container.read(head + 8, 24 * count), order + "u8")
        places = table.reshape(-1, 3).astype(np.int64)
        row = places[:, 0] // self._row_bytes
        known = (places >= 0).all(axis=1) & (row < n) & (places[:, 0] % self._row_bytes == 0)
        start[row[known]] = head + 8 + 24 * count + places[known, 1]
        size[row[known]] = places[known, 2]
        return start, size

    def read(self, first: int, stop: int, out: FloatArray) -> None:
        """Fill `out` with stored rows, [stop - first x columns]."""
        raw = self._converter.bytes_for(out)
        rows = raw.reshape(stop - first, -1)
        held = self._held[first:stop]
        rows[~held] = 0
        for k in held.nonzero()[0].tolist():
            rows[k] = self._unzipped(first + k)
        self._converter.convert(raw, out)

    def _unzipped(self, row: int) -> ByteArray:
        packed = self._container.read(int(self._start[row]), int(self._size[row]))
        try:
            values = zlib.decompressobj().decompress(packed, self._row_bytes)
        except zlib.error as error:
            raise self._broken(f"row {row} is broken: {error}") from None
        if len(values) < self._row_bytes:
            raise self._broken(f"row {row} is too short")
        return np.frombuffer(values, np.uint8)


class InMemoryRows:
    """Rows in memory, such as the ones of CUBE 3 files."""

    def __init__(self, numbers: Int64Array, values: FloatArray) -> None:
        self.numbers = numbers
        self.columns = values.shape[1]
        self.missing = 0
        self._values = values

    def read(self, first: int, stop: int, out: FloatArray) -> None:
        """Fill `out` with stored rows, [stop - first x columns]."""
        out[:] = self._values[first:stop]


class ReorderedRows:
    """Rows of another store in a different order."""

    def __init__(self, inner: StoredRows, places: IntArray, numbers: Int64Array) -> None:
        self.numbers = numbers
        self.columns = inner.columns
        self.missing = inner.missing
        self._inner = inner
        self._places = places

    def read(self, first: int, stop: int, out: FloatArray) -> None:
        """Fill `out` with rows, [stop - first x columns]."""
        places = self._places[first:stop]
        order = np.argsort(places)
        out[order] = take(self._inner, places[order])


def rows_of_block(columns: int) -> int:
    """Return the number of rows in a block of about `BLOCK_BYTES`."""
    return max(1, BLOCK_BYTES // (8 * columns))


def sections_of(rows: StoredRows, may_begin: BoolArray | None = None) -> list[Section]:
    """Return sections of stored rows that may be reduced by different workers.

    They consist of whole blocks, and depend on the file alone, not on the number of workers.

    Parameters
    ----------
    may_begin : bool [stored rows], whether a section may begin at a row; None = at all rows
    """
    count, step = len(rows.numbers), rows_of_block(rows.columns)
    least = max(step * SECTION_BYTES // BLOCK_BYTES, count // _MOST_SECTIONS, 1)
    bounds = [0]
    for first in range(0, count, step):
        if first - bounds[-1] >= least and (may_begin is None or may_begin[first]):
            bounds.append(first)
    return list(pairwise([*bounds, count]))


def bounds_of_blocks(rows: StoredRows, section: Section) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block of a section, and the row after its last one."""
    step = rows_of_block(rows.columns)
    for first in range(*section, step):
        yield first, min(first + step, section[1])


def blocks(
    rows: StoredRows, section: Section | None = None
) -> Iterator[tuple[int, int, FloatArray]]:
    """Yield the blocks of a section with their bounds; each block overwrites the previous one.

    Without a section, these are the blocks of all rows.
    """
    # One buffer is used again, because page faults of new memory take longer than reading.
    buffer = np.empty((min(len(rows.numbers), rows_of_block(rows.columns)), rows.columns))
    for first, stop in bounds_of_blocks(rows, section or (0, len(rows.numbers))):
        block = buffer[: stop - first]
        rows.read(first, stop, block)
        yield first, stop, block


def take(rows: StoredRows, places: IntArray, out: FloatArray | None = None) -> FloatArray:
    """Return the stored rows at ascending `places`, [places x columns], in `out` if given.

    Neighbouring rows are read together, because a short gap costs less than another call.
    """
    taken = np.empty((len(places), rows.columns)) if out is None else out
    if not len(places):
        return taken
    most = rows_of_block(rows.columns)
    apart = np.diff(places) > max(1, _SHORT_GAP // (8 * rows.columns))
    apart |= np.diff(places // most) > 0
    span = np.empty((most, rows.columns))
    for begin, end in pairwise([0, *(np.flatnonzero(apart) + 1).tolist(), len(places)]):
        first, stop = int(places[begin]), int(places[end - 1]) + 1
        if stop - first == end - begin:
            rows.read(first, stop, taken[begin:end])
        else:
            rows.read(first, stop, span[: stop - first])
            taken[begin:end] = span[places[begin:end] - first]
    return taken


def reordered(rows: StoredRows, order: Int64Array, wanted: Int64Array) -> StoredRows:
    """Return `rows` in another order of the call paths.

    Parameters
    ----------
    order, wanted : [call paths], call path of each row number, now and in the result
    """
    number = np.empty(len(wanted), np.int64)
    number[wanted] = np.arange(len(wanted))
    numbers = number[order[rows.numbers]]
    places = np.argsort(numbers)
    return ReorderedRows(rows, places, numbers[places])


_MATRIX = re.compile(rb"<matrix\s+metricId=[\"'](\d{1,18})[\"']\s*>")
_ROW = re.compile(rb"<row\s+cnodeId=[\"'](\d{1,18})[\"']\s*>([^<]*)</row>")


def split(text: bytes) -> tuple[bytes, bytes]:
    """Return the definitions of a CUBE 3 document, still as XML, and its values.

    Raises
    ------
    MalformedError
        If the values have no end tag.
    """
    begin, end = text.find(b"<severity>"), text.rfind(b"</severity>")
    if begin < 0:
        return text, b""
    if end < begin:
        raise MalformedError("the file is cut off within the values")
    return text[:begin] + text[end + len(b"</severity>") :], text[begin:end]


def values(text: bytes, definitions: Definitions, where: str) -> dict[int, InMemoryRows]:
    """Return the rows of each metric by its id.

    Raises
    ------
    InputError
        If a row has no call path, or does not have one number per thread.
    """
    paths = {number: row for row, number in enumerate(definitions.call_paths.ids.tolist())}
    columns = len(definitions.locations.ids)
    held: dict[int, InMemoryRows] = {}
    for number, body in _matrices(text):
        found: dict[int, FloatArray] = {}
        for path, row in _ROW.findall(body):
            if int(path) not in paths:
                what = f"{where}: there are values for call path {int(path)}, which is not defined"
                raise InputError(what, hint=COPY_IT_AGAIN)
            found[paths[int(path)]] = _numbers(row, columns, where)
        places = sorted(found)
        matrix = np.array([found[place] for place in places]).reshape(-1, columns)
        held.setdefault(number, InMemoryRows(np.array(places, np.int64), matrix))
    return held


def _matrices(text: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while (found := _MATRIX.search(text, at)) is not None:
        at = text.find(b"</matrix>", found.end())
        if at < 0:
            return
        yield int(found[1]), text[found.end() : at]


def _numbers(row: bytes, columns: int, where: str) -> FloatArray:
    try:
        numbers = decimals_of(row.decode("latin-1").split())
    except ValueError as error:
        raise InputError(f"{where}: {error}", hint=COPY_IT_AGAIN) from None
    if len(numbers) != columns:
        raise InputError(
            f"{where}: a row has {len(numbers)} values for {columns} locations",
            hint=COPY_IT_AGAIN,
        )
    return numbers
