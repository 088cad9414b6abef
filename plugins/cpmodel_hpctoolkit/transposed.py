"""The file `cct.db`: the values of `profile.db` by context, used for verification."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from callpath_modeler.readers.base import Agreement
from cpmodel_hpctoolkit.binary import BinaryFile
from cpmodel_hpctoolkit.meta import Meta
from cpmodel_hpctoolkit.profiles import ProfileFile

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
