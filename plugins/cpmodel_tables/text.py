"""The text of a file: compressed or not, with or without a byte order mark."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from callpath_modeler.errors import InputError
from callpath_modeler.readers.json_text import json_value, memory_of_json
from callpath_modeler.readers.unpacking import (
    GZIP,
    BoundedStream,
    budget_of,
    packed_budget,
    unpacked_pieces,
)

COPY_IT_AGAIN = "copy it again, or export it anew"

_BLOCK = 1 << 16
_AT_ONCE = 1 << 20
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
        if block.startswith(GZIP):
            block = zlib.decompressobj(wbits=31).decompress(block, _BLOCK)
    except (OSError, zlib.error):
        return ""
    text = block.decode(_encoding(block), errors="ignore")
    return "" if "\0" in text else text


def holds(path: Path, sign: re.Pattern[str], longest: int = 256) -> bool:
    """Tell whether a sign stands anywhere in the text of a file; False if it cannot be read.

    Parameters
    ----------
    longest : most characters of the sign
    """
    rest = ""
    try:
        with opened_text(path, newline="") as text:
            while some := text.read(_AT_ONCE):
                if sign.search(rest + some):
                    return True
                rest = some[-longest:]
    except (InputError, UnicodeDecodeError):
        return False
    return False


@contextmanager
def opened_text(path: Path, newline: str | None) -> Iterator[TextIO]:
    """Open the text of a file, to be read line by line.

    Parameters
    ----------
    newline : of `io.TextIOWrapper`

    Raises
    ------
    InputError
        If it cannot be read, or is no text, be it further on.
    """
    try:
        with path.open("rb") as file:
            stream: BinaryIO = file
            budget = None
            if file.peek(2).startswith(GZIP):
                stream = cast("BinaryIO", gzip.GzipFile(fileobj=file))
                budget = budget_of(path)
            bounded = io.BufferedReader(BoundedStream(stream, path, budget), _BLOCK)
            encoding = _encoding(bounded.peek(3))
            with io.TextIOWrapper(bounded, encoding, newline=newline) as text:
                yield text
    except UnicodeDecodeError:
        # This counts from the beginning of the file, not of a block.
        whole_text(path)
        raise
    except (OSError, EOFError, zlib.error) as cause:
        raise _unreadable(path, cause) from cause


def whole_text(path: Path, *, is_json: bool = False) -> str:
    """Return the text of a file.

    Parameters
    ----------
    is_json : whether the text is going to be read as JSON, as a whole

    Raises
    ------
    InputError
        If it cannot be read, or is no text, or is packed and holds more than fits into memory.
    """
    content = whole_content(path)
    try:
        text = content.decode(_encoding(content))
    except UnicodeDecodeError as cause:
        raise InputError(
            f"{path}: no text: byte {cause.start} is not in {cause.encoding}",
            hint="save it as UTF-8",
        ) from cause
    budget = packed_budget(path) if is_json else None
    if budget is not None:
        budget.check_memory(memory_of_json(text))
    return text


def whole_content(path: Path) -> bytes:
    """Return the content of a file, uncompressed.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            if not file.peek(2).startswith(GZIP):
                return file.read()
            return b"".join(unpacked_pieces(file, budget_of(path, in_memory=True)))
    except (OSError, EOFError, zlib.error) as cause:
        raise _unreadable(path, cause) from cause


def _unreadable(path: Path, cause: Exception) -> InputError:
    what = getattr(cause, "strerror", None) or cause
    return InputError(f"{path}: cannot be read: {what}", hint=COPY_IT_AGAIN)


def json_of(path: Path, text: str, line: int = 0) -> object:
    """Return what is written in JSON, of a whole file or of one `line` of it.

    Raises
    ------
    InputError
        If it is no JSON.
    """
    try:
        # Not msgspec, which takes no NaN.
        return json_value(text)
    except json.JSONDecodeError as cause:
        what = f"not JSON: {cause.msg} in column {cause.colno}"
        line, hint = line or cause.lineno, COPY_IT_AGAIN
    except RecursionError:
        what, hint = "JSON nested too deeply", "write a table or folded stacks instead"
    except ValueError as cause:
        what, hint = f"not JSON: {cause}", COPY_IT_AGAIN
    where = f"line {line}: " if line else ""
    raise InputError(f"{path}: {where}{what}", hint=hint)


def _encoding(content: bytes) -> str:
    return next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
