"""Checks of the files of a trace before libotf2 reads them: its anchor, and its records."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from callpath_modeler.errors import InputError

MAGIC = b"BOTF2", b"#OTF2"
"""Signature after the first byte of an anchor: little endian, big endian."""

COPY_IT_AGAIN = "copy the trace again with all its files, or repeat the run"

_TEXTS = 46
"""Position of the texts: after versions, block sizes, and numbers of locations and definitions."""
_FEW_TEXTS = 3
_SMALLEST_PROPERTY = 2
"""Minimum size of a property in bytes: the terminators of its name and its value."""
_LARGEST = 16 << 20
"""Maximum size of an anchor in bytes. Real anchors have a few hundred bytes."""


def check_anchor(path: Path) -> None:
    """Raise an error if a file is not an anchor, or declares more properties than it has room for.

    Raises
    ------
    InputError
        If the file cannot be read or is damaged.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", hint="check the file") from None
    if content[1:6] not in MAGIC:
        raise InputError(
            f"{path}: this is not the anchor of an OTF2 trace",
            hint="give the traces.otf2 of the run",
        )
    at = _TEXTS
    for _ in range(_FEW_TEXTS):
        at = content.find(b"\0", at) + 1
        if not at:
            raise InputError(f"{path}: the file is cut off", hint=COPY_IT_AGAIN)
    room = (min(len(content), _LARGEST) - at - 4) // _SMALLEST_PROPERTY
    if room < 0:
        raise InputError(f"{path}: the file is cut off", hint=COPY_IT_AGAIN)
    order = "<" if content[1:6] == MAGIC[0] else ">"
    (properties,) = struct.unpack_from(f"{order}I", content, at)
    if properties > room:
        raise InputError(
            f"{path}: the anchor declares {properties} properties, but has room for {room}",
            hint=COPY_IT_AGAIN,
        )


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
