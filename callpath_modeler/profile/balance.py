"""Activities and purposes of call paths, and parts of the time of all threads.

A program has n threads. The run time T of its slowest process is the sum of five parts. Each part
is a time per thread, and never negative:

- useful: computation of all threads, divided by n
- serial: threads are idle while others of their process compute or wait in parallel regions
- regions: waiting and management of threads inside parallel regions
- imbalance: the longest time of a process outside of communication, minus the mean
- communication: T minus that longest time

A process is in communication while one of its threads communicates and the others communicate,
wait, or are not recorded. No thread computes during this time. So the time of a process outside of
communication is the larger of two times:

- the computation of its busiest thread
- its elapsed time without the communication of the thread that communicates longest

Threads that wait longer than this time wait for communication, whether the waiting is recorded or
not.

The weight of a process is its number of threads. Measurement overhead is left out. Since the parts
add up to T, every factor made from them is between 0 and 1.

References
----------
POP Centre of Excellence: Standard Metrics for Performance Analysis, for the factors of message
passing; hybrid metrics of the same source, for the division of the loss between processes and
threads. TALP of DLB assigns idle workers in the same way: their time during a call of MPI by the
master is `mpiWorkerIdleTime`, a loss of MPI.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.profile.call_class import OVERHEAD, CallClass
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import CAMEL, GROUP, PROGRAM, Region


class Activity(IntEnum):
    """What a call path does outside its callees.

    Attributes
    ----------
    COMPUTATION : work of the program, also inside OpenMP constructs
    COMMUNICATION : calls of MPI or SHMEM, with everything below them
    THREADING : waiting and management in OpenMP or POSIX threads
    MEASUREMENT : work of the measurement itself, which the program has no part in
    """

    COMPUTATION = 0
    COMMUNICATION = 1
    THREADING = 2
    MEASUREMENT = 3


_CALLS = frozenset(
    each
    for each in CallClass
    if each.is_collective
    or each
    in {
        CallClass.POINT_TO_POINT,
        CallClass.ONE_SIDED,
        CallClass.WAIT,
        CallClass.MANAGEMENT,
    }
)
"""Classes of communication calls; input and output in the paradigm MPI is one as well."""
_COMMUNICATION = frozenset({"mpi", "shmem"})
_THREADS = frozenset({CallClass.OPENMP, CallClass.THREADS})
_BODIES = frozenset({"master", "masked"})
"""Roles of OpenMP constructs whose own time is that of the statements inside them."""
_ARTIFICIAL = "artificial"
_OMP_STATES, _OMP_WORK = "<omp ", "<omp work>"
"""HPCToolkit's names of the states of OpenMP threads, and of the state with work."""


def activity_of(region: Region) -> Activity:
    """Return what a region does, from its class, its role and its name."""
    kind = region.call_class
    if region.paradigm in _COMMUNICATION or kind in _CALLS:
        return Activity.COMMUNICATION
    if region.name.startswith(_OMP_STATES) and region.name != _OMP_WORK:
        return Activity.THREADING
    if kind in _THREADS and not _is_body(region):
        return Activity.THREADING
    # Other artificial regions have the time of the program outside of all measured functions.
    if kind is CallClass.MEASUREMENT and (region.role != _ARTIFICIAL or region.name in OVERHEAD):
        return Activity.MEASUREMENT
    return Activity.COMPUTATION


def activities_of(tree: CallTree) -> IntArray:
    """Return the activity of each call path, [call paths].

    Everything below a communication call belongs to it, such as the functions of the MPI library.
    Old versions of Score-P have a root of MPI around the program. As in Cube's own tools, its own
    time is communication. Without any function of the program, this time has the computation.
    """
    regions = tree.regions
    of_region = np.array([activity_of(region) for region in regions], np.intp)
    is_call = np.array([region.role != _ARTIFICIAL for region in regions])
    if not any(region.is_own and call for region, call in zip(regions, is_call, strict=True)):
        of_region[~is_call & (of_region == Activity.COMMUNICATION)] = Activity.COMPUTATION
    found = of_region[tree.region]
    begins = np.flatnonzero((of_region == Activity.COMMUNICATION)[tree.region]
                            & is_call[tree.region])  # fmt: skip
    found[in_subtrees(tree, begins)] = Activity.COMMUNICATION
    return found


def in_subtrees(tree: CallTree, roots: IntArray) -> BoolArray:
    """Return which call paths are in the subtrees of `roots`, [call paths]."""
    depth = np.zeros(len(tree) + 1, np.intp)
    np.add.at(depth, roots, 1)
    np.add.at(depth, tree.end[roots], -1)
    return np.asarray(np.cumsum(depth[:-1]) > 0)


