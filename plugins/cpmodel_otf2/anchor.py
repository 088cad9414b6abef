"""What the anchor of a trace announces, checked before the library believes it.

The library makes room for as many properties as the anchor says, one by one: a billion of them in
a file of 72 bytes takes it a quarter of a minute and all memory.
"""

from __future__ import annotations

import struct
from pathlib import Path

from callpath_modeler.errors import InputError

MAGIC = b"BOTF2", b"#OTF2"
"""What follows the first byte of an anchor, by order of bytes: little, big."""

COPY_IT_AGAIN = "copy the trace again with all its files, or measure again"

_TEXTS = 46
"""Where texts begin: behind versions, sizes of blocks, and numbers of locations and definitions."""
_FEW_TEXTS = 3
_SMALLEST_PROPERTY = 2
"""Bytes of a property: the ends of its name and of its value."""
_LARGEST = 16 << 20
"""Bytes; anchors hold a few hundred."""


def check_anchor(path: Path) -> None:
    """Refuse an anchor that is none, or that announces more properties than it has room for.

    Raises
    ------
    InputError
        If it cannot be read or is damaged.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", hint="check the file") from None
    if content[1:6] not in MAGIC:
        raise InputError(
            f"{path}: not the anchor of an OTF2 trace", hint="give the traces.otf2 of the run"
        )
    at = _TEXTS
    for _ in range(_FEW_TEXTS):
        at = content.find(b"\0", at) + 1
        if not at:
            raise InputError(f"{path}: cut short", hint=COPY_IT_AGAIN)
    room = (min(len(content), _LARGEST) - at - 4) // _SMALLEST_PROPERTY
    if room < 0:
        raise InputError(f"{path}: cut short", hint=COPY_IT_AGAIN)
    order = "<" if content[1:6] == MAGIC[0] else ">"
    (properties,) = struct.unpack_from(f"{order}I", content, at)
    if properties > room:
        raise InputError(
            f"{path}: announces {properties} properties and has room for {room}",
            hint=COPY_IT_AGAIN,
        )
