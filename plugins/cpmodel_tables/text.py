"""The text of a file: compressed or not, with or without a byte order mark."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from callpath_modeler.errors import InputError

_BLOCK = 1 << 16
_GZIP = b"\x1f\x8b"
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def first_text(path: Path) -> str:
    """Return the text of the first block of a file; "" if it is none."""
    try:
        with path.open("rb") as file:
            block = file.read(_BLOCK)
        if block.startswith(_GZIP):
            block = zlib.decompressobj(wbits=31).decompress(block, _BLOCK)
    except (OSError, zlib.error):
        return ""
    text = block.decode(_encoding(block), errors="ignore")
    return "" if "\0" in text else text


def whole_text(path: Path) -> str:
    """Return the text of a file.

    Raises
    ------
    InputError
        If it cannot be read, or is no text.
    """
    content = whole_content(path)
    try:
        return content.decode(_encoding(content))
    except UnicodeDecodeError as cause:
        raise InputError(
            f"{path}: no text: byte {cause.start} is not in {cause.encoding}",
            hint="save it as UTF-8",
        ) from cause


def whole_content(path: Path) -> bytes:
    """Return the content of a file, uncompressed.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP) else content
    except (OSError, EOFError, zlib.error) as cause:
        what = getattr(cause, "strerror", None) or cause
        raise InputError(f"{path}: cannot be read: {what}", hint="copy it again") from cause


def _encoding(content: bytes) -> str:
    return next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
