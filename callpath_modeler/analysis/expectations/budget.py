"""Work that the expectations of a file may cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from callpath_modeler.analysis.bands import Band
from callpath_modeler.analysis.expectations.crossings import crossing
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.expectations.verdicts import Crossing
from callpath_modeler.arrays import FloatArray
from callpath_modeler.input_limits import InputLimits, Work

_SEARCHED = 0.2
"""Searches for the scale that breaks a bound, as a share of the evaluations."""

_SPLIT = "split the file"


@dataclass(eq=False)
class Budget:
    """Work that the expectations of a file may cause, by the size of the file.

    Attributes
    ----------
    limits : limits of the file
    """

    limits: InputLimits
    _evaluations: int = 0
    _searches: int = 0
    _curves: dict[tuple[object, ...], Band] = field(default_factory=dict, repr=False)

    def spend(self, evaluations: int) -> None:
        """Count evaluations of criteria that share no evaluation with others.

        Raises
        ------
        InputError
            If the file causes too many of them.
        """
        self._evaluations += evaluations
        self.limits.check(Work.EVALUATIONS, self._evaluations, _SPLIT)

    def crossing(self, beyond: Callable[[FloatArray], Band], points: FloatArray) -> Crossing | None:
        """Return the scale from which on a bound is broken, as `crossings.crossing` does.

        None = the file has caused too many searches.
        """
        self._searches += 1
        if self._searches > _SEARCHED * self.limits.most(Work.EVALUATIONS):
            return None
        return crossing(beyond, points)

    def curve(
        self, subjects: Subjects, row: int | None, points: FloatArray, confidence: float
    ) -> Band:
        """Return predictions of one subject, as `Subjects.curve` does, from earlier ones if any."""
        key = subjects.measured, subjects.inclusive, row, confidence, points.tobytes()
        if key not in self._curves:
            self._curves[key] = subjects.curve(row, points, confidence)
        return self._curves[key]
