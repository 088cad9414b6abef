"""TOML files that users write: their formats, errors with line numbers, and lines of keys.

Parsers return values, but messages need lines.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from callpath_modeler.errors import CallpathModelerError, nearest_or_all

Place = tuple[str | int, ...]
"""Path of a value: keys of tables, and indices of array entries from 0."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
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


_PLAIN_LINE = re.compile(
    r"""(?: \[\[ ([\w-]+) \]\] | \[ ([\w-]+) \]
    | ([\w-]+) [ \t]*=[ \t]* (?: "([^"\\\x00-\x08\n-\x1f\x7f]*)" | '([^'\x00-\x08\n-\x1f\x7f]*)'
      | ([^"'\#\n]+) )
    )? [ \t]* (?: \#[^\x00-\x08\n-\x1f\x7f]* )? (?: \n | \Z )""",
    re.VERBOSE | re.ASCII,
)
"""A line with ``[[table]]``, ``[table]``, a key with a text or with another value, or nothing."""


def _read_plain(text: str) -> tuple[dict[str, Any], Mapping[Place, int]] | None:
    """Return the values and the lines of a text with one value per line; None = other lines.

    `cpmodel baseline` writes such files. The parser and the scanner need ten times as long, which
    is many seconds for 10^5 tables. They also know the texts and the errors that are unknown here.
    """
    data: dict[str, Any] = {}
    lines: dict[Place, int] = {(): 1}
    table, place = data, Place()
    arrays: dict[str, list[dict[str, Any]]] = {}
    at = number = 0
    while at < len(text):
        found, number = _PLAIN_LINE.match(text, at), number + 1
        if found is None:
            return None
        at = found.end()
        array, header, key, basic, literal, _ = found.groups()
        name = array or header
        if name is not None:
            if name in data and not (array and name in arrays):
                return None
            table, place = {}, (name,)
            lines.setdefault(place, number)
            if array:
                place = name, len(arrays.setdefault(name, []))
                lines[place] = number
                arrays[name].append(table)
            data[name] = arrays[name] if array else table
        elif key is not None:
            if key in table:
                return None
            value = literal if basic is None else basic
            lines[*place, key] = number
            if value is None:
                try:
                    value = tomllib.loads(found.group())[key]
                except ValueError:
                    return None
                inner = _Scanner(found.group()).document()
                lines.update(((*place, *below), number) for below in inner if below)
            table[key] = value
    return data, lines


