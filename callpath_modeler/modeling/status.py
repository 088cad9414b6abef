"""Status of a fit; a fit never raises an exception for a row.

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class FitStatus(IntEnum):
    """The status of a fit; every row has one."""

    OK = 0
    CONSTANT = 1
    ZERO = 2
    NOISY = 3
    OUTSIDE = 4
    TOO_FEW_POINTS = 5
    NON_FINITE = 6
    NEGATIVE = 7

    @property
    def sentence(self) -> str:
        """The meaning of the status, for people."""
        return _SENTENCES[self]

    @property
    def modelled(self) -> bool:
        """Whether a row of this status has a model that predicts."""
        return self < FitStatus.TOO_FEW_POINTS


_SENTENCES: Mapping[FitStatus, str] = {
    FitStatus.OK: "Growth that noise does not explain; the errors tell how well the model fits.",
    FitStatus.CONSTANT: "The value does not change with the parameter, as far as noise shows.",
    FitStatus.ZERO: "The value is zero everywhere.",
    FitStatus.NOISY: "Repetitions differ by more than 25 %; growth could hide behind the noise.",
    FitStatus.OUTSIDE: "No model of the class explains the measurements within their noise; "
    "the best one is given.",
    FitStatus.TOO_FEW_POINTS: "Too few points have a value; no model.",
    FitStatus.NON_FINITE: "A value is infinite, or their sum is; no model.",
    FitStatus.NEGATIVE: "A value is below zero; no model.",
}
"""Meaning of each status."""
