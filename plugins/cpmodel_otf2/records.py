"""Checks of the files of a trace before libotf2 reads them.

After a damaged record, libotf2 goes on behind the end of the file, in memory that may still hold
another file. Then a damaged trace gets the answer of the other one.
"""

from __future__ import annotations

import mmap
from pathlib import Path

_ORDERS = {ord("B"): "little", ord("#"): "big"}
_HEADER = 3
"""First byte of every block. The second one is the byte order."""
_HEADER_SIZE = 18
_END_OF_BLOCK, _END_OF_FILE, _END_OF_BUFFER = 0, 1, 2
"""Types of records without a length. An uncompressed file ends with `_END_OF_FILE`."""
_FIRST_DEFINITION = 5
_LONG = 255
"""Length that means that eight more bytes hold the length."""
_CUT_OFF = "the file is cut off"


def cut_off(path: Path) -> str | None:
    """Return that the end of an uncompressed file is missing; None = it is there.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        return None if file.read(1) == bytes([_END_OF_FILE]) else _CUT_OFF


def damage_of(path: Path, block: int) -> str | None:
    """Return what is wrong with the records of an uncompressed file; None = nothing.

    Parameters
    ----------
    path : file of definitions
    block : size of a block in bytes; every block begins at a multiple of it

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return _CUT_OFF
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            try:
                return _damage(content, block)
            except IndexError:
                return _CUT_OFF


def _damage(content: mmap.mmap, block: int) -> str | None:
    start, last = 0, len(content) - 1
    while True:
        if content[start] != _HEADER or content[start + 1] not in _ORDERS:
            return f"no block begins at byte {start}"
        order, at = _ORDERS[content[start + 1]], start + _HEADER_SIZE
        while (kind := content[at]) >= _FIRST_DEFINITION:
            length, at = content[at + 1], at + 2
            if length == _LONG:
                length = int.from_bytes(content[at : at + 8], order)  # type: ignore[arg-type]
                at += 8
            at += length
        if kind == _END_OF_BUFFER:
            kind, at = content[at + 1], at + 1
        if kind == _END_OF_FILE and at == last:
            return None
        start += block
        # The rest of a block is empty.
        if kind != _END_OF_BLOCK or not at < start <= last or content[at:start].strip(b"\0"):
            return f"no record begins at byte {at}"
