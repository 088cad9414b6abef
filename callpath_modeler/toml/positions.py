"""Lines of the keys in a TOML text: parsers return values, but messages need lines."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping

Place = tuple[str | int, ...]
"""Path of a value: keys of tables, and indices of array entries from 0."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
_STRING = re.compile(
    r""""{3}(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*\'""", re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def lines_of(text: str) -> Mapping[Place, int]:
    r"""Return the line, from 1, of every key, table and array entry of a valid TOML text.

    The line of a table is that of its header. For a table from dotted keys, it is the line of the
    first such key.

    >>> lines_of("a = 1\n[[b]]\nc.d = [2,\n3]")[("b", 0, "c", "d", 1)]
    4
    """
    return _Scanner(text).document()


class _Scanner:
    """A scanner for the positions of keys in a text that a parser has already accepted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._breaks = [found.start() for found in re.finditer("\n", text)]
        self._lines: dict[Place, int] = {(): 1}
        self._entries: dict[Place, int] = {}

    def document(self) -> Mapping[Place, int]:
        table: Place = ()
        while not self._ended():
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _ended(self) -> bool:
        self._take(_BLANK)
        return self._at >= len(self._text)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(f"not TOML at character {self._at}")
        self._at = found.end()
        return found.group()

    def _next_is(self, sign: str) -> bool:
        """Skip blanks, and also `sign` if it follows; return whether it does."""
        self._take(_BLANK)
        found = self._text.startswith(sign, self._at)
        self._at += len(sign) * found
        return found

    def _note(self, place: Place, start: int) -> None:
        self._lines.setdefault(place, bisect_left(self._breaks, start) + 1)

    def _header(self) -> Place:
        start = self._at
        is_entry = self._text.startswith("[[", start)
        self._at += 1 + is_entry
        names = self._names()
        self._at += 1 + is_entry
        place = self._below((), names[:-1], start)
        place = (*place, names[-1])
        if is_entry:
            self._note(place, start)
            number = self._entries.get(place, 0)
            self._entries[place] = number + 1
            place = (*place, number)
        self._note(place, start)
        return place

    def _below(self, place: Place, names: list[str], start: int) -> Place:
        """Return the place of a table; below an array of tables, the place in its last entry."""
        for name in names:
            place = (*place, name)
            self._note(place, start)
            if place in self._entries:
                place = (*place, self._entries[place] - 1)
        return place

    def _names(self) -> list[str]:
        """Return the parts of a key, dotted or not."""
        names: list[str] = []
        while not names or self._next_is("."):
            self._take(_BLANK)
            key = self._take(_KEY)
            quoted = key[0] in "\"'"
            names.append(str(tomllib.loads(f"key = {key}")["key"]) if quoted else key)
        return names

    def _pair(self, table: Place) -> None:
        start = self._at
        names = self._names()
        place = (*self._below(table, names[:-1], start), names[-1])
        self._note(place, start)
        self._next_is("=")
        self._value(place)

    def _value(self, place: Place) -> None:
        if self._next_is("["):
            number = 0
            while not self._next_is("]"):
                self._note((*place, number), self._at)
                self._value((*place, number))
                self._next_is(",")
                number += 1
        elif self._next_is("{"):
            while not self._next_is("}"):
                self._pair(place)
                self._next_is(",")
        elif self._text[self._at] in "\"'":
            self._take(_STRING)
        else:
            self._take(_SCALAR)
