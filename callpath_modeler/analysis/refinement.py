"""Refinement of the instrumentation: call paths that are too coarse, and functions to filter.

Instrumentation costs time at every visit. Functions that are small and frequent cost most and tell
least, so a filter excludes them. A call path that takes much of the time, and that no model
describes well, hides several kernels, so it needs more instrumentation (Calotoiu, Hoefler, Poke,
Wolf: Using Automated Performance Modeling to Find Scalability Bugs in Complex Codes, SC 2013,
section 3, kernel refinement).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.excess_work import CARRIES_COST
from callpath_modeler.analysis.expectations.check_result import Check
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError, check_type
from callpath_modeler.modeling import FitStatus, centre
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.schema import PROGRAM, Region

VISITS = "visits"
"""The metric that counts the visits of call paths."""

MOST = CARRIES_COST
"""Largest share of the time of a function that is filtered."""

COARSE = 0.05
"""Smallest share of the time of a call path that is too coarse."""

_WIDE = 2.0
"""A band is wide if an end differs from the value by more than this factor."""

_OWN = 0.5
"""Smallest share of a call path in the time of its subtree, if it is too coarse."""

_FREQUENT = 0.001
"""Smallest estimated overhead of a frequent function, as a share of the run time."""

_OFTEN = 0.01
"""Or its smallest share of all visits, because traces grow with visits."""

_SMALL = 0.1
"""Smallest estimated overhead of a small function, as a share of its own time."""

COMPILER = "compiler"
"""Paradigm of functions that a compiler instruments; filters apply to no others."""

_LIBRARY = re.compile(r"P?MPI_|omp_|GOMP_|__kmpc_|pthread_|shmem_|cuda[A-Z]|hip[A-Z]")
"""Begin of names of library functions, whatever instruments them."""

_MAIN = frozenset({"main", "MAIN__", "MAIN_", "main_"})


class Kept(StrEnum):
    """Reason to keep a small and frequent function in the measurement."""

    COSTLY = "costly"
    MAY_BE_COSTLY = "may be costly"
    UNKNOWN = "no model"
    CALLS_LIBRARIES = "calls libraries"
    GROWTH = "grows fastest"
    EXPECTATION = "expectation"
    NAME = "name"


class Coarse(StrEnum):
    """Reason why the model of a call path describes it poorly."""

    OUTSIDE = "outside the model class"
    NOISY = "noisy"
    NO_MODEL = "no model"
    WIDE = "wide band"


@dataclass(frozen=True, slots=True)
class VisitCost:
    """Range of the cost of one visit of an instrumented function, in seconds."""

    low: float
    high: float


DEFAULT_COST = VisitCost(1e-7, 1e-6)
"""From 0.1 to 1 microseconds: entry and exit with a clock only, up to hardware counters."""


@dataclass(frozen=True, slots=True)
class CoarsePath:
    """A call path that needs more instrumentation.

    Attributes
    ----------
    row : row of the call path
    share : share of the time at the target; at the largest scale if it has no model
    reasons : at least one
    factor : largest ratio of the value and an end of its band; NaN = no band
    calls_nothing : True if no callee was measured
    """

    row: int
    share: float
    reasons: tuple[Coarse, ...]
    factor: float
    calls_nothing: bool


@dataclass(frozen=True, slots=True)
class SmallFunction:
    """A small and frequent function.

    Attributes
    ----------
    region : the function
    filter_name : name that the filter matches: the linker name, or the name if there is none
    rows : its call paths
    visits : visits per process at the largest scale, mean over processes
    most_visits : sum over its call paths of the visits of the process with most; NaN = not known
    per_visit : exclusive time per visit at the largest scale, seconds
    share : share of the exclusive time at the largest scale
    largest_share : the largest share at any measured setting, or on the slowest process; or of one
        of its call paths with its callees
    share_at_target : share of the exclusive time at the target
    share_at_most : the same for the upper ends of bands; NaN = no model
    kept : reason to keep it; None = the filter excludes it
    """

    region: Region
    filter_name: str
    rows: tuple[int, ...]
    visits: float
    most_visits: float
    per_visit: float
    share: float
    largest_share: float
    share_at_target: float
    share_at_most: float
    kept: Kept | None


@dataclass(frozen=True, slots=True)
class Refinement:
    """Proposals for the instrumentation of the next measurement.

    Attributes
    ----------
    ranking : costs at the largest scale and at the target
    cost : assumed cost per visit
    coarse : call paths that need more instrumentation, costliest first
    small : small and frequent functions, most visits first
    visits : visits per process of all call paths at the largest scale, mean over processes
    most_visits : sum over call paths of the visits of the process with most; NaN = not known
    run_time : sum of the exclusive times at the largest scale, mean over processes, seconds
    """

    ranking: Ranking
    cost: VisitCost
    coarse: tuple[CoarsePath, ...]
    small: tuple[SmallFunction, ...]
    visits: float
    most_visits: float
    run_time: float

    @property
    def excluded(self) -> tuple[SmallFunction, ...]:
        """The functions that the filter excludes."""
        return tuple(each for each in self.small if each.kept is None)

    @property
    def visits_after(self) -> float:
        """Visits per process that remain, mean over processes."""
        return self.visits - sum(each.visits for each in self.excluded)

    @property
    def most_visits_after(self) -> float:
        """Upper limit of the visits of a process that remain; NaN = not known."""
        return self.most_visits - sum(each.most_visits for each in self.excluded)


def refine(
    ranking: Ranking, cost: VisitCost = DEFAULT_COST, check: Check | None = None
) -> Refinement:
    """Return call paths to instrument more finely, and functions to filter.

    A function is small if the highest cost of its visits is at least a tenth of its exclusive time.
    It is frequent if that cost is at least a thousandth of the run time, or if it has a hundredth
    of all visits. The filter excludes small and frequent functions unless

    - the function takes more than `MOST` of the time at any measured setting, on the slowest
      process of the largest one, or at the target with its band, summed over all its call paths; or
      one of its call paths does, with its callees
    - its cost at the target is not known
    - it calls MPI or another library, directly or not
    - its cost grows faster than that of every function that stays
    - an expectation is about no other function
    - Score-P could not tell its name from others

    Only functions that a compiler instruments, and never the main program, are considered.

    Parameters
    ----------
    ranking : a ranking of times at a finite target; its experiment has visits
    cost : cost per visit
    check : results of expectations about the same models

    Returns
    -------
    Refinement
        Times in seconds.

    Raises
    ------
    UsageError
        If the metric is no time, the target is infinite, or the cost is not positive.
    DataError
        If the profiles have no visits.

    References
    ----------
    Calotoiu, Hoefler, Poke, Wolf: Using Automated Performance Modeling to Find Scalability Bugs in
    Complex Codes (SC 2013), section 3, kernel refinement.
    """
    check_type(ranking, Ranking, "ranking")
    _check(ranking, cost)
    measured = _Measured(ranking)
    coarse = _coarse(ranking)
    small = _small(ranking, measured, cost)
    small = _without_growth(ranking, _without_expectations(small, check))
    return Refinement(
        ranking,
        cost,
        coarse,
        tuple(sorted(small, key=lambda each: (-each.visits, each.filter_name))),
        float(np.nansum(measured.visits)),
        float(np.sum(measured.most_visits)),
        float(np.nansum(measured.time)),
    )


def _check(ranking: Ranking, cost: VisitCost) -> None:
    fitted = ranking.fitted
    if not fitted.metric.can_be_run_time:
        raise UsageError(
            f"{fitted.metric.name} is no time of threads: a filter is about the time of functions",
            hint="choose a time with -m",
        )
    if np.isinf(ranking.target):
        raise UsageError("no shares of the time at infinity", hint="--target with a number")
    if not 0 < cost.low <= cost.high < np.inf:
        raise UsageError(
            f"a visit cannot cost {cost.low:g} to {cost.high:g} s", hint="e.g. 0.1us,1us"
        )
    if VISITS not in fitted.experiment.columns:
        raise DataError(
            "the profiles have no visits: the overhead of functions is not known",
            hint="give profiles of Score-P, or a trace",
        )


class _Measured:
    """Visits and times at the largest scale, and costs at the target, [call paths]."""

    def __init__(self, ranking: Ranking) -> None:
        fitted = ranking.fitted
        line = fitted.line
        largest = line.settings([fitted.parameter])[:, 0] == fitted.points[-1]
        self.visits = _mean(line.means(VISITS)[:, largest])
        self.time = _mean(line.means(fitted.metric.name)[:, largest])
        most = line.maxima(VISITS)[:, largest]
        # A call path without visits in a run has none on any process.
        most = np.where(np.isnan(line.values(VISITS)[:, largest]), 0.0, most)
        self.most_visits = most.max(axis=1, initial=0.0)
        whole = ranking.total[0]
        unknown = ~fitted.modelled & (np.nan_to_num(fitted.measured[:, -1]) > 0)
        if ranking.repetitions:
            unknown[:] = False
        high = np.fmax(ranking.high, ranking.value)
        self.at_target = np.nan_to_num(ranking.value) / whole if whole > 0 else 0 * high
        self.at_most = np.nan_to_num(high) / whole if whole > 0 else 0 * high
        self.at_most[unknown] = np.nan


def _measured_shares(ranking: Ranking) -> Iterator[FloatArray]:
    """Yield the shares of call paths in the time of each setting, then of the slowest process.

    Shares of a setting are those of the means over repetitions, and those of the centres that
    models use. The slowest process of each call path is that of the largest scale.
    """
    fitted = ranking.fitted
    _, values = fitted.experiment.by_setting(fitted.metric.name, fitted.parameters)
    occurred = ~np.isnan(values)
    mean = np.nan_to_num(values).sum(axis=2) / np.maximum(occurred.sum(axis=2), 1)
    for costs in (mean, np.nan_to_num(centre(values, fitted.models.aggregate))):
        for column in costs.T:
            if column.sum() > 0:
                yield column / column.sum()
    if ranking.total_at_largest > 0:
        yield np.nan_to_num(ranking.maxima_at_largest[0]) / ranking.total_at_largest


def _mean(values: FloatArray) -> FloatArray:
    """Return means over runs, [call paths]; a call path that did not occur has 0."""
    return np.asarray(np.nan_to_num(values).mean(axis=1))


def _coarse(ranking: Ranking) -> tuple[CoarsePath, ...]:
    fitted = ranking.fitted
    tree, status = fitted.experiment.tree, fitted.models.status
    modelled = fitted.modelled | (ranking.repetitions > 0)
    share = np.nan_to_num(np.where(modelled, ranking.own_share, ranking.share_at_largest))
    cost = np.nan_to_num(np.where(modelled, ranking.value, fitted.measured[:, -1]))
    below = tree.inclusive(cost)
    computes = np.array(
        [r.call_class.computes and r.name != PROGRAM for r in tree.regions], np.bool_
    )
    rows = np.flatnonzero((share >= COARSE) & computes[tree.region] & (cost >= _OWN * below))
    found = []
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.fmax(ranking.high / ranking.value, ranking.value / ranking.low)
    for row in rows[np.argsort(-share[rows], kind="stable")].tolist():
        reasons = []
        if not modelled[row]:
            reasons.append(Coarse.NO_MODEL)
        elif status[row] == FitStatus.OUTSIDE:
            reasons.append(Coarse.OUTSIDE)
        elif status[row] == FitStatus.NOISY:
            reasons.append(Coarse.NOISY)
        if factor[row] > _WIDE:
            reasons.append(Coarse.WIDE)
        if reasons:
            alone = bool(tree.end[row] == row + 1)
            path = CoarsePath(row, float(share[row]), tuple(reasons), float(factor[row]), alone)
            found.append(path)
    return tuple(found)


def _small(ranking: Ranking, measured: _Measured, cost: VisitCost) -> list[SmallFunction]:
    """Return the small and frequent functions, without reasons that depend on each other."""
    tree = ranking.fitted.experiment.tree
    tokens = [region.mangled or region.name for region in tree.regions]
    names = list(dict.fromkeys(tokens))
    number = {token: k for k, token in enumerate(names)}
    function = np.array([number[token] for token in tokens])[tree.region]

    def summed(values: FloatArray) -> FloatArray:
        return np.bincount(function, values, len(names)).astype(np.float64)

    visits, time = summed(measured.visits), summed(measured.time)
    most_visits = summed(measured.most_visits)
    at_target, at_most = summed(measured.at_target), summed(measured.at_most)
    largest, with_callees = np.zeros(len(names)), tree.inclusive(measured.at_target)
    for share in _measured_shares(ranking):
        largest = np.fmax(largest, summed(share))
        with_callees = np.fmax(with_callees, tree.inclusive(share))
    np.maximum.at(largest, function, with_callees)
    overhead = visits * cost.high
    run_time = time.sum()
    frequent = (overhead >= _FREQUENT * run_time) | (visits >= _OFTEN * visits.sum())
    chosen = frequent & (overhead >= _SMALL * time) & (visits > 0)
    chosen &= _can_be_filtered(ranking, function, names)
    to_libraries = _calls_libraries(ranking)
    regions_of: dict[str, list[Region]] = {}
    regions_named: dict[str, int] = {}
    for region, token in zip(tree.regions, tokens, strict=True):
        regions_of.setdefault(token, []).append(region)
        regions_named[region.name] = regions_named.get(region.name, 0) + 1
    order = np.argsort(function, kind="stable")
    begin = np.searchsorted(function[order], np.arange(len(names) + 1))
    found = []
    for k in np.flatnonzero(chosen).tolist():
        rows = order[begin[k] : begin[k + 1]]
        regions = regions_of[names[k]]
        kept = None
        # Without a linker name, the filter would also match other functions of this name.
        is_shared = not any(r.mangled for r in regions) and regions_named[names[k]] > len(regions)
        if not is_writable(names[k]) or is_shared:
            kept = Kept.NAME
        elif to_libraries[rows].any():
            kept = Kept.CALLS_LIBRARIES
        elif largest[k] > MOST or at_target[k] > MOST:
            kept = Kept.COSTLY
        elif np.isnan(at_most[k]):
            kept = Kept.UNKNOWN
        elif at_most[k] > MOST:
            kept = Kept.MAY_BE_COSTLY
        found.append(
            SmallFunction(
                region=regions[0],
                filter_name=names[k],
                rows=tuple(rows.tolist()),
                visits=float(visits[k]),
                most_visits=float(most_visits[k]),
                per_visit=float(time[k] / visits[k]),
                share=float(time[k] / run_time),
                largest_share=float(largest[k]),
                share_at_target=float(at_target[k]),
                share_at_most=float(at_most[k]),
                kept=kept,
            )
        )
    return found


def _can_be_filtered(ranking: Ranking, function: IntArray, names: Sequence[str]) -> BoolArray:
    """Return whether all call paths of a function are ones that a filter applies to, [functions].

    They are not if any is the main program, which nothing but the program calls.
    """
    tree = ranking.fitted.experiment.tree
    regions = [
        region.paradigm == COMPILER
        and not _LIBRARY.match(region.name)
        and not {region.mangled, short_name(region.name)} & _MAIN
        for region in tree.regions
    ]
    program = np.array([region.name == PROGRAM for region in tree.regions])[tree.region]
    is_first = (tree.parent == ROOT) | program[tree.parent]
    allowed = np.array(regions, np.bool_)[tree.region] & ~is_first
    refused = np.bincount(function, ~allowed, len(names)) > 0
    return np.asarray(~refused)


def _calls_libraries(ranking: Ranking) -> BoolArray:
    """Return whether a call path has callees of libraries, directly or not, [call paths]."""
    tree = ranking.fitted.experiment.tree
    own = {COMPILER, "user"}
    others = np.array([region.paradigm not in own for region in tree.regions])[tree.region]
    return np.asarray(tree.largest_below(others.astype(np.int8)) > others)


def is_writable(token: str) -> bool:
    """Return whether a filter can contain a name.

    Names with characters that cannot be printed were changed when they were read, and a backslash
    may be part of such a change.
    """
    return bool(token) and token.isprintable() and "\\" not in token


def _without_expectations(small: list[SmallFunction], check: Check | None) -> list[SmallFunction]:
    """Return the functions; those that are the only ones of an expectation are kept."""
    if check is None:
        return small
    subjects = [
        {row for row in outcome.statuses() if row is not None} for outcome in check.outcomes
    ]
    return [
        _kept(each, Kept.EXPECTATION)
        if any(rows and rows <= {*each.rows} for rows in subjects)
        else each
        for each in small
    ]


def _without_growth(ranking: Ranking, small: list[SmallFunction]) -> list[SmallFunction]:
    """Return the functions; those that grow faster than all functions that stay are kept."""
    fitted = ranking.fitted
    growth = np.where(fitted.modelled, fitted.models.growth_rank(), -1)
    stays = np.ones(len(growth), np.bool_)
    for each in small:
        stays[list(each.rows)] = each.kept is not None
    fastest = growth[stays].max(initial=-1)
    constant = fitted.models.shapes.rank[-1]
    limit = max(fastest, constant)
    return [
        _kept(each, Kept.GROWTH) if growth[list(each.rows)].max() > limit else each
        for each in small
    ]


def _kept(function: SmallFunction, reason: Kept) -> SmallFunction:
    return function if function.kept else replace(function, kept=reason)
