"""`profile.db`: the values of a version 4 database, a profile at a time."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpmodel_hpctoolkit.binary import BinaryFile
from cpmodel_hpctoolkit.locations import Location

_SECTIONS = struct.Struct("<QQQQ")
_TABLE = struct.Struct("<QLB")
_PROFILE = struct.Struct("<QQL4xQQ")
_FLAGS = struct.Struct("<L")
_TUPLE = struct.Struct("<H")
_IDENTIFIER = np.dtype(
    {
        "names": ["kind", "flags", "logical", "physical"],
        "formats": ["u1", "<u2", "<u4", "<u8"],
        "offsets": [0, 2, 4, 8],
        "itemsize": 16,
    }
)
_VALUE = np.dtype([("metric", "<u2"), ("value", "<f8")])
_INDEX = np.dtype([("context", "<u4"), ("start", "<u8")])
_ACCELERATORS = frozenset({"GPUDEVICE", "GPUCONTEXT", "GPUSTREAM"})
_IS_PHYSICAL = 1
_SMALLEST = 40
"""Bytes of a profile's record in the first releases; later ones are longer."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the values of a profile lie.

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
class Values:
    """The values of one metric of one profile.

    Attributes
    ----------
    contexts : int64 [n], number of the context; 0 is the whole program
    values : [n]
    """

    contexts: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def whole(self) -> float:
        """The value of the whole program."""
        return float(self.values[self.contexts == 0].sum())


class ProfileFile:
    """An open `profile.db`.

    Attributes
    ----------
    summary : the sums over all profiles, or None
    profiles : all others
    numbers : their places in the file's table, the summary counted
    locations : whose they are
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
        for number, place in enumerate(range(first, first + count * size, size)):
            self._add(number, place, has_flags=size >= _SMALLEST + _FLAGS.size)

    def _add(self, number: int, place: int, *, has_flags: bool) -> None:
        file = self._file
        n_values, values, n_contexts, index, identifiers = file.unpack(_PROFILE, place, "a profile")
        if n_values:
            file.check(values, n_values * _VALUE.itemsize, "the values of a profile")
            file.check(index, n_contexts * _INDEX.itemsize, "the contexts of a profile")
        profile = Profile(place, values, n_values, index, n_contexts)
        (flags,) = file.unpack(_FLAGS, place + 40, "a profile") if has_flags else (0,)
        if flags & 1 or not identifiers:
            self.summary = self.summary or profile
            return
        self.profiles.append(profile)
        self.numbers.append(number)
        self.locations.append(self._location(identifiers))

    def _location(self, at: int) -> Location:
        (count,) = self._file.unpack(_TUPLE, at, "an identifier tuple")
        rank, node, on_gpu = -1, "", False
        parts = self._file.array(_IDENTIFIER, at + 8, count, "an identifier tuple")
        for kind, flags, logical, physical in parts.tolist():
            name = self._kinds[kind] if kind < len(self._kinds) else ""
            if name == "RANK":
                rank = logical
            elif name == "NODE":
                node = str(physical if flags & _IS_PHYSICAL else logical)
            on_gpu |= name in _ACCELERATORS
        return Location(len(self.profiles) - 1, rank, on_gpu, node)

    def metrics_in(self, profile: Profile) -> frozenset[int]:
        """Return the numbers of the metrics that are not zero for the whole program."""
        if not profile.n_values or not profile.n_contexts:
            return frozenset()
        count = min(2, profile.n_contexts)
        index = self._file.array(_INDEX, profile.index, count, "the contexts of a profile")
        if index["context"][0] != 0:
            return frozenset()
        stop = int(index["start"][1]) if count == 2 else profile.n_values
        size = min(stop, profile.n_values)
        values = self._file.array(_VALUE, profile.values, size, "the values of a profile")
        return frozenset(values["metric"][values["value"] != 0].tolist())

    def read(self, profile: Profile, metric: int) -> Values:
        """Return the values of the metric with this number, in order of the file."""
        if not profile.n_values:
            return Values(np.empty(0, np.int64), np.empty(0))
        values = self._file.array(
            _VALUE, profile.values, profile.n_values, "the values of a profile"
        )
        chosen = np.flatnonzero(values["metric"] == metric)
        index = self._file.array(
            _INDEX, profile.index, profile.n_contexts, "the contexts of a profile"
        )
        starts = index["start"]
        if len(starts) and (np.any(starts[1:] < starts[:-1]) or starts[-1] > profile.n_values):
            self._file.refuse(profile.index, "an index of contexts that is out of order")
        starts = starts.astype(np.int64)
        counts = np.diff(starts, append=profile.n_values)
        first = int(starts[0]) if len(starts) else profile.n_values
        owner = np.repeat(index["context"], counts)
        chosen = chosen[chosen >= first]
        return Values(
            owner[chosen - first].astype(np.int64), values["value"][chosen].astype(np.float64)
        )
