"""The inclusive time of the program on its slowest process, out of maxima over processes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.calltree import CallTree
from cpmodel_caliper.contents import Contents
from cpmodel_caliper.metrics import Stored

_UNDECIDED = 0.01
"""Different processes may be slowest in two outermost regions. So much of the run time may depend
on whether they are."""


def run_time_of_maxima(
    contents: Contents, stored: Stored, tree: CallTree, row_of: NDArray[np.intp]
) -> float:
    """Return the run time that inclusive maxima over processes tell, in base units.

    Parameters
    ----------
    stored : the sum over processes of the same quantity
    tree : the call paths below the program
    row_of : row of each node, that of no region last

    Returns
    -------
    float
        NaN where there are no such maxima, or where outermost regions of about the same length may
        be slow on different processes.
    """
    *operations, base = stored.attribute.split("#")
    name = "#".join(["max", *operations[1:], base])
    column = contents.columns.get(name)
    if column is None or operations[:1] != ["sum"] or "inclusive" not in operations:
        return float("nan")
    rows = row_of[np.array(contents.node, np.intp)[np.array(column.records, np.intp)]]
    values = np.array(column.values) * stored.factor
    # The record of the program itself holds the time outside of all regions.
    outermost = np.append(0, np.flatnonzero(tree.parent == 0))
    longest = np.zeros(len(tree))
    np.maximum.at(longest, rows, np.where(np.isfinite(values), values, 0.0))
    longest = longest[outermost]
    largest, whole = float(longest.max()), float(longest.sum())
    return whole if whole - largest <= _UNDECIDED * largest else float("nan")
