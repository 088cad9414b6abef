"""Expectation files: what may stand in them, and where what does not belong there stands."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, NoReturn, get_args

import msgspec

from callpath_modeler.analysis.expectations.positions import Place, lines_of
from callpath_modeler.errors import InputError

SCHEMA = 1
"""Number of the format."""

Unsure = Literal["pass", "warn", "fail"]
"""What is made of an expectation on which the data do not tell."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an expectation and a rule may say of how they are judged."""

    metric: str | None = None
    target: dict[str, Any] | None = None
    confidence: float | None = None
    unsure: Unsure | None = None
    inclusive: bool | None = None


class Defaults(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may stand in ``[defaults]``, and in every expectation in place of it."""

    at_least: int | None = None
    deviation: str | None = None


class Entry(Defaults, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[expect]]``."""

    name: str | None = None
    callpath: str | None = None
    others: bool = False
    growth: str | None = None
    value: str | None = None
    share: str | None = None
    excess: str | None = None
    loss: str | None = None
    bound: str | None = None
    control: str | None = None
    xfail: str | None = None
    note: str | None = None
    source: str | None = None


class RuleEntry(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[rule]]``."""

    rule: str
    name: str | None = None
    control: str | None = None
    xfail: str | None = None
    note: str | None = None
    source: str | None = None


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file."""

    schema: int
    target: dict[str, Any] | None = None
    defaults: Defaults = msgspec.field(default_factory=Defaults)
    numbers: dict[str, Any] = {}
    expect: list[Entry] = []
    rule: list[RuleEntry] = []


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was read, and where everything in it stands.

    Attributes
    ----------
    path : as the user wrote it
    document : what it says
    lines : line of every key
    """

    path: str
    document: Document
    lines: Mapping[Place, int]

    def line(self, place: Place) -> int:
        """Return the line of a key, or of the table that it would stand in."""
        while place not in self.lines:
            place = place[:-1]
        return self.lines[place]

    def refuse(self, place: Place, message: str, hint: str) -> NoReturn:
        """Raise `InputError` about what stands at a place."""
        raise InputError(f"{self.path}:{self.line(place)}: {message}", hint=hint)


def parse(text: str, path: str) -> Written:
    """Read the text of an expectation file.

    Raises
    ------
    InputError
        If it is not TOML, or holds what does not belong there; the message begins with the line.
    """
    try:
        data = tomllib.loads(text)
        lines = lines_of(text)
    except tomllib.TOMLDecodeError as cause:
        line, what = _syntax_fault(str(cause), text)
        raise InputError(f"{path}:{line}: {what}", hint="the file is TOML: key = value") from cause
    except RecursionError:
        deepest = _NESTED.search(text)
        line = 1 + text.count("\n", 0, deepest.start() if deepest else 0)
        raise InputError(f"{path}:{line}: nested too deeply", hint="close the brackets") from None
    try:
        document = msgspec.convert(data, Document)
    except msgspec.ValidationError as cause:
        raise _misfit(str(cause), path, lines) from cause
    written = Written(path, document, lines)
    if document.schema != SCHEMA:
        written.refuse(("schema",), f"schema {document.schema} is not known", f"schema = {SCHEMA}")
    return written


_NESTED = re.compile(r"(?:[\[{]\s*){20}")
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def _syntax_fault(message: str, text: str) -> tuple[int, str]:
    """Return the line and the message of an error of the TOML parser."""
    found = _AT.search(message)
    what = _AT.sub("", message)
    last = len(text.rstrip().splitlines()) or 1
    if found is None or found[1] is None:
        return last, f"{what} (at the end of the file)"
    return int(found[1]), f"{what} (column {found[2]})"


EXAMPLES = {
    "schema": "schema = 1",
    "target": "target = { p = 4096 }",
    "numbers": "[numbers], then processes_per_node = 48",
    "defaults": "[defaults], then confidence = 0.95",
    "expect": "[[expect]], then the keys of one expectation",
    "rule": "[[rule]], then rule = '{**/MPI_Allreduce} <= {**/MPI_Reduce} + {**/MPI_Bcast}'",
    "name": 'name = "halo exchange stays local"',
    "callpath": 'callpath = "main/**/MPI_*"',
    "others": "others = true",
    "metric": 'metric = "time"',
    "growth": 'growth = "<= O(log p)"',
    "deviation": 'deviation = "O(log p)"',
    "value": 'value = "<= 2.5 s"',
    "share": 'share = "<= 5 %"',
    "excess": 'excess = "<= 10 %"',
    "loss": 'loss = "<= 1 s"',
    "bound": 'bound = "bytes * processes_per_node <= 24 GB"',
    "confidence": "confidence = 0.95",
    "unsure": 'unsure = "fail"',
    "at_least": "at_least = 1",
    "inclusive": "inclusive = true",
    "control": 'control = "the name of another expectation"',
    "xfail": 'xfail = "issue 812: not merged yet"',
    "note": 'note = "why this is expected"',
    "source": 'source = "where it comes from"',
}
"""How every key is written."""

_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text in quotes",
    "bool": "true or false",
    "array": "a list of tables, [[...]]",
    "object": "a table",
}
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_QUOTED = re.compile("[`']([^`']*)[`']")


def _misfit(message: str, path: str, lines: Mapping[Place, int]) -> InputError:
    """Put into words, and find, what msgspec tells of a value that does not fit."""
    what, _, where = message.partition(" - at `$")
    steps = [name or int(number) for name, number in _STEP.findall(where.rstrip("`"))]
    place: Place = tuple(steps)
    named = _QUOTED.findall(what)
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    if "unknown field" in what:
        place = (*place, named[0])
        known = _TABLES[key].__struct_fields__
        message, hint = f"no key {named[0]!r} belongs here", _nearest(named[0], known)
    elif "missing required" in what:
        message, hint = f"{named[0]} is missing", f"e.g. {EXAMPLES[named[0]]}"
    elif "Expected" in what:
        wanted = " or ".join(_WORDS[kind] for kind in named[0].split(" | ") if kind in _WORDS)
        got = {"str": "text", "float": "a fraction"}.get(
            named[-1], _WORDS.get(named[-1], named[-1])
        )
        message, hint = f"{key} is to be {wanted}, not {got}", f"e.g. {EXAMPLES.get(key, key)}"
    else:
        message = f"{key} = {named[0]!r} is not known"
        hint = f"one of {', '.join(get_args(Unsure))}"
    while place not in lines:
        place = place[:-1]
    return InputError(f"{path}:{lines[place]}: {message}", hint=hint)


_TABLES: Mapping[str, type[msgspec.Struct]] = {
    "": Document,
    "defaults": Defaults,
    "expect": Entry,
    "rule": RuleEntry,
}


def _nearest(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
