"""Experiments made from others: without some call paths, or with metrics by formula."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, Float32Array, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError, did_you_mean
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree, without_site
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import MetricValues, RunLines
from callpath_modeler.profile.metric_formulas import (
    OPTION,
    Definition,
    Formula,
    combined_units,
    degree,
    unit_name,
)
from callpath_modeler.profile.omissions import Omission, OmissionKind, share_of, with_omission
from callpath_modeler.profile.pattern import Patterns, matched, unmatched
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.profile.unify import preorder, scatter_to_union, unify
from callpath_modeler.support.expression import Units, as_units
from callpath_modeler.units import counted, percent

SUMS = (Reduction.MEAN, Reduction.SUM)
"""Reductions for which the program's total is the sum over call paths."""
_EQUAL = 1e-6
"""Relative difference between a mean and a maximum over processes that take equal time."""


class Folding(StrEnum):
    """Call paths that are joined.

    Attributes
    ----------
    CALL_SITES : all calls of a function by one caller
    RECURSION : a function and its calls of itself
    CHAINS : a caller and the call paths below it that take no time and have a single callee
    """

    CALL_SITES = "call-sites"
    RECURSION = "recursion"
    CHAINS = "chains"


def drop_subtrees(experiment: Experiment, patterns: Iterable[str]) -> Experiment:
    """Return the experiment without the subtrees of some call paths, and without their cost.

    Under a maximum over processes, the total of the remaining call paths is not known and becomes
    NaN. The run time is known only if all processes of a run spend the same time in the excluded
    call paths. Otherwise another process may be the slowest one, and the run time becomes NaN.

    Parameters
    ----------
    experiment : the experiment
    patterns : patterns of the call paths to exclude

    Raises
    ------
    UsageError
        If a pattern is malformed.
    DataError
        If no call path remains.
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
            "--ignore excludes all call paths, so there is nothing to model",
            hint="give patterns that match fewer call paths",
        )
    found = (*experiment.findings, _told(experiment, gone, "CPM139"))
    omissions = _omitted(experiment, gone, OmissionKind.CALL_PATHS)
    return replace(_without(experiment, gone, gone), findings=found, omissions=omissions)


def keep_matches(experiment: Experiment, pattern: str) -> Experiment:
    """Return the experiment with the call paths that match, and with their cost alone.

    Their callers stay in the tree without a value. Totals and run times are known where
    `drop_subtrees` knows them.

    Parameters
    ----------
    experiment : the experiment
    pattern : pattern of call paths, such as ``"**/MPI_*"``

    Raises
    ------
    UsageError
        If no call path matches.
    """
    tree = experiment.tree
    named = matched(tree, pattern)
    calls = tree.inclusive(named[:, None].astype(float))[:, 0] > 0
    omissions = _omitted(experiment, ~named, OmissionKind.UNSELECTED)
    return replace(_without(experiment, ~calls, ~named), omissions=omissions)


def _without(experiment: Experiment, gone: BoolArray, costless: BoolArray) -> Experiment:
    """Return an experiment without some subtrees.

    Parameters
    ----------
    gone : [call paths] rows of whole subtrees
    costless : [call paths] rows whose cost is left out: those that are gone, and others
    """
    tree, kept = experiment.tree, np.flatnonzero(~gone)
    place = np.cumsum(~gone) - 1
    callers = tree.parent[kept]
    smaller = _tree_of(tree, kept, np.where(callers == ROOT, ROOT, place[callers]))
    silent = costless[kept]

    def priced(values: NDArray[Any]) -> NDArray[Any]:
        found = values[kept]  # a copy
        found[silent] = np.nan
        return found

    columns = {
        name: _frozen(
            values,
            priced(values.exclusive),
            _total_without(experiment, values, costless),
            None if values.imbalance is None else priced(values.imbalance),
            _run_time_without(experiment, values, costless),
        )
        for name, values in experiment.columns.items()
    }
    rows = np.where(gone, ROOT, place)
    moved = _moved(experiment, rows)
    chains = _moved_chains(experiment, rows)
    return replace(experiment, tree=smaller, columns=columns, lines=moved, chains=chains)


def merge_into_callers(experiment: Experiment, patterns: Iterable[str]) -> Experiment:
    """Return the experiment with some call paths folded into their callers.

    The caller gets the cost and the callees. Callees of the caller with the same name are merged.
    Root call paths stay, because they have no caller. For metrics that are not additive, the caller
    keeps its own value.

    Parameters
    ----------
    experiment : the experiment
    patterns : patterns of the call paths to fold

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
    found = (*experiment.findings, _told(experiment, hidden, "CPM140"))
    omissions = _omitted(experiment, hidden, OmissionKind.FOLDED)
    return replace(_folded(experiment, hidden), findings=found, omissions=omissions)


