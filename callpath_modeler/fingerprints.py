"""Fingerprints of inputs: sizes and hashes of files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

MOST = 1 << 29
"""Largest number of bytes to hash; traces are larger, and hashing must not take minutes."""


class Fingerprint(Struct, frozen=True):
    """Size and hash of a file or a directory when it was read.

    Attributes
    ----------
    path : path as the user gave it
    size : size in bytes; of a directory, of all files in it; None = it does not exist
    sha256 : SHA-256 of a file in hexadecimal digits; of a directory, the SHA-256 of the lines
        ``DIGEST  NAME`` of its files, sorted by name, as `sha256sum` writes them; "" = not made
    """

    path: str
    size: int | None
    sha256: str


def fingerprints(paths: Iterable[str], most: int = MOST) -> tuple[Fingerprint, ...]:
    """Return sizes and hashes of files and directories, in the given order.

    Parameters
    ----------
    paths : paths of files and directories
    most : largest number of bytes to hash; further files have a size only
    """
    found = []
    for path in paths:
        one = _fingerprint(path, most)
        most -= (one.size or 0) if one.sha256 else 0
        found.append(one)
    return tuple(found)


def _fingerprint(path: str, most: int) -> Fingerprint:
    place = Path(path)
    try:
        files = sorted(_files(place)) if place.is_dir() else [("", place)]
        size = sum(file.stat().st_size for _, file in files)
        if size > most:
            return Fingerprint(path, size, "")
        digests = [(_digest(file), name) for name, file in files]
    except OSError:
        return Fingerprint(path, None, "")
    if not place.is_dir():
        return Fingerprint(path, size, digests[0][0])
    listing = "".join(f"{digest}  {name}\n" for digest, name in digests)
    whole = hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()
    return Fingerprint(path, size, whole)


def _files(directory: Path) -> Iterator[tuple[str, Path]]:
    for path in directory.rglob("*"):
        if path.is_file():
            yield path.relative_to(directory).as_posix(), path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
