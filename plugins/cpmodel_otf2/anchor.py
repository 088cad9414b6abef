"""Checks of the anchor of a trace before libotf2 reads it.

libotf2 allocates memory for as many properties as the anchor declares, one by one. For a file of 72
bytes that declares a billion properties, this takes 15 seconds and all memory.
"""

from __future__ import annotations

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
