"""Events of trace files in JSON, in blocks, with bounded memory.

A trace is ``{"traceEvents": [...], ...}`` or a bare list of events. Each block of text ends after
an event: the text from the beginning of an event to a brace is a list of whole events exactly if
it is valid JSON between brackets. So a wrong guess of the end is always noticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from callpath_modeler.errors import InputError, reading
from callpath_modeler.support.input_limits import packed_budget, unpacked_pieces
from cpmodel_kineto.training import ENTRIES

EVENTS = "traceEvents"
_BLOCK = 1 << 18
"""Bytes of text that are decoded at once; larger blocks leave the cache of the processor."""
_LONGEST = 16 << 20
"""Largest size of one event, or of one entry beside the events, in bytes."""
_GUESSES = 3
_COPY = "copy the trace again, or repeat the run"
KEPT = frozenset({"distributedInfo", "deviceProperties", "schemaVersion", "host_name",
                  "displayTimeUnit", "traceName"}) | ENTRIES  # fmt: skip
"""Entries beside the events that are kept."""

_Scalar = int | float | str | None


class Arguments(Struct, gc=False):
    """The arguments of an event that are used.

    Attributes
    ----------
    correlation : number that a launch and its activities share
    external : number that an operator and what it causes share
    """

    correlation: _Scalar = None
    external: _Scalar = msgspec.field(default=None, name="External id")
    external_old: _Scalar = msgspec.field(default=None, name="external id")
    bytes: _Scalar = None
    size: _Scalar = None
    device: _Scalar = None
    stream: _Scalar = None
    dims: Raw = msgspec.field(default=Raw(), name="Input Dims")
    types: Raw = msgspec.field(default=Raw(), name="Input type")
    elements_in: _Scalar = msgspec.field(default=None, name="In msg nelems")
    dtype: _Scalar = None
    group: _Scalar = msgspec.field(default=None, name="Group size")
    name: _Scalar = None


class Event(Struct, gc=False):
    """One event: its kind, names, thread, times in microseconds, and arguments."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: _Scalar = None
    tid: _Scalar = None
    ts: float = 0.0
    dur: float = 0.0
    id: _Scalar = None
    args: Arguments | None = None


class _Times(Struct, gc=False):
    ts: Raw = Raw(b"0")
    dur: Raw = Raw(b"0")


class Block(Struct):
    """Whole events, and their text as a list of JSON.

    Attributes
    ----------
    events : the events
    text : JSON of the events
    """

    events: list[Event]
    text: bytes

    def exact_times(self) -> list[tuple[str, str]]:
        """Return start and duration of each event as they are written."""
        return [
            (bytes(each.ts).decode(), bytes(each.dur).decode()) for each in _TIMES.decode(self.text)
        ]


_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT, _LENIENT = msgspec.json.Decoder(Event), msgspec.json.Decoder(Event, strict=False)
_TIMES = msgspec.json.Decoder(list[_Times])

_GAP = re.compile(rb"[\s,]*+")
_SPACE = re.compile(rb"\s*+")
_ATOM = re.compile(rb"[^\s,\]\}]*+")
# An open string reaches to the end, so no part of it is searched twice.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)|[\[\]{}]', re.DOTALL)
_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_NO_NUMBER = re.compile(r"(?<=[:\[,\s])[-+]?(?:nan|inf|infinity)(?=[\s,\]}])", re.IGNORECASE)


