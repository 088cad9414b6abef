"""Whether what is sent is received, and whether all members of a communicator do the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cpmodel_commspec.operations import FIELDS, MESSAGES, TOGETHER, Kind, Recorded
from cpmodel_commspec.specification import Specification

_COLUMNS = [FIELDS.index(field) for field in ("peer", "tag", "bytes")]
_DIRECTION = {kind: 1 if kind in {Kind.SEND, Kind.ISEND} else 2 for kind in MESSAGES}


def mismatches(told: Specification) -> Iterator[str]:
    """Yield what would keep the ranks from running to the end, in words."""
    ranks = [told.of_rank(rank) for rank in range(told.processes)]
    sent, received = _messages(told, ranks)
    same = sent.shape == received.shape and (sent == received).all()
    if not same:
        pairs = {tuple(row) for row in sent.tolist()} ^ {tuple(row) for row in received.tolist()}
        yield (
            f"{len(sent)} messages are sent and {len(received)} received; of other ranks, tags or "
            f"sizes are {len(pairs)} of them"
        )
    for number, communicator in enumerate(told.communicators):
        for group in communicator.groups:
            calls = {_together(told, ranks[rank], number) for rank in group}
            if len(calls) > 1:
                yield (
                    f"ranks {group[0]} to {group[-1]} do not all make the same collective calls "
                    f"on {communicator.name}"
                )
                break


def _messages(
    told: Specification, ranks: Sequence[Recorded]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (sender, receiver, communicator, tag, bytes) of all messages, sorted but for bytes.

    Messages of one sender, receiver, communicator and tag stay in their order, which is that in
    which they are matched.
    """
    kinds = np.array([_DIRECTION.get(shape.kind, 0) for shape in told.shapes], np.int64)
    comms = np.array([shape.comm for shape in told.shapes], np.int64)
    tables: dict[int, list[NDArray[np.int64]]] = {1: [], 2: []}
    for rank, one in enumerate(ranks):
        for direction, parts in tables.items():
            here = np.flatnonzero(kinds[one.shapes] == direction)
            peer, tag, size = one.values[here][:, _COLUMNS].T
            ends = (np.full(len(here), rank), peer)
            first, second = ends if direction == 1 else ends[::-1]
            parts.append(np.stack([first, second, comms[one.shapes[here]], tag, size], axis=1))
    return _sorted(tables[1]), _sorted(tables[2])


def _sorted(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    table = np.concatenate(parts) if parts else np.empty((0, 5), np.int64)
    return table[np.lexsort(table[:, 3::-1].T)]


def _together(told: Specification, one: Recorded, number: int) -> bytes:
    """Return what a rank does together with all others of a communicator, to be compared."""
    names = sorted({shape.name for shape in told.shapes})
    meant = np.array(
        [
            1 + names.index(shape.name) if shape.comm == number and shape.kind in TOGETHER else 0
            for shape in told.shapes
        ],
        np.int64,
    )
    codes, roots = meant[one.shapes], one.values[:, FIELDS.index("root")]
    return np.stack([codes, roots])[:, codes > 0].tobytes()
