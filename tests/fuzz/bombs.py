"""Small files that unpack to large data, and the cost of reading them.

Run as a program it reads files one after another, each in a process of its own that is forked from
this one, and prints a line of JSON for each: what the reader told, how many bytes it unpacked, and
its peak memory.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

MIB = 1 << 20


def packed(path: Path, unit: bytes, total: int, head: bytes = b"") -> Path:
    """Write a file that unpacks to `head` and repeated `unit`, about `total` bytes."""
    piece = unit * max(1, MIB // len(unit))
    one = gzip.compress(piece, 9, mtime=0)
    # A packed file may consist of several packed parts, so large bombs are fast to write.
    with path.open("wb") as file:
        if head:
            file.write(gzip.compress(head, 9, mtime=0))
        for _ in range(max(1, total // len(piece))):
            file.write(one)
    return path


def archive(path: Path, unit: bytes, total: int, head: bytes = b"", tail: bytes = b"") -> Path:
    """Write an Extra-P experiment whose document repeats `unit`."""
    piece = unit * max(1, MIB // len(unit))
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped,
        zipped.open("experiment.json", "w", force_zip64=True) as member,
    ):
        member.write(head)
        for _ in range(max(1, total // len(piece))):
            member.write(piece)
        member.write(tail)
    return path


def dense_archive(path: Path, total: int) -> Path:
    """Write an experiment of the highest density: it unpacks to a thousand times its size."""
    packer = zlib.compressobj(9, wbits=-15)
    one = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    body = one * (total // MIB) + packer.flush()
    archive(path, b"x", 1)
    name = b"experiment.json"
    # The checksum is never reached.
    sizes = len(body).to_bytes(4, "little") + min(total, 2**32 - 2).to_bytes(4, "little")
    local = b"PK\3\4\x14\0\0\0\x08\0\0\0\x21\0\0\0\0\0" + sizes + b"\x0f\0\0\0" + name + body
    central = (b"PK\1\2\x14\0\x14\0\0\0\x08\0\0\0\x21\0\0\0\0\0" + sizes + b"\x0f\0" + bytes(16)
               + name)  # fmt: skip
    end = (b"PK\5\6\0\0\0\0\1\0\1\0" + len(central).to_bytes(4, "little")
           + len(local).to_bytes(4, "little") + b"\0\0")  # fmt: skip
    path.write_bytes(local + central + end)
    return path


class _Counted:
    """What unpacks data, with the bytes counted."""

    unpacked = 0

    def __init__(self, unpacker: Any) -> None:
        self._unpacker = unpacker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unpacker, name)

    def decompress(self, *words: Any, **named: Any) -> bytes:
        """Unpack a piece."""
        piece: bytes = self._unpacker.decompress(*words, **named)
        _Counted.unpacked += len(piece)
        return piece


def _count_unpacked() -> None:
    """Let everything count that Python's own libraries unpack."""
    # The second is what gzip takes from Python 3.12 on.
    for name in ("decompressobj", "_ZlibDecompressor"):
        make = getattr(zlib, name, None)
        if make is not None:
            setattr(zlib, name, lambda *w, make=make, **n: _Counted(make(*w, **n)))


def _read(path: str) -> None:
    from callpath_modeler.errors import CallpathModelerError, PluginError
    from callpath_modeler.studies.loading import load
    from fuzz.judge import peak_memory

    told = ""
    try:
        load([path])
    except PluginError as error:
        told = f"BUG {error.message}"
    except CallpathModelerError as error:
        told = error.message
    except BaseException as error:  # noqa: BLE001 - told as what it is
        told = f"BUG {error!r}"
    line = {"path": path, "told": told, "unpacked": _Counted.unpacked, "memory": peak_memory()}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _main(paths: list[str], warm: str) -> None:
    from callpath_modeler.studies.loading import load

    # Modules are imported once, before the forks.
    load([warm])
    _count_unpacked()
    for path in paths:
        child = os.fork()
        if not child:
            _read(path)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    _main(sys.argv[2:], sys.argv[1])
