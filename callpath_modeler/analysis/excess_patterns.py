"""What excess work says: own cost or callees, and whether noise may explain it."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray

NOTICEABLE = 0.005
"""Excess work below this share of the run time is neither loss nor gain."""


_MINOR = 0.1
"""Smallest ratio of two parts of a loss at which both are named."""


class ExcessPattern(StrEnum):
    """Conclusion from the inclusive and the exclusive excess work of a call path."""

    OWN = "own cost"
    CALLEES = "look at the callees"
    BOTH = "own cost and callees"
    GAIN = "superlinear"
    NONE = "no loss"


def doubtful(excess: FloatArray, overlaps: BoolArray | None) -> BoolArray:
    """Return which noticeable excess work noise of the repetitions could explain, [n]."""
    found = np.abs(np.nan_to_num(excess)) >= NOTICEABLE
    return np.zeros_like(found) if overlaps is None else found & overlaps


def readings(inclusive: FloatArray, exclusive: FloatArray) -> list[ExcessPattern]:
    """Return the origin of losses from inclusive [n] and exclusive [n] excess work.

    The part of the callees is inclusive less exclusive excess work. Gains of one part do not
    compensate losses of the other: faster callees do not excuse a slow caller.
    """
    own, below = np.nan_to_num(exclusive), np.nan_to_num(inclusive - exclusive)
    found = []
    for total, mine, theirs in zip(
        np.nan_to_num(inclusive).tolist(), own.tolist(), below.tolist(), strict=True
    ):
        if max(mine, theirs) < NOTICEABLE:
            found.append(ExcessPattern.GAIN if total <= -NOTICEABLE else ExcessPattern.NONE)
        elif theirs <= _MINOR * mine:
            found.append(ExcessPattern.OWN)
        elif mine <= _MINOR * theirs:
            found.append(ExcessPattern.CALLEES)
        else:
            found.append(ExcessPattern.BOTH)
    return found


def overlap(before: FloatArray, after: FloatArray) -> BoolArray | None:
    """Return whether the repetitions of two scales overlap, so that noise may explain a difference.

    Parameters
    ----------
    before, after : [n, repetitions] and [n, other repetitions]

    Returns
    -------
    [n]; None if a scale has a single run
    """
    if min(before.shape[1], after.shape[1]) < 2:
        return None
    apart: BoolArray = after.max(axis=1) < before.min(axis=1)
    apart |= after.min(axis=1) > before.max(axis=1)
    return ~apart
