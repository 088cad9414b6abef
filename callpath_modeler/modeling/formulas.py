"""Formulas and alternatives of the model of one row, as text.

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, Int16Array
from callpath_modeler.modeling.evaluation import targets
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.modeling.products import Product, Shape, factor_text

Names = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Alternative:
    """An alternative to the model of one row.

    Attributes
    ----------
    formula : str
        The formula over ``p``.
    growth : Growth
        Its leading term.
    weight : float
        The probability of the alternative and of the hypotheses near it in growth that it
        represents; with the classic method its Akaike weight among the chosen model and the
        alternatives.
    terms : tuple of Shape
        Its shapes, without the constant.
    coefficients : tuple of float
        The constant, then one coefficient per term, in the unit of the metric.
    """

    formula: str
    growth: Growth
    weight: float
    terms: tuple[Shape, ...]
    coefficients: tuple[float, ...]

    def values(self, p: npt.ArrayLike) -> FloatArray:
        """Return the predictions at `p` [m]; never negative."""
        scale = targets(p)
        total = np.full(len(scale), self.coefficients[0])
        for term, number in zip(self.terms, self.coefficients[1:], strict=False):
            if number:  # zero times infinity is NaN
                total += number * term(scale)
        value: FloatArray = np.maximum(total, 0.0)
        return value


def model_texts(
    shapes: Sequence[Shape],
    terms: Int16Array,
    coefficients: FloatArray,
    parameter: Names,
    *,
    pretty: bool = False,
    exact: bool = False,
    conditions: Sequence[str] | None = None,
) -> list[str]:
    """Return models as text, the constant first; ``no model`` where the constant is NaN.

    Parameters
    ----------
    shapes : sequence of Shape
        The shapes that codes stand for.
    terms : ndarray [n, T]
        Codes; -1 = unused.
    coefficients : ndarray [n, T + 1]
        The constant, then one coefficient per term.
    parameter, pretty, exact
        As for `Models.formula`.
    conditions : sequence of str
        A factor of all pieces of each model, [n], such as ``[p < 8]``; None or empty = no factor.
    """
    codes = terms.tolist()
    # There are few shapes, even for many models.
    used = {code for row in codes for code in row if code >= 0}
    written = {code: _shape_text(shapes[code], parameter, pretty, exact) for code in used}
    times = " " if pretty else " * "
    texts = []
    for k, (row, (constant, *numbers)) in enumerate(zip(codes, coefficients.tolist(), strict=True)):
        pieces = [(constant, "")] if constant != 0 else []
        pieces += [(n, written[c]) for c, n in zip(row, numbers, strict=True) if c >= 0]
        if conditions and conditions[k]:
            pieces = [(n, times.join(filter(None, (conditions[k], text)))) for n, text in pieces]
        known = not math.isnan(constant)
        texts.append(_sum_text(pieces, times, exact=exact) if known else "no model")
    return texts


def sum_of_terms(pieces: Sequence[tuple[float, str]], *, pretty: bool = False) -> str:
    """Return a sum of coefficients and terms as text, like `model_texts`; the constant has none."""
    return _sum_text(pieces, " " if pretty else " * ", exact=False)


def _shape_text(shape: Shape, parameter: Names, pretty: bool, exact: bool) -> str:
    if isinstance(shape, Product):
        return shape.text(parameter, pretty=pretty, exact=exact)
    name = parameter if isinstance(parameter, str) else parameter[0]
    return factor_text(shape, name, pretty=pretty, exact=exact)


def _sum_text(pieces: Sequence[tuple[float, str]], times: str, *, exact: bool) -> str:
    """Return a sum of coefficients and terms as text, with its signs between them."""
    if not pieces:
        return "0"
    text = ""
    for number, shape in pieces:
        size = repr(abs(number)) if exact else f"{abs(number):.4g}"
        sign = "-" if number < 0 else "+"
        lead = (f" {sign} " if text else "-" * (number < 0)) + size
        text += lead + (times + shape if shape else "")
    return text
