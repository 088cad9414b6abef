"""Packed profiles of ParaProf, ``.ppk``: a compressed stream of numbers and names."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import MalformedError, reading
from callpath_modeler.printable import shortened
from callpath_modeler.support.input_limits import Budget, budget_of
from cpmodel_tau.measurements import (
    COPY_OR_MEASURE,
    Location,
    Measurements,
    TimerValues,
    host_in,
    times_first,
)

MAGIC = "PPK".encode("utf-16-be")
GZIP = b"\x1f\x8b"

_NEWEST = 2
"""Newest supported format. A file states the format that readers need at least."""
_PIECE = 1 << 20
_MOST_METADATA = 10_000
_MOST_OF_GROUPS = 1000
"""Maximum number of letters in the groups of one timer."""
_OF_A_TEXT, _OF_A_THREAD, _COPIES = 100, 700, 4
"""Memory of a text and of a thread in bytes, and number of copies of values during reading."""
_USER_EVENT = 4 + 4 + 4 * 8


class _Stream:
    """Numbers and texts as Java's DataOutputStream writes them, within the budget of a file."""

    def __init__(self, file: BinaryIO, budget: Budget) -> None:
        self._file, self._budget = file, budget
        self._read = self._memory = 0

    def bytes(self, count: int) -> bytes:
        if count < 0:
            raise MalformedError("a length is negative")
        self._read += count
        self._budget.check(self._read)
        # Reading in pieces limits the memory if the stored length is wrong.
        pieces = []
        while count > 0:
            piece = self._file.read(min(count, _PIECE))
            if not piece:
                raise MalformedError("ends early")
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def hold(self, memory: int) -> None:
        """Account for the memory of a stored object."""
        self._memory += memory
        self._budget.check_memory(self._memory)

    def skip(self, count: int) -> None:
        while count > 0:
            count -= len(self.bytes(min(count, _PIECE)))

    def number(self) -> int:
        found: int = struct.unpack(">i", self.bytes(4))[0]
        return found

    def count(self) -> int:
        found = self.number()
        if found < 0:
            raise MalformedError("a count is negative")
        return found

    def text(self) -> str:
        length: int = struct.unpack(">H", self.bytes(2))[0]
        self.hold(_OF_A_TEXT + length)
        content = self.bytes(length).replace(b"\xc0\x80", b"\0")
        try:
            return content.decode()
        except UnicodeDecodeError:
            # Java encodes characters beyond the basic plane as two surrogates.
            halves = content.decode("utf-8", "surrogatepass" if _is_java(content) else "replace")
            return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def texts(self) -> list[str]:
        return [self.text() for _ in range(self.count())]


def _is_java(content: bytes) -> bool:
    try:
        content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


class PackedProfile(Measurements):
    """A packed profile, read in one pass."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._stored: list[str] = []
        with reading(path, COPY_OR_MEASURE), gzip.open(path) as file:
            self._read(_Stream(cast("BinaryIO", file), budget_of(path)))

    @property
    def hosts(self) -> int:
        """Return the number of distinct host names; the run may state that of its only process."""
        is_single = len({location[:2] for location in self.locations}) == 1
        return super().hosts or int(is_single and host_in(self.metadata) is not None)

    def values(self, metric: str) -> TimerValues:
        """Return the values of a metric."""
        number = self._stored.index(metric)
        pairs = self._pairs[:, number]
        return TimerValues(self._timer, self._location, self._calls, pairs[:, 0], pairs[:, 1])

    def _read(self, stream: _Stream) -> None:
        if stream.bytes(6) != MAGIC:
            raise MalformedError("the file does not begin like a packed profile")
        version, needed = stream.number(), stream.number()
        if needed > _NEWEST:
            raise MalformedError(f"format {needed} of packed profiles is not supported")
        if version >= 2:
            stream.count()
        stream.skip(stream.count())
        if version >= 2:
            self._read_metadata(stream)
        self._stored = stream.texts()
        if not self._stored or len({*self._stored}) < len(self._stored):
            raise MalformedError("the file has no metric, or two with the same name")
        self.metrics = times_first(self._stored)
        self._read_timers(stream)
        stream.texts()
        self._read_locations(stream)

    def _read_metadata(self, stream: _Stream) -> None:
        self.metadata = dict(_attributes(stream))
        for _ in range(stream.count()):
            location = Location(stream.number(), stream.number(), stream.number())
            found = dict(_attributes(stream))
            self.note_host(location, found)
            for key, value in found.items():
                if len(self.metadata) < _MOST_METADATA:
                    self.metadata.setdefault(key, value)

    def _read_timers(self, stream: _Stream) -> None:
        groups = stream.texts()
        for number in range(stream.count()):
            name = stream.text()
            of_timer, letters = [], 0
            for _ in range(stream.count()):
                group = stream.number()
                if not 0 <= group < len(groups):
                    raise MalformedError(f"timer {number} belongs to group {group}")
                of_timer.append(groups[group])
                letters += len(groups[group])
                if letters > _MOST_OF_GROUPS:
                    raise MalformedError(f"the groups of timer {number} have too many letters")
            if self.timers.number(name, "|".join(of_timer)) != number:
                raise MalformedError(f"two timers have the name {shortened(name)!r}")

    def _read_locations(self, stream: _Stream) -> None:
        metrics = len(self._stored)
        entry = np.dtype([("timer", ">i4"), ("calls", ">f8"), ("subrs", ">f8"),
                          ("pairs", ">f8", (metrics, 2))])  # fmt: skip
        timers, locations = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
        calls: list[FloatArray] = [np.zeros(0)]
        pairs: list[FloatArray] = [np.zeros((0, metrics, 2))]
        for _ in range(stream.count()):
            location = Location(stream.number(), stream.number(), stream.number())
            size = stream.count() * entry.itemsize
            stream.hold(_OF_A_THREAD + _COPIES * size)
            content = stream.bytes(size)
            stream.skip(stream.count() * _USER_EVENT)
            if location.node < 0 or location.thread < 0:
                # Means and totals that ParaProf computed.
                continue
            rows = np.frombuffer(content, entry)
            timer = rows["timer"].astype(np.intp)
            if len(timer) and not 0 <= timer.min() <= timer.max() < len(self.timers.names):
                raise MalformedError("a value belongs to no timer")
            if len(np.unique(timer)) < len(timer):
                raise MalformedError("a thread has two values for one timer")
            locations.append(np.full(len(timer), len(self.locations), np.intp))
            self.locations.append(location)
            timers.append(timer)
            calls.append(rows["calls"].astype(np.float64))
            pairs.append(rows["pairs"].astype(np.float64))
        if len({*self.locations}) < len(self.locations) or not self.locations:
            raise MalformedError("the file has no thread, or two with the same number")
        self._timer, self._location = np.concatenate(timers), np.concatenate(locations)
        self._calls, self._pairs = np.concatenate(calls), np.concatenate(pairs)


def _attributes(stream: _Stream) -> Iterator[tuple[str, str]]:
    for kept in range(stream.count()):
        name, value = stream.text().strip(), stream.text().strip()
        if kept < _MOST_METADATA:
            yield name, value
