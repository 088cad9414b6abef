"""Findings about call paths that some runs lack, and about renamed call paths."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from callpath_modeler.arrays import BoolArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.metric_values import MetricValues
from callpath_modeler.units import percent

_CODES = frozenset({"CPM113", "CPM137"})

_LOST = 0.2
"""Smallest share of the total of a call path whose absence from a repetition is reported."""
_MOST = 20
"""Maximum number of renamed pairs with a finding each; one more finding counts the others."""


def coverage_findings(tree: CallTree, columns: Mapping[str, MetricValues]) -> list[Finding]:
    """Return findings about call paths that some runs lack, and about pairs that look renamed."""
    for values in columns.values():
        occurs = ~np.isnan(values.exclusive)
        partly = int((~occurs.all(axis=1) & occurs.any(axis=1)).sum())
        if partly:
            message = f"{partly} of {len(occurs)} call paths do not occur in every run"
            found = Finding("CPM113", values.metric.name, message, partly)
            return [found, *_replaced(tree, occurs)]
    return []


def lost_findings(
    tree: CallTree,
    columns: Mapping[str, MetricValues],
    names: Sequence[str],
    points: Sequence[Hashable],
) -> list[Finding]:
    """Return findings about costly call paths that are 0 in a run, but not in its repetitions.

    Parameters
    ----------
    tree : the call tree
    columns : values by metric; the first time, or else the first sum, decides
    names, points : [runs] names, and points that repetitions share
    """
    additive = [v for v in columns.values() if v.metric.additive]
    values = next((v for v in additive if v.metric.can_be_run_time), next(iter(additive), None))
    if values is None:
        return []
    groups: dict[Hashable, list[int]] = {}
    for run, point in enumerate(points):
        groups.setdefault(point, []).append(run)
    found = []
    for group in (each for each in groups.values() if len(each) > 1):
        own = values.exclusive[:, group]
        if not (is_zero := own == 0).any():
            continue
        most = np.nan_to_num(own).max(axis=1)
        share = most / max(float(np.nansum(own, axis=0).max()), np.finfo(float).tiny)
        for row, of in np.argwhere(is_zero & (share >= _LOST)[:, None])[:_MOST].tolist():
            message = f"{tree.path(row)}: 0, but {percent(share[row])} of the total in a repetition"
            found.append(Finding("CPM149", names[group[of]], message))
    return found


def with_coverage_of(experiment: Experiment) -> Experiment:
    """Return an experiment with coverage findings about its own runs and call paths."""
    others = (finding for finding in experiment.findings if finding.code not in _CODES)
    found = coverage_findings(experiment.tree, experiment.columns)
    return replace(experiment, findings=(*others, *found))


def _replaced(tree: CallTree, occurs: BoolArray) -> list[Finding]:
    """Return findings about pairs of siblings that complement each other, as if one was renamed.

    Each run has exactly one sibling of such a pair, and no other sibling occurs in the same runs.

    Parameters
    ----------
    tree : the call tree
    occurs : [call paths, runs]
    """
    runs = occurs.sum(axis=1)
    always = runs == occurs.shape[1]
    called_always = (tree.parent == ROOT) | always[tree.parent]
    siblings: dict[tuple[int, bytes], list[int]] = {}
    for row in np.flatnonzero(~always & (runs > 0) & called_always).tolist():
        siblings.setdefault((int(tree.parent[row]), occurs[row].tobytes()), []).append(row)
    pairs = []
    for (caller, _), rows in siblings.items():
        others = siblings.get((caller, (~occurs[rows[0]]).tobytes()), [])
        if len(rows) == len(others) == 1 and rows[0] < others[0]:
            pairs.append((rows[0], others[0]))
    found = []
    for first, second in pairs[:_MOST]:
        where = f"in {runs[first]} of {occurs.shape[1]} runs"
        message = f"{where}, {tree.path(second)} in the others"
        found.append(Finding("CPM137", tree.path(first), message))
    more = len(pairs) - _MOST
    if more > 0:
        found.append(Finding("CPM137", "other call paths", f"{more} more such pairs", more))
    return found
