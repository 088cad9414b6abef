"""Changes of growth between two experiments, from the probabilities of all hypotheses.

A call path that follows no hypothesis still has a most probable one. So a change of growth is
reported only if the predictions beyond the data differ as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, Int8Array, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling.validation import growth_probabilities


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
    of_base = growth_probabilities(base.models.take(before[both]))
    of_new = growth_probabilities(new.models.take(after[both]))
    old_growths, new_growths = base.models.shapes.growths, new.models.shapes.growths
    gains = np.array([[b > a for b in new_growths] for a in old_growths])
    losses = np.array([[b < a for b in new_growths] for a in old_growths])
    faster, slower = np.full(len(before), np.nan), np.full(len(before), np.nan)
    faster[both] = ((of_base @ gains) * of_new).sum(axis=1)
    slower[both] = ((of_base @ losses) * of_new).sum(axis=1)
    is_faster = (np.nan_to_num(faster) >= confidence) & (beyond > 0)
    is_slower = (np.nan_to_num(slower) >= confidence) & (beyond < 0)
    mark = is_faster.astype(np.int8) - is_slower.astype(np.int8)
    return GrowthChange(before, after, faster, slower, mark)
