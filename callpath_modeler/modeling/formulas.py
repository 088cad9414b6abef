"""Formulas and alternatives of the model of one row, as text.

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import FloatArray, Int16Array
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.modeling.products import Product, Shape, factor_text
from callpath_modeler.modeling.shapes import targets

Names = str | Sequence[str]


class Alternative(Struct, frozen=True):
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
    places = {text: k for k, text in enumerate(known)}
    of_row = np.array([places[text] for text in conditions or ()] or [0] * len(terms))
    # Models of the same shapes and signs differ in numbers only, and there are few such kinds.
    _, first, kind = np.unique(
        _codes([of_row, *(terms.T.astype(np.int64) + 1), *signs.T]),
        return_index=True,
        return_inverse=True,
    )
    times = " " if pretty else " * "
    spelled = {code: _shape_text(shapes[code], parameter, pretty, exact)
               for code in np.unique(terms).tolist() if code >= 0}  # fmt: skip
    forms = []
    for k, (constant, *numbers), row in zip(
        first.tolist(), coefficients[first].tolist(), terms[first].tolist(), strict=True
    ):
        pieces = [(constant, "")] if constant != 0 else []
        pieces += [(n, spelled[code]) for n, code in zip(numbers, row, strict=True) if code >= 0]
        if conditions and conditions[k]:
            pieces = [(n, times.join(filter(None, (conditions[k], text)))) for n, text in pieces]
        forms.append(_form_of_sum(pieces, times, exact=exact))
    texts = ["no model"] * len(terms)
    pattern = _codes([~np.isnan(coefficients[:, 0]), *is_there.T])
    for code in np.unique(pattern).tolist():
        rows = np.flatnonzero(pattern == code)
        its = np.flatnonzero(is_there[rows[0]])
        if math.isnan(coefficients[rows[0], 0]):
            continue
        sizes = [*zip(*np.abs(coefficients[rows[:, None], its]).T.tolist(), strict=True)]
        numbers_of = sizes or [()] * len(rows)
        for place, form, numbers in zip(
            rows.tolist(), kind[rows].tolist(), numbers_of, strict=True
        ):
            texts[place] = forms[form] % numbers
    return texts


def _codes(columns: Sequence[npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
    """Return one number for each row of columns of numbers from 0."""
    code, most = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        # Codes are counted anew before they exceed 64 bits.
        if most * size > np.iinfo(np.int64).max:
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
