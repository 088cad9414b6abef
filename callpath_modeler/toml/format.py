"""Formats of TOML files, and errors with line numbers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from callpath_modeler.errors import CallpathModelerError, nearest_or_all
from callpath_modeler.toml.positions import Place, lines_of

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
        if (deep := line_of_deep_key(text)) is not None:
            hint = f"a key has at most {MOST_PARTS} parts"
            raise self.fault(f"{path}:{deep}: nested too deeply", hint=hint)
        try:
            data = tomllib.loads(text)
            lines = lines_of(text)
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


def line_of_deep_key(text: str) -> int | None:
    """Return the line of the first key with more than `MOST_PARTS` parts; None = there is none."""
    deep = _DOTTED.search(text)
    return None if deep is None else 1 + text.count("\n", 0, deep.start())


def _large_number(data: object) -> Place | None:
    """Return the place of an integer of more than 64 bits, which TOML does not allow, or None."""
    rest: list[tuple[Place, object]] = [((), data)]
    while rest:
        place, value = rest.pop()
        if isinstance(value, dict):
            rest += [((*place, key), inner) for key, inner in value.items()]
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
