"""Forms of fuzz inputs on disk, with functions that split and join them.

A checksum detects a flipped bit in a packed file, so the rest would never be tested. Forms with
members are therefore mutated member by member and packed again.
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec

import cube_writer as cw
from callpath_modeler.history import history_store, predictions

Members = dict[str, bytes]

_DAMAGED = (OSError, EOFError, ValueError, KeyError, zlib.error, zipfile.BadZipFile,
            sqlite3.Error, tarfile.TarError, NotImplementedError, RuntimeError)  # fmt: skip
_TABLES = ("record", "prediction", "outcome")
_MOST = 1 << 22
"""Maximum bytes to which a member may unpack while it is mutated."""


@dataclass(frozen=True)
class Single:
    """One file, mutated as a whole.

    Attributes
    ----------
    name : name of the file
    copies : whether an input may have further members of any name
    """

    name: str
    copies: ClassVar[bool] = False

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


class Counted(Single):
    """A specification; the number of its operations is corrected."""

    def members(self, content: bytes) -> Members | None:
        return {"": content}

    def packed(self, members: Members) -> bytes:
        try:
            file = json.loads(members[""])
            told = file["specification"]
            told["operations"] = _operations(told["body"], 1)
        except (KeyError, TypeError, *_DAMAGED):
            return members[""]
        return json.dumps(file, separators=(",", ":")).encode()


def _operations(body: list[dict[str, Any]], rounds: int) -> int:
    return sum(
        _operations(node["body"], rounds * node["count"])
        if node["type"] == "loop"
        else rounds * len(node["ranks"])
        for node in body
    )


class History(Single):
    """A history; its members are the contents of its rows. Checksums and digests are corrected."""

    copies: ClassVar[bool] = True

    def members(self, content: bytes) -> Members | None:
        with closing(sqlite3.connect(":memory:")) as database:
            # A database in memory has no write-ahead log, which bytes 18 and 19 of a file announce.
            database.deserialize(content[:18] + b"\1\1" + content[20:])
            rows = [
                (f"{table}/{number}", bytes(payload))
                for table in _TABLES
                for number, payload in database.execute(f"SELECT id, payload FROM {table}")  # noqa: S608
            ]
        return {name: zlib.decompressobj().decompress(payload, _MOST) for name, payload in rows}

    def packed(self, members: Members) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "h.db"
            for number, (name, content) in enumerate(members.items()):
                table = name.partition("/")[0]
                row = history_row(table, content, f"c{number}", float(number))
                history_store.add_entry(path, table, row)
            return path.read_bytes()


def history_row(table: str, content: bytes, commit: str, time: float) -> history_store.HistoryRow:
    """Return a row of a history, with the digest of its content if that is valid."""
    row = history_store.HistoryRow(f"{commit} {time}".encode(), commit, time, content)
    try:
        if table == "record":
            payload = msgspec.msgpack.decode(content, type=history_store._Payload)
            return replace(row, digest=history_store._record(commit, time, payload).digest)
        kind = predictions.PredictionRecord
        kind = kind if table == "prediction" else predictions.OutcomeRecord
        told = msgspec.msgpack.decode(content, type=kind)
        return history_store.HistoryRow(predictions._digest(told), told.commit, told.time, content)
    except (msgspec.DecodeError, ValueError, OverflowError):
        return row


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
    copies: ClassVar[bool] = True

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