def innermost(tree: CallTree, chosen: IntArray) -> IntArray:
    """Return, for each call path, the innermost of some call paths around it, [call paths].

    Parameters
    ----------
    tree : the call tree
    chosen : rows of these call paths, ascending

    Returns
    -------
    ndarray
        Positions in `chosen`; `ROOT` = none is around the call path. A call path is around itself.
    """
    found = np.full(len(tree), ROOT, np.intp)
    # Callers come before callees, so inner call paths replace outer ones.
    for position, row in enumerate(chosen.tolist()):
        found[row : tree.end[row]] = position
    return found


def _is_body(region: Region) -> bool:
    """Return whether an OpenMP region has statements of the program."""
    role = region.role.replace("_", " ")
    return role.endswith("sblock") or role in _BODIES


class Part(IntEnum):
    """A part of the run time, as its column in an array of parts."""

    USEFUL = 0
    SERIAL = 1
    REGIONS = 2
    IMBALANCE = 3
    COMMUNICATION = 4


PARTS = len(Part)


class Balance(Struct, frozen=True, eq=False):
    """The parts of the run time of one run: of the program, and of some subtrees.

    Attributes
    ----------
    rows : intp [s] root of each subtree; the first is the whole program, `ROOT`
    parts : float64 [s, parts] seconds per thread, see `Part`
    threads : number of threads of all processes
    instructions, cycles : float64 [s] sums over the computation of all threads; NaN = not measured
    communicates : whether the profile has a call of communication, left out or not
    left_out : number of subtrees that were too many for the memory, although they are costly enough
    """

    rows: IntArray
    parts: FloatArray
    threads: int
    instructions: FloatArray
    cycles: FloatArray
    communicates: bool
    left_out: int = 0

    def take(self, keep: BoolArray) -> Balance:
        """Return the parts of some subtrees, [s] = True."""
        return structs.replace(
            self,
            rows=self.rows[keep],
            parts=self.parts[keep],
            instructions=self.instructions[keep],
            cycles=self.cycles[keep],
        )


def parts_of(time: FloatArray, process: IntArray) -> FloatArray:
    """Return the parts of the run time of one subtree.

    Parameters
    ----------
    time : [activities, threads] seconds of each thread, see `Activity`
    process : [threads] number of the process of each thread, ascending from 0

    Returns
    -------
    ndarray
        [parts], seconds per thread.
    """
    computing, calling = time[Activity.COMPUTATION], time[Activity.COMMUNICATION]
    waiting = time[Activity.THREADING]
    begins = np.flatnonzero(np.diff(process, prepend=-1))
    number = np.diff(np.append(begins, len(process)))
    threads = len(process)
    elapsed = computing + waiting + calling
    last = np.lexsort((elapsed, process))[begins + number - 1]
    whole = elapsed[last]
    # If the longest thread communicates longest, its own time outside of communication is exact.
    calls_less = np.maximum.reduceat(calling, begins) - calling[last]
    busiest = np.maximum.reduceat(computing, begins)
    of_process = np.maximum(busiest, computing[last] + waiting[last] - calls_less)
    mean = float((number * of_process).sum()) / threads
    longest, run_time = float(of_process.max()), float(whole.max())
    useful = float(computing.sum()) / threads
    left = np.repeat(of_process, number) - computing
    regions = float(np.minimum(waiting, left).sum()) / threads
    found = np.empty(PARTS)
    found[Part.USEFUL] = useful
    found[Part.REGIONS] = regions
    # These are differences of sums of equal numbers, so rounding may make them negative.
    found[Part.SERIAL] = _difference(mean, useful + regions)
    found[Part.IMBALANCE] = _difference(longest, mean)
    found[Part.COMMUNICATION] = _difference(run_time, longest)
    return found


_ROUNDING = 1e-12
"""Relative difference of two sums below which it is rounding."""


def _difference(larger: float, smaller: float) -> float:
    left = larger - smaller
    return left if left > _ROUNDING * larger else 0.0


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


_ASIDE = re.compile(
    r"(re)?(init\w*|set ?up|start ?up|finali[sz]e\w*|tear ?down|clean ?up|parse\w*|config\w*"
    r"|read\w*|load|write\w*|input|output|io|dump\w*|print\w*|save|checkpoint\w*|restart)"
)
"""Words of start-up, input and output."""
_MAIN = re.compile(r"(?:int |void |program )?(?:main|MAIN__|_start|__libc_start_main\w*)(?:\(.*)?")
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
    words = _NO_LETTERS.sub(" ", CAMEL.sub(" ", plain)).lower().split()
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
