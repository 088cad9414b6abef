r"""Regular expressions of users, in time that grows with the product of both lengths.

Python's own matcher tries one way after another, and for ``(a+)+b`` there are too many ways.
Here a machine takes all ways at once: it reads each character of a name one time, and knows at
which places of the expression it may be. Expectation files of others may thus hold expressions.

What is read: ``.``, sets such as ``[^a-z]``, ``\d \s \w`` and their opposites, ``( )``, ``|``,
``* + ? {2,3}``, ``^ $ \A \Z \b \B``, and ``(?i)`` at the beginning. They mean what they mean in
Python; ``$`` is the end of the name alone. References to groups, looking ahead and behind, and
repetitions that give nothing back need more than such a machine: they are refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from callpath_modeler.support.expression import ExpressionError

_MOST_STEPS = 2000
"""Places of an expression whose repetitions are written out."""
_MOST_NESTED = 100
_MOST_KEPT = 20_000
"""Transitions that a machine remembers."""
_CASELESS = "(?i)"

_TOKEN = re.compile(
    r"(?P<set>\[\^?\]?(?:[^\]\\]|\\.)*\])"
    r"|(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\}|\{,\d*\})\??)"
    r"|(?P<group>\((?:\?:|\?P<[A-Za-z_]\w*>|(?!\?)))"
    r"|(?P<end>\))"
    r"|(?P<either>\|)"
    r"|(?P<border>[\^$]|\\[AZbB])"
    r"|(?P<one>\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[DSWafnrtvdsw]|[^0-9A-Za-z])|[^\\\[(])",
    re.DOTALL,
)
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class _One:
    """One character, as Python's expression of one."""

    text: str


@dataclass(frozen=True, slots=True)
class _Border:
    """A place between two characters."""

    sign: str


@dataclass(frozen=True, slots=True)
class _Row:
    """Parts that follow each other."""

    parts: tuple[_Part, ...]


@dataclass(frozen=True, slots=True)
class _Either:
    """One of several rows."""

    rows: tuple[_Part, ...]


@dataclass(frozen=True, slots=True)
class _Times:
    """A part that is repeated; without a highest number, any number of times."""

    part: _Part
    least: int
    most: int | None


_Part = _One | _Border | _Row | _Either | _Times


class _Parser:
    """Reads an expression token by token."""

    def __init__(self, text: str, begin: int) -> None:
        self.text, self.column, self.depth = text, begin, 0
        self.kind = self.word = ""
        self.ahead = begin
        self._next()

    def _next(self) -> None:
        self.column = self.ahead
        if self.column == len(self.text):
            self.kind = self.word = ""
            return
        found = _TOKEN.match(self.text, self.column)
        if found is None or found.lastgroup is None:
            self.fail(
                {"[": "a set has no end", "(": "such a group is not read"}.get(
                    self.text[self.column], "such an escape is not read"
                )
            )
        self.kind, self.word, self.ahead = found.lastgroup, found.group(), found.end()

    def fail(self, message: str) -> NoReturn:
        """Raise the error of this language."""
        raise ExpressionError(self.text, self.column, message)

    def whole(self) -> _Part:
        """Read all of the text."""
        part = self._either()
        if self.kind:
            self.fail("no group begins before this end")
        return part

    def _either(self) -> _Part:
        rows = [self._row()]
        while self.kind == "either":
            self._next()
            rows.append(self._row())
        return _Either(tuple(rows)) if len(rows) > 1 else rows[0]

    def _row(self) -> _Part:
        parts = []
        while self.kind not in {"", "either", "end"}:
            parts.append(self._repeated(self._atom()))
        return _Row(tuple(parts))

    def _atom(self) -> _Part:
        kind, word = self.kind, self.word
        if kind == "repeat":
            self.fail("nothing is repeated here")
        if kind == "group":
            return self._group()
        if kind == "border":
            self._next()
            return _Border(word)
        try:
            _test_of(word, caseless=False)
        except re.error as cause:
            self.fail(str(cause.msg))
        self._next()
        return _One(word)

    def _group(self) -> _Part:
        self.depth += 1
        if self.depth > _MOST_NESTED:
            self.fail(f"groups lie in each other more than {_MOST_NESTED} times")
        self._next()
        part = self._either()
        if self.kind != "end":
            self.fail("a group has no end")
        self.depth -= 1
        self._next()
        return part

    def _repeated(self, part: _Part) -> _Part:
        if self.kind != "repeat":
            return part
        if isinstance(part, _Border):
            self.fail("a place is not repeated")
        least, most = self._counts(self.word)
        self._next()
        if self.kind == "repeat":
            self.fail("a repetition is not repeated")
        return _Times(part, least, most)

    def _counts(self, word: str) -> tuple[int, int | None]:
        usual: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if word[0] != "{":
            return usual[word[0]]
        low, comma, high = word.rstrip("?")[1:-1].partition(",")
        if max(len(low), len(high)) > len(str(_MOST_STEPS)):
            self.fail("so many times are too many")
        least = int(low or 0)
        most = int(high) if high else None if comma else least
        if most is not None and most < least:
            self.fail("the lower number of times is the larger one")
        return least, most


