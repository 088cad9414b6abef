"""Significance of differences of sums of call paths, such as the calls of one function.

A sum is tested alone, with the noise of all call paths, and is not compared relative to the others
as a call path is. It is shown as a difference if it is at least as significant as the least
significant call path that is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.changes import Changes, change_of, marks_of
from callpath_modeler.analysis.deviations import deviation_addends, deviation_of_sums
from callpath_modeler.analysis.diff import Differences, PredictedPair, direction_of
from callpath_modeler.analysis.measured import Sample, pool_of, sample_at
from callpath_modeler.analysis.pairing import AlignedExperiment
from callpath_modeler.analysis.two_samples import (
    SampleComparison,
    compare_bands,
    compare_samples,
)
from callpath_modeler.arrays import FloatArray, Int8Array
from callpath_modeler.modeling.mixture.repetition_noise import Pool
from callpath_modeler.modeling.sums import ends_of_sums
from callpath_modeler.profile.groups import Costs

Sums = Callable[[Costs], FloatArray]
"""Sums of columns over the call paths of each node, [nodes, columns]."""


@dataclass(frozen=True, eq=False)
class SumChanges:
    """Tests of differences of sums at one scale.

    Attributes
    ----------
    differences : the two experiments
    scale : value of the parameter
    predictions : predictions there; None = values are measured
    """

    differences: Differences
    scale: float
    predictions: PredictedPair | None

    def test(
        self, sums: Sums, values: FloatArray, changes: Changes
    ) -> tuple[SampleComparison, Int8Array]:
        """Return the test of each sum, and its mark as in `Changes`.

        Parameters
        ----------
        sums : the sums
        values : [nodes, 2] sums of base and of new
        changes : differences of the call paths, exclusive or inclusive as the sums
        """
        addends = self._addends
        if addends is None:
            found = self._of_runs(sums, self.scale)
        else:
            found = self._of_predictions(sums, values, addends)
        is_shown = np.nan_to_num(found.p, nan=1.0) <= self._limit(changes)
        mark = marks_of(change_of(values[:, 0], values[:, 1]), found, is_shown)
        scales = self.differences.pair.scales
        if addends is not None and len(scales):
            measured = self._of_runs(sums, float(scales[-1]))
            direction = direction_of(measured.p, measured.difference, self.differences.confidence)
            mark = np.where(mark == direction, mark, 0)
        return found, mark

    def _limit(self, changes: Changes) -> float:
        """Return the largest probability by chance of a difference that is shown."""
        level = 1 - self.differences.confidence
        shown = changes.p[np.nan_to_num(changes.rate, nan=1.0) <= level]
        return float(shown.max()) if len(shown) else level / max(1, np.isfinite(changes.p).sum())

    @cached_property
    def _pools(self) -> tuple[Pool, Pool]:
        base, new = (pool_of(side.values) for side in self.differences.pair.sides)
        return base, new

    def _of_runs(self, sums: Sums, scale: float) -> SampleComparison:
        """Return the test of measured sums."""
        pair, samples = self.differences.pair, []
        for side, runs, pool in zip(pair.sides, pair.runs, self._pools, strict=True):
            point = int(np.searchsorted(side.points, scale))
            values = sums(runs)
            values = values.reshape(len(values), *side.values.shape[1:])
            samples.append(sample_at(values, point, pool))
        if not any(sample.is_repeated for sample in samples):
            samples = [
                self._unrepeated(sums, sample, side)
                for sample, side in zip(samples, pair.sides, strict=True)
            ]
        return compare_samples(samples[0], samples[1], self.differences.confidence)

    def _unrepeated(self, sums: Sums, sample: Sample, side: AlignedExperiment) -> Sample:
        """Return the sample with the deviations from models as its noise."""
        if side.fitted is None:
            return sample
        addends = side.spread(deviation_addends(side.fitted), absent=0.0)
        variance, dof = deviation_of_sums(sums(Costs.of(self.differences.pair.tree, addends)))
        return structs.replace(sample, variance=variance, dof=dof)

    @cached_property
    def _addends(self) -> tuple[Costs, Costs] | None:
        """Additive numbers for bands of base and of new; None = values are measured."""
        if self.predictions is None:
            return None
        tree = self.differences.pair.tree
        base, new = (Costs.of(tree, own.added) for own in self.predictions.sides)
        return base, new

    def _of_predictions(
        self, sums: Sums, values: FloatArray, addends: tuple[Costs, Costs]
    ) -> SampleComparison:
        """Return the test of predicted sums."""
        bands = [
            (column, *ends_of_sums(column, sums(added)))
            for column, added in zip(values.T, addends, strict=True)
        ]
        return compare_bands(bands[0], bands[1], self.differences.confidence)
