"""Purposes of call paths, and shares of the computation that fall with the number of workers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import PROGRAM, Region


class Purpose(IntEnum):
    """Purpose of the exclusive time of a call path.

    Attributes
    ----------
    OTHER : communication, waiting, and other time that is no computation
    ASIDE : start-up, input, output, and all below them
    FRAME : the program itself: its main function, and roots that call others
    KERNEL : other computation
    """

    OTHER = 0
    ASIDE = 1
    FRAME = 2
    KERNEL = 3


GROUP = "group"
"""Role of the regions of groups of processes."""
_ASIDE = re.compile(
    r"(re)?(init\w*|set ?up|start ?up|finali[sz]e\w*|tear ?down|clean ?up|parse\w*|config\w*"
    r"|read\w*|load|write\w*|input|output|io|dump\w*|print\w*|save|checkpoint\w*|restart)"
)
"""Words of start-up, input and output."""
_MAIN = re.compile(r"(?:int |void |program )?(?:main|MAIN__|_start|__libc_start_main\w*)(?:\(.*)?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_LETTERS = re.compile(r"[^A-Za-z]+")


def purposes(tree: CallTree) -> IntArray:
    """Return the purpose of every call path, [n]."""
    of_region = np.array([_purpose(region) for region in tree.regions], np.int8)
    found = of_region[tree.region]
    is_root = tree.parent == ROOT
    is_group = np.array([region.role == GROUP for region in tree.regions], np.bool_)[tree.region]
    callers = np.where(is_root, 0, tree.parent)
    is_root |= is_group[callers] & ~is_root
    calls = tree.end > np.arange(len(tree)) + 1
    found[is_root & calls & (found == Purpose.KERNEL)] = Purpose.FRAME
    found[is_group] = Purpose.OTHER
    for level in tree.levels()[1:]:
        below = (found[tree.parent[level]] == Purpose.ASIDE) & (found[level] != Purpose.OTHER)
        found[level[below]] = Purpose.ASIDE
    return found.astype(np.intp)


def _purpose(region: Region) -> Purpose:
    if not region.call_class.computes:
        return Purpose.OTHER
    name = region.common_name
    if name == PROGRAM or _MAIN.fullmatch(name):
        return Purpose.FRAME
    plain = name.partition("(")[0].rpartition("::")[2]
    words = _NO_LETTERS.sub(" ", _CAMEL.sub(" ", plain)).lower().split()
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    is_aside = any(_ASIDE.fullmatch(word) for word in (*words, *pairs))
    return Purpose.ASIDE if is_aside else Purpose.KERNEL


FALLS, STAYS = -0.75, -0.1
"""Slopes of log time over log p of shared work and of constant work.

