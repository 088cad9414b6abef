"""Bookmarks of call paths with notes, in a file next to the profiles.

A bookmark is about a call path of the program, not about one measurement. So the profiles of a
directory share one file, ``bookmarks.toml``. Where that cannot be written, the bookmarks are in the
state directory of the user.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from callpath_modeler.errors import InputError, OutputError
from callpath_modeler.printable import in_one_line
from callpath_modeler.profile.calltree import short_id
from callpath_modeler.support.atomic import write_file
from callpath_modeler.support.toml import TomlFormat, text_in_toml

NAME = "bookmarks.toml"
"""Name of the file."""

LONGEST_NOTE = 500
"""Largest number of characters of a note."""

_SCHEMA = 1
_LARGEST_FILE = 1_000_000
_STORE = ".cpm"
"""Ending of a stored experiment, which is a directory."""


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    callpath: str
    id: str = ""
    note: str = ""


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: int
    bookmark: list[_Entry] = []


_EXAMPLES = {
    "schema": "1",
    "bookmark": "[[bookmark]]",
    "callpath": '"main/solve"',
    "id": '"@3f9a2c1"',
    "note": '"ask Jane"',
}
_FORMAT = TomlFormat(_Document, _EXAMPLES, InputError)


class Bookmark(Struct, frozen=True):
    """A bookmark.

    Attributes
    ----------
    callpath : path of the call path, as `CallTree.common_path` returns it
    note : text of the user, in one line; "" = none
    """

    callpath: str
    note: str = ""

    @property
    def id(self) -> str:
        """The id of the call path, as other commands take it."""
        return f"@{short_id(self.callpath)}"


class BookmarkFile(Struct, frozen=True):
    """The file with the bookmarks of an experiment.

    Attributes
    ----------
    path : the file to write, which need not exist
    source : the file to read; another one if `path` does not exist yet
    """

    path: Path
    source: Path

    @classmethod
    def of(cls, sources: Sequence[str | Path]) -> BookmarkFile:
        """Return the file of the profiles `sources`.

        It is next to the profiles if it can be written there, otherwise in the state directory of
        the user (``$XDG_STATE_HOME/cpmodel/bookmarks``).
        """
        folder = _folder(sources)
        near = folder / NAME
        target = near if near.exists() else folder
        if os.access(target, os.W_OK) and os.access(folder, os.W_OK | os.X_OK):
            return cls(near, near)
        mark = hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest()
        own = _state() / "cpmodel" / "bookmarks" / f"{folder.name or 'root'}-{mark}.toml"
        return cls(own, own if own.exists() else near)

    def read(self) -> list[Bookmark]:
        """Return the bookmarks; there are none without a file.

        Raises
        ------
        InputError
            If the file cannot be read, or contains something else.
        """
        try:
            if not self.source.exists():
                return []
            if not self.source.is_file() or self.source.stat().st_size > _LARGEST_FILE:
                raise InputError(f"{self.source}: no file of bookmarks", hint="move it away")
            content = self.source.read_bytes()
        except OSError as cause:
            what = f"{self.source}: {cause.strerror or cause}"
            raise InputError(what, hint="check its permissions") from cause
        document = _FORMAT.parse(content, str(self.source)).document
        if document.schema != _SCHEMA:
            raise InputError(
                f"{self.source}: schema {document.schema}, which this version does not know",
                hint=f"this version reads schema {_SCHEMA}",
            )
        marks = {one.callpath: Bookmark(one.callpath, one.note) for one in document.bookmark}
        return [structs.replace(mark, note=_note(mark.note)) for mark in marks.values()]

    def write(self, bookmarks: Sequence[Bookmark]) -> BookmarkFile:
        """Write the bookmarks, completely or not at all; return the file to use from then on.

        Raises
        ------
        OutputError
            If the file cannot be written, or if it would be too large to be read again.
        """
        lines = [f"schema = {_SCHEMA}"]
        for mark in bookmarks:
            lines += ["", "[[bookmark]]", f"id = {text_in_toml(mark.id)}"]
            lines.append(f"callpath = {text_in_toml(mark.callpath)}")
            lines += [f"note = {text_in_toml(_note(mark.note))}"] if mark.note else []
        content = "\n".join([*lines, ""]).encode()
        if len(content) > _LARGEST_FILE:
            raise OutputError(
                f"{self.path}: more than {_LARGEST_FILE / 1e6:g} MB of bookmarks",
                hint="remove some of them first",
            )
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            what = f"{self.path.parent}: {cause.strerror or cause}"
            raise OutputError(what, hint="set XDG_STATE_HOME to a directory of yours") from cause
        try:
            write_file(self.path, content, overwrite=True)
        except OutputError as error:
            raise OutputError(error.message, hint="check the permissions of the file") from error
        return structs.replace(self, source=self.path)


def _note(text: str) -> str:
    """Return a note in one line, without characters that control a terminal."""
    return in_one_line(text)[:LONGEST_NOTE].strip()


def _folder(sources: Sequence[str | Path]) -> Path:
    """Return the directory that the profiles have in common."""
    places = [Path(os.path.abspath(source)) for source in sources]  # noqa: PTH100 - keeps links
    folders = [place.parent if place.suffix == _STORE else place for place in places]
    folder = Path(os.path.commonpath(folders))
    while not folder.is_dir() and folder != folder.parent:  # a profile, or a pattern of names
        folder = folder.parent
    return folder


def _state() -> Path:
    home = os.environ.get("XDG_STATE_HOME", "")
    # The standard ignores a relative path.
    return Path(home if os.path.isabs(home) else os.path.expanduser("~/.local/state"))  # noqa: PTH111, PTH117