def fold_recursion(experiment: Experiment) -> Experiment:
    """Return the experiment with each direct recursion folded into its outermost call.

    `main/f/f/f` becomes `main/f`, with the cost and the callees of all three. Inclusive costs of
    the outermost calls stay the same.
    """
    again = recursive_calls(experiment.tree)
    return _folded(experiment, again) if again.any() else experiment


def fold_chains(experiment: Experiment) -> Experiment:
    """Return the experiment without the inner call paths of chains.

    An inner call path takes no time of its own in any run, and has a caller and a single callee.
    The callee moves to the caller, unless it would join another callee there. `Experiment.chains`
    keeps the names.
    """
    tree = experiment.tree
    called = tree.parent != ROOT
    inner = called & (np.bincount(tree.parent[called], minlength=len(tree)) == 1)
    timed = [values for values in experiment.columns.values() if values.metric.is_time]
    for values in timed or [*experiment.columns.values()][:1]:
        inner &= (np.nan_to_num(values.exclusive) == 0).all(axis=1)
    inner &= ~_joining(tree, inner)
    if not inner.any():
        return experiment
    smaller, rows = _folded_rows(experiment, inner)
    names = _names_of_chains(experiment, inner)
    return replace(smaller, chains={int(rows[row]): chain for row, chain in names.items()})


def _names_of_chains(experiment: Experiment, inner: BoolArray) -> dict[int, tuple[str, ...]]:
    """Return the names of inner call paths by the row of the call path below them."""
    tree, known = experiment.tree, experiment.chains
    last = np.flatnonzero(~inner & (tree.parent != ROOT))
    last = last[inner[tree.parent[last]]]
    found = {row: names for row, names in known.items() if not inner[row]}
    for row in last.tolist():
        names, above = [known.get(row, ())], int(tree.parent[row])
        while inner[above]:
            names.append((*known.get(above, ()), tree.name(above)))
            above = int(tree.parent[above])
        found[row] = tuple(name for part in reversed(names) for name in part)
    return found


def _joining(tree: CallTree, inner: BoolArray) -> BoolArray:
    """Return the call paths of chains whose callee would join another callee of its new caller."""
    heir = _heirs(tree, inner)
    shown = np.flatnonzero(~inner & (tree.parent != ROOT))
    keys = np.stack([heir[tree.parent[shown]], _functions(tree)[shown]])
    _, which, count = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    joining = np.zeros(len(tree), np.bool_)
    above = tree.parent[shown[count[which.reshape(-1)] > 1]]
    while len(above := above[(above != ROOT) & inner[above]]):
        joining[above] = True
        above = tree.parent[above]
    return joining


def _heirs(tree: CallTree, hidden: BoolArray) -> IntArray:
    """Return the nearest call path that is not hidden, from each call path upwards."""
    heir = np.arange(len(tree))
    heir[hidden] = tree.parent[hidden]
    while hidden[heir].any():
        heir = heir[heir]
    return heir


def recursive_calls(tree: CallTree) -> BoolArray:
    """Return True for call paths whose caller is the same function, [call paths]."""
    function = _functions(tree)
    called = tree.parent != ROOT
    return np.asarray(called & (function == function[tree.parent]), np.bool_)


def join_call_sites(experiment: Experiment) -> Experiment:
    """Return the experiment with all calls of a function by one caller as one call path."""
    tree = experiment.tree
    if not tree.has_sites:
        return experiment
    united = unify([without_call_sites(tree)])
    rows, everywhere = united.rows[0], np.zeros(len(tree), bool)
    columns = {
        name: _merged(values, rows, everywhere, len(united.tree))
        for name, values in experiment.columns.items()
    }
    moved, chains = _moved(experiment, rows), _moved_chains(experiment, rows)
    return replace(experiment, tree=united.tree, columns=columns, lines=moved, chains=chains)


