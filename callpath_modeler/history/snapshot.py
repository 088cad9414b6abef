"""The content of a SQLite database, read without a change to the disk.

SQLite needs space beside a database with a write-ahead log, even for a reader. A full or read-only
disk has none. This module reads both files, and applies the log as SQLite does. See 'WAL-mode file
format' in the documentation of SQLite.
"""

from __future__ import annotations

import struct
import time
from pathlib import Path

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682
"""Magic number of a log; with its last bit set, checksums are of numbers in big-endian order."""
_ATTEMPTS, _PAUSE = 20, 0.1
_LARGEST = 2**31
"""Largest size of both files, in bytes; a history is smaller."""
_VERSIONS = slice(18, 20)
_NO_LOG = b"\x01\x01"
"""Versions of the file format, of a database without a log."""
_PAGE_SIZE = slice(16, 18)


def database_content(path: Path) -> bytes:
    """Return the bytes of a database with its committed transactions, as one file without a log.

    Raises
    ------
    OSError
        If the files cannot be read, are too large, or other processes write all the time.
    """
    log = path.with_name(f"{path.name}-wal")
    for _ in range(_ATTEMPTS):
        before = _state(path), _state(log)
        if sum(each[1] for each in before if each) > _LARGEST:
            raise OSError(f"it is larger than {_LARGEST // 2**20} MB")
        try:
            frames = log.read_bytes()
        except FileNotFoundError:
            frames = b""
        content = bytearray(path.read_bytes())
        # A change within one tick of the clock of the file system shows in no state.
        time.sleep(_PAUSE / 10)
        if (_state(path), _state(log)) == before and _is_same(log, frames):
            return _applied(content, frames)
        time.sleep(_PAUSE)
    raise OSError("other processes write all the time")


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return file, size and time of the last change; None = there is no file."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _is_same(log: Path, frames: bytes) -> bool:
    try:
        return log.read_bytes() == frames
    except FileNotFoundError:
        return not frames


def _applied(content: bytearray, log: bytes) -> bytes:
    """Return a database with the committed pages of its log."""
    pages, count, size = _committed(log, len(content))
    if content and size != _page_size(content):
        pages, count = {}, 0
    for number, page in pages.items():
        end = number * size
        if end > len(content):
            content.extend(bytes(end - len(content)))
        content[end - size : end] = page
    if count:
        del content[count * size :]
    if len(content) > _VERSIONS.stop:
        content[_VERSIONS] = _NO_LOG
    return bytes(content)


def _page_size(content: bytes | bytearray) -> int:
    stored = int.from_bytes(content[_PAGE_SIZE], "big")
    return 65_536 if stored == 1 else stored


def _committed(log: bytes, length: int) -> tuple[dict[int, bytes], int, int]:
    """Return the pages of committed transactions, the number of all pages, and their size.

    Parameters
    ----------
    log : content of the log
    length : size of the database without the log, in bytes
    """
    if len(log) < _HEADER.size:
        return {}, 0, 0
    magic, _, size, _, *salt, first, second = _HEADER.unpack_from(log)
    is_valid = magic & ~1 == _MAGIC and 512 <= size <= 65_536 and not size & (size - 1)
    order = ">" if magic & 1 else "<"
    known = _checksum(order, log[: _HEADER.size - 8], (0, 0))
    if not is_valid or known != (first, second):
        return {}, 0, 0
    pages: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    count = 0
    # A database grows by pages that are all in the log.
    most = (len(log) + length) // size
    for begin in range(_HEADER.size, len(log) - _FRAME.size - size + 1, _FRAME.size + size):
        number, committed, *own_salt, first, second = _FRAME.unpack_from(log, begin)
        page = log[begin + _FRAME.size : begin + _FRAME.size + size]
        known = _checksum(order, log[begin : begin + 8] + page, known)
        if own_salt != salt or known != (first, second) or not (0 < number <= most >= committed):
            break
        pending[number] = page
        if committed:
            pages |= pending
            pending, count = {}, committed
    return pages, count, size


def _checksum(order: str, content: bytes, start: tuple[int, int]) -> tuple[int, int]:
    """Return the checksum of a log, continued from `start`."""
    one, two = start
    numbers = struct.unpack(f"{order}{len(content) // 4}I", content)
    for even, odd in zip(numbers[::2], numbers[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two
