"""Models of one row, for people: runners-up, and sums of terms as text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.evaluation import targets
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.modeling.shapes import Shape

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A runner-up of one row.

    Attributes
    ----------
    formula : str
        The model over ``p``.
    growth : Growth
        Its leading term.
    weight : float
        The probability of it and of the hypotheses next to it in growth that it stands for; with
        the classic method its Akaike weight among the chosen model and the alternatives.
    terms : tuple of Term or Break
        What it is made of beside the constant.
    coefficients : tuple of float
        The constant, then one per term, in the unit of the metric.
    """

    formula: str
    growth: Growth
    weight: float
    terms: tuple[Shape, ...]
    coefficients: tuple[float, ...]

    def values(self, p: npt.ArrayLike) -> FloatArray:
        """Predict at `p` [m]; never below zero."""
        scale = targets(p)
        total = np.full(len(scale), self.coefficients[0])
        for term, number in zip(self.terms, self.coefficients[1:], strict=False):
            if number:  # nothing times infinity is not a number
                total += number * term(scale)
        value: FloatArray = np.maximum(total, 0.0)
        return value


def sum_text(pieces: list[tuple[float, str]], times: str, exact: bool) -> str:
    """Write a sum of coefficients and terms with its signs between them."""
    if not pieces:
        return "0"
    text = ""
    for number, shape in pieces:
        size = repr(abs(number)) if exact else f"{abs(number):.4g}"
        sign = "-" if number < 0 else "+"
        lead = (f" {sign} " if text else "-" * (number < 0)) + size
        text += lead + (times + shape if shape else "")
    return text
