"""Causes of growth in two experiments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.causes import NOTHING, UNEXPLAINED, find_causes
from callpath_modeler.analysis.diff import ExperimentDifference
from callpath_modeler.analysis.pairing import AlignedExperiment
from callpath_modeler.arrays import IntArray


@dataclass(frozen=True, slots=True)
class CausePair:
    """Why the time of a call path grows in two experiments.

    Attributes
    ----------
    base, new : labels as those of `Ranking.why`
    """

    base: str
    new: str

    @property
    def is_change(self) -> bool:
        """True if growth has a known cause now, and had another one or none before."""
        return self.new != self.base and self.new not in {NOTHING, UNEXPLAINED}


def causes_of(found: ExperimentDifference, rows: IntArray) -> list[CausePair]:
    """Return the causes of growth of some call paths before and after, [rows].

    Parameters
    ----------
    found : the comparison
    rows : rows of the common call tree

    Returns
    -------
    list of CausePair
        The label is `NOTHING` where a call path does not occur, where an experiment has no models,
        and in inclusive comparisons.
    """
    labels = [_labels(side, found, rows) for side in (found.pair.base, found.pair.new)]
    return [CausePair(*pair) for pair in zip(*labels, strict=True)]


def _labels(side: AlignedExperiment, found: ExperimentDifference, rows: IntArray) -> list[str]:
    told = [NOTHING] * len(rows)
    fitted, own = side.fitted, side.own_rows()[rows]
    if fitted is None or found.inclusive:
        return told
    target = found.at_target.scale if found.at_target else float(fitted.points[-1])
    known = np.flatnonzero(own >= 0)
    causes = find_causes(fitted, target, own[known]) if len(known) else None
    if causes is not None:
        for place, label in zip(known.tolist(), causes.labels, strict=True):
            told[place] = label
    return told
