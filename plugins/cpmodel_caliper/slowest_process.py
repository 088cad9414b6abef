"""Run time of the slowest process, from maxima over processes."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.profile.calltree import CallTree
from cpmodel_caliper.contents import Contents
from cpmodel_caliper.metrics import Stored

_UNDECIDED = 0.01
"""Maximum share of the run time that may depend on whether two outermost regions are slowest on
different processes.
"""


def run_time_of_maxima(
    contents: Contents, stored: Stored, tree: CallTree, row_of: IntArray
) -> float:
    """Return the run time by inclusive maxima over processes, in base units.

    Parameters
    ----------
    stored : sum over processes of the same quantity
    tree : call paths below the program
    row_of : row of each node; the last one is the time outside all regions

    Returns
    -------
    float
        NaN if there are no such maxima, or if outermost regions of similar length may be slowest on
        different processes.
    """
    *operations, base = stored.attribute.split("#")
    name = "#".join(["max", *operations[1:], base])
    column = contents.columns.get(name)
    if column is None or operations[:1] != ["sum"] or "inclusive" not in operations:
        return float("nan")
    rows = row_of[np.array(contents.node, np.intp)[np.array(column.records, np.intp)]]
    values = np.array(column.values) * stored.factor
    # The record of the program has the time outside all regions.
    outermost = np.append(0, np.flatnonzero(tree.parent == 0))
    longest = np.zeros(len(tree))
    np.maximum.at(longest, rows, np.where(np.isfinite(values), values, 0.0))
    longest = longest[outermost]
    largest, whole = float(longest.max()), float(longest.sum())
    return whole if whole - largest <= _UNDECIDED * largest else float("nan")
