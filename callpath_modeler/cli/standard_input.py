"""Standard input as a file of measurements."""

from __future__ import annotations

import atexit
import secrets
import shutil
import string
import sys
import tempfile
import zlib
from pathlib import Path

from callpath_modeler.errors import InputError, UsageError, reason_of

_LETTERS = 16
_AT_ONCE = 1 << 20
_GZIP = b"\x1f\x8b"


def stored() -> Path:
    """Write standard input to a file, which is deleted at the end of the process.

    Its folder has a name of letters only, because numbers in names are taken for parameters.

    Raises
    ------
    UsageError
        If standard input is a terminal.
    InputError
        If it is empty.
    """
    if sys.stdin.isatty():
        raise UsageError("-: standard input is a terminal", hint="e.g. cpmodel rank - < runs.csv")
    name = "".join(secrets.choice(string.ascii_lowercase) for _ in range(_LETTERS))
    folder = Path(tempfile.gettempdir()) / f"cpmodel-{name}"
    folder.mkdir(mode=0o700)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        first = sys.stdin.buffer.read(_AT_ONCE)
    except OSError as cause:
        what = f"-: standard input cannot be read: {reason_of(cause)}"
        raise InputError(what, hint="e.g. cpmodel rank - < runs.csv") from cause
    if not first.strip():
        raise InputError("-: standard input is empty", hint="e.g. cpmodel rank - < runs.csv")
    try:
        path = folder / f"standard-input{_ending(first)}"
    except zlib.error as cause:
        raise InputError("-: standard input is damaged gzip", hint="pack it again") from cause
    with path.open("wb") as file:
        file.write(first)
        shutil.copyfileobj(sys.stdin.buffer, file, _AT_ONCE)
    return path


def _ending(content: bytes) -> str:
    """Return the ending of a file with a content; text has many formats, which readers tell."""
    if content.startswith(_GZIP):
        unpacked = zlib.decompressobj(wbits=31).decompress(content, _AT_ONCE)
        return f"{_ending(unpacked)}.gz" if not unpacked.startswith(_GZIP) else ".gz"
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        return ".json"
    if start.startswith(b"{"):
        # Each line of JSON Lines is an object.
        line, _, rest = start.partition(b"\n")
        return ".jsonl" if line.rstrip().endswith(b"}") and rest.strip() else ".json"
    return ".txt"
