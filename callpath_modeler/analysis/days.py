"""Scatter from day to day that a history of runs shows, and samples whose noise includes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.measured import Sample
from callpath_modeler.arrays import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ScatterOfDays:
    """Variances of logarithms from one day to another, beyond the scatter of repetitions.

    Attributes
    ----------
    records : number of days
    rows : row of each call path below
    scales : [K] values of the parameter
    own, own_dof : [n, K] variance of each call path relative to the others, and its degrees of
        freedom
    common, common_dof : [K] variance of what all call paths share, and its degrees of freedom
    """

    records: int
    rows: Mapping[str, int]
    scales: FloatArray
    own: FloatArray
    own_dof: FloatArray
    common: FloatArray
    common_dof: FloatArray

    def usual(self, scale: float) -> float:
        """Return the usual standard deviation of the logarithm of a call path at a scale."""
        place = self._place(scale)
        return float(np.sqrt(np.median(self.own[:, place]) + self.common[place]))

    def widened(
        self,
        samples: Sequence[Sample],
        callpaths: Sequence[str | None],
        scale: float,
        shares: Sequence[FloatArray],
        *,
        relative: bool = False,
    ) -> list[Sample]:
        """Return samples of single days whose noise holds the scatter from day to day as well.

        Samples without repetitions have the scatter of days alone.

        Parameters
        ----------
        samples : samples at the scale, each [m]
        callpaths : [m] names; None = a sum over call paths
        scale : value of the parameter; the nearest one of the history counts
        shares : of each sample, the shares of call paths in the program, [m]; 0 = a sum
        relative : True = values relative to those of all call paths
        """
        place = self._place(scale)
        own, dof = self.own[:, place], self.own_dof[:, place]
        rows = np.array([-1 if name is None else self.rows.get(name, -1) for name in callpaths])
        variance = np.where(rows >= 0, own[rows], np.median(own))
        freedom = np.where(rows >= 0, dof[rows], np.median(dof))
        is_sum = np.array([name is None for name in callpaths])
        found = []
        for sample, share in zip(samples, shares, strict=True):
            # The call paths of a sum differ independently, beside what they share.
            between = np.where(is_sum, float((share**2 * variance).sum()), variance)
            parts = [(between, freedom)]
            if not relative:
                parts.append((self.common[place], self.common_dof[place]))
            found.append(_with_variances(sample, parts))
        return found

    def _place(self, scale: float) -> int:
        return int(np.argmin(np.abs(np.log(self.scales / scale))))


def _with_variances(
    sample: Sample, parts: Sequence[tuple[FloatArray | float, FloatArray | float]]
) -> Sample:
    """Return a sample with further variances of its centre; degrees of freedom by Welch (1947)."""
    count = np.maximum(sample.count, 1)
    known = ~np.isnan(sample.variance)
    own = np.where(known, sample.variance / count, 0.0)
    every = [(own, np.where(known, sample.dof, np.inf)), *parts]
    total = sum((np.asarray(variance) for variance, _ in every), np.zeros(len(count)))
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = sum(
            (np.nan_to_num(np.asarray(variance) ** 2 / dof) for variance, dof in every),
            np.zeros(len(count)),
        )
        dof = np.where(squares > 0, total**2 / squares, np.where(known, sample.dof, 1.0))
    return structs.replace(sample, variance=total * count, dof=dof)
