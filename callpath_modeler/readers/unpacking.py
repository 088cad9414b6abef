"""Limits for unpacked data, and streams that enforce them.

A packed file of a few megabytes can unpack to terabytes, and one line of text can fill the memory.
All readers unpack data with this module, so one limit applies to all of them.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from msgspec import Struct

from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.printable import shortened

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

GZIP = b"\x1f\x8b"
"""First bytes of gzip files."""

VARIABLE = "CPMODEL_UNPACK_LIMIT"
"""Environment variable for the largest size, in bytes, to which a file may unpack."""

_ALWAYS, _ALWAYS_IN_MEMORY = 16 * 2**20, 64 * 2**20
"""Bytes to which every packed file may unpack: read line by line, and as a whole."""
_RATIO = 150
"""Largest ratio of unpacked to packed size; tables as text reach 50 to 100."""
_ON_DISK = 16 * 2**30
_IN_MEMORY = 192 * 2**20
"""Bytes to which a file may unpack in memory; a character may need four bytes."""
_RATIO_IN_MEMORY = 4
_MEMORY = 256 * 2**20
"""Bytes of objects from unpacked data, in addition to the interpreter.

Numbers and short texts need ten times the memory of their text. The limit keeps the process below
512 MB.
"""
_MEMORY_RATIO = 32
"""Largest ratio of the memory of objects to the packed size."""
_LONGEST_LINE = 8 * 2**20
_MOST_BLANK = 4 * 2**20
_PIECE = 2**16


class Budget(Struct, frozen=True):
    """The limits for unpacking one file.

    Attributes
    ----------
    path : the packed file, for messages
    limit : maximum unpacked size in bytes
    memory : maximum size of objects from the data in bytes
    """

    path: Path
    limit: int
    memory: int

    def check(self, size: int) -> None:
        """Raise an error if an unpacked size exceeds the limit.

        Raises
        ------
        InputError
            If `size`, in bytes, exceeds the limit.
        """
        if size > self.limit:
            raise InputError(
                f"{self.path}: unpacks to more than {self.limit >> 20} MiB, which is too much "
                "for its size",
                hint=f"if you trust the file, set {VARIABLE} to a larger number of bytes",
            )

    def check_memory(self, size: int) -> None:
        """Raise an error if objects exceed the memory limit.

        Raises
        ------
        InputError
            If `size`, in bytes, exceeds the limit.
        """
        if size > self.memory:
            raise InputError(
                f"{self.path}: takes more than {self.memory >> 20} MiB of memory, which is too "
                "much for its size",
                hint=f"unpack it yourself, or set {VARIABLE} to a larger number of bytes",
            )


def budget_of(path: Path, *, in_memory: bool = False) -> Budget:
    """Return the limits for a packed file.

    Parameters
    ----------
    path : the packed file
    in_memory : True if the unpacked data are in memory as a whole

    Raises
    ------
    UsageError
        If the environment variable is not a number.
    """
    given = os.environ.get(VARIABLE)
    if given:
        if not (given.isascii() and given.isdecimal() and len(given) <= 18):
            raise UsageError(
                f"{VARIABLE}: not a number of bytes: {shortened(given)!r}", hint="e.g. 8000000000"
            )
        return Budget(path, int(given), _MEMORY_RATIO * int(given))
    try:
        size = path.stat().st_size
    except OSError:
        size = 0
    if in_memory:
        limit = min(_IN_MEMORY, max(_ALWAYS_IN_MEMORY, _RATIO_IN_MEMORY * size))
    else:
        limit = min(_ON_DISK, max(_ALWAYS, _RATIO * size))
    return Budget(path, limit, max(_MEMORY, _MEMORY_RATIO * size))


def packed_budget(path: Path) -> Budget | None:
    """Return the limits for a file that is packed with gzip; None for any other file.

    Raises
    ------
    UsageError
        As in `budget_of`.
    """
    try:
        with path.open("rb") as file:
            is_packed = file.read(2) == GZIP
    except OSError:
        return None
    return budget_of(path) if is_packed else None


def unpacked_pieces(stream: BinaryIO, budget: Budget) -> Iterator[bytes]:
    """Yield the unpacked data of a gzip stream, piece by piece.

    Raises
    ------
    InputError
        If the data exceed the limit.
    EOFError, zlib.error, OSError
        If the stream is damaged.
    """
    size = 0
    with gzip.GzipFile(fileobj=stream) as packed:
        while piece := packed.read(_PIECE):
            size += len(piece)
            budget.check(size)
            yield piece


class BoundedStream(io.RawIOBase):
    """A binary stream of text with limits for size, lines and blank lines.

    Parameters
    ----------
    stream : the stream to read from
    path : the file, for messages
    budget : limits for unpacked data; None = the file is not packed
    """

    def __init__(self, stream: BinaryIO, path: Path, budget: Budget | None) -> None:
        self._stream, self._path, self._budget = stream, path, budget
        self._size = self._line = self._blank = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        """Read data into `target`, and return the number of bytes.

        Raises
        ------
        InputError
            If the data exceed the limit, if a line is longer than 8 MiB, or if more than 4 MiB of
            blank lines follow each other.
        """
        # Small pieces keep a gzip stream from filling the whole target at once.
        piece = self._stream.read(min(_PIECE, len(cast("bytes", target))))
        cast("bytearray", target)[: len(piece)] = piece
        self._size += len(piece)
        if self._budget is not None:
            self._budget.check(self._size)
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        self._line = self._line + len(piece) if end < 0 else len(piece) - end
        self._blank = 0 if piece.strip() else self._blank + len(piece)
        if self._line > _LONGEST_LINE:
            raise InputError(
                f"{self._path}: a line is longer than {_LONGEST_LINE >> 20} MiB, "
                "so this is not a table",
                hint="write one row per line",
            )
        if self._blank > _MOST_BLANK:
            raise InputError(
                f"{self._path}: more than {_MOST_BLANK >> 20} MiB of blank lines follow each other",
                hint="remove the blank lines",
            )
        return len(piece)
