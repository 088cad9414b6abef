"""Text of files: compressed or not, with or without a byte order mark."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from callpath_modeler.errors import InputError, reading
from callpath_modeler.support.input_limits import (
    GZIP,
    BoundedStream,
    InputLimits,
    Work,
    budget_of,
    first_block,
    json_value,
    memory_of_json,
    packed_budget,
    unpacked_pieces,
)

COPY_IT_AGAIN = "copy or export the file again"

_BLOCK = 1 << 16
_AT_ONCE = 1 << 20
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def first_content(path: Path) -> bytes:
    """Return the first block of a file, unpacked; b"" if it cannot be read."""
    return first_block(path, _BLOCK, unpack=True)


def first_text(path: Path) -> str:
    """Return the text of the first block of a file; "" if the block is not text."""
    return text_of(first_content(path))


def text_of(block: bytes) -> str:
    """Return the text of the first block of a file; "" if the block is not text."""
    text = block.decode(_encoding(block), errors="ignore")
    return "" if "\0" in text else text


def holds(path: Path, sign: re.Pattern[str], longest: int = 256) -> bool:
    """Return whether a pattern occurs in the text of a file; False if the file cannot be read.

    Parameters
    ----------
    longest : maximum length of a match in characters
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
    """Open the text of a file for reading line by line.

    Parameters
    ----------
    newline : as for `io.TextIOWrapper`

    Raises
    ------
    InputError
        If the file cannot be read, or any part of it is not text.
    """
    try:
        with reading(path, COPY_IT_AGAIN), path.open("rb") as file:
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
        # This error states the position in the file, not in a block.
        whole_text(path)
        raise


@contextmanager
def opened_lines(path: Path) -> Iterator[Iterator[str]]:
    """Open the text of a file, as `opened_text` does, for readers that take time for each line.

    Raises
    ------
    InputError
        As by `opened_text`, and by the iterator if a packed file has too many lines for its size.
    """
    with opened_text(path, newline=None) as text:
        yield _limited(text, InputLimits.of(path))


def _limited(text: Iterator[str], limits: InputLimits) -> Iterator[str]:
    most = limits.most(Work.TEXT_LINES)
    for number, line in enumerate(text, 1):
        if number > most:
            limits.check(Work.TEXT_LINES, number, "unpack it yourself")
        yield line


def whole_text(path: Path, *, is_json: bool = False) -> str:
    """Return the text of a file.

    Parameters
    ----------
    is_json : whether the whole text will be decoded as JSON

    Raises
    ------
    InputError
        If the file cannot be read, is not text, or does not fit into memory when it is unpacked.
    """
    content = whole_content(path)
    try:
        text = content.decode(_encoding(content))
    except UnicodeDecodeError as cause:
        raise InputError(
            f"{path}: not a text file: byte {cause.start} is not valid {cause.encoding}",
            hint="save it as UTF-8",
        ) from cause
    budget = packed_budget(path) if is_json else None
    if budget is not None:
        budget.check_memory(memory_of_json(text))
    return text


def whole_content(path: Path) -> bytes:
    """Return the uncompressed content of a file.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    with reading(path, COPY_IT_AGAIN), path.open("rb") as file:
        if not file.peek(2).startswith(GZIP):
            return file.read()
        return b"".join(unpacked_pieces(file, budget_of(path, in_memory=True)))


def json_of(path: Path, text: str, line: int = 0) -> object:
    """Return the value of JSON text: a whole file, or one `line` of it.

    Raises
    ------
    InputError
        If the text is not JSON.
    """
    try:
        # msgspec would reject NaN.
        return json_value(text)
    except json.JSONDecodeError as cause:
        what = f"not JSON: {cause.msg} in column {cause.colno}"
        line, hint = line or cause.lineno, COPY_IT_AGAIN
    except RecursionError:
        what, hint = "the JSON is nested too deeply", "write a table or folded stacks instead"
    except ValueError as cause:
        what, hint = f"not JSON: {cause}", COPY_IT_AGAIN
    where = f"line {line}: " if line else ""
    raise InputError(f"{path}: {where}{what}", hint=hint)


def _encoding(content: bytes) -> str:
    return next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")
