"""Models of many rows in columns: predictions, growths, formulas, alternatives."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import (
    BoolArray,
    Float32Array,
    FloatArray,
    Int8Array,
    Int16Array,
    Int64Array,
    IntArray,
)
from callpath_modeler.modeling.classic.bands import classic_band
from callpath_modeler.modeling.evaluation import targets
from callpath_modeler.modeling.formulas import Alternative, Names, model_texts
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.modeling.laws_before_change import LawsBeforeChange
from callpath_modeler.modeling.noise import Centre
from callpath_modeler.modeling.predictive import prediction_interval, predictive_mixture
from callpath_modeler.modeling.shapes import Shapes, evaluate
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.terms import SearchSpace
from callpath_modeler.modeling.uncertainty import Mixture, Prediction

_CHUNK = 8192
"""Rows that are summed together."""

_UNDECIDED = 0.1
"""Total probability of faster, or of slower, hypotheses up to which a growth is decided."""

METHODS = ("mixture", "classic")
"""Methods of modelling: a probability for every hypothesis, or one choice by cross-validation."""

MIN_POINTS = {"mixture": 3, "classic": 4}
"""Smallest number of points with a value that a model of each method needs."""


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """One model per row, in columns over n rows; T is the largest number of terms.

    Attributes
    ----------
    space : SearchSpace
        The search space of the models.
    shapes : Shapes
        The shapes that codes stand for, slowest growth first.
    method : str
        One of `METHODS`.
    aggregate : str
        The centre of repetitions that was modelled.
    points : ndarray [K] or [K, D]
        The points of the experiment, ascending. Models in D parameters have values and formulas.
        All other results need a slice, with all parameters but one held, from
        `several.slices.slice_along`.
    confidence : float
        Confidence of the bands.
    correlation : float
        Correlation between the errors of rows: 0 = independent, 1 = the same.
    odd_scale : tuple of tuple and float, or None
        The point, if any, at which nearly all rows are off by one factor, judged by the other
        points: its value of each parameter (None = all values), and the factor. The point has
        little weight.
    terms : ndarray [n, T] of int16
        Positions in ``shapes``, slowest growth first; -1 = unused.
    coefficients : ndarray [n, T + 1]
        The constant, then one coefficient per term, in the unit of the metric; NaN without a model.
    covariance : ndarray [n, T + 1, T + 1]
        Covariance of the coefficients, in squared units of the metric, with the classic method;
        [n, 0, 0] with the mixture method, which keeps `root`.
    spread : ndarray [n]
        Relative standard deviation of a measured centre about the model, at the largest point.
    drift : ndarray [n]
        Relative variance that is added per doubling of the parameter beyond.
    dof : ndarray [n]
        Degrees of freedom of `spread`.
    cv_error : ndarray [n]
        Cross-validated relative error (root mean square), 0.03 = 3 %.
    r2, adjusted_r2, rss : ndarray [n]
        R^2, adjusted R^2 and sum of squares of the relative residuals.
    noise : ndarray [n]
        Relative standard deviation of one repetition; NaN without repetitions.
    status : ndarray [n] of int8
        Codes of `FitStatus`.
    used : ndarray [n] of int16
        Number of points with a value.
    since : ndarray [n]
        First point that follows the model, if an earlier law holds for smaller values of the
        parameter; 0 if the model holds for all values.
    before : ndarray [n] of int16
        The shape of the law before `since`; -1 = none.
    before_coefficients : ndarray [n, 2]
        The constant and the coefficient of that law, in the unit of the metric.
    low_p, high_p : ndarray [n]
        Smallest and largest point with a value; NaN with several parameters.
    weight : ndarray [n]
        Probability of the model; with the classic method its Akaike weight among itself and its
        alternatives.
    alternative_terms, alternative_coefficients, alternative_weight : ndarray [n, A, ...]
        The alternatives, most probable first; a weight of 0 = none. Of D parameters, the first A /
        D belong to slices along the first parameter, and so on; each set represents all hypotheses.
    unit : ndarray [n]
        The unit of `root`: the largest value of each row, in the unit of the metric.
    root : ndarray [n, 1 + A, 6] of float32
        Errors of the coefficients of the model and its alternatives, with the mixture method: roots
        of their covariances, see module `roots`; [n, 0, 6] with the classic method.
    """

    space: SearchSpace
    shapes: Shapes
    method: str
    aggregate: Centre
    points: FloatArray
    confidence: float
    correlation: float
    odd_scale: tuple[tuple[float | None, ...], float] | None
    terms: Int16Array
    coefficients: FloatArray
    covariance: FloatArray
    spread: FloatArray
    drift: FloatArray
    dof: FloatArray
    cv_error: FloatArray
    r2: FloatArray
    adjusted_r2: FloatArray
    rss: FloatArray
    noise: FloatArray
    status: Int8Array
    used: Int16Array
    since: FloatArray
    before: Int16Array
    before_coefficients: FloatArray
    low_p: FloatArray
    high_p: FloatArray
    weight: FloatArray
    alternative_terms: Int16Array
    alternative_coefficients: FloatArray
    alternative_weight: npt.NDArray[np.floating]
    unit: FloatArray
    root: Float32Array

    def __post_init__(self) -> None:
        """Make every column read-only."""
        for name in ("points", *column_names()):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.status)

    def __repr__(self) -> str:
        return f"<Models: {len(self)} rows, {len(self.points)} points>"

    def take(self, rows: npt.ArrayLike | slice) -> Models:
        """Return the models of some rows.

        Parameters
        ----------
        rows : array_like of int or bool, or slice
            Row numbers or a mask; a slice copies nothing.

        Returns
        -------
        Models
            The models, in this order.
        """
        wanted = rows if isinstance(rows, slice) else np.asarray(rows)
        if not isinstance(wanted, slice) and wanted.size == 0:
            wanted = wanted.astype(np.intp)
        return replace(self, **{name: getattr(self, name)[wanted] for name in column_names()})

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

    @property
    def axes(self) -> int:
        """Number of parameters of the models."""
        return 1 if self.points.ndim == 1 else self.points.shape[1]

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
        return Prediction(value, np.minimum(low, value), np.maximum(high, value))

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
        number = np.take_along_axis(self.coefficients, lead[:, None], axis=1)[:, 0]
        code = np.take_along_axis(self.terms, np.maximum(lead - 1, 0)[:, None], axis=1)
        alike = (shapes.rank[self.terms] == shapes.rank[code]) & (self.terms != code)
        # A leap leads a sum with a growing power; a falling power leads a sum with a leap.
        alike &= shapes.leaps[code] | shapes.leaps[self.terms]
        belongs = np.where((lead == 0)[:, None], shapes.ends_at_one[self.terms], alike)
        return np.asarray(number + np.where(belongs, self.coefficients[:, 1:], 0.0).sum(axis=1))

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
        asked = np.asarray(rows, dtype=np.intp)
        own = self.take(asked).growth_rank()[:, None]
        if self.method == "classic":
            return np.repeat(own, 2, axis=1)
        others = self.alternative_terms[asked], self.alternative_coefficients[asked]
        ranks = np.concatenate([own, self.shapes.growth_rank(*others)], axis=1)
        weight = np.concatenate([self.weight[asked, None], self.alternative_weight[asked]], axis=1)
        order = np.argsort(ranks, axis=1, kind="stable")
        ranks, weight = (np.take_along_axis(each, order, axis=1) for each in (ranks, weight))
        running = weight.cumsum(axis=1)
        whole = running[:, -1:]
        ends = [(running > _UNDECIDED * whole), (running >= (1 - _UNDECIDED) * whole)]
        at = [np.take_along_axis(ranks, end.argmax(axis=1)[:, None], axis=1) for end in ends]
        # The range includes the model, which has no alternatives if all values are zero.
        low, high = np.minimum(at[0], own), np.maximum(at[1], own)
        return np.concatenate([np.where(own < 0, own, low), np.where(own < 0, own, high)], axis=1)

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
        for start in range(0, len(wanted), _CHUNK):
            some = wanted[start : start + _CHUNK]
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
        there = np.flatnonzero(self.alternative_weight[row] > 0)
        terms, numbers = (
            column[row, there] for column in (self.alternative_terms, self.alternative_coefficients)
        )
        return tuple(
            Alternative(
                text,
                self.shapes.growths[growth],
                float(self.alternative_weight[row, slot]),
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


def column_names() -> tuple[str, ...]:
    """Return the names of the fields of `Models` that are columns over rows."""
    names = [field.name for field in fields(Models)]
    return tuple(names[names.index("terms") :])
