"""Excess work between scales in one of the three views."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.bands import Band
from callpath_modeler.analysis.ensemble import Losses
from callpath_modeler.analysis.excess import efficiency_of, overlap
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.outlined_view import OutlinedView

Overlaps = tuple[BoolArray, BoolArray] | None
"""Overlap of repetitions: inclusive and exclusive, each [lines]; None = not repeated."""


@dataclass(frozen=True, eq=False)
class ExcessView(OutlinedView):
    """Excess work in one of the three views.

    Attributes
    ----------
    losses : the excess work
    request : view, depth, filter and zoom
    prediction : costs at the predicted target of the last pair; None = there is no target
    """

    losses: Losses
    request: ViewRequest
    prediction: Answer | None = None

    @property
    def tree(self) -> CallTree:
        """The call paths."""
        return self.losses.experiment.tree

    @property
    def costs(self) -> Costs:
        """Excess work, [call paths, pairs]."""
        return self.losses.excess

    @property
    def column(self) -> int:
        """Number of the last pair, which orders the lines."""
        return len(self.losses.pairs) - 1

    @cached_property
    def overlaps(self) -> list[Overlaps]:
        """Overlap of repetitions, per pair: inclusive and exclusive, each [lines]."""
        found: list[Overlaps] = []
        for pair in range(len(self.losses.pairs)):
            runs = self.losses.repetitions(pair)
            if runs is None:
                found.append(None)
                continue
            before, after = (self.outline.values(costs) for costs in runs)
            own, whole = overlap(before[0], after[0]), overlap(before[1], after[1])
            found.append(None if own is None or whole is None else (whole, own))
        return found

    @cached_property
    def bands(self) -> tuple[Band, Band] | None:
        """Excess work of lines at a predicted target, exclusive and inclusive; None = no target."""
        if self.prediction is None:
            return None
        own, whole = self.prediction.of_outline(self.outline)
        return own.excess_band, whole.excess_band

    @cached_property
    def band_of_total(self) -> Band:
        """Excess work of the program at a predicted target with its band, [1]; NaN = no target."""
        if self.prediction is None:
            nothing = np.full(1, np.nan)
            return Band(nothing, nothing, nothing)
        return self.prediction.program_excess

    @cached_property
    def ensemble(self) -> tuple[FloatArray, FloatArray] | None:
        """Mean excess work of lines over all pairs, exclusive and inclusive, each [lines].

        None = there is at most one pair.
        """
        ensemble = self.losses.ensemble
        if ensemble.count < 2:
            return None
        own, whole = self.outline.values(ensemble.costs)
        return own[:, 0], whole[:, 0]

    @property
    def has_one_base(self) -> bool:
        """Whether all pairs have the same smaller scale."""
        return len({base for base, _ in self.losses.pairs}) == 1

    @property
    def gain(self) -> str:
        """Word for negative excess work."""
        return "superlinear" if self.losses.ideal.scaling else "less than expected"

    def efficiency(self, excess: FloatArray, cost: FloatArray, pair: int) -> FloatArray:
        """Return the expected cost of lines, divided by their cost, [lines].

        Parameters
        ----------
        excess, cost : [lines] inclusive values at the larger scale of the pair
        pair : number of the pair
        """
        run_time = self.losses.run_time[self.losses.columns(pair)[1]]
        return efficiency_of(np.nan_to_num(cost), np.nan_to_num(excess) * run_time)