D = TypeVar("D", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class TomlFile(Generic[D]):
    """A TOML file with the line of every key.

    Attributes
    ----------
    path : path of the file, as the user gave it
    document : content of the file
    lines : line of every key
    fault : type of errors about the file
    """

    path: str
    document: D
    lines: Mapping[Place, int]
    fault: type[CallpathModelerError]

    def line(self, place: Place) -> int:
        """Return the line of a key, or of its table if the key is missing."""
        return _line(self.lines, place)

    def refuse(self, place: Place, message: str, hint: str) -> NoReturn:
        """Raise an error about the value at a place, with file and line."""
        raise self.fault(f"{self.path}:{self.line(place)}: {message}", hint=hint)


@dataclass(frozen=True, slots=True)
class TomlFormat(Generic[D]):
    """The format of one kind of TOML file.

    Attributes
    ----------
    document : type of a whole file; all its tables forbid unknown fields
    examples : example of the value of every key, by key
    fault : type of errors about the file
    homes : hint on the right table for keys that users often put into a wrong one, by key
    """

    document: type[D]
    examples: Mapping[str, str]
    fault: type[CallpathModelerError]
    homes: Mapping[str, str] = field(default_factory=dict)

    def parse(self, content: bytes | str, path: str) -> TomlFile[D]:
        """Return the content of a file.

        Parameters
        ----------
        content : the file, as bytes or text
        path : path of the file, for messages

        Raises
        ------
        `fault`
            If the file is not TOML, or if it has an unknown key or a value of the wrong type. The
            message begins with file and line.
        """
        try:
            text = content if isinstance(content, str) else content.decode("utf-8-sig")
        except UnicodeDecodeError as cause:
            raise self.fault(f"{path}: not text in UTF-8", hint="save the file as UTF-8") from cause
        try:
            data, lines = _read_plain(text) or self._parse(text, path)
        except tomllib.TOMLDecodeError as cause:
            line, what = _syntax_fault(str(cause), text)
            raise self.fault(
                f"{path}:{line}: {what}", hint="the file is TOML: key = value"
            ) from cause
        except ValueError:
            found = _DIGITS.search(text)
            line = 1 + text.count("\n", 0, found.start() if found else 0)
            hint = "write a number with a point or an exponent, e.g. 1e30"
            raise self.fault(f"{path}:{line}: a number with too many digits", hint=hint) from None
        except RecursionError:
            deepest = _NESTED.search(text)
            line = 1 + text.count("\n", 0, deepest.start() if deepest else 0)
            hint = "close the brackets"
            raise self.fault(f"{path}:{line}: nested too deeply", hint=hint) from None
        if (large := _large_number(data)) is not None:
            hint = "write a number with a point or an exponent, e.g. 1e30"
            raise self.fault(
                f"{path}:{_line(lines, large)}: a whole number of more than 64 bits", hint=hint
            )
        try:
            document = msgspec.convert(data, self.document)
        except msgspec.ValidationError as cause:
            place, message, hint = self._misfit(str(cause), data)
            raise self.fault(f"{path}:{_line(lines, place)}: {message}", hint=hint) from cause
        return TomlFile(path, document, lines, self.fault)

    def _parse(self, text: str, path: str) -> tuple[dict[str, Any], Mapping[Place, int]]:
        """Return the values and the lines of any text."""
        if (deep := line_of_deep_key(text)) is not None:
            hint = f"a key has at most {MOST_PARTS} parts"
            raise self.fault(f"{path}:{deep}: nested too deeply", hint=hint)
        return tomllib.loads(text), lines_of(text)

    def _misfit(self, said: str, data: Mapping[str, Any]) -> tuple[Place, str, str]:
        """Return place, message and hint for a validation error of msgspec."""
        what, _, where = said.partition(" - at `$")
        place, kind = _found(self.document, data, where.rstrip("`"))
        named = _QUOTED.findall(what)
        key = next((step for step in reversed(place) if isinstance(step, str)), "")
        if "unknown field" in what:
            message = f"no key {named[0]!r} belongs here"
            hint = self.homes.get(named[0]) or nearest_or_all(
                named[0], [one.encode_name for one in kind.fields]
            )
            return (*place, named[0]), message, hint
        if "missing required" in what:
            return place, f"{named[0]} is missing", f"e.g. {self.examples[named[0]]}"
        known = [step for step in reversed(place) if step in self.examples]
        example = f"e.g. {self.examples[str(known[0])] if known else key}"
        if "Expected" in what:
            wanted = _wanted(named[0].split(" | ")) + _HELD[_holds_tables(kind)]
            got = {"str": "text", "float": "a fraction"}.get(
                named[-1], _WORDS.get(named[-1], named[-1])
            )
            return place, f"{key} must be {wanted}, not {got}", example
        allowed = _alternatives(kind)
        hint = f"one of {', '.join(map(str, allowed))}" if allowed else example
        return place, f"{key} = {named[0]!r} is not known", hint


_BITS = 63
MOST_PARTS = 32
"""Largest number of parts of a key, which dots separate."""
_DOTTED = re.compile(
    rf"""(?<![\w."'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{MOST_PARTS},}}"""
)
"""Keys with many dots: time and memory for reading them grow with the square of their number."""
_DIGITS = re.compile(r"[0-9_]{1000}")
_NESTED = re.compile(r"(?:[\[{]\s*){20}")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def text_in_toml(text: str) -> str:
    """Return a text as TOML writes it; characters that UTF-8 cannot hold become question marks."""
    # Strings of JSON are strings of TOML, except for one character.
    valid = text.encode("utf-8", "replace").decode()
    return json.dumps(valid, ensure_ascii=False).replace("\x7f", "\\u007f")


def key_in_toml(name: str) -> str:
    """Return a key as TOML writes it."""
    return name if _BARE.fullmatch(name) else text_in_toml(name)


def line_of_deep_key(text: str) -> int | None:
    """Return the line of the first key with more than `MOST_PARTS` parts; None = no such key."""
    deep = _DOTTED.search(text)
    return None if deep is None else 1 + text.count("\n", 0, deep.start())


def _large_number(data: object) -> Place | None:
    """Return the place of an integer of more than 64 bits, which TOML does not allow, or None."""
    rest: list[tuple[Place, object]] = [((), data)]
    while rest:
        place, value = rest.pop()
        if isinstance(value, dict):
            # Most values are texts, and a place is made for each value that is looked at.
            rest += [
                ((*place, key), inner) for key, inner in value.items() if not isinstance(inner, str)
            ]
        elif isinstance(value, list):
            rest += [((*place, k), inner) for k, inner in enumerate(value)]
        elif isinstance(value, int) and value.bit_length() > _BITS:
            return place
    return None


def _syntax_fault(message: str, text: str) -> tuple[int, str]:
    """Return the line and the message of an error of the TOML parser."""
    found = _AT.search(message)
    what = _AT.sub("", message)
    last = len(text.rstrip().splitlines()) or 1
    if found is None or found[1] is None:
        return last, f"{what} (at the end of the file)"
    return int(found[1]), f"{what} (column {found[2]})"


_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_HELD = {True: " of tables, [[...]]", False: ""}
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")
_QUOTED = re.compile("[`']([^`']*)[`']")


def _wanted(kinds: Sequence[str]) -> str:
    # "a number" includes whole numbers.
    told = [kind for kind in kinds if kind in _WORDS and not (kind == "int" and "float" in kinds)]
    *others, last = (_WORDS[kind] for kind in told)
    return f"{', '.join(others)} or {last}" if others else last


def _line(lines: Mapping[Place, int], place: Place) -> int:
    while place not in lines:
        place = place[:-1]
    return lines[place]


def _found(document: type[msgspec.Struct], data: Any, where: str) -> tuple[Place, Any]:
    """Return the place in an error of msgspec, and the type of its value."""
    from msgspec import inspect

    kind: Any = inspect.type_info(document)
    place: Place = ()
    for name, number in _STEP.findall(where):
        if name:
            step: str | int = name
            fields = _described(kind, "fields").fields
            kind = next(one.type for one in fields if one.encode_name == name)
        elif number:
            step, kind = int(number), _described(kind, "item_type").item_type
        else:
            # For tables with names of the user, msgspec does not report the name.
            kind = _described(kind, "value_type").value_type
            if not isinstance(kind, inspect.StructType):
                break
            step = next(key for key, value in data.items() if not _fits(value, kind.cls))
        place, data = (*place, step), data[step]
    return place, _described(kind)


def _described(kind: Any, having: str = "") -> Any:
    """Return a type; of a union, the first type with the attribute that is not None."""
    from msgspec import inspect

    if not isinstance(kind, inspect.UnionType):
        return kind
    types = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
    return next((each for each in types if hasattr(each, having)), types[0])


def _fits(value: object, kind: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _holds_tables(kind: Any) -> bool:
    return hasattr(getattr(kind, "item_type", None), "fields")


def _alternatives(kind: Any) -> Sequence[object]:
    values: Sequence[object] = getattr(kind, "values", ())
    return values
