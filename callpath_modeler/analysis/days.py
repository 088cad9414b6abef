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
    common, common_dof : [K] the same of what all call paths share
    program, program_dof : [K] the same of the sum of all call paths
    has_base : True if base is the days of the history, so its own scatter is that of days
    """

    records: int
    rows: Mapping[str, int]
    scales: FloatArray
    own: FloatArray
    own_dof: FloatArray
    common: FloatArray
    common_dof: FloatArray
    program: FloatArray
    program_dof: FloatArray
    has_base: bool = False

    def usual(self, scale: float) -> float:
        """Return the usual standard deviation of the logarithm of a call path at a scale."""
        place = self._place(scale)
        return float(np.sqrt(np.median(self.own[:, place]) + self.common[place]))

    def widened(
        self,
        samples: Sequence[Sample],
        callpaths: Sequence[str],
        scale: float,
        *,
        relative: bool,
    ) -> list[Sample]:
        """Return samples of single days whose noise holds the scatter from day to day as well.

        Samples without repetitions have the scatter of days alone. Repetitions of base that are
        days show it themselves.

        Parameters
        ----------
        samples : base and new: of call paths and, last, of the program, each [m + 1]
        callpaths : [m] names; one that the history does not know has the usual scatter
        scale : value of the parameter; the nearest one of the history counts
        relative : True = call paths relative to all of them, without the program, each [m]
        """
        place = self._place(scale)
        rows = np.array([self.rows.get(name, -1) for name in callpaths], np.intp)
        variance, dof = (
            np.where(rows >= 0, each[rows, place], np.median(each[:, place]))
            for each in (self.own, self.own_dof)
        )
        parts = [(variance, dof)]
        if not relative:
            shared = np.append(np.full(len(rows), self.common[place]), 0.0)
            parts = [
                (np.append(variance, self.program[place]), np.append(dof, self.program_dof[place])),
                (shared, np.full(len(shared), self.common_dof[place])),
            ]
        widened = [_with_variances(sample, parts) for sample in samples]
        if self.has_base:
            widened[0] = _where_unrepeated(samples[0], widened[0])
        return widened

    def _place(self, scale: float) -> int:
        return int(np.argmin(np.abs(np.log(self.scales / scale))))


def _with_variances(sample: Sample, parts: Sequence[tuple[FloatArray, FloatArray]]) -> Sample:
    """Return a sample with further variances of its centre; degrees of freedom by Welch (1947)."""
    count, known = np.maximum(sample.count, 1), ~np.isnan(sample.variance)
    own = np.where(known, sample.variance / count, 0.0), np.where(known, sample.dof, np.inf)
    variance, dof = (np.array(column) for column in zip(own, *parts, strict=True))
    total = variance.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.nan_to_num(variance**2 / dof).sum(axis=0)
        joint = np.where(squares > 0, total**2 / squares, np.where(known, sample.dof, 1.0))
    return structs.replace(sample, variance=total * count, dof=joint)


def _where_unrepeated(sample: Sample, other: Sample) -> Sample:
    """Return a sample that has the noise of another one where it was not repeated."""
    single = np.isnan(sample.variance)
    variance, dof = (
        np.where(single, theirs, own)
        for own, theirs in ((sample.variance, other.variance), (sample.dof, other.dof))
    )
    return structs.replace(sample, variance=variance, dof=dof)
