"""Experiments without some of their call paths: left out, or counted as what calls them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment, MetricValues
from callpath_modeler.profile.pattern import Patterns, unmatched
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.profile.unify import preorder, scatter_to_union
from callpath_modeler.units import counted, percent

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

_SUMS = (Reduction.MEAN, Reduction.SUM)
"""Reductions whose total is the sum of those of call paths."""


def drop_subtrees(experiment: Experiment, patterns: Iterable[str]) -> Experiment:
    """Return an experiment without call paths and all that they call.

    Their cost is not part of it. Under a maximum over processes, the total of the rest is not
    known: it is NaN. The run time of the rest is the run time less what the mean process spends in
    the excluded call paths, and at least the mean of the rest.

    Parameters
    ----------
    patterns : of call paths

    Raises
    ------
    UsageError
        If a pattern is malformed.
    DataError
        If nothing is left.
    """
    tree, patterns = experiment.tree, tuple(patterns)
    if not patterns:
        return experiment
    named = _named(tree, patterns)
    if not named.any():
        return experiment
    begins = np.flatnonzero(named)
    depth = np.zeros(len(tree) + 1, np.intp)
    np.add.at(depth, begins, 1)
    np.add.at(depth, tree.end[begins], -1)
    gone = np.cumsum(depth[:-1]) > 0
    if gone.all():
        raise DataError(
            "no call path is left", hint="--ignore names all of them, or what calls them"
        )
    kept = np.flatnonzero(~gone)
    place = np.cumsum(~gone) - 1
    callers = tree.parent[kept]
    smaller = _tree_of(tree, kept, np.where(callers == ROOT, ROOT, place[callers]))
    columns = {
        name: _frozen(
            values,
            values.exclusive[kept],
            _total_without(experiment, values, gone),
            None if values.imbalance is None else values.imbalance[kept],
            _run_time_without(experiment, values, gone),
        )
        for name, values in experiment.columns.items()
    }
    found = (*experiment.findings, _told(experiment, gone, "CPM139"))
    return replace(experiment, tree=smaller, columns=columns, findings=found)


def merge_into_callers(experiment: Experiment, patterns: Iterable[str]) -> Experiment:
    """Return an experiment in which call paths count as what calls them.

    Their cost is their caller's, and so are their callees; those that then have one name are one.
    What nothing calls stays. Of metrics that do not add up, the caller's own value stands.

    Parameters
    ----------
    patterns : of call paths

    Raises
    ------
    UsageError
        If a pattern is malformed.
    """
    tree, patterns = experiment.tree, tuple(patterns)
    if not patterns:
        return experiment
    hidden = _named(tree, patterns) & (tree.parent != ROOT)
    if not hidden.any():
        return experiment
    smaller, rows = _spliced(tree, hidden)
    columns = {
        name: _merged(values, rows, hidden, len(smaller))
        for name, values in experiment.columns.items()
    }
    found = (*experiment.findings, _told(experiment, hidden, "CPM140"))
    return replace(experiment, tree=smaller, columns=columns, findings=found)


def excluded_call_paths(experiment: Experiment) -> str:
    """Return what to add to words on call paths that are not there: they may have been taken."""
    taken = {"CPM139": "--ignore", "CPM140": "--hide"}
    options = dict.fromkeys(taken[each.code] for each in experiment.findings if each.code in taken)
    return f" of those that {' and '.join(options)} left" if options else ""


def refuse_unnamed(
    trees: Sequence[CallTree], ignored: Iterable[str], hidden: Iterable[str]
) -> None:
    """Refuse patterns that take nothing away from any of some trees.

    Parameters
    ----------
    ignored, hidden : patterns for `drop_subtrees`, and for `merge_into_callers`

    Raises
    ------
    UsageError
        If a pattern names no call path, or one of `hidden` only such as nothing calls.
    """
    known, hidden = [Patterns.of(tree) for tree in trees], tuple(hidden)
    for pattern in (*ignored, *hidden):
        if not any(len(each.rows(pattern)) for each in known):
            raise unmatched(trees[0], pattern)
    for pattern in hidden:
        if all((each.tree.parent[each.rows(pattern)] == ROOT).all() for each in known):
            raise UsageError(
                f"{pattern!r} names only what nothing calls: nothing else can take its cost",
                hint="--ignore leaves it out",
            )


def _named(tree: CallTree, patterns: Iterable[str]) -> Mask:
    """Return which call paths any of the patterns names."""
    known, named = Patterns.of(tree), np.zeros(len(tree), bool)
    for pattern in patterns:
        named[known.rows(pattern)] = True
    return named


def _spliced(tree: CallTree, hidden: Mask) -> tuple[CallTree, Rows]:
    """Return the tree of what is not hidden, and which row of it each call path counts in."""
    heir = np.arange(len(tree))
    heir[hidden] = tree.parent[hidden]
    while hidden[heir].any():
        heir = heir[heir]
    names: dict[str, int] = {}
    spelled = [names.setdefault(region.common_name, len(names)) for region in tree.regions]
    callers = np.where(tree.parent == ROOT, ROOT, heir[tree.parent])
    shown = np.flatnonzero(~hidden)
    number_of, first = np.full(len(tree), ROOT), list[int]()
    numbers: dict[tuple[int, int, int], int] = {}
    columns = (column[shown].tolist() for column in (callers, tree.region, tree.annotation))
    for row, caller, region, note in zip(shown.tolist(), *columns, strict=True):
        above = ROOT if caller == ROOT else int(number_of[caller])
        number = numbers.setdefault((above, spelled[region], note), len(numbers))
        if number == len(first):
            first.append(row)
        number_of[row] = number
    parents = np.array([above for above, _, _ in numbers], np.int32)
    place = preorder(parents)
    order = np.argsort(place)
    parents = parents[order]
    rows = np.array(first)[order]
    spliced = _tree_of(tree, rows, np.where(parents == ROOT, ROOT, place[parents]))
    return spliced, place[number_of[heir]]


def _tree_of(tree: CallTree, rows: Rows, parents: NDArray[np.integer]) -> CallTree:
    """Return the tree of some call paths, with the regions that these have."""
    used, region = np.unique(tree.region[rows], return_inverse=True)
    regions = [tree.regions[number] for number in used.tolist()]
    return CallTree.from_parents(parents, region, regions, tree.annotation[rows], tree.annotations)


def _merged(values: MetricValues, rows: Rows, hidden: Mask, size: int) -> MetricValues:
    """Bring values to the rows that call paths count in."""
    additive = values.metric.additive
    counts = np.ones(len(rows), bool) if additive else ~hidden
    exclusive = _each_run(values.exclusive[counts], rows[counts], size, additive=additive)
    imbalance = values.imbalance
    if imbalance is not None:
        # Of several together, nobody knows which processes take long in all of them.
        several = np.bincount(rows[np.nan_to_num(values.exclusive).any(axis=1)], minlength=size) > 1
        largest = _each_run(imbalance.astype(np.float64), rows, size, additive=False)
        imbalance = np.where(several[:, None], np.nan, largest).astype(np.float32)
    return _frozen(values, exclusive, values.total, imbalance, values.run_time)


def _each_run(
    values: NDArray[np.float64], rows: Rows, size: int, *, additive: bool
) -> NDArray[np.float64]:
    columns = [scatter_to_union(column, rows, size, additive=additive) for column in values.T]
    return np.stack(columns, axis=1)


def _total_without(experiment: Experiment, values: MetricValues, gone: Mask) -> NDArray[np.float64]:
    if not values.metric.additive:
        return values.total
    lost = np.nansum(values.exclusive[gone], axis=0)
    left = values.total - lost
    return left if experiment.reduction in _SUMS else np.where(lost > 0, np.nan, values.total)


def _run_time_without(
    experiment: Experiment, values: MetricValues, gone: Mask
) -> NDArray[np.float64] | None:
    """Return the run times of the rest, [runs]; None where they are not known."""
    if values.run_time is None:
        return None
    mean = experiment.means(values.metric.name)
    lost, rest = (np.nansum(mean[rows], axis=0) for rows in (gone, ~gone))
    return np.where(lost > 0, np.maximum(values.run_time - lost, rest), values.run_time)


def _told(experiment: Experiment, rows: Mask, code: str) -> Finding:
    """Say how much it is that was left out or counts elsewhere."""
    count = int(rows.sum())
    message = counted(count, "call path")
    metric = experiment.metric()
    exclusive = experiment.values(metric.name)
    total = float(np.nansum(exclusive)) if metric.additive else 0.0
    if total > 0:
        share = percent(float(np.nansum(exclusive[rows])) / total)
        message += f", {share} of the {metric.name} of all runs"
    return Finding(code, "call paths", message, count)


def _frozen(
    values: MetricValues,
    exclusive: NDArray[np.float64],
    total: NDArray[np.float64],
    imbalance: NDArray[np.float32] | None,
    run_time: NDArray[np.float64] | None,
) -> MetricValues:
    for array in (exclusive, total, imbalance, run_time):
        if array is not None:
            array.flags.writeable = False
    return MetricValues(values.metric, exclusive, total, imbalance, run_time)
