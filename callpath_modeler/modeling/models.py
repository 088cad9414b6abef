"""Models of many rows in columns: predictions, growths, formulas, alternatives.

See docs/explanation/modeling.md, 'The method in one page'.

See docs/explanation/hypotheses.md, 'Laws beyond a change point'.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, Int16Array, Int64Array, IntArray
from callpath_modeler.modeling.constants.evidence import UNDECIDED
from callpath_modeler.modeling.constants.hypotheses import FEWEST_BEFORE, FEWEST_BEYOND, MOST_OFF
from callpath_modeler.modeling.constants.limits import ROWS_TOGETHER
from callpath_modeler.modeling.constants.outcome import (
    STEADY_DRIFT,
    STEADY_WAITING,
    WAITING_DRIFT,
)
from callpath_modeler.modeling.distributions import Mixture, Prediction
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.modeling.model_columns import (
    FitStatus,
    LawsBeforeChange,
    ModelColumns,
    classic_band,
    prediction_interval,
    predictive_mixture,
)
from callpath_modeler.modeling.products import Break, BreakKind, Product, Shape, factor_text
from callpath_modeler.modeling.shapes import evaluate, targets
from callpath_modeler.modeling.terms import Term

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


@dataclass(frozen=True, slots=True, eq=False)
class Models(ModelColumns):
    """One model per row: predictions, growths, formulas and alternatives of its columns."""

    def __repr__(self) -> str:
        return f"<Models: {len(self)} rows, {len(self.points)} points>"

    def values(self, p: npt.ArrayLike) -> FloatArray:
        """Return predictions without bands, fast for millions of rows.

        Parameters
        ----------
        p : array_like [m] or [m, D]
            Values of the parameters above zero; infinity is allowed for one parameter.

        Returns
        -------
        ndarray [n, m]
            Never negative; NaN without a model.

        Raises
        ------
        ValueError
            If a value of the parameter is not above zero.
        """
        wanted = targets(p, self.axes)
        found = evaluate(self.shapes, self.terms, self.coefficients, wanted)
        earlier = LawsBeforeChange.of(self, wanted)
        if earlier is not None:
            earlier.put(found, earlier.values)
        return found

    def mixture(self, p: npt.ArrayLike) -> Mixture:
        """Return the predictive distributions of all rows at finite `p` [m]."""
        return predictive_mixture(self, targets(p))

    def predict(self, p: npt.ArrayLike) -> Prediction:
        """Return predictions with bands.

        Parameters
        ----------
        p : array_like [m]
            Values of the parameter above zero; infinity is allowed.

        Returns
        -------
        Prediction
            Value, low and high, each [n, m]; the band holds a measured centre with `confidence`.

        Raises
        ------
        ValueError
            If a value of the parameter is not above zero.
        """
        if self.axes > 1:
            raise ValueError("bands are made along one parameter, with the others held")
        wanted = targets(p)
        if self.method != "classic":
            return self._with_band(wanted)
        return classic_band(self, wanted)

    def _with_band(self, p: FloatArray) -> Prediction:
        value = self.values(p)
        # At infinity it is only certain that values are not negative.
        low = np.where(np.isnan(value), np.nan, 0.0)
        high = np.where(np.isnan(value), np.nan, np.inf)
        finite = np.isfinite(p)
        if finite.any():
            low[:, finite], high[:, finite] = prediction_interval(self, p[finite])
        if self.grain:
            # A measured count is whole. It stands for the interval of half a count on both sides.
            low = np.rint(low / self.grain) * self.grain
            high = np.rint(high / self.grain) * self.grain
        return Prediction(value, np.minimum(low, value), np.maximum(high, value))

    def steadied(self) -> Self:
        """Return the models as those of run times, whose deviations grow less beyond the points."""
        return replace(self, drift=self.drift * STEADY_DRIFT / (self.drift + STEADY_DRIFT))

    def waiting(self, rows: BoolArray) -> Self:
        """Return the models in which the marked rows [n] wait, so that they deviate more beyond."""
        return replace(self, drift=self.drift + self._drift_of_waiting(rows))

    def not_waiting(self, rows: BoolArray) -> Self:
        """Return the models without what `waiting` added to the marked rows [n]."""
        drift = np.maximum(self.drift - self._drift_of_waiting(rows), 0.0)
        return replace(self, drift=drift)

    def _drift_of_waiting(self, rows: BoolArray) -> FloatArray:
        spread = np.where(rows, np.nan_to_num(self.spread), 0.0)
        return np.asarray(WAITING_DRIFT * spread**2 / (spread**2 + STEADY_WAITING**2))

    def doubtful(self) -> BoolArray:
        """Return whether a model is unreliable, [n]: outside the class, or noisy."""
        return np.isin(self.status, (FitStatus.OUTSIDE, FitStatus.NOISY))

    def lead(self) -> IntArray:
        """Return the position of the leading one in `coefficients`, [n], as in `Shapes.lead`."""
        return self.shapes.lead(self.terms, self.coefficients)

    def leading_coefficient(self) -> FloatArray:
        """Return the coefficient of the leading term, [n], which ranks rows of the same growth.

        A leading constant includes the final contribution of steps and ceilings. A leap and the
        power that it is paired with are added.
        """
        lead, shapes = self.lead(), self.shapes
        found = np.take_along_axis(self.coefficients, lead[:, None], axis=1)[:, 0]
        # Others have no part of the constant and no pair. There may be 10^6 rows.
        special = shapes.leaps | shapes.ends_at_one
        rows = np.flatnonzero(np.logical_or.reduce([special[codes] for codes in self.terms.T]))
        terms, lead = self.terms[rows], lead[rows, None]
        code = np.take_along_axis(terms, np.maximum(lead - 1, 0), axis=1)
        alike = (shapes.rank[terms] == shapes.rank[code]) & (terms != code)
        # A leap leads a sum with a growing power; a falling power leads a sum with a leap.
        alike &= shapes.leaps[code] | shapes.leaps[terms]
        belongs = np.where(lead == 0, shapes.ends_at_one[terms], alike)
        found[rows] += np.where(belongs, self.coefficients[rows, 1:], 0.0).sum(axis=1)
        return found

    def growth_rank(self) -> Int64Array:
        """Return the position of the growth in ``shapes.growths``, [n]; -1 without a model."""
        rank = self.shapes.growth_rank(self.terms, self.coefficients)
        rank[self.status >= FitStatus.TOO_FEW_POINTS] = -1
        return rank

    def growth_ends(self, rows: npt.ArrayLike) -> Int64Array:
        """Return the range of growths of some rows, [m, 2], as in `growth_rank`.

        Hypotheses slower than the first and faster than the second growth each have a probability
        of at most a tenth. If both are the same, the growth is decided.
        """
        its = self.take(np.asarray(rows, dtype=np.intp))
        own = its.growth_rank()[:, None]
        if self.method == "classic":
            return np.repeat(own, 2, axis=1)
        others = its.alternative_terms, its.alternative_coefficients
        ranks = np.concatenate([own, self.shapes.growth_rank(*others)], axis=1)
        weight = np.concatenate([its.weight[:, None], its.alternative_weight], axis=1)
        order = np.argsort(ranks, axis=1, kind="stable")
        ranks, weight = (np.take_along_axis(each, order, axis=1) for each in (ranks, weight))
        running = weight.cumsum(axis=1)
        whole = running[:, -1:]
        ends = [(running > UNDECIDED * whole), (running >= (1 - UNDECIDED) * whole)]
        at = [np.take_along_axis(ranks, end.argmax(axis=1)[:, None], axis=1) for end in ends]
        # The range includes the model, which has no alternatives if all values are zero.
        low, high = np.minimum(at[0], own), np.maximum(at[1], own)
        return np.concatenate([np.where(own < 0, own, low), np.where(own < 0, own, high)], axis=1)

    def all_growth_ends(self) -> Int16Array:
        """Return the ranges of growths of all rows, [n, 2], in one pass over the columns."""
        starts = range(0, len(self), ROWS_TOGETHER)
        found = np.empty((len(self), 2), np.int16)
        for start in starts:
            rows = np.arange(start, min(start + ROWS_TOGETHER, len(self)))
            found[rows] = self.growth_ends(rows)
        self.give_back()
        return found

    def growth(self, row: int) -> Growth:
        """Return the growth of one row; O(1) without a model."""
        rank = self.shapes.growth_rank(self.terms[row], self.coefficients[row])
        return self.shapes.growths[int(rank)]

    def growth_texts(
        self, rows: npt.ArrayLike, parameter: str = "p", *, pretty: bool = False
    ) -> list[str]:
        """Return growths of some rows as text, like ``growth(row).text(parameter)``, but faster."""
        asked = np.asarray(rows, dtype=np.intp)
        ranks = self.shapes.growth_rank(self.terms[asked], self.coefficients[asked]).tolist()
        growths = self.shapes.growths
        texts = {rank: growths[rank].text(parameter, pretty=pretty) for rank in set(ranks)}
        return [texts[rank] for rank in ranks]

    def formula(
        self, row: int, parameter: Names = "p", *, pretty: bool = False, exact: bool = False
    ) -> str:
        """Return the formula of one row.

        Parameters
        ----------
        row : int
            The row.
        parameter : str or sequence of str
            Name of the parameter, or of each of several.
        pretty : bool
            Use superscripts and fractions beyond ASCII.
        exact : bool
            Write numbers with all their digits instead of four, and the earlier law together with a
            model beyond a change point.

        Returns
        -------
        str
            For example ``3.99 * p^(1/2) + 0.04 * p^(1/2) * log2(p)``, the constant first;
            ``no model`` without one.
        """
        return self.formulas([row], parameter, pretty=pretty, exact=exact)[0]

    def formulas(
        self,
        rows: npt.ArrayLike,
        parameter: Names = "p",
        *,
        pretty: bool = False,
        exact: bool = False,
    ) -> list[str]:
        """Return the formulas of some rows, as `formula` does."""
        asked = np.asarray(rows, dtype=np.intp)
        terms, numbers = self.terms[asked], self.coefficients[asked]
        write = partial(model_texts, self.shapes, parameter=parameter, pretty=pretty, exact=exact)
        if not exact or not self.since[asked].any():
            return write(terms, numbers)
        name = parameter if isinstance(parameter, str) else parameter[0]
        since = [repr(at).removesuffix(".0") for at in self.since[asked].tolist()]
        there = [f"[{name} >= {at}]" if at != "0" else "" for at in since]
        before = [f"[{name} < {at}]" if at != "0" else "" for at in since]
        laws = write(terms, numbers, conditions=there)
        codes, numbers = self.before[asked, None], self.before_coefficients[asked]
        earlier = write(codes, numbers, conditions=before)
        return [
            f"{first} + {law}".replace("+ -", "- ") if at != "0" else law
            for first, law, at in zip(earlier, laws, since, strict=True)
        ]

    def sum_formula(
        self, rows: npt.ArrayLike, parameter: Names = "p", *, pretty: bool = False
    ) -> str:
        """Return the formula of the sum of some rows; rows without a model add nothing.

        The normal form is closed under addition, so the sum is a model, too.
        """
        codes, total = self._sum(rows)
        return model_texts(self.shapes, codes[None], total[None], parameter, pretty=pretty)[0]

    def sum_values(self, rows: npt.ArrayLike, p: npt.ArrayLike) -> FloatArray:
        """Return the prediction of the sum of some rows at `p` [m], without a band, [m]."""
        codes, total = self._sum(rows)
        wanted = targets(p)
        summed: FloatArray = evaluate(self.shapes, codes[None], total[None], wanted)[0]
        # Only rows with a law beyond a change point are copied, as there may be 10^6 rows.
        asked = np.asarray(rows, dtype=np.intp)
        its = self.take(asked[self.since[asked] > 0])
        earlier = LawsBeforeChange.of(its, wanted)
        if earlier is not None:
            there = its.take(earlier.rows)
            beyond = evaluate(self.shapes, there.terms, there.coefficients, wanted)
            summed += np.where(earlier.where, earlier.values - beyond, 0.0).sum(axis=0)
        return summed

    def _sum(self, rows: npt.ArrayLike) -> tuple[Int16Array, FloatArray]:
        """Return codes and coefficients of the sum of some rows, the constant first."""
        wanted = np.asarray(rows)
        constant, per_term = 0.0, np.zeros(len(self.shapes) + 1)
        for start in range(0, len(wanted), ROWS_TOGETHER):
            some = wanted[start : start + ROWS_TOGETHER]
            numbers, terms = np.nan_to_num(self.coefficients[some]), self.terms[some]
            constant += float(numbers[:, 0].sum())
            weights = numbers[:, 1:].ravel()
            per_term += np.bincount(terms.ravel() + 1, weights, minlength=len(per_term))
        codes = np.flatnonzero(per_term[1:]).astype(np.int16)
        return codes, np.concatenate([[constant], per_term[1:][codes]])

    def alternatives(
        self, row: int, parameter: Names = "p", *, pretty: bool = False
    ) -> tuple[Alternative, ...]:
        """Return the alternatives of one row, most probable first, with formulas like `formula`."""
        its = self.take([row])
        there = np.flatnonzero(its.alternative_weight[0] > 0)
        terms, numbers = its.alternative_terms[0, there], its.alternative_coefficients[0, there]
        return tuple(
            Alternative(
                text,
                self.shapes.growths[growth],
                float(its.alternative_weight[0, slot]),
                tuple(self.shapes[code] for code in codes if code >= 0),
                tuple(coefficients),
            )
            for slot, text, growth, codes, coefficients in zip(
                there.tolist(),
                model_texts(self.shapes, terms, numbers, parameter, pretty=pretty),
                self.shapes.growth_rank(terms, numbers).tolist(),
                terms.tolist(),
                numbers.tolist(),
                strict=True,
            )
        )


Pieces = dict[Term | None, float]
"""Coefficients of terms; None = the constant."""

_AFTER = frozenset({BreakKind.STEP, BreakKind.LEAP, BreakKind.DROP})
"""Kinds of breaks between two points: the law beyond holds after their place."""


def _power(each: Break, power: Fraction, sign: int = 1) -> Pieces:
    """Return ``(p / at) ** power``, with a sign, as the coefficient of a term."""
    return {Term(power, 0): sign * each.at ** -float(power)}


_SIDES: Mapping[BreakKind, tuple[Callable[[Break], Pieces], Callable[[Break], Pieces]]] = {
    BreakKind.STEP: (lambda _: {}, lambda _: {None: 1.0}),
    BreakKind.LEAP: (lambda _: {}, lambda each: {Term(each.exponent, each.log): 1.0}),
    BreakKind.DROP: (lambda _: {None: 1.0}, lambda _: {}),
    BreakKind.BEND: (lambda _: {None: 1.0}, lambda each: _power(each, each.exponent)),
    BreakKind.ONSET: (lambda _: {}, lambda each: {**_power(each, Fraction(1)), None: -1.0}),
    BreakKind.BEYOND: (lambda _: {}, lambda each: {**_power(each, Fraction(-1), -1), None: 1.0}),
    BreakKind.CLIMB: (
        lambda _: {},
        lambda each: {Term(Fraction(0), 1): 1.0, None: -float(np.log2(each.at))},
    ),
    BreakKind.PLATEAU: (lambda each: _power(each, each.exponent), lambda _: {None: 1.0}),
    BreakKind.FLOOR: (lambda each: _power(each, -each.exponent), lambda _: {None: 1.0}),
}
"""Terms before and beyond the place of a break; other breaks are gradual or have many places."""


class ChangePoint(Struct, frozen=True):
    """The two laws of one row.

    Attributes
    ----------
    since : first point that follows the law beyond
    law, before : formulas of the law beyond and of the earlier law
    """

    since: float
    law: str
    before: str


def changes_since(models: Models) -> FloatArray:
    """Return the first point that follows the law beyond a change point, [n].

    It is 0 without a change point, and where fewer than `FEWEST_BEYOND` points lie beyond or fewer
    than `FEWEST_BEFORE` before.
    """
    if models.points.ndim > 1:
        return np.zeros(len(models))
    place = np.array([*map(_place, models.shapes), -np.inf])
    if not np.isfinite(place).any():
        return models.since
    # The last one of two breaks counts; a break without a single place hides it.
    last = place[models.terms].max(axis=1)
    gradual = np.isnan(place)[models.terms].any(axis=1)
    found = np.searchsorted(models.points, np.nan_to_num(last, nan=0.0, neginf=0.0))
    is_there = np.isfinite(last) & ~gradual & (found >= FEWEST_BEFORE)
    is_there &= found <= len(models.points) - FEWEST_BEYOND
    # A model that misses the values by much is not a law, with or without a break.
    is_there &= models.spread <= MOST_OFF
    since = models.points[np.minimum(found, len(models.points) - 1)]
    return np.where(models.since > 0, models.since, np.where(is_there, since, 0.0))


def change_point(
    models: Models, row: int, parameter: str = "p", *, pretty: bool = False
) -> ChangePoint | None:
    """Return the two laws of a row; None without a change point."""
    its = models.take([row])
    since = float(changes_since(its)[0])
    if not since:
        return None

    def text(pieces: Pieces) -> str:
        ordered = sorted(pieces, key=lambda term: (term is not None, term and term.growth.order))
        written = [term.text(parameter, pretty=pretty) if term else "" for term in ordered]
        pairs = zip((pieces[term] for term in ordered), written, strict=True)
        return sum_of_terms([pair for pair in pairs if pair[0]], pretty=pretty)

    shapes = [models.shapes[code] if code >= 0 else None for code in its.terms[0].tolist()]
    law = list(zip([None, *shapes], its.coefficients[0].tolist(), strict=True))
    if not its.since[0]:
        return ChangePoint(since, text(_sum(law, 1)), text(_sum(law, 0)))
    code = int(its.before[0])
    numbers = its.before_coefficients[0].tolist()
    before = list(zip([None, models.shapes[code] if code >= 0 else None], numbers, strict=True))
    return ChangePoint(since, text(_sum(law, 1)), text(_sum(before, 0)))


def _sum(law: list[tuple[Shape | None, float]], side: int) -> Pieces:
    """Return a law before (0) or beyond (1) its breaks, as coefficients of terms."""
    total: Pieces = defaultdict(float)
    for shape, number in law:
        if isinstance(shape, Break):
            for term, factor in _SIDES[shape.kind][side](shape).items():
                total[term] += number * factor
        else:
            total[shape if isinstance(shape, Term) else None] += number
    return total


def _place(shape: Shape) -> float:
    """Return the place of the break in a shape; -inf without a break, NaN without one place."""
    if not isinstance(shape, Break):
        return -np.inf if isinstance(shape, Term) else np.nan
    if shape.kind not in _SIDES:
        return np.nan
    return float(np.nextafter(shape.at, np.inf)) if shape.kind in _AFTER else shape.at
