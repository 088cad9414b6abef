"""Limits for what a file may make cpmodel compute, unpack and allocate.

A count of rows times a count of columns, or the rounds of a loop, costs more than the bytes that
state it. So each reader compares such a product with a limit before it makes anything of it. Every
limit has a floor, which files of all sizes may reach, and then grows with the file. Together they
keep each file within 2 s of processor time per begun 100 KiB, and within 512 MB of memory or, for
files larger than 8 MiB, 40 bytes for each byte.

A packed file of a few megabytes can unpack to terabytes, and one line of text can fill the memory.
All readers unpack data with this module, so one limit applies to all of them.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import zlib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from msgspec import Struct

from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.printable import shortened

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


VARIABLE = "CPMODEL_COST_FACTOR"
"""Environment variable for a factor of all limits."""

_LARGEST_FACTOR = 1e6


class Work(Enum):
    """Kinds of work: what is counted, the floor of its limit, and its growth per byte."""

    CELLS = "values in a table of call paths, runs or processes, and metrics", 4_000_000, 1.0
    RUNS = "runs", 8_000, 0.1
    TITLES = "columns", 3_000, 0.03
    METRICS = "metrics", 3_000, 0.03
    COLUMNS = "pairs of a run and a metric", 60_000, 1.0
    TABLE = "cells of rows and columns", 400_000, 3.0
    NAMES = "names in call paths", 1_000_000, 3.0
    TEXT_LINES = "lines of text", 800_000, 10.0
    ELEMENTS = "elements of XML", 250_000, 3.0
    OPERATIONS = "operations in loops", 120_000, 1.2
    MESSAGES = "messages of collective operations", 8_000_000, 80.0
    LINES = "visits of lines by ranks", 300_000, 4.0
    EVALUATIONS = "evaluations of expectations", 300, 0.003
    UNPACKED = "unpacked bytes", 48 << 20, 12.0
    MEMORY = "bytes of memory", 256 << 20, 32.0

    def __init__(self, words: str, floor: int, growth: float) -> None:
        self.words, self.floor, self.growth = words, floor, growth


class InputLimits(Struct, frozen=True):
    """The limits for one file.

    Attributes
    ----------
    path : the file, for messages
    size : its size in bytes
    factor : factor of all limits; infinity = no limits, for data that are no file
    """

    path: Path
    size: int
    factor: float = 1.0

    @classmethod
    def of(cls, path: Path, size: int | None = None) -> InputLimits:
        """Return the limits for a file; `size` replaces the size on disk.

        Raises
        ------
        UsageError
            If the environment variable is not a factor.
        """
        if size is None:
            try:
                size = path.stat().st_size
            except OSError:
                size = 0
        return cls(path, size, _factor())

    def most(self, work: Work) -> float:
        """Return the limit for a kind of work."""
        return self.factor * max(work.floor, work.growth * self.size)

    def check(self, work: Work, count: float, hint: str) -> None:
        """Raise an error if there is more work than the file may cause.

        Parameters
        ----------
        count : the work
        hint : what the author of the file can do

        Raises
        ------
        InputError
            If `count` exceeds the limit.
        """
        if count > self.most(work):
            raise InputError(
                f"{self.path}: {count:,.0f} {work.words} are too many for its {self.size:,} bytes; "
                f"{self.most(work):,.0f} are possible",
                hint=f"{hint}; if you trust the file, set {VARIABLE} to "
                f"{math.ceil(self.factor * count / self.most(work))}",
            )


UNLIMITED = InputLimits(Path(), 0, math.inf)
"""No limits, for data of the caller that come from no file."""


def _factor() -> float:
    given = os.environ.get(VARIABLE)
    if not given:
        return 1.0
    if not (given.isascii() and given.isdecimal() and 1 <= float(given) <= _LARGEST_FACTOR):
        raise UsageError(
            f"{VARIABLE}: not a factor from 1 to {_LARGEST_FACTOR:,.0f}: {shortened(given)!r}",
            hint="e.g. 10",
        )
    return float(given)


GZIP = b"\x1f\x8b"
"""First bytes of gzip files."""

UNPACKING_VARIABLE = "CPMODEL_UNPACK_LIMIT"
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
                hint=f"if you trust the file, set {UNPACKING_VARIABLE} to a larger number of bytes",
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
                hint=f"unpack it yourself, or set {UNPACKING_VARIABLE} to a larger number of bytes",
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
    given = os.environ.get(UNPACKING_VARIABLE)
    if given:
        if not (given.isascii() and given.isdecimal() and len(given) <= 18):
            raise UsageError(
                f"{UNPACKING_VARIABLE}: not a number of bytes: {shortened(given)!r}",
                hint="e.g. 8000000000",
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


def first_block(path: Path, size: int = 4096, *, unpack: bool = False) -> bytes:
    """Return the first block of a file; b"" if it is empty, no file, or cannot be read.

    Parameters
    ----------
    size : maximum number of bytes
    unpack : whether the content of files of gzip is returned
    """
    try:
        # Opening a pipe would block until another process opens its other end.
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            block = file.read(size)
        if unpack and block.startswith(GZIP):
            block = zlib.decompressobj(wbits=31).decompress(block, size)
    except (OSError, zlib.error):
        return b""
    return block


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


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def memory_of_json(text: str) -> int:
    """Return an upper estimate of the memory of the values of a JSON text, in bytes."""
    objects, lists = text.count("{"), text.count("[")
    return 240 * objects + 64 * lists + 30 * text.count('"') + 40 * text.count(",")


def json_value(text: str) -> object:
    """Return the value of a JSON text; NaN and infinity are numbers.

    Raises
    ------
    json.JSONDecodeError
        If the text is not JSON.
    ValueError
        If a number has thousands of digits, or if a string contains a lone surrogate.
    RecursionError
        If lists and objects are nested too deeply.
    """
    value = json.loads(text)
    # A text with a lone surrogate cannot be written as UTF-8.
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as cause:
            half = f"{ord(cause.object[cause.start]):04x}"
            raise ValueError(f"\\u{half} is a lone surrogate") from None
    return value
