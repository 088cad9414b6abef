"""Growth of sums over call paths, which is at least that of each part that matters.

The model of a sum and the models of its parts are two witnesses. A constant part may hide a growing
one from the model of the sum. A sum has no slower growth than any of its parts, so the parts limit
its growth from below. Small parts do not: the growth of a noisy call path that costs little is not
that of the program.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.predict import predict
from callpath_modeler.analysis.trust import FAR
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling import Models
from callpath_modeler.modeling.validation import growth_probabilities

MATTERS = 0.05
"""Smallest share of a sum, far beyond the data, of the parts that limit its growth."""


@dataclass(frozen=True, slots=True, eq=False)
class GrowthOfSubjects:
    """Probabilities of the growth of subjects, each of which is a call path or a sum.

    Attributes
    ----------
    alone : [n, growths] by the model of the subject alone
    table : [n, growths] with the parts of sums
    rank : [n] growth to state, an index into the growths; -1 = no model
    part : [n] call path in a sum that grows faster than the model of the sum; -1 = none
    """

    alone: FloatArray
    table: FloatArray
    rank: IntArray
    part: IntArray

    @classmethod
    def of(cls, subjects: Subjects, models: Models) -> GrowthOfSubjects:
        """Return the probabilities of growths of subjects with these models."""
        alone = growth_probabilities(models)
        table, rank = alone.copy(), models.growth_rank().astype(np.intp)
        part = np.full(len(subjects), -1, np.intp)
        for k, rows in enumerate(_parts(subjects)):
            if not len(rows) or rank[k] < 0:
                continue
            of_parts = subjects.fitted.models.take(rows)
            place = _places(of_parts, models)
            ranks = place[of_parts.growth_rank()]
            fastest = int(np.argmax(ranks))
            least = int(ranks[fastest])
            if least <= rank[k]:
                continue
            # Slower growths of the sum are at most as probable as those of this part.
            (one,) = growth_probabilities(of_parts.take([fastest]))
            within = np.cumsum(np.bincount(place, one, minlength=alone.shape[1]))
            at_most = np.cumsum(alone[k])
            at_most[:least] = np.minimum(at_most, within)[:least]
            table[k] = np.diff(at_most, prepend=0.0)
            rank[k], part[k] = least, rows[fastest]
        return cls(alone, table, rank, part)


def _places(parts: Models, of_sum: Models) -> IntArray:
    """Return the index of each growth of parts among the growths of a sum."""
    growths = of_sum.shapes.growths
    last = len(growths) - 1
    return np.array([min(bisect_left(growths, each), last) for each in parts.shapes.growths])


def _parts(subjects: Subjects) -> list[IntArray]:
    """Return the call paths with a model that matter in each subject; empty if it is no sum."""
    if subjects.rows is not None and not subjects.inclusive:
        return []
    fitted = subjects.fitted
    own = predict(fitted, FAR * float(fitted.points[-1]))
    value, low = np.nan_to_num(own.value), np.where(fitted.modelled, np.nan_to_num(own.low), 0.0)
    tree = fitted.experiment.tree
    begins = np.zeros(1, np.intp) if subjects.rows is None else subjects.rows
    ends = np.array([len(tree)]) if subjects.rows is None else tree.end[subjects.rows]
    found = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        least = MATTERS * float(value[begin:end].sum())
        found.append(begin + np.flatnonzero((low[begin:end] >= least) & (low[begin:end] > 0)))
    return found
