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

_MOST_CODES = 2**62
"""Number of codes from which they are counted anew, so that they stay within 64 bits."""


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
    if not len(terms):
        return []
    is_there = np.column_stack([coefficients[:, :1] != 0, terms >= 0])
    signs = np.where(is_there, 1 + (coefficients < 0), 0)
    signs[np.isnan(coefficients)] = 3
    known = [*dict.fromkeys(conditions or ())]
    number = {text: k for k, text in enumerate(known)}
    of_row = np.array([number[text] for text in conditions or ()] or [0] * len(terms))
    # Models of the same shapes and signs differ in numbers only, and there are few such kinds.
    _, first, kind = np.unique(
        _codes([of_row, *(terms.T.astype(np.int64) + 1), *signs.T]),
        return_index=True,
        return_inverse=True,
    )
    order = np.argsort(kind, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(kind, minlength=len(first)))[:-1])
    times = " " if pretty else " * "
    spelled = {code: _shape_text(shapes[code], parameter, pretty, exact)
               for code in np.unique(terms).tolist() if code >= 0}  # fmt: skip
    texts = ["no model"] * len(terms)
    for row, rows in zip(first.tolist(), groups, strict=True):
        if math.isnan(coefficients[row, 0]):
            continue
        its = np.flatnonzero(is_there[row])
        shown = ["", *(spelled.get(code, "") for code in terms[row].tolist())]
        condition = conditions[row] if conditions else ""
        pieces = [
            (float(coefficients[row, k]), times.join(filter(None, (condition, shown[k]))))
            for k in its.tolist()
        ]
        form = _form_of_sum(pieces, times, exact=exact)
        sizes = np.abs(coefficients[rows[:, None], its]).tolist()
        for place, numbers in zip(rows.tolist(), sizes, strict=True):
            texts[place] = form % tuple(numbers)
    return texts


def _codes(columns: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
    """Return one number for each row of columns of numbers from 0."""
    code, most = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if most * size > _MOST_CODES:
            distinct, code = np.unique(code, return_inverse=True)
            most = len(distinct)
        code, most = code * size + column, most * size
    return code


def sum_of_terms(pieces: Sequence[tuple[float, str]], *, pretty: bool = False) -> str:
    """Return a sum of coefficients and terms as text, like `model_texts`; the constant has none."""
    form = _form_of_sum(pieces, " " if pretty else " * ", exact=False)
    return form % tuple(abs(number) for number, _ in pieces)


def _shape_text(shape: Shape, parameter: Names, pretty: bool, exact: bool) -> str:
    if isinstance(shape, Product):
        return shape.text(parameter, pretty=pretty, exact=exact)
    name = parameter if isinstance(parameter, str) else parameter[0]
    return factor_text(shape, name, pretty=pretty, exact=exact)


def _form_of_sum(pieces: Sequence[tuple[float, str]], times: str, *, exact: bool) -> str:
    """Return a sum of coefficients and terms as text, with a place for each magnitude."""
    if not pieces:
        return "0"
    text, place = "", "%r" if exact else "%.4g"
    for number, shape in pieces:
        sign = "-" if number < 0 else "+"
        lead = (f" {sign} " if text else "-" * (number < 0)) + place
        text += lead + (times + shape.replace("%", "%%") if shape else "")
    return text