def without_call_sites(tree: CallTree) -> CallTree:
    """Return the same rows without lines of calls, so that siblings may have the same name."""
    if not tree.has_sites:
        return tree
    notes: dict[str, int] = {}
    number = [notes.setdefault(without_site(note), len(notes)) for note in tree.annotations]
    annotation = np.array(number, np.int32)[tree.annotation]
    return CallTree.from_parents(tree.parent, tree.region, tree.regions, annotation, tuple(notes))


def _folded(experiment: Experiment, hidden: BoolArray) -> Experiment:
    """Return the experiment with `hidden` call paths, none of them a root, in their callers."""
    smaller, rows = _folded_rows(experiment, hidden)
    own = np.where(hidden, ROOT, rows)
    return replace(smaller, chains=_moved_chains(experiment, own))


def _folded_rows(experiment: Experiment, hidden: BoolArray) -> tuple[Experiment, IntArray]:
    """Return the same without chains, and the new row of each call path."""
    smaller, rows = _spliced(experiment.tree, hidden)
    columns = {
        name: _merged(values, rows, hidden, len(smaller))
        for name, values in experiment.columns.items()
    }
    moved = _moved(experiment, rows)
    return replace(experiment, tree=smaller, columns=columns, lines=moved, chains={}), rows


def _moved_chains(experiment: Experiment, place: IntArray) -> dict[int, tuple[str, ...]]:
    """Return the names of folded chains by the new rows; `ROOT` = the call path is gone."""
    return {
        int(place[row]): names for row, names in experiment.chains.items() if place[row] != ROOT
    }


def _moved(experiment: Experiment, place: IntArray) -> tuple[RunLines, ...]:
    """Return the costs of lines in other rows."""
    return tuple(
        {name: costs.moved(place) for name, costs in lines.items()} for lines in experiment.lines
    )


def excluded_call_paths(experiment: Experiment) -> str:
    """Return the options that excluded call paths, as an addition to a message; "" = none did."""
    taken = {"CPM139": "--ignore", "CPM140": "--hide"}
    options = dict.fromkeys(taken[each.code] for each in experiment.findings if each.code in taken)
    return f" after {' and '.join(options)}" if options else ""


def refuse_unnamed(
    trees: Sequence[CallTree], ignored: Iterable[str], hidden: Iterable[str]
) -> None:
    """Raise an error if a pattern has no effect on any of the trees.

    Parameters
    ----------
    trees : call trees
    ignored, hidden : patterns for `drop_subtrees` and for `merge_into_callers`

    Raises
    ------
    UsageError
        If a pattern names no call path, or if a pattern of `hidden` names only root call paths.
    """
    known, hidden = [Patterns.of(tree) for tree in trees], tuple(hidden)
    for pattern in (*ignored, *hidden):
        if not any(len(each.rows(pattern)) for each in known):
            raise unmatched(trees[0], pattern)
    for pattern in hidden:
        if all((each.tree.parent[each.rows(pattern)] == ROOT).all() for each in known):
            raise UsageError(
                f"{pattern!r} names only root call paths, which have no caller to fold them into",
                hint="use --ignore to exclude them",
            )


def _named(tree: CallTree, patterns: Iterable[str]) -> BoolArray:
    """Return True for the call paths that any of the patterns names, [call paths]."""
    known, named = Patterns.of(tree), np.zeros(len(tree), bool)
    for pattern in patterns:
        named[known.rows(pattern)] = True
    return named


def _spliced(tree: CallTree, hidden: BoolArray) -> tuple[CallTree, IntArray]:
    """Return the tree without `hidden` call paths, and the new row of each call path.

    A hidden call path gets the new row of its nearest caller that is not hidden.
    """
    heir = _heirs(tree, hidden)
    function = _functions(tree)
    callers = np.where(tree.parent == ROOT, ROOT, heir[tree.parent])
    # The line of a call is in the source of the folded caller, not in that of the new one.
    moved = (callers != tree.parent) & (function[callers] != function[tree.parent])
    site = np.where(moved, NO_LINE, tree.site)
    shown = np.flatnonzero(~hidden)
    number_of, first = np.full(len(tree), ROOT), list[int]()
    numbers: dict[tuple[int, int, int], int] = {}
    columns = (column[shown].tolist() for column in (callers, function, site))
    for row, caller, called, line in zip(shown.tolist(), *columns, strict=True):
        above = ROOT if caller == ROOT else int(number_of[caller])
        number = numbers.setdefault((above, called, line), len(numbers))
        if number == len(first):
            first.append(row)
        number_of[row] = number
    parents = np.array([above for above, _, _ in numbers], np.int32)
    place = preorder(parents)
    order = np.argsort(place)
    parents = parents[order]
    rows = np.array(first)[order]
    spliced = _tree_of(tree, rows, np.where(parents == ROOT, ROOT, place[parents]), site[rows])
    own = place[number_of[heir]]
    if not tree.has_sites:
        return spliced, own
    # Callees that were moved may be the only ones of their name, or no longer.
    united = unify([spliced])
    return united.tree, united.rows[0][own]


