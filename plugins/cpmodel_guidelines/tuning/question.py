"""How gains and their promises are judged."""

from __future__ import annotations

from dataclasses import dataclass

from cpmodel_guidelines.answer import Method


@dataclass(frozen=True, slots=True)
class Question:
    """How gains are judged.

    Attributes
    ----------
    tolerance : slowdown that is not a violation, as a fraction
    least : smallest gain that enters, as a share of the time of a call
    method : test and control of the error rate
    without_outliers : remove the outliers of each mpirun before its median is computed
    """

    tolerance: float
    least: float
    method: Method
    without_outliers: bool = False
