"""Archives of Cube 4 files: members of a tar archive with the values of metrics."""

from __future__ import annotations

import struct
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from callpath_modeler.arrays import IntArray

INDEX, RAW_DATA = b"CUBEX.INDEX", b"CUBEX.DATA"
"""First bytes of members with row numbers, and of members with uncompressed rows."""

RECORD = 512
"""Bytes of a record of a tar archive."""

_SPARSE = 1


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an archive.

    Attributes
    ----------
    name : name in the archive
    size : number of bytes
    pieces : the bytes, in order; iterated once
    """

    name: str
    size: int
    pieces: Iterable[bytes]


def archive(members: Iterable[Member]) -> Iterator[bytes]:
    """Yield the bytes of an archive, which are the same for the same members.

    Cube adds a whole record after a member whose size is a multiple of `RECORD`. Programs that
    expect plain tar then see the end of the archive, so such a member must not occur.

    Raises
    ------
    ValueError
        If the size of a member is a multiple of `RECORD`, or differs from that of its pieces.
    """
    for member in members:
        if member.size % RECORD == 0:
            raise ValueError(f"{member.name}: programs disagree on the padding of {member.size} B")
        yield header(member.name, member.size)
        written = 0
        for piece in member.pieces:
            written += len(piece)
            yield piece
        if written != member.size:
            raise ValueError(f"{member.name}: {written} B instead of {member.size} B")
        yield bytes(-member.size % RECORD)
    yield bytes(2 * RECORD)


def header(name: str, size: int) -> bytes:
    """Return the header of a member."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry.tobuf(tarfile.PAX_FORMAT)


def index_member(number: int, rows: IntArray) -> Member:
    """Return the sparse index of metric `number`, which stores the given rows, ascending."""
    head = INDEX + struct.pack("<IHBI", 1, 0, _SPARSE, len(rows))
    content = head + rows.astype("<u4").tobytes()
    return Member(f"{number}.index", len(content), [content])


def data_member(number: int, rows: int, row_bytes: int, blocks: Iterable[bytes]) -> Member:
    """Return the uncompressed values of metric `number`.

    Parameters
    ----------
    rows : number of rows
    row_bytes : bytes of a row: those of one value times the number of locations
    blocks : the values, row by row
    """

    def pieces() -> Iterator[bytes]:
        yield RAW_DATA
        yield from blocks

    return Member(f"{number}.data", len(RAW_DATA) + rows * row_bytes, pieces())


def anchor_member(text: bytes) -> Member:
    """Return the member with the definitions, which is the last one."""
    content = text + b"\n" * (len(text) % RECORD == 0)
    return Member("anchor.xml", len(content), [content])