Work between them tells nothing, unless it is the sum of shared and of constant work.
"""
_FEWEST = 3
"""Fewest points of a slope up to a minimum, and of a sum of shared and constant work."""
_EXACT = 1e-6
"""Squared logarithmic misfit that rounding explains."""


class WorkShares(Struct, frozen=True):
    """Trends of n call paths, and their costs at the smallest scale.

    Attributes
    ----------
    cost : [n] cost at the smallest scale
    slope : [n] slope of log cost over log p
    falls : [n] share of `cost` that falls as 1/p
    firm : [n] the same; 0 if the largest cost of a worker stays, because few workers do the work
    is_open : [n] the cost falls, but more slowly than shared work, and not as a sum of shared and
        constant work
    """

    cost: FloatArray
    slope: FloatArray
    falls: FloatArray
    firm: FloatArray
    is_open: BoolArray

    def __len__(self) -> int:
        return len(self.cost)

    @classmethod
    def none(cls) -> WorkShares:
        """Return the trends of no call paths."""
        nothing = np.empty(0)
        return cls(nothing, nothing, nothing, nothing, np.empty(0, np.bool_))

    @classmethod
    def joined(cls, parts: Sequence[WorkShares]) -> WorkShares:
        """Return the trends of all call paths of several parts."""
        return cls(
            np.concatenate([each.cost for each in parts]),
            np.concatenate([each.slope for each in parts]),
            np.concatenate([each.falls for each in parts]),
            np.concatenate([each.firm for each in parts]),
            np.concatenate([each.is_open for each in parts]),
        )

    def of(self, chosen: BoolArray) -> WorkShares:
        """Return the trends of some call paths."""
        return WorkShares(
            self.cost[chosen],
            self.slope[chosen],
            self.falls[chosen],
            self.firm[chosen],
            self.is_open[chosen],
        )

    @property
    def total(self) -> float:
        """Cost of all call paths at the smallest scale."""
        return float(self.cost.sum())

    @property
    def median_slope(self) -> float:
        """Median of the slopes, weighted by cost; NaN = there is no call path."""
        if not len(self):
            return float("nan")
        order = np.argsort(self.slope)
        votes = np.cumsum(self.cost[order])
        return float(self.slope[order][np.searchsorted(votes, votes[-1] / 2)])

    def share(self, of_each: FloatArray | BoolArray) -> float:
        """Return the share of the total cost that shares of the call paths add up to."""
        return float((self.cost * of_each).sum() / self.total) if self.total else 0.0


def work_shares(
    scales: FloatArray, costs: FloatArray, largest: FloatArray, slowest: FloatArray
) -> WorkShares:
    """Return the trends of costs.

    Shared work may grow again at large scales, so each trend ends at the smallest cost. If the
    smallest cost is before the third point, the trend covers all points, because two are noise.

    Parameters
    ----------
    scales : [K] numbers of workers, ascending
    costs : [n, K] mean costs per worker in the fastest repetition, above zero
    largest : [n, K] largest costs of a worker, or again the means
    slowest : [n] mean costs per worker in the slowest repetition at the largest scale
    """
    there = _until_minimum(costs)
    slope, misfit = _power_law(np.log(scales), np.log(costs), there)
    falls, is_open = np.zeros(len(costs)), np.zeros(len(costs), np.bool_)
    at = np.flatnonzero(slope < STAYS / 2)
    falls[at], is_open[at] = _falling(scales, costs[at], there[at], slope[at], misfit[at])
    # One worker with more work than the others makes means fall, but not maxima.
    most = largest[at]
    is_of_all = _power_law(np.log(scales), np.log(most), _until_minimum(most))[0] < STAYS
    firm = falls.copy()
    firm[at[~is_of_all]] = 0.0
    # The noise of repetitions may explain that a cost falls.
    least_fall = np.log(slowest[at] / costs[at, 0]) / np.log(scales[-1] / scales[0])
    is_open[at] &= is_of_all & (least_fall < STAYS)
    return WorkShares(costs[:, 0], slope, np.where(slope < FALLS, falls, firm), firm, is_open)


def _until_minimum(costs: FloatArray) -> BoolArray:
    """Return the points of trends, [n, K]: all, or those up to the smallest cost."""
    last = costs.argmin(axis=1)
    there: BoolArray = np.arange(costs.shape[1]) <= last[:, None]
    there |= (last < _FEWEST - 1)[:, None]
    return there


def _falling(
    scales: FloatArray, costs: FloatArray, there: BoolArray, slope: FloatArray, misfit: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return the shares of costs [n, K] that fall as 1/p, and which costs tell nothing, [n]."""
    is_long = there.sum(axis=1) >= _FEWEST
    # One slow run at the smallest scale must not look like shared work.
    later = there & ~(is_long[:, None] & (np.arange(len(scales)) == 0))
    later_slope, _ = _power_law(np.log(scales), np.log(costs), later)
    inverse = scales[0] / scales
    falls, of_sum = _shared_and_constant(inverse, costs, there)
    falls = np.minimum(falls, _shared_and_constant(inverse, costs, later)[0])
    is_sum = (of_sum <= misfit + _EXACT) & is_long
    falls_fast = (slope < FALLS) & (later_slope < FALLS / 2)
    falls = np.where(is_sum, falls, np.where(falls_fast, 1.0, 0.0))
    return falls, ~is_sum & ~falls_fast & (slope < STAYS)


def _power_law(x: FloatArray, y: FloatArray, there: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the slopes of rows `y` [n, K] over `x` [K], and the mean squared misfits, [n]."""
    count = there.sum(axis=1, keepdims=True)
    mean = (there * y).sum(axis=1, keepdims=True) / count
    away = np.where(there, x - (there * x).sum(axis=1, keepdims=True) / count, 0.0)
    slope = (away * y).sum(axis=1, keepdims=True) / (away**2).sum(axis=1, keepdims=True)
    error = np.where(there, y - mean - slope * away, 0.0)
    return slope[:, 0], (error**2).sum(axis=1) / count[:, 0]


def _shared_and_constant(
    inverse: FloatArray, costs: FloatArray, there: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the parts of costs that fall as 1/p, as shares at the first scale, and the misfits.

    The fit minimises relative errors of a + b / p with a, b >= 0.

    Parameters
    ----------
    inverse : [K] smallest scale over each scale
    costs : [n, K] costs
    there : [n, K] points of each fit

    Returns
    -------
    ndarray, ndarray
        b / (a + b) with p relative to the smallest scale, and mean squared logarithmic misfits,
        each [n].
    """
    # Costs of extreme sizes have no known share.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = costs / costs[:, :1]
        one = there / relative
        both = one * inverse
        aa, ab, bb = (one**2).sum(axis=1), (one * both).sum(axis=1), (both**2).sum(axis=1)
        a1, b1 = one.sum(axis=1), both.sum(axis=1)
        rest = aa * bb - ab**2
        is_known = rest > 1e-12 * aa * bb
        constant = np.where(is_known, (a1 * bb - b1 * ab) / rest, a1 / aa)
        shared = np.where(is_known, (b1 * aa - a1 * ab) / rest, 0.0)
        constant, shared = (
            np.where(shared < 0, a1 / aa, np.where(constant < 0, 0.0, constant)),
            np.where(shared < 0, 0.0, np.where(constant < 0, b1 / bb, shared)),
        )
        fitted = constant[:, None] + shared[:, None] * inverse
        error = np.where(there, np.log(relative / fitted), 0.0)
        misfit = (error**2).sum(axis=1) / there.sum(axis=1)
        return np.nan_to_num(shared / (constant + shared)), misfit
