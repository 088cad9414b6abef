"""Test that receives match sends, and that all members call the same collectives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.operations import FIELDS, TOGETHER, Recorded
from cpmodel_commspec.specification import Specification


def mismatches(told: Specification) -> Iterator[str]:
    """Yield the reasons why the ranks would not reach the end, in words."""
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


def _messages(told: Specification, ranks: Sequence[Recorded]) -> tuple[Int64Array, Int64Array]:
    """Return (sender, receiver, communicator, tag, bytes) of all messages, sorted but for bytes.

    Messages of one sender, receiver, communicator and tag stay in their order, which is that in
    which they are matched.
    """
    ends = {end for shape in told.shapes for end in shape.ends}
    comms = np.array([shape.comm for shape in told.shapes], np.int64)
    tables: dict[bool, list[Int64Array]] = {True: [], False: []}
    for end in sorted(ends):
        has_end = np.array([end in shape.ends for shape in told.shapes], np.bool_)
        columns = list(end.columns)
        for rank, one in enumerate(ranks):
            here = np.flatnonzero(has_end[one.shapes])
            peer, tag, size = one.values[here][:, columns].T
            own = np.full(len(here), rank)
            first, second = (own, peer) if end.is_sent else (peer, own)
            about = [here, first, second, comms[one.shapes[here]], tag, size]
            tables[end.is_sent].append(np.stack(about, axis=1))
    return _sorted(tables[True]), _sorted(tables[False])


def _sorted(parts: list[Int64Array]) -> Int64Array:
    """Return rows of (operation, sender, receiver, communicator, tag, bytes) without the first."""
    table = np.concatenate([np.empty((0, 6), np.int64), *parts])
    # A rank may have messages of a kind before those of another: the operation keeps their order.
    order = np.lexsort([table[:, k] for k in (0, 4, 3, 2, 1)])
    return table[order, 1:]


def _together(told: Specification, one: Recorded, number: int) -> bytes:
    """Return the collective calls of a rank on a communicator, in a form that compares."""
    names = sorted({shape.name for shape in told.shapes})
    codes = np.array([names.index(shape.name) for shape in told.shapes], np.int64)
    is_meant = [shape.comm == number and shape.kind in TOGETHER for shape in told.shapes]
    here = np.array(is_meant, np.bool_)[one.shapes]
    roots = one.values[:, FIELDS.index("root")]
    return np.stack([codes[one.shapes], roots])[:, here].tobytes()
