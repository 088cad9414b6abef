"""Tags of messages: the numbers by which messages of one call site are different statements."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.partners import is_series

_MOST_TAGS = 8
"""Tags of one call site that tell statements apart; more are numbers of one statement."""


class Tags(Enum):
    """The origin of the number of a tag."""

    ZERO = "zero"
    RANK = "rank"
    PEER = "peer"
    NONE = "none"
    """All tags have one number."""

    def number(self, rank: int | Int64Array, tags: Int64Array, peers: Int64Array) -> Int64Array:
        """Return the number of the tag of each message [n] of a rank, or of its rank [n]."""
        if self is Tags.ZERO:
            return tags
        if self is Tags.RANK:
            return tags - rank
        return tags - peers if self is Tags.PEER else np.zeros_like(tags)


def choose_tags(pairs: Sequence[tuple[int, Int64Array, Int64Array]]) -> Tags:
    """Return the origin with the fewest numbers.

    Parameters
    ----------
    pairs : for each rank, the rank, the tags of its messages and the partners
    """
    if is_series([tags for _, tags, _ in pairs]):
        return Tags.NONE
    counts = {
        tags: len(np.unique(np.concatenate([tags.number(*pair) for pair in pairs])))
        for tags in (Tags.ZERO, Tags.RANK, Tags.PEER)
    }
    best = min(counts, key=counts.__getitem__)
    return best if counts[best] <= _MOST_TAGS else Tags.NONE
