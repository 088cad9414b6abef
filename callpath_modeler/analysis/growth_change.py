"""Changes of growth between two experiments, from the probabilities of all hypotheses.

A call path that follows no hypothesis still has a most probable one. So a change of growth is
reported only if the predictions beyond the data differ as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, Int8Array, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth
from callpath_modeler.modeling.validation import growth_probabilities

_CHUNK = 8_192
"""Rows whose probabilities of all growths are in memory together."""


@dataclass(frozen=True, slots=True, eq=False)
class GrowthChange:
    """Growth before and after, each [n].

    Attributes
    ----------
    before, after : rows of the models of base and of new for a call path; -1 = none
    faster, slower : probability that new grows faster, or more slowly; NaN = one has no model
    mark : 1 = new grows faster with the required probability, -1 = more slowly, else 0
    """

    before: IntArray
    after: IntArray
    faster: FloatArray
    slower: FloatArray
    mark: Int8Array


def growth_change(
    base: Fitted,
    new: Fitted,
    rows: tuple[IntArray, IntArray],
    beyond: Int8Array,
    confidence: float,
) -> GrowthChange:
    """Return the changes of growth between models, row by row.

    The hypothesis of a model and its alternatives each have a probability. The probability of a
    pair is the product, because the experiments are independent.

    Parameters
    ----------
    rows : [n] and [n], rows of the two models to compare; -1 = none
    beyond : [n] sign of new minus base well beyond the data
    """
    before, after = rows
    both = np.flatnonzero((before >= 0) & (after >= 0))
    old, new_ranks = _ranks(base.models.shapes.growths, new.models.shapes.growths)
    gains = (new_ranks > old[:, None]).astype(np.float64)
    losses = (new_ranks < old[:, None]).astype(np.float64)
    faster, slower = np.full(len(before), np.nan), np.full(len(before), np.nan)
    for start in range(0, len(both), _CHUNK):
        some = both[start : start + _CHUNK]
        of_base = growth_probabilities(base.models.take(before[some]))
        of_new = growth_probabilities(new.models.take(after[some]))
        faster[some] = ((of_base @ gains) * of_new).sum(axis=1)
        slower[some] = ((of_base @ losses) * of_new).sum(axis=1)
    is_faster = (np.nan_to_num(faster) >= confidence) & (beyond > 0)
    is_slower = (np.nan_to_num(slower) >= confidence) & (beyond < 0)
    mark = is_faster.astype(np.int8) - is_slower.astype(np.int8)
    return GrowthChange(before, after, faster, slower, mark)


def _ranks(base: Sequence[Growth], new: Sequence[Growth]) -> tuple[IntArray, IntArray]:
    """Return the ranks of growths in one order of both; equal growths have one rank."""
    orders = [growth.order for growth in (*base, *new)]
    place = {order: rank for rank, order in enumerate(sorted(set(orders)))}
    ranks = np.array([place[order] for order in orders], np.intp)
    return ranks[: len(base)], ranks[len(base) :]