def _functions(tree: CallTree) -> IntArray:
    """Return the number of the function of each call path, [call paths].

    It distinguishes what the names of call paths distinguish, except call sites.
    """
    known: dict[tuple[str, str], int] = {}
    region, note = tree.region.tolist(), tree.annotation.tolist()
    names = [region.common_name for region in tree.regions]
    notes = [without_site(note) for note in tree.annotations]
    pairs = zip(region, note, strict=True)
    numbers = [known.setdefault((names[r], notes[n]), len(known)) for r, n in pairs]
    return np.array(numbers, np.intp)


def _tree_of(
    tree: CallTree,
    rows: IntArray,
    parents: NDArray[np.integer],
    site: NDArray[np.integer] | None = None,
) -> CallTree:
    """Return the tree of some call paths, with only the regions that they use.

    `site` holds the lines of their calls; None = as in `tree`.
    """
    used, region = np.unique(tree.region[rows], return_inverse=True)
    regions = [tree.regions[number] for number in used.tolist()]
    notes = tree.annotation[rows], tree.annotations
    site = tree.site[rows] if site is None else site
    lines = site if tree.has_sites else None
    return CallTree.from_parents(parents, region, regions, *notes, lines)


def _merged(values: MetricValues, rows: IntArray, hidden: BoolArray, size: int) -> MetricValues:
    """Return values by row of the new tree; values in the same row are added."""
    additive = values.metric.additive
    counts = np.ones(len(rows), bool) if additive else ~hidden
    exclusive = _each_run(values.exclusive[counts], rows[counts], size, additive=additive)
    imbalance = values.imbalance
    if imbalance is not None:
        # The imbalance of a sum is not known: different processes may be slowest in its parts.
        several = np.bincount(rows[np.nan_to_num(values.exclusive).any(axis=1)], minlength=size) > 1
        largest = _each_run(imbalance.astype(np.float64), rows, size, additive=False)
        imbalance = np.where(several[:, None], np.nan, largest).astype(np.float32)
    return _frozen(values, exclusive, values.total, imbalance, values.run_time)


def _each_run(values: FloatArray, rows: IntArray, size: int, *, additive: bool) -> FloatArray:
    columns = [scatter_to_union(column, rows, size, additive=additive) for column in values.T]
    return np.stack(columns, axis=1)


def _total_without(experiment: Experiment, values: MetricValues, gone: BoolArray) -> FloatArray:
    if not values.metric.additive:
        return values.total
    lost = np.nansum(values.exclusive[gone], axis=0)
    left = values.total - lost
    return left if experiment.reduction in SUMS else np.where(lost > 0, np.nan, values.total)


def _run_time_without(
    experiment: Experiment, values: MetricValues, gone: BoolArray
) -> FloatArray | None:
    """Return the run times without excluded call paths, [runs]; None = not known for any run."""
    if values.run_time is None:
        return None
    rows = np.flatnonzero(gone)
    if experiment.reduction is Reduction.GIVEN:
        mean = largest = values.exclusive[rows]
    else:
        mean, largest = experiment.means_and_maxima(values.metric.name, rows)
    is_equal = np.isclose(mean, largest, rtol=_EQUAL) | (np.nan_to_num(mean) == 0)
    left = values.run_time - np.nansum(mean, axis=0)
    left = np.where(is_equal.all(axis=0), left, np.nan)
    return None if np.isnan(left).all() else left


def _told(experiment: Experiment, rows: BoolArray, code: str) -> Finding:
    """Return the finding about the number and the share of the excluded or folded call paths."""
    count, share = int(rows.sum()), cost_share(experiment, rows)
    message = counted(count, "call path")
    if share is not None:
        message += f", {percent(share)} of the {experiment.metric().name} of all runs"
    return Finding(code, "call paths", message, count)


def _omitted(experiment: Experiment, rows: BoolArray, kind: OmissionKind) -> tuple[Omission, ...]:
    """Return the omissions of an experiment with a further one, of the given call paths."""
    share = cost_share(experiment, rows)
    new = Omission(kind, int(rows.sum()), share=share, metric=experiment.metric().name)
    return with_omission(experiment.omissions, new)


