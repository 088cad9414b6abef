"""Subtrees that occur on one side of a comparison only."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.groups import Rows


class Unmatched(Struct, frozen=True, eq=False):
    """Subtrees that occur on one side only: at one of two scales, or in one of two experiments.

    Attributes
    ----------
    rows : roots of these subtrees, in descending order of cost
    is_new : [rows] True = the subtree occurs at the larger scale, or in the new experiment
    cost : [rows] inclusive cost per process there
    share : [rows] fraction of the run time there
    callpaths : [rows] number of call paths in the subtree
    """

    rows: Rows
    is_new: BoolArray
    cost: FloatArray
    share: FloatArray
    callpaths: Rows


def diverging(
    tree: CallTree, costs: tuple[FloatArray, FloatArray], totals: tuple[float, float]
) -> Unmatched:
    """Return the subtrees that occur on one side only.

    Parameters
    ----------
    tree : call tree of both sides
    costs : [call paths] inclusive costs of the base and of the new side; NaN = does not occur
    totals : costs of the whole program on both sides
    """
    before, after = costs
    one_only = np.isnan(before) != np.isnan(after)
    is_topmost = one_only & ~((tree.parent != ROOT) & one_only[tree.parent])
    rows = np.flatnonzero(is_topmost)
    is_new = np.isnan(before[rows])
    cost = np.where(is_new, after[rows], before[rows])
    whole = np.where(is_new, totals[1], totals[0])
    share = np.divide(cost, whole, out=np.zeros_like(cost), where=whole > 0)
    callpaths = tree.inclusive(one_only.astype(float))[rows].astype(np.intp)
    order = np.argsort(-share, kind="stable")
    return Unmatched(rows[order], is_new[order], cost[order], share[order], callpaths[order])
