"""The stored rows of a metric: index, encodings, and reading them a block at a time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.errors import InputError
from cpmodel_scorep.container import COPY_IT_AGAIN, Container, Member

BLOCK_BYTES = 4 << 20
"""Size of the blocks that data pass through.

A few of them stay in the last-level cache; smaller ones cost more calls than they save.
"""

_SHORT_GAP = 1 << 14
"""Bytes that are read and thrown away sooner than another call is made."""

Block = NDArray[np.float64]
Bytes = NDArray[np.uint8]

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
    """Return how values of a Cube data type are stored, None if they are no numbers."""
    return _TYPES.get(name.upper().strip())


@dataclass(frozen=True, slots=True)
class Index:
    """Which rows are stored.

    Attributes
    ----------
    byte_order : ``"<"`` or ``">"``, of the index and of the data
    numbers : int64 [stored rows], ascending row numbers in the order of the metric's kind
    """

    byte_order: str
    numbers: NDArray[np.int64]


def read_index(container: Container, member: Member, call_paths: int) -> Index:
    """Read which rows are stored.

    Raises
    ------
    InputError
        If the index is broken or counts more rows than there are call paths.
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
        # The tools write no count at all where there are no rows.
        return Index(order, np.arange(0))
    (count,) = struct.unpack(order + "I", raw[18:22].ljust(4, b"\xff"))
    if count > call_paths or 22 + 4 * count != len(raw):
        raise broken(
            f"{len(raw)} bytes for an index that counts {count} rows of {call_paths} call paths"
        )
    numbers = np.frombuffer(raw, order + "u4", count, 22).astype(np.int64)
    if count and (numbers[-1] >= call_paths or np.any(np.diff(numbers) <= 0)):
        raise broken("row numbers of the index are out of order")
    return Index(order, numbers)


class StoredRows(Protocol):
    """Stored rows as numbers.

    Attributes
    ----------
    numbers : int64 [stored rows], see `Index`
    columns : values per row
    missing : rows that the index names and the file does not hold; they read as zero
    """

    numbers: NDArray[np.int64]
    columns: int
    missing: int

    def read(self, first: int, stop: int, out: Block) -> None:
        """Fill `out`, contiguous, with stored rows, [stop - first x columns].

        64-bit counters are signed: one that ran below zero is a huge number otherwise.
        """
        ...


def open_rows(
    container: Container, index: Index, data: Member, dtype: np.dtype[np.generic], columns: int
) -> StoredRows:
    """Return the rows in `data`.

    Raises
    ------
    InputError
        If the member holds no rows.
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
        f"{container.path}: {data.name} at byte {data.offset}: not the data of a metric",
        hint=COPY_IT_AGAIN,
    )


class _Converter:
    """Turns stored bytes into numbers; doubles never leave the block they were read into."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._dtype = dtype
        self._in_place = dtype.kind == "f"
        self._buffer = np.empty(0, np.uint8)

    def bytes_for(self, out: Block) -> Bytes:
        """Return where to put the stored bytes of `out`."""
        if self._in_place:
            return out.reshape(-1).view(np.uint8)
        size = out.size * self._dtype.itemsize
        if len(self._buffer) < size:
            self._buffer = np.empty(size, np.uint8)
        return self._buffer[:size]

    def convert(self, raw: Bytes, out: Block) -> None:
        """Fill `out` with the numbers in `raw`, which `bytes_for` returned; of tuples the sums."""
        if not self._in_place:
            values = raw.view(self._dtype).reshape(out.shape)
            out[:] = values["sum"] if self._dtype.names else values
        elif not self._dtype.isnative:
            out.byteswap(inplace=True)


class RawRows:
    """Rows stored one after the other."""

    def __init__(
        self,
        container: Container,
        member: Member,
        index: Index,
        dtype: np.dtype[np.generic],
        columns: int,
    ) -> None:
        self.numbers = index.numbers
        self.columns = columns
        self._container = container
        self._start = member.offset + len(_RAW)
        self._converter = _Converter(dtype)
        self._row_bytes = columns * dtype.itemsize
        held = max(0, member.size - len(_RAW)) // self._row_bytes
        if held > len(self.numbers) and not container.resynchronised:
            raise InputError(
                f"{container.path}: {member.name} at byte {member.offset}: {held} rows, of which "
                f"the index names {len(self.numbers)}",
                hint=COPY_IT_AGAIN,
            )
        self._held = min(held, len(self.numbers))
        self.missing = len(self.numbers) - self._held

    def read(self, first: int, stop: int, out: Block) -> None:
        """Fill `out` with stored rows, [stop - first x columns]."""
        raw = self._converter.bytes_for(out)
        held = max(0, min(stop, self._held) - first) * self._row_bytes
        start = self._start + first * self._row_bytes
        got = self._container.read_into(start, raw[:held].data)
        raw[got:] = 0
        self._converter.convert(raw, out)


