"""Binary database files: checked reads, and the file `profile.db`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import FloatArray, Int64Array
from callpath_modeler.errors import InputError, reading
from cpmodel_hpctoolkit.names import Location

COPY_IT_AGAIN = "copy the database again, or run hpcprof on the measurements again"
_MAGIC = b"HPCTOOLKIT"
_LONGEST_TEXT = 1 << 16
_TEXTS = 1 << 24
"""Maximum number of letters beyond the file size, because texts may share their ends."""
MAJOR = 4


class BinaryFile:
    """An open file of a version 4 database.

    Attributes
    ----------
    path : file, for messages
    size : length in bytes
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, COPY_IT_AGAIN):
            self._stream = path.open("rb", buffering=0)
            self.size = self._stream.seek(0, 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()

    def refuse(self, offset: int, what: str) -> NoReturn:
        """Raise `InputError` about the bytes at `offset`."""
        raise InputError(f"{self.path}: {what} (byte {offset:#x})", hint=COPY_IT_AGAIN)

    def check(self, offset: int, size: int, what: str) -> None:
        """Raise `InputError` unless the file has `size` bytes from `offset` on."""
        if offset < 0 or size < 0 or offset + size > self.size:
            self.refuse(offset, f"{what} of {size} bytes extends beyond the end ({self.size:#x})")

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return exactly `size` bytes from `offset` on."""
        self.check(offset, size, what)
        pieces = []
        with reading(self.path, COPY_IT_AGAIN):
            self._stream.seek(offset)
            while size > 0:
                piece = self._stream.read(size)
                if not piece:
                    self.refuse(offset, f"{what} ends early")
                pieces.append(piece)
                size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def unpack(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        """Return the numbers of a structure."""
        return layout.unpack(self.read(offset, layout.size, what))

    def array(
        self, dtype: np.dtype[np.void], offset: int, count: int, what: str
    ) -> NDArray[np.void]:
        """Return `count` consecutive structures."""
        size = count * dtype.itemsize
        return np.frombuffer(self.read(offset, size, what), dtype)

    def check_header(self, kind: bytes, footer: bytes) -> None:
        """Raise `InputError` unless this is a complete file of version 4 and of the given kind."""
        if self.size == 0:
            raise InputError(f"{self.path}: the file is empty", hint=COPY_IT_AGAIN)
        head = self.read(0, min(16, self.size), "the header")
        if len(head) < 16 or head[:10] != _MAGIC or head[10:14] != kind:
            self.refuse(0, f"this is not the header of an HPCToolkit {self.path.name}")
        if head[14] != MAJOR:
            raise InputError(
                f"{self.path}: version {head[14]}.{head[15]} of the format is unknown (byte 0xe)",
                hint="run hpcprof of HPCToolkit 2022.10 or later on the measurements",
            )
        if self.read(self.size - 8, 8, "the footer") != footer:
            self.refuse(self.size - 8, f"the file is cut off: {footer.decode()} is missing")


class InMemoryFile(BinaryFile):
    """A binary file in memory, for following pointers.

    Attributes
    ----------
    data : bytes of the file
    words : the same as little-endian 64-bit words, without an incomplete last word
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.data = super().read(0, self.size, "the file")
        self.words = np.frombuffer(self.data, "<u8", self.size // 8)
        self._texts: dict[int, str] = {}
        self._letters = 0

    def read(self, offset: int, size: int, what: str) -> bytes:
        """Return exactly `size` bytes from `offset` on."""
        self.check(offset, size, what)
        return self.data[offset : offset + size]

    def text(self, offset: int, what: str) -> str:
        """Return the text that begins at `offset`; "" at 0."""
        if offset == 0:
            return ""
        if offset in self._texts:
            return self._texts[offset]
        self.check(offset, 1, what)
        end = self.data.find(b"\0", offset, offset + _LONGEST_TEXT)
        if end < 0:
            self.refuse(offset, f"{what} has no end")
        # Overlapping texts could need memory that grows with the square of the file size.
        self._letters += end - offset
        if self._letters > _TEXTS + self.size:
            self.refuse(offset, "texts overlap each other")
        self._texts[offset] = self.data[offset:end].decode("utf-8", "replace")
        return self._texts[offset]


_SECTIONS = struct.Struct("<QQQQ")
_TABLE = struct.Struct("<QLB")
_PROFILE: Mapping[str, Sequence[object]] = {
    "names": ["n_values", "values", "n_contexts", "index", "identifiers", "flags"],
    "formats": ["<u8", "<u8", "<u4", "<u8", "<u8", "<u4"],
    "offsets": [0, 8, 16, 24, 32, 40],
}
_TUPLE = struct.Struct("<H")
_IDENTIFIER = struct.Struct("<BxHLQ")
_VALUE = np.dtype([("metric", "<u2"), ("value", "<f8")])
_INDEX = np.dtype([("context", "<u4"), ("start", "<u8")])
_ACCELERATORS = frozenset({"GPUDEVICE", "GPUCONTEXT", "GPUSTREAM"})
_IS_PHYSICAL = 1
_SMALL = 1 << 16
"""Number of contexts and of values of a profile up to which they are kept."""
_SMALLEST = 40
"""Size of a profile's record in the first releases, in bytes; later ones are longer."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Position of the values of a profile.

    Attributes
    ----------
    place : offset of its record, for messages
    values, n_values : offset and number of its values
    index, n_contexts : offset and number of its contexts
    """

    place: int
    values: int
    n_values: int
    index: int
    n_contexts: int


@dataclass(frozen=True, slots=True)
class ProfileValues:
    """ProfileValues of one metric in one profile.

    Attributes
    ----------
    contexts : int64 [n], number of the context; 0 = whole program
    values : [n], as stored
    """

    contexts: Int64Array
    values: FloatArray


_Contents = tuple[Int64Array, Int64Array, Callable[[int], NDArray[np.void]]]
"""Contexts of a profile, [n], the start of the values of each, [n + 1], and its first values."""


class ProfileFile:
    """An open `profile.db`.

    Attributes
    ----------
    summary : sums over all profiles, or None
    profiles : other profiles
    numbers : positions of the profiles in the table of the file, which includes the summary
    locations : location of each profile
    """

    def __init__(self, file: BinaryFile, kinds: tuple[str, ...]) -> None:
        file.check_header(b"prof", b"_prof.db")
        self._file = file
        self._kinds = kinds
        _, table, _, _ = file.unpack(_SECTIONS, 16, "the section table")
        first, count, size = file.unpack(_TABLE, table, "the profiles")
        if size < _SMALLEST:
            file.refuse(table, f"profiles of {size} bytes")
        file.check(first, count * size, "the table of profiles")
        self.summary: Profile | None = None
        self.profiles: list[Profile] = []
        self.numbers: list[int] = []
        self.locations: list[Location] = []
        self._latest: tuple[Profile, _Contents] | None = None
        known = 6 if size >= _SMALLEST + 4 else 5
        record: Any = {name: parts[:known] for name, parts in _PROFILE.items()} | {"itemsize": size}
        records = file.array(np.dtype(record), first, count, "the profiles")
        for number, found in enumerate(records.tolist()):
            self._add(number, first + number * size, *found)

    def _add(
        self,
        number: int,
        place: int,
        n_values: int,
        values: int,
        n_contexts: int,
        index: int,
        identifiers: int,
        flags: int = 0,
    ) -> None:
        file = self._file
        if n_values:
            file.check(values, n_values * _VALUE.itemsize, "the values of a profile")
            file.check(index, n_contexts * _INDEX.itemsize, "the contexts of a profile")
        profile = Profile(place, values, n_values, index, n_contexts)
        if flags & 1 or not identifiers:
            self.summary = self.summary or profile
            return
        self.profiles.append(profile)
        self.numbers.append(number)
        self.locations.append(self._location(identifiers))

    def _location(self, at: int) -> Location:
        (count,) = self._file.unpack(_TUPLE, at, "an identifier tuple")
        rank, node, on_gpu, thread = -1, "", False, 0
        parts = self._file.read(at + 8, count * _IDENTIFIER.size, "an identifier tuple")
        for kind, flags, logical, physical in _IDENTIFIER.iter_unpack(parts):
            name = self._kinds[kind] if kind < len(self._kinds) else ""
            if name == "RANK":
                rank = logical
            elif name == "THREAD":
                thread = logical
            elif name == "NODE":
                # The names of files of older databases have the host id in this form.
                node = f"{physical if flags & _IS_PHYSICAL else logical:08x}"
            on_gpu |= name in _ACCELERATORS
        return Location(len(self.profiles) - 1, rank, on_gpu, node, thread)

    def whole(self, profile: Profile) -> dict[int, float]:
        """Return the values of the whole program by number of the metric."""
        if not profile.n_values:
            return {}
        contexts, starts, values = self._contents(profile)
        if contexts[0] != 0:
            return {}
        of_program = values(int(starts[1]))
        return dict(zip(of_program["metric"].tolist(), of_program["value"].tolist(), strict=True))

    def read(self, profile: Profile, metric: int) -> ProfileValues:
        """Return the values of the metric with this number, in order of the file."""
        if not profile.n_values:
            return ProfileValues(np.empty(0, np.int64), np.empty(0))
        contexts, starts, read = self._contents(profile)
        values = read(profile.n_values)
        chosen = np.flatnonzero(values["metric"] == metric)
        owner = np.repeat(contexts, starts[1:] - starts[:-1])[chosen]
        return ProfileValues(owner, values["value"][chosen].astype(np.float64))

    def _contents(self, profile: Profile) -> _Contents:
        """Return the contexts of a profile, the starts of their values, and the values."""
        if self._latest is not None and self._latest[0] is profile:
            return self._latest[1]
        contexts, starts = self._read_index(profile)

        def values(count: int) -> NDArray[np.void]:
            """Return the first values."""
            return self._file.array(_VALUE, profile.values, count, "the values of a profile")

        found: _Contents = contexts, starts, values
        # Each is needed twice. Of many processes, each has a small one.
        if profile.n_values <= _SMALL:
            every = values(profile.n_values)
            found = contexts, starts, lambda count: every[:count]
        self._latest = (profile, found) if profile.n_contexts <= _SMALL else None
        return found

    def _read_index(self, profile: Profile) -> tuple[Int64Array, Int64Array]:
        index = self._file.array(
            _INDEX, profile.index, profile.n_contexts, "the contexts of a profile"
        )
        contexts = index["context"].astype(np.int64)
        starts = np.empty(len(index) + 1, np.int64)
        starts[:-1], starts[-1] = index["start"], profile.n_values
        if starts[0] != 0:
            self._file.refuse(profile.index, "the index of contexts does not match the values")
        if np.any(starts[1:] < starts[:-1]) or np.any(contexts[1:] <= contexts[:-1]):
            self._file.refuse(profile.index, "the index of contexts is not ascending")
        return contexts, starts
