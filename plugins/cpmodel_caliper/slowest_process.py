"""Run time of the slowest process and imbalance, from maxima over processes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import Float32Array, FloatArray, IntArray
from callpath_modeler.profile.calltree import CallTree
from cpmodel_caliper.contents import Contents
from cpmodel_caliper.metrics import Stored

_UNDECIDED = 0.01
"""Maximum share of the run time that may depend on whether two outermost regions are slowest on
different processes.
"""


@dataclass(frozen=True, slots=True, eq=False)
class ProcessMaxima:
    """Inclusive maxima over processes, in base units.

    Attributes
    ----------
    largest : [call paths]; 0 = no record
    records : [call paths] number of records
    tree : call paths below the program
    """

    largest: FloatArray
    records: IntArray
    tree: CallTree

    @classmethod
    def of(
        cls, contents: Contents, stored: Stored, tree: CallTree, row_of: IntArray
    ) -> ProcessMaxima | None:
        """Return the maxima beside a sum over processes; None = there are none.

        Parameters
        ----------
        stored : sum over processes of the same quantity
        tree : call paths below the program
        row_of : row of each node; the last one is the time outside all regions
        """
        *operations, base = stored.attribute.split("#")
        name = "#".join(["max", *operations[1:], base])
        column = contents.columns.get(name)
        if column is None or operations[:1] != ["sum"] or "inclusive" not in operations:
            return None
        rows = row_of[np.array(contents.node, np.intp)[np.array(column.records, np.intp)]]
        values = np.array(column.values) * stored.factor
        largest = np.zeros(len(tree))
        np.maximum.at(largest, rows, np.where(np.isfinite(values), values, 0.0))
        return cls(largest, np.bincount(rows, minlength=len(tree)), tree)

    @property
    def run_time(self) -> float:
        """Run time by inclusive maxima.

        NaN if outermost regions of similar length may be slowest on different processes.
        """
        # The record of the program has the time outside all regions.
        outermost = np.append(0, np.flatnonzero(self.tree.parent == 0))
        longest = self.largest[outermost]
        largest, whole = float(longest.max()), float(longest.sum())
        return whole if whole - largest <= _UNDECIDED * largest else float("nan")

    def imbalance(self, mean: FloatArray) -> Float32Array:
        """Return the largest over the mean of the processes, [call paths]; NaN = not known.

        It is known for call paths without callees, whose inclusive and exclusive times are equal.

        Parameters
        ----------
        mean : [call paths] exclusive means over processes
        """
        known = (self.tree.end == np.arange(1, len(self.tree) + 1)) & (self.records == 1)
        known &= (mean > 0) & (self.largest > 0)
        ratio = np.divide(self.largest, mean, out=np.full(len(mean), np.nan), where=known)
        return np.asarray(np.maximum(ratio, 1.0), np.float32)
