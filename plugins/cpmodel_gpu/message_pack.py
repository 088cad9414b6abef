"""MessagePack as nested lists, for files of unknown origin.

A header of four bytes states the length of an array of any size. So an array is made entry by
entry, and the memory is proportional to the bytes of the file. Arrays inside each other take no
recursion.
"""

from __future__ import annotations

import struct

from callpath_modeler.errors import MalformedError

_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC4: 1, 0xC5: 2, 0xC6: 4}
_ARRAYS = {0xDC: 2, 0xDD: 4}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def unpacked(content: bytes) -> object:
    """Return the first object of MessagePack: numbers, texts, and lists of them.

    Raises
    ------
    MalformedError
        If the object is not complete, or has a map or an extension.
    """
    place = 0
    result: list[object] = []
    # Lists that are not complete, and how many entries they lack.
    open_: list[tuple[list[object], int]] = []
    current, missing = result, 1
    while True:
        while not missing:
            if not open_:
                return result[0]
            current, missing = open_.pop()
        missing -= 1
        try:
            value, place, length = _value(content, place)
        except (IndexError, struct.error):
            raise MalformedError("the file ends too early") from None
        current.append(value)
        if isinstance(value, list):
            open_.append((current, missing))
            current, missing = value, length


def _value(content: bytes, place: int) -> tuple[object, int, int]:
    """Return the value at a place, the next place, and the length of a list."""
    kind = content[place]
    place += 1
    if kind < 0x80 or kind >= 0xE0:
        return kind if kind < 0x80 else kind - 0x100, place, 0
    if kind in _NUMBERS:
        form = _NUMBERS[kind]
        return struct.unpack_from(form, content, place)[0], place + struct.calcsize(form), 0
    if kind in _CONSTANTS:
        return _CONSTANTS[kind], place, 0
    length = kind & (0x0F if kind < 0xA0 else 0x1F)
    size = _TEXTS.get(kind, _ARRAYS.get(kind, 0))
    if size:
        length, place = _length(content, place, size)
    if 0xA0 <= kind < 0xC0 or kind in _TEXTS:
        return (*_text(content, place, length), 0)
    if 0x90 <= kind < 0xA0 or kind in _ARRAYS:
        return [], place, length
    raise MalformedError(f"at byte {place - 1}: a map or an extension, which has no meaning here")


def _length(content: bytes, place: int, size: int) -> tuple[int, int]:
    if place + size > len(content):
        raise IndexError
    return int.from_bytes(content[place : place + size], "big"), place + size


def _text(content: bytes, place: int, length: int) -> tuple[str, int]:
    if place + length > len(content):
        raise IndexError
    return content[place : place + length].decode("utf-8", "replace"), place + length