class ZippedRows:
    """Rows compressed one by one, found through a table of places."""

    def __init__(
        self,
        container: Container,
        member: Member,
        index: Index,
        dtype: np.dtype[np.generic],
        columns: int,
    ) -> None:
        self.numbers = index.numbers
        self.columns = columns
        self._container = container
        self._member = member
        self._converter = _Converter(dtype)
        self._row_bytes = columns * dtype.itemsize
        start, size = self._read_places(index.byte_order)
        self._start, self._size = start, size
        fits = (size > 0) & (start + size <= member.offset + member.size)
        self._held = fits & (start >= member.offset)
        # A size of zero is a row never written, not one lost.
        self.missing = int(np.count_nonzero(~self._held & (size > 0)))

    def _read_places(self, order: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
            raise self._broken(f"the data count {count} compressed rows")
        table = np.frombuffer(self._container.read(head + 8, 24 * count), order + "u8")
        places = table.reshape(-1, 3).astype(np.int64)
        row = places[:, 0] // self._row_bytes
        known = (places >= 0).all(axis=1) & (row < n) & (places[:, 0] % self._row_bytes == 0)
        start[row[known]] = head + 8 + 24 * count + places[known, 1]
        size[row[known]] = places[known, 2]
        return start, size

    def read(self, first: int, stop: int, out: Block) -> None:
        """Fill `out` with stored rows, [stop - first x columns]."""
        raw = self._converter.bytes_for(out)
        rows = raw.reshape(stop - first, -1)
        held = self._held[first:stop]
        rows[~held] = 0
        for k in held.nonzero()[0].tolist():
            rows[k] = self._unzipped(first + k)
        self._converter.convert(raw, out)

    def _unzipped(self, row: int) -> Bytes:
        packed = self._container.read(int(self._start[row]), int(self._size[row]))
        try:
            values = zlib.decompressobj().decompress(packed, self._row_bytes)
        except zlib.error as error:
            raise self._broken(f"row {row} is broken: {error}") from None
        if len(values) < self._row_bytes:
            raise self._broken(f"row {row} is too short")
        return np.frombuffer(values, np.uint8)

    def _broken(self, reason: str) -> InputError:
        return InputError(
            f"{self._container.path}: {self._member.name} at byte {self._member.offset}: {reason}",
            hint=COPY_IT_AGAIN,
        )


class InMemoryRows:
    """Rows in memory: those of Cube 3 files, whose values are text."""

    def __init__(self, numbers: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        self.numbers = numbers
        self.columns = values.shape[1]
        self.missing = 0
        self._values = values

    def read(self, first: int, stop: int, out: Block) -> None:
        """Fill `out` with stored rows, [stop - first x columns]."""
        out[:] = self._values[first:stop]


class ReorderedRows:
    """The rows of another store in another order."""

    def __init__(
        self, inner: StoredRows, places: NDArray[np.intp], numbers: NDArray[np.int64]
    ) -> None:
        self.numbers = numbers
        self.columns = inner.columns
        self.missing = inner.missing
        self._inner = inner
        self._places = places

    def read(self, first: int, stop: int, out: Block) -> None:
        """Fill `out` with rows, [stop - first x columns]."""
        places = self._places[first:stop]
        order = np.argsort(places)
        out[order] = take(self._inner, places[order])


def rows_of_block(columns: int) -> int:
    """Return how many rows make a block of about `BLOCK_BYTES`."""
    return max(1, BLOCK_BYTES // (8 * columns))


def bounds_of_blocks(rows: StoredRows) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block, and the one after its last."""
    step = rows_of_block(rows.columns)
    for first in range(0, len(rows.numbers), step):
        yield first, min(first + step, len(rows.numbers))


def blocks(rows: StoredRows) -> Iterator[tuple[int, int, Block]]:
    """Yield blocks with their bounds; each overwrites the one before."""
    # Fresh memory costs page faults, which take longer than reading does.
    buffer = np.empty((min(len(rows.numbers), rows_of_block(rows.columns)), rows.columns))
    for first, stop in bounds_of_blocks(rows):
        block = buffer[: stop - first]
        rows.read(first, stop, block)
        yield first, stop, block


def take(rows: StoredRows, places: NDArray[np.intp], out: Block | None = None) -> Block:
    """Return the stored rows at ascending `places`, [places x columns], in `out` if given.

    Neighbours are fetched in one go: a short gap costs less than another call.
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


def reordered(rows: StoredRows, order: NDArray[np.int64], wanted: NDArray[np.int64]) -> StoredRows:
    """Return `rows` in another order of the call paths.

    Parameters
    ----------
    order, wanted : [call paths], which call path each row number means, and shall mean
    """
    number = np.empty(len(wanted), np.int64)
    number[wanted] = np.arange(len(wanted))
    numbers = number[order[rows.numbers]]
    places = np.argsort(numbers)
    return ReorderedRows(rows, places, numbers[places])
