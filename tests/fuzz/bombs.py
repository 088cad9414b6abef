"""Small files that unpack to large data, and the cost of reading them.

As a program, this file reads files one after another. Each is read in a process forked from this
one. The program prints a line of JSON for each file.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
import zipfile
import zlib
from pathlib import Path

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


def _read(path: str) -> None:
    from callpath_modeler.errors import CallpathModelerError, PluginError
    from callpath_modeler.loading import load
    from fuzz.judge import peak_memory

    before, told = time.process_time(), ""
    try:
        load([path])
    except PluginError as error:
        told = f"BUG {error.message}"
    except CallpathModelerError as error:
        told = error.message
    except BaseException as error:  # noqa: BLE001 - told as what it is
        told = f"BUG {error!r}"
    seconds = time.process_time() - before
    line = {"path": path, "told": told, "seconds": seconds, "memory": peak_memory()}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _main(paths: list[str], warm: str) -> None:
    from callpath_modeler.loading import load

    # Modules are imported once, before the forks.
    load([warm])
    for path in paths:
        child = os.fork()
        if not child:
            _read(path)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    _main(sys.argv[2:], sys.argv[1])