class EventFile:
    """A trace file, whose blocks of events are read once.

    Parameters
    ----------
    path : the file, packed with gzip or not

    Attributes
    ----------
    entries : the entries beside the events that are kept, as JSON
    damaged : number of events that cannot be read
    mended : number of events with damaged text that was repaired
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text, self._at, self._ended = b"", 0, False
        self.entries: dict[str, bytes] = {}
        self.damaged = self.mended = 0

    def blocks(self) -> Iterator[Block]:
        """Yield the events in the order of the file.

        Raises
        ------
        InputError
            If the file is not a trace, or ends too early.
        """
        budget = packed_budget(self._path)
        with reading(self._path, _COPY), self._path.open("rb") as file:
            if budget is not None:
                self._pieces = unpacked_pieces(file, budget)
            else:
                self._pieces = iter(lambda: file.read(_BLOCK), b"")
            yield from self._contents()

    def _contents(self) -> Iterator[Block]:
        self._fill(3)
        self._at = 3 if self._text.startswith(b"\xef\xbb\xbf") else 0
        first = self._next(_SPACE)
        if first == b"[":
            yield from self._list(may_be_open=True)
            return
        if first != b"{":
            raise self._error("is no trace in JSON")
        self._at += 1
        while (first := self._next(_GAP)) != b"}":
            key = self._value()
            if not key.startswith(b'"') or self._next(_SPACE) != b":":
                raise self._error("is damaged: an entry has no name")
            self._at += 1
            name = key[1:-1].decode("utf-8", "replace")
            if self._next(_SPACE) == b"[" and name == EVENTS:
                yield from self._list(may_be_open=False)
                continue
            value = self._value()
            if name in KEPT:
                self.entries[name] = value

    def _list(self, *, may_be_open: bool) -> Iterator[Block]:
        """Yield the events of a list.

        Parameters
        ----------
        may_be_open : the end of the list may be missing, which the format of Chrome allows
        """
        self._at += 1
        while True:
            first = self._next(_GAP, required=not may_be_open)
            if first in {b"]", b""}:
                self._at += len(first)
                return
            if first != b"{":
                raise self._error("is damaged: an entry of its list is no event")
            yield self._block()

    def _block(self) -> Block:
        """Return the events from here on that are in memory, at least one."""
        self._fill(_BLOCK)
        end = len(self._text)
        for _ in range(_GUESSES):
            end = self._text.rfind(b"},", self._at, end)
            if end < 0:
                break
            follows = _end(_SPACE, self._text, end + 2)
            if self._text[follows : follows + 1] != b"{":
                continue
            text = b"[" + self._text[self._at : end + 1] + b"]"
            try:
                block = Block(_EVENTS.decode(text), text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
            self._at = end + 1
            return block
        return self._exact_block()

    def _exact_block(self) -> Block:
        """Return the events from here on, whose ends are searched token by token."""
        ends = self._ends_of_events()
        while not ends:
            self._more("an event")
            ends = self._ends_of_events()
        begin, self._at = self._at, ends[-1]
        text = b"[" + self._text[begin : self._at] + b"]"
        try:
            return Block(_EVENTS.decode(text), text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        events, parts = [], []
        for end in ends:
            part = self._text[_end(_GAP, self._text, begin) : end]
            event = self._mended(part)
            if event is None:
                self.damaged += 1
            else:
                events.append(event)
                parts.append(msgspec.json.encode({"ts": event.ts, "dur": event.dur}))
            begin = end
        return Block(events, b"[" + b",".join(parts) + b"]")

    def _mended(self, part: bytes) -> Event | None:
        """Return an event whose text may be damaged; None = it cannot be read."""
        try:
            return _EVENT.decode(part)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        text = _HALF.sub(r"\\ufffd", part.decode("utf-8", "replace"))
        text = _ESCAPE.sub(lambda found: found[0] if len(found[0]) > 1 else r"\\", text)
        try:
            value: Any = json.loads(_NO_NUMBER.sub("null", text), strict=False)
            event = _LENIENT.decode(msgspec.json.encode(value))
        except (msgspec.DecodeError, ValueError, RecursionError, OverflowError):
            return None
        self.mended += 1
        return event

    def _ends_of_events(self) -> list[int]:
        """Return the ends of the whole events in memory, from here on."""
        ends, depth = [], 0
        for found in _TOKEN.finditer(self._text, self._at):
            token = found[0]
            if token in {b"{", b"["}:
                depth += 1
            elif token in {b"}", b"]"}:
                depth -= 1
                if depth < 0:
                    break
                if depth == 0:
                    ends.append(found.end())
        return ends

    def _value(self) -> bytes:
        """Return the JSON of the value that begins here."""
        while (end := self._end_of_value()) < 0:
            self._more("an entry")
        begin, self._at = self._at, end
        return self._text[begin:end]

    def _end_of_value(self) -> int:
        """Return the end of the value that begins here; -1 = it is not in memory."""
        first = self._text[self._at : self._at + 1]
        if first in {b"{", b"["}:
            return self._end_of_nested()
        if first == b'"':
            found = _TOKEN.match(self._text, self._at)
            return found.end() if found is not None and found[1] == b'"' else -1
        end = _end(_ATOM, self._text, self._at)
        if end == self._at:
            raise self._error("is damaged: an entry has no value")
        return end if end < len(self._text) else -1

    def _end_of_nested(self) -> int:
        depth = 0
        for found in _TOKEN.finditer(self._text, self._at):
            token = found[0]
            if token in {b"{", b"["}:
                depth += 1
            elif token in {b"}", b"]"}:
                depth -= 1
                if depth == 0:
                    return found.end()
        return -1

    def _next(self, gap: re.Pattern[bytes], *, required: bool = True) -> bytes:
        """Return the next character after a gap; b"" = the file ends."""
        while True:
            self._at = _end(gap, self._text, self._at)
            if self._at < len(self._text):
                return self._text[self._at : self._at + 1]
            if not self._fill(1):
                if required:
                    raise self._error("ends too early")
                return b""

    def _more(self, what: str) -> None:
        """Read as much text again as there is in memory."""
        size = len(self._text) - self._at
        if size > _LONGEST:
            raise self._error(f"has {what} of more than {_LONGEST >> 20} MiB")
        if not self._fill(2 * size + _BLOCK):
            raise self._error("ends too early")

    def _fill(self, size: int) -> bool:
        """Read until `size` bytes are in memory; return whether there was more to read."""
        held = len(self._text) - self._at
        if self._ended or held >= size:
            return not self._ended
        parts = [self._text[self._at :]]
        grown = False
        while held < size:
            piece = next(self._pieces, b"")
            if not piece:
                self._ended = True
                break
            grown = True
            parts.append(piece)
            held += len(piece)
        self._text, self._at = b"".join(parts), 0
        return grown

    def _error(self, what: str) -> InputError:
        return InputError(f"{self._path}: the file {what}", hint=_COPY)


def _end(pattern: re.Pattern[bytes], text: bytes, begin: int) -> int:
    """Return the end of a pattern that matches everywhere, also nothing."""
    found = pattern.match(text, begin)
    return begin if found is None else found.end()
