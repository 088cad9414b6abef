"""The messages of a step, as a program of coNCePTuaL tells them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from cpmodel_commspec.generators.conceptual.phrases import (
    factor,
    number,
)
from cpmodel_commspec.generators.statements import INSTEAD_OR_IN_C
from cpmodel_commspec.specification import Specification, Step, walk


@dataclass(frozen=True, slots=True)
class StepMessages:
    """The messages of a step.

    Attributes
    ----------
    ranks : who executes the step, [n]
    peers, tags, sizes : [n x rounds of each loop]
    """

    ranks: Int64Array
    peers: Int64Array
    tags: Int64Array
    sizes: Int64Array

    def of(self, places: Sequence[int]) -> StepMessages:
        """Return the messages of some ranks."""
        rows = list(places)
        return StepMessages(self.ranks[rows], self.peers[rows], self.tags[rows], self.sizes[rows])

    def from_senders(self) -> StepMessages | None:
        """Return received messages as their senders see them; None if these differ by round."""
        flat = self.peers.reshape(len(self.ranks), -1)
        order = np.argsort(flat, axis=0, kind="stable")
        senders = np.take_along_axis(flat, order, 0)
        if (senders != senders[:, :1]).any() or len(np.unique(senders[:, 0])) < len(senders):
            return None

        def sorted_(values: Int64Array) -> Int64Array:
            rows = values.reshape(len(values), -1)
            return np.take_along_axis(rows, order, 0).reshape(values.shape)

        receivers = np.broadcast_to(self.ranks[:, np.newaxis], flat.shape)
        return StepMessages(
            senders[:, 0],
            np.take_along_axis(receivers, order, 0).reshape(self.peers.shape),
            sorted_(self.tags),
            sorted_(self.sizes),
        )

    def equals(self, other: StepMessages) -> bool:
        """Tell whether both are the same messages."""
        mine = (self.ranks, self.peers, self.tags, self.sizes)
        theirs = (other.ranks, other.peers, other.tags, other.sizes)
        return all(map(np.array_equal, mine, theirs))


def message_phrase(messages: StepMessages) -> str:
    """Return the words for a message: its size, and its tag unless all tags are 0."""
    ranks = messages.ranks.tolist()
    size = factor(number(messages.sizes, ranks))
    if not messages.tags.any():
        return f"A {size} BYTE MESSAGE"
    return f"A {size} BYTE MESSAGE USING TAG {factor(number(messages.tags, ranks))}"


def require_distinct_messages(told: Specification) -> None:
    """Raise `DataError` if ranks and tags do not tell messages of communicators apart."""
    seen: dict[int, set[tuple[int, int, int]]] = {}
    for node, around in walk(told.body):
        if not isinstance(node, Step):
            continue
        shape = told.shapes[node.shape]
        counts = [loop.count for loop in around]
        for end in shape.ends:
            if end.is_sent:
                peers = node.numbers[end.peer].values(node.ranks, counts)
                tags = node.numbers[end.tag].values(node.ranks, counts).ravel()
                own = np.repeat(np.array(node.ranks, np.int64), peers[0].size)
                peers = node.partners[end.peer].peer(own, peers.ravel())
                pairs = np.unique(np.stack([own, peers, tags], axis=1), axis=0)
                seen.setdefault(shape.comm, set()).update(map(tuple, pairs.tolist()))
    total = sum(map(len, seen.values()))
    if total > len(set().union(*seen.values())):
        raise DataError(
            "no program: messages of two communicators have the same ranks and tags, and "
            "coNCePTuaL has one communicator",
            hint=INSTEAD_OR_IN_C,
        )
