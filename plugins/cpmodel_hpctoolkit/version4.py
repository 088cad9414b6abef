"""Databases of version 4: contexts in `meta.db`, values in `profile.db`."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Agreement
from cpmodel_hpctoolkit.binary import COPY_IT_AGAIN, BinaryFile, Profile, ProfileFile, ProfileValues
from cpmodel_hpctoolkit.contexts import Collapsed, Detail, Layout, collapse, distinct_of
from cpmodel_hpctoolkit.meta import Meta, read_meta
from cpmodel_hpctoolkit.names import Location, LocationSet, Measure
from cpmodel_hpctoolkit.profile import Database, Exclusive
from cpmodel_hpctoolkit.reduce import Column

_OWN, _ALL = "function", "execution"
_ROUNDING = 1e-9
"""Differences of sums below this share of the sums are rounding."""
_FEW = 16
"""Call paths per value of a process from which on only its values are added up."""


@contextmanager
def opened(directory: Path, detail: Detail) -> Iterator[Version4]:
    """Open the database in `directory`.

    Raises
    ------
    InputError
        If one of its files is missing or damaged.
    """
    for name in ("meta.db", "profile.db"):
        if not (directory / name).is_file():
            raise InputError(f"{directory}: {name} is missing", hint=COPY_IT_AGAIN)
    meta = read_meta(directory / "meta.db")
    with BinaryFile(directory / "profile.db") as file:
        yield Version4(directory, meta, ProfileFile(file, meta.kinds), detail)


def verify(directory: Path) -> list[Agreement]:
    """Return the comparison of the values of a database with their copies in `cct.db`.

    Raises
    ------
    InputError
        If one of its files is missing or damaged.
    """
    if not (directory / "cct.db").is_file():
        raise InputError(f"{directory}: cct.db is missing", hint=COPY_IT_AGAIN)
    meta = read_meta(directory / "meta.db")
    with BinaryFile(directory / "profile.db") as file, BinaryFile(directory / "cct.db") as other:
        return compare(meta, ProfileFile(file, meta.kinds), other)


@dataclass(frozen=True, slots=True)
class _Layout(Layout):
    """The positions of contexts.

    Attributes
    ----------
    own, enclosing, caller : [context numbers], call path of a context, and the call path that
        includes its value within a function, and in all; -1 = none
    """

    own: Int64Array
    enclosing: Int64Array
    caller: Int64Array


class Version4(Database):
    """An open database of version 4."""

    def __init__(self, path: Path, meta: Meta, profiles: ProfileFile, detail: Detail) -> None:
        super().__init__(path, detail, "4", meta.title)
        self._meta = meta
        self._profiles = profiles
        self.places = LocationSet.of(profiles.locations)
        if not self.places.threads:
            raise InputError(f"{path}: no profile is of a thread of a process", hint=COPY_IT_AGAIN)
        self.measures = tuple(self._declared())

    @cached_property
    def layout(self) -> _Layout:
        """Return the call paths with their contexts."""
        meta, collapsed = self._meta, collapse(self._meta.contexts, self.detail)
        own, enclosing = _tables(meta, collapsed, collapsed.node & meta.lexical)
        caller = _tables(meta, collapsed, collapsed.node)[1]
        return _Layout(collapsed.tree, collapsed.row, own, enclosing, caller)

    def of_location(self, measure: Measure, location: Location) -> Exclusive:
        """Return the values of one location."""
        ids = self._meta.metrics[measure.number].in_profile
        return self._exclusive(self._profiles.profiles[location.number], ids)

    def of_all(self, measure: Measure) -> Exclusive | None:
        """Return the sum over all locations; None = not stored."""
        ids = self._meta.metrics[measure.number].in_summary
        summary = self._profiles.summary
        return None if summary is None or not ids else self._exclusive(summary, ids)

    def stored_total(self, measure: Measure) -> float | None:
        """Return the value of the whole program over all locations; None = not stored."""
        ids, summary = self._meta.metrics[measure.number].in_summary, self._profiles.summary
        if summary is None or _ALL not in ids:
            return None
        return self._profiles.whole(summary).get(ids[_ALL], 0.0)

    def _declared(self) -> Iterator[Measure]:
        summary = self._profiles.summary
        streams = [stream for process in self.places.streams for stream in process]
        used = [s for s in streams if self._profiles.profiles[s.number].n_values]
        for number, metric in enumerate(self._meta.metrics):
            if not {_OWN, _ALL} & metric.in_profile.keys():
                continue
            has_data = summary is None or self._occurs(summary, metric.in_summary)
            on_gpu = any(
                self._occurs(self._profiles.profiles[s.number], metric.in_profile) for s in used
            )
            yield Measure(metric.name, number, has_data)
            if on_gpu:
                yield Measure(metric.name, number, has_data=True, on_gpu=True)

    def _occurs(self, profile: Profile, ids: Mapping[str, int]) -> bool:
        if _ALL in ids:
            return self._profiles.whole(profile).get(ids[_ALL], 0.0) != 0
        return _OWN in ids and bool(self._profiles.read(profile, ids[_OWN]).values.any())

    def _exclusive(self, profile: Profile, ids: Mapping[str, int]) -> Exclusive:
        """Return exclusive values, as stored or as differences of inclusive ones."""
        layout = self.layout
        scope, above = (_OWN, layout.enclosing) if _OWN in ids else (_ALL, layout.caller)
        column, noise = self._attributed(self._profiles.read(profile, ids[scope]), above)
        if _ALL in ids:
            total = self._profiles.whole(profile).get(ids[_ALL], 0.0)
        else:
            total = float(column.values.sum())
        return Exclusive(column, noise, total)

    def _attributed(self, found: ProfileValues, above: Int64Array) -> tuple[Column, FloatArray]:
        """Add values to the call paths of their contexts, and subtract them from `above`."""
        layout = self.layout
        contexts, values = found.contexts, found.values
        if len(contexts) and contexts[-1] >= len(layout.own):  # contexts ascend
            known = int(np.searchsorted(contexts, len(layout.own)))
            contexts, values = contexts[:known], values[:known]
        n = len(layout.tree) + 1
        if len(contexts) * _FEW < n:
            # Of 10^6 call paths, a process may have a hundred.
            both = np.concatenate([layout.own.take(contexts), above.take(contexts)])
            rows, place = distinct_of(both)
            gains, takes = place[: len(contexts)], place[len(contexts) :]
            # Without values, the sums are whole numbers.
            own = np.bincount(gains, values, len(rows)).astype(np.float64, copy=False)
            taken = np.bincount(takes, values, len(rows)).astype(np.float64, copy=False)
            first = int(len(rows) > 0 and rows[0] < 0)
            return Column((own - taken)[first:], rows[first:]), (own * _ROUNDING)[first:]
        # Row -1, the last one, collects values that belong to no call path.
        own = np.bincount(layout.own[contexts] % n, values, n)[:-1].astype(np.float64)
        taken = np.bincount(above[contexts] % n, values, n)[:-1].astype(np.float64)
        return Column(own - taken), own * _ROUNDING


def _tables(meta: Meta, collapsed: Collapsed, nested: BoolArray) -> tuple[Int64Array, Int64Array]:
    """Return the call path of each context, and the call path that includes its values.

    Both have one entry per context number. They are -1 for contexts within a call path, whose
    values are part of it already.
    """
    own = np.full(int(meta.ids.max()) + 1, -1, np.int64)
    above = own.copy()
    own[meta.ids[collapsed.node]] = collapsed.row[collapsed.node]
    above[meta.ids[nested]] = collapsed.above[nested]
    return own, above


_SECTION = struct.Struct("<Q")
_TABLE = struct.Struct("<QLB")
_VALUE = np.dtype([("profile", "<u4"), ("value", "<f8")])
_INDEX = np.dtype([("metric", "<u2"), ("start", "<u8")])
_CONTEXT = np.dtype(
    {
        "names": ["n_values", "values", "n_metrics", "index"],
        "formats": ["<u8", "<u8", "<u2", "<u8"],
        "offsets": [0, 8, 16, 24],
        "itemsize": 32,
    }
)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Values of threads; columns [values].

    Attributes
    ----------
    place : context and profile as one number
    metric : number of the metric in a scope
    value : measured value
    """

    place: Int64Array
    metric: Int64Array
    value: FloatArray


