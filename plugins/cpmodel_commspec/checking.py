"""Comparison of an expanded specification with a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.units import counted
from cpmodel_commspec.collectives import booked
from cpmodel_commspec.operations import (
    COLLECTIVES,
    FIELDS,
    TOGETHER,
    Communicator,
    Kind,
    Recorded,
    Shape,
    Traced,
)
from cpmodel_commspec.specification import Specification

_Groups = frozenset[tuple[int, ...]]


def differences(told: Specification | Traced, traced: Traced) -> Iterator[str]:
    """Yield the first difference of each rank, in words.

    The comparison covers functions, modes, partners, tags, bytes, roots, communicators, waits and
    the order of each rank. Names of communicators and call paths may differ.
    """
    if told.processes != len(traced.ranks):
        yield f"{told.processes} ranks in the specification, {len(traced.ranks)} in the trace"
        return
    common: dict[tuple[object, ...], int] = {}
    ours = _numbers(told.shapes, told.communicators, common)
    theirs = _numbers(traced.shapes, traced.communicators, common)
    counts = told.counts()
    for rank, recorded in enumerate(traced.ranks):
        if counts[rank] != len(recorded.shapes):
            yield (
                f"rank {rank}: {counts[rank]} operations in the specification, "
                f"{len(recorded.shapes)} in the trace"
            )
            continue
        unrolled = told.of_rank(rank)
        differs = ours[unrolled.shapes] != theirs[recorded.shapes]
        differs |= (unrolled.values != recorded.values).any(axis=1)
        if differs.any():
            at = int(np.flatnonzero(differs)[0])
            yield (
                f"rank {rank}, operation {at + 1} of {len(recorded.shapes)}: "
                f"{_told(told.shapes, told.communicators, unrolled, at)} in the specification, "
                f"{_told(traced.shapes, traced.communicators, recorded, at)} in the trace"
            )


def _numbers(
    shapes: tuple[Shape, ...],
    communicators: tuple[Communicator, ...],
    common: dict[tuple[object, ...], int],
) -> Int64Array:
    """Give equal shapes the same number, [shapes]."""
    numbers, before = [], Counter[_Groups]()
    known: list[tuple[_Groups, int]] = []
    for communicator in communicators:
        # Of communicators with the same groups, the first is not the second.
        groups = frozenset(communicator.groups)
        known.append((groups, before[groups]))
        before[groups] += 1
    for shape in shapes:
        groups, alike = known[shape.comm] if shape.comm >= 0 else (frozenset(), 0)
        key = (shape.kind, shape.name, groups, alike, shape.form, shape.awaited, shape.places,
               shape.is_awaited, shape.call)  # fmt: skip
        numbers.append(common.setdefault(key, len(common)))
    return np.array(numbers, np.int64)


def _told(
    shapes: tuple[Shape, ...], communicators: tuple[Communicator, ...], one: Recorded, at: int
) -> str:
    shape = shapes[int(one.shapes[at])]
    numbers = dict(zip(FIELDS, one.values[at].tolist(), strict=True))
    words = [shape.call or (shape.name if shape.kind in TOGETHER else str(shape.kind))]
    if shape.kind is Kind.WAIT:
        words.append(f"for {shape.awaited} {' '.join(map(str, shape.places))}".rstrip())
    words += [f"{field} {numbers[field]}" for field in shape.fields]
    if shape.comm >= 0:
        words.append(f"on {communicators[shape.comm].name}")
    return " ".join(words)


_BYTES, _RECEIVED, _ROOT = (FIELDS.index(name) for name in ("bytes", "received", "root"))


@dataclass(slots=True)
class Volume:
    """The calls of a function by all ranks, and the bytes as Score-P counts them."""

    calls: int = 0
    sent: int = 0
    received: int = 0

    def __str__(self) -> str:
        """Return the volume in words."""
        text = counted(self.calls, "call")
        if self.sent or self.received:
            text += f", {self.sent} bytes sent, {self.received} received"
        return text


def volumes(
    shapes: Sequence[Shape], communicators: Sequence[Communicator], ranks: Sequence[Recorded]
) -> dict[str, Volume]:
    """Return the volume of each function, in the order of the names.

    Operations of a trace without the names of calls have the name of their kind.
    """
    found: dict[str, Volume] = {}
    for rank, one in enumerate(ranks):
        for number, count in zip(*np.unique(one.shapes, return_counts=True), strict=True):
            shape = shapes[int(number)]
            volume = found.setdefault(shape.call or shape.name or str(shape.kind), Volume())
            volume.calls += int(count)
            rows = one.values[one.shapes == number]
            for end in shape.ends:
                size = int(rows[:, end.columns[2]].sum())
                if end.is_sent:
                    volume.sent += size
                else:
                    volume.received += size
            if shape.kind in COLLECTIVES:
                group = next(x for x in communicators[shape.comm].groups if rank in x)
                about = rows[:, [_ROOT, _BYTES, _RECEIVED]]
                numbers, counts = np.unique(about, axis=0, return_counts=True)
                for row, times in zip(numbers.tolist(), counts.tolist(), strict=True):
                    sent, received = booked(
                        shape.name, shape.form, len(group), group.index(rank), *row
                    )
                    volume.sent += times * sent
                    volume.received += times * received
    return dict(sorted(found.items()))


def unequal(ours: Mapping[str, Volume], theirs: Mapping[str, Volume]) -> Iterator[str]:
    """Yield the functions whose volumes differ, in words."""
    for name in sorted({*ours, *theirs}):
        one, other = ours.get(name, Volume()), theirs.get(name, Volume())
        if one != other:
            yield f"{name}: {one} in the specification; {other} in the trace"
