"""Calls and bytes of every MPI function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.units import counted
from cpmodel_commspec.collectives import booked
from cpmodel_commspec.operations import (
    COLLECTIVES,
    FIELDS,
    Communicator,
    Recorded,
    Shape,
)

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
