"""Forms of fuzz inputs on disk, with functions that split and join them.

A checksum detects a flipped bit in a packed file, so the rest would never be tested. Forms with
members are therefore mutated member by member and packed again.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import cube_writer as cw

Members = dict[str, bytes]

_DAMAGED = (OSError, EOFError, ValueError, KeyError, zlib.error, zipfile.BadZipFile,
            tarfile.TarError, NotImplementedError, RuntimeError)  # fmt: skip
_MOST = 1 << 22
"""Maximum bytes to which a member may unpack while it is mutated."""


@dataclass(frozen=True)
class Single:
    """One file, mutated as a whole.

    Attributes
    ----------
    name : name of the file
    """

    name: str

    def place(self, content: bytes, folder: Path) -> Path | None:
        """Write an input into an empty folder; return the path to read; None = no input."""
        path = folder / self.name
        path.write_bytes(content)
        return path

    def members(self, content: bytes) -> Members | None:  # noqa: ARG002 - a form without
        """Return the members of an input; None = no members."""
        return None

    def packed(self, members: Members) -> bytes:
        """Return the input that consists of the members."""
        raise NotImplementedError


class Gzipped(Single):
    """One file of packed text or numbers; its only member is the unpacked content."""

    def members(self, content: bytes) -> Members | None:
        return {"": gunzipped(content)}

    def packed(self, members: Members) -> bytes:
        return gzip.compress(members[""], 1, mtime=0)


class Checked(Single):
    """One file with a checksum in its head; its only member is the rest."""

    def members(self, content: bytes) -> Members | None:
        return {"": content[HEAD:]}

    def packed(self, members: Members) -> bytes:
        return checked(members[""])


HEAD = 12


def checked(body: bytes) -> bytes:
    """Return a shard with a body, whatever it is."""
    return b"cpmshrd1" + zlib.crc32(body).to_bytes(4, "little") + body


class Zipped(Single):
    """A ZIP archive."""

    def members(self, content: bytes) -> Members | None:
        return unzipped(content)

    def packed(self, members: Members) -> bytes:
        return zipped(members)


class Cubex(Single):
    """A tar archive of an anchor, indices and values."""

    def members(self, content: bytes) -> Members | None:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            files = (member for member in archive if member.isfile() and member.size < _MOST)
            return {m.name: file.read() for m in files if (file := archive.extractfile(m))}

    def packed(self, members: Members) -> bytes:
        parts = []
        for name, content in members.items():
            # Mutated names of members must fit into a header.
            parts.append(cw.header(name[:99], len(content)) + content)
            parts.append(bytes(-len(content) % 512))
        return b"".join(parts) + bytes(1024)


@dataclass(frozen=True)
class Directory(Single):
    """A directory of files; an input is a ZIP archive of them, which no reader gets.

    Attributes
    ----------
    name : name of the file or directory that is read
    is_folder : True if the directory itself is read
    """

    is_folder: bool = False

    def place(self, content: bytes, folder: Path) -> Path | None:
        try:
            members = unzipped(content)
        except _DAMAGED:
            return None
        home = folder / self.name if self.is_folder else folder
        for name, data in members.items():
            if ".." in name or name.startswith("/") or "\0" in name or len(name) > 100:
                continue
            try:
                (home / name).parent.mkdir(parents=True, exist_ok=True)
                (home / name).write_bytes(data)
            except OSError:
                continue
        return folder / self.name

    def members(self, content: bytes) -> Members | None:
        return unzipped(content)

    def packed(self, members: Members) -> bytes:
        return zipped(members)


class Store(Directory):
    """A stored experiment; its checksums are corrected after a mutation."""

    def packed(self, members: Members) -> bytes:
        sums = {name: zlib.crc32(data) for name, data in members.items() if "check" not in name}
        return zipped({**members, "checksums.json": json.dumps(sums).encode()})


def bundle(folder: Path) -> bytes:
    """Return the files below a folder as an input of a `Directory`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return zipped({str(path.relative_to(folder)): path.read_bytes() for path in files})


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return a deterministic ZIP archive of members."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return content.getvalue()


def unzipped(content: bytes) -> Members:
    """Return the members of a ZIP archive, without large ones."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        few = archive.infolist()[:256]
        return {each.filename: archive.read(each) for each in few if each.file_size < _MOST}


def gunzipped(content: bytes) -> bytes:
    """Return the unpacked content of packed bytes, up to a maximum size."""
    return zlib.decompressobj(wbits=31).decompress(content, _MOST)


def members_of(form: Single, content: bytes) -> Members | None:
    """Return the members of an input; None = no members, or damaged."""
    try:
        return form.members(content) or None
    except _DAMAGED:
        return None