def _test_of(text: str, *, caseless: bool) -> Callable[[str], object]:
    """Return what tells whether a character is one of a set, as in Python."""
    with warnings.catch_warnings():
        # Signs that a later Python will read in another way are read as this Python reads them.
        warnings.simplefilter("ignore")
        return re.compile(text, re.IGNORECASE if caseless else 0).fullmatch


_ONE, _BORDER, _SPLIT, _END = range(4)
_FIRST, _LETTER, _OTHER, _LAST = range(4)
"""The character beside a place between two characters: none, a letter of a word, another."""


class Machine:
    """Tells whether an expression fits somewhere in a name.

    Attributes
    ----------
    text : the expression
    steps : characters of names for which no transition was known, so far
    """

    def __init__(self, text: str) -> None:
        self.text, self.steps = text, 0
        self._caseless = text.startswith(_CASELESS)
        # Place k is the bit k of a number. A place has its kind, and where it leads to.
        self._kinds: list[int] = []
        self._leads: list[tuple[int, ...]] = []
        self._signs: dict[int, str] = {}
        self._ones: dict[str, int] = {}
        self._write(_Parser(text, len(_CASELESS) * self._caseless).whole())
        self._add(_END)
        self._all_ones = sum(self._ones.values())
        self._end = 1 << (len(self._kinds) - 1)
        self._tests = [
            (_test_of(one, caseless=self._caseless), places) for one, places in self._ones.items()
        ]
        self._accepted: dict[str, int] = {}
        self._states: dict[tuple[int, int], _State] = {}
        self._kept = 0
        self._found = _Found()

    def search(self, name: str) -> bool:
        """Tell whether the expression fits somewhere in `name`."""
        state, found = self._start, self._found
        for character in name:
            state = state[character]
            if state is found:
                return True
        return state.ends

    @cached_property
    def _start(self) -> _State:
        return _State(self, 1, _FIRST)

    def after(self, places: int, before: int, character: str) -> _State:
        """Return the state after a character, before which some places were possible."""
        self.steps += 1
        beside = _LETTER if _WORD.match(character) else _OTHER
        reached = self._reached(places, before, beside)
        if reached & self._end:
            return self._found
        self._kept += 1
        if self._kept > _MOST_KEPT:
            self._forget()
        if character not in self._accepted:
            fitting = (places for test, places in self._tests if test(character))
            self._accepted[character] = sum(fitting)
        # An expression may begin at any place of a name.
        key = (reached & self._accepted[character]) << 1 | 1, beside
        if key not in self._states:
            self._states[key] = _State(self, *key)
        return self._states[key]

    def is_end(self, places: int, before: int) -> bool:
        """Tell whether the expression fits if the name ends here."""
        return bool(self._reached(places, before, _LAST) & self._end)

    def _forget(self) -> None:
        self._kept = 0
        for known in (self._states, self._accepted, self._start):
            known.clear()

    def _reached(self, places: int, before: int, beside: int) -> int:
        """Return what is reached from some places without a character: each place is seen once."""
        seen = places
        waiting = places & ~self._all_ones
        while waiting:
            place = (waiting & -waiting).bit_length() - 1
            waiting ^= 1 << place
            if self._kinds[place] == _BORDER and not _is_at(self._signs[place], before, beside):
                continue
            for to in self._leads[place]:
                if not seen >> to & 1:
                    seen |= 1 << to
                    waiting |= (1 << to) & ~self._all_ones
        return seen

    def _add(self, kind: int, *leads: int) -> int:
        place = len(self._kinds)
        if place >= _MOST_STEPS:
            raise ExpressionError(
                self.text,
                0,
                f"with its repetitions written out, it has more than {_MOST_STEPS} steps",
            )
        self._kinds.append(kind)
        self._leads.append(leads)
        return place

    def _write(self, part: _Part) -> None:
        """Write a part out; what follows it stands behind it."""
        if isinstance(part, _One):
            place = self._add(_ONE)
            self._ones[part.text] = self._ones.get(part.text, 0) | 1 << place
        elif isinstance(part, _Border):
            place = len(self._kinds)
            self._signs[place] = part.sign
            self._add(_BORDER, place + 1)
        elif isinstance(part, _Row):
            if not part.parts:
                self._pass()
            for each in part.parts:
                self._write(each)
        elif isinstance(part, _Either):
            self._write_either(part.rows)
        else:
            self._write_times(part)

    def _pass(self) -> None:
        """Write a step that leads on: every part has one, so steps bound the work."""
        self._add(_SPLIT, len(self._kinds) + 1)

    def _write_either(self, rows: Iterable[_Part]) -> None:
        split, ends, begins = self._add(_SPLIT), [], []
        for row in rows:
            begins.append(len(self._kinds))
            self._write(row)
            ends.append(self._add(_SPLIT))
        self._leads[split] = tuple(begins)
        for end in ends:
            self._leads[end] = (len(self._kinds),)

    def _write_times(self, times: _Times) -> None:
        if times.most == 0:
            self._pass()
        for _ in range(times.least):
            self._write(times.part)
        if times.most is None:
            split = self._add(_SPLIT)
            self._write(times.part)
            self._add(_SPLIT, split)
            self._leads[split] = split + 1, len(self._kinds)
            return
        splits = []
        for _ in range(times.most - times.least):
            splits.append(self._add(_SPLIT))
            self._write(times.part)
        for split in splits:
            self._leads[split] = split + 1, len(self._kinds)


class _State(dict[str, "_State"]):
    """The states of a machine for an expression: one after each character."""

    def __init__(self, machine: Machine, places: int, before: int) -> None:
        super().__init__()
        self.machine, self.places, self.before = machine, places, before

    def __missing__(self, character: str) -> _State:
        after = self.machine.after(self.places, self.before, character)
        self[character] = after
        return after

    @cached_property
    def ends(self) -> bool:
        """True if the expression fits when the name ends here."""
        return self.machine.is_end(self.places, self.before)


class _Found(_State):
    """The state in which nothing that follows matters."""

    def __init__(self) -> None:
        dict.__init__(self)


def _is_at(sign: str, before: int, beside: int) -> bool:
    """Return whether a sign means a place between two characters."""
    if sign in {"^", "\\A"}:
        return before == _FIRST
    if sign in {"$", "\\Z"}:
        return beside == _LAST
    is_border = (before == _LETTER) != (beside == _LETTER)
    return is_border == (sign == "\\b")