def compare(meta: Meta, profiles: ProfileFile, file: BinaryFile) -> list[Agreement]:
    """Return the comparison of every value of a thread in `profile.db` with `cct.db`, an open file.

    Raises
    ------
    InputError
        If one of the files is damaged.
    """
    file.check_header(b"ctxt", b"__ctx.db")
    transposed = _transposed(file)
    found = []
    for metric in meta.metrics:
        counts = [_count(profiles, transposed, scope) for scope in metric.in_profile.values()]
        compared, differing = (sum(column) for column in zip(*counts, strict=True))
        found.append(Agreement(metric.name, compared, differing))
    return found


def _count(profiles: ProfileFile, transposed: _Cells, metric: int) -> tuple[int, int]:
    """Return the number of values of a metric in both files, and how many differ or are missing."""
    places, values = [np.empty(0, np.int64)], [np.empty(0)]
    for number, profile in zip(profiles.numbers, profiles.profiles, strict=True):
        of_profile = profiles.read(profile, metric)
        places.append(of_profile.contexts << 32 | number)
        values.append(of_profile.values)
    chosen = transposed.metric == metric
    theirs, their_values = transposed.place[chosen], transposed.value[chosen]
    ours, our_values = np.concatenate(places), np.concatenate(values)
    both, mine, other = np.intersect1d(ours, theirs, return_indices=True)
    total = len(ours) + len(theirs) - len(both)
    equal = np.count_nonzero(our_values[mine] == their_values[other])
    return total, total - int(equal)


def _transposed(file: BinaryFile) -> _Cells:
    blocks = list(_blocks(file))
    if not blocks:
        return _Cells(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    places, metrics, values = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return _Cells(places, metrics, values)


def _blocks(
    file: BinaryFile,
) -> Iterator[tuple[Int64Array, Int64Array, FloatArray]]:
    """Yield the place, metric and value of the stored values of each context."""
    (table,) = file.unpack(_SECTION, 24, "the section table")
    first, count, size = file.unpack(_TABLE, table, "the contexts")
    if size < _CONTEXT.itemsize:
        file.refuse(table, f"contexts of {size} bytes")
    rows = np.frombuffer(file.read(first, count * size, "the table of contexts"), np.uint8)
    contexts = rows.reshape(count, size)[:, : _CONTEXT.itemsize].copy().view(_CONTEXT)[:, 0]
    for context in np.flatnonzero(contexts["n_values"]).tolist():
        n_values, at, n_metrics, index_at = contexts[context].tolist()
        stored = file.array(_VALUE, at, n_values, "the values of a context")
        index = file.array(_INDEX, index_at, n_metrics, "the metrics of a context")
        starts = np.append(index["start"], n_values)
        if np.any(starts[1:] < starts[:-1]) or starts[0] != 0:
            file.refuse(index_at, "the index of metrics is not ascending")
        metric = np.repeat(index["metric"].astype(np.int64), np.diff(starts).astype(np.int64))
        place = np.int64(context) << 32 | stored["profile"].astype(np.int64)
        yield place, metric, stored["value"].astype(np.float64)