def cost_share(
    experiment: Experiment, rows: BoolArray | slice, runs: BoolArray | slice = slice(None)
) -> float | None:
    """Return the share that some call paths and runs have of the cost of all runs.

    Returns
    -------
    float or None
        None if the metric does not add up, or if nothing has a cost.
    """
    metric = experiment.metric()
    if not metric.additive:
        return None
    exclusive = experiment.values(metric.name)
    return share_of(float(np.nansum(exclusive[rows][:, runs])), float(np.nansum(exclusive)))


def _frozen(
    values: MetricValues,
    exclusive: FloatArray,
    total: FloatArray,
    imbalance: Float32Array | None,
    run_time: FloatArray | None,
) -> MetricValues:
    for array in (exclusive, total, imbalance, run_time):
        if array is not None:
            array.flags.writeable = False
    return MetricValues(values.metric, exclusive, total, imbalance, run_time)


def with_defined_metrics(
    experiment: Experiment, more: Sequence[Definition] = (), *, if_possible: bool = False
) -> Experiment:
    """Return an experiment with the metrics that formulas define.

    Metrics that were defined before are made again, because a formula of sums is not a sum of
    formulas: call paths may have been folded. A metric whose operands were not read has no values.

    Parameters
    ----------
    experiment : the measured runs
    more : further definitions
    if_possible : leave out definitions with unknown operands instead of raising an error

    Raises
    ------
    UsageError
        If the name of a definition is that of a measured metric or of another definition, or if an
        operand is unknown.
    """
    old = {each.name: each.formula for each in experiment.definitions}
    definitions = (*experiment.definitions, *_new(old, more))
    if not definitions:
        return experiment
    columns = {name: each for name, each in experiment.columns.items() if name not in old}
    known = dict.fromkeys([*columns, *experiment.declared])
    units = {name: _units(each.metric) for name, each in columns.items()}
    kept = []
    for each in definitions:
        if each.name in known:
            raise UsageError(
                f"{OPTION}: {each.name!r} is a measured metric", hint="choose another name"
            )
        unknown = [name for name in each.operands if name not in known]
        if unknown and if_possible:
            continue
        if unknown:
            hint = f"{did_you_mean(unknown[0], known)} metrics: {', '.join(known)}".lstrip()
            raise UsageError(
                f"{OPTION}: no metric {unknown[0]!r} for the formula of {each.name!r}", hint=hint
            )
        kept.append(each)
        known[each.name] = None
        if all(name in columns for name in each.operands):
            units[each.name] = combined_units(each.node, units)
            columns[each.name] = _values(each, columns, units[each.name])
    return replace(experiment, columns=columns, definitions=tuple(kept))


def _new(old: Mapping[str, str], more: Sequence[Definition]) -> Iterator[Definition]:
    """Yield the definitions that an experiment does not have yet."""
    for each in more:
        if each.name not in old:
            yield each
        elif old[each.name] != each.formula:
            raise UsageError(
                f"{OPTION}: {each.name!r} was defined as {old[each.name]!r} before",
                hint="choose another name",
            )


def _units(metric: Metric) -> Units | None:
    return as_units(metric.unit) if metric.unit else None


def _values(
    definition: Definition, columns: Mapping[str, MetricValues], units: Units | None
) -> MetricValues:
    """Return the values of a metric from those of its operands."""
    operands = [columns[name] for name in definition.operands]
    is_linear = degree(definition.node, lambda name: columns[name].metric.additive) == 1
    formula = Formula((definition,), definition.operands)
    exclusive = formula.of(_addends([one.exclusive for one in operands], is_linear))
    if is_linear:
        exclusive[np.logical_and.reduce([np.isnan(one.exclusive) for one in operands])] = np.nan
    total = formula.of([one.total for one in operands])
    for array in (exclusive, total):
        array.flags.writeable = False
    unit = unit_name(units)
    metric = Metric(definition.name, unit, definition.formula, additive=is_linear)
    return MetricValues(metric, exclusive, total)


def _addends(values: Sequence[FloatArray], is_linear: bool) -> Sequence[FloatArray]:
    """Return operands; in a sum, an operand that did not occur costs nothing."""
    return [np.where(np.isnan(one), 0.0, one) for one in values] if is_linear else values
