"""Growth of measurements by the published method: one term from the space of an expectation.

Every term of the space is fitted together with a constant, by relative least squares. The term that
predicts left-out points best is chosen: it has the largest adjusted R^2 of the leave-one-out
residuals, which is zero for a constant.

See docs/explanation/expectations.md, 'Limits, divergence, match'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray, Int8Array, Int16Array, IntArray
from callpath_modeler.modeling.classic.search import (
    WITH_CONSTANT,
    WITHOUT_CONSTANT,
    Basis,
    OneTerm,
    WeightedRows,
    fit_one_term,
    solve,
)
from callpath_modeler.modeling.constants.noise import EXACT
from callpath_modeler.modeling.constants.validation import MATCH_CHUNK
from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth
from callpath_modeler.modeling.model_columns import MIN_POINTS
from callpath_modeler.modeling.validation.limits import DeviationMatch, ExpectedGrowth
from callpath_modeler.modeling.validation.spaces import search_space


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Matches of n rows with an expectation, in columns.

    Attributes
    ----------
    expectation : ExpectedGrowth
        The expectation.
    space : tuple of Growth
        The growths that were compared, slowest first.
    chosen : ndarray [n] of int16
        Position of the chosen growth in `space`; -1 without a model.
    constant, coefficient : ndarray [n]
        Constant and coefficient of the fitted term, in the unit of the metric; NaN without a model.
    adjusted_r2 : ndarray [n]
        Adjusted R^2 of the leave-one-out residuals; 0 for a constant.
    cv_error : ndarray [n]
        Root mean square of these residuals, relative.
    match : ndarray [n] of int8
        Codes of `DeviationMatch`.
    """

    expectation: ExpectedGrowth
    space: tuple[Growth, ...]
    chosen: Int16Array
    constant: FloatArray
    coefficient: FloatArray
    adjusted_r2: FloatArray
    cv_error: FloatArray
    match: Int8Array

    def __post_init__(self) -> None:
        """Make every column read-only."""
        for name in ("chosen", "constant", "coefficient", "adjusted_r2", "cv_error", "match"):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.chosen)

    def growth(self, row: int) -> Growth | None:
        """Return the chosen growth of a row; None without a model."""
        code = int(self.chosen[row])
        return None if code < 0 else self.space[code]

    def divergence(self, row: int) -> Growth | None:
        """Return the factor by which a row misses the expectation; None without a model."""
        growth = self.growth(row)
        return None if growth is None else self.expectation.divergence(growth)


def validate(
    points: npt.ArrayLike,
    values: npt.ArrayLike,
    expectation: ExpectedGrowth,
    space: Sequence[Growth] | None = None,
) -> Validation:
    """Return the matches of measurements with an expectation.

    Parameters
    ----------
    points : array_like [K]
        Distinct values of the parameter above zero, in any order.
    values : array_like [n, K]
        One value per row and point, zero or more; NaN = missing.
    expectation : ExpectedGrowth
        The expectation for every row.
    space : sequence of Growth, optional
        Growths to compare, by default `search_space`. Logarithms are left out if a point is below
        1. So are growths that overflow at the points.

    Returns
    -------
    Validation
        Rows with fewer than four points, or with a value that is infinite or below zero, have no
        model.

    Raises
    ------
    ValueError
        If shapes or points are not as described, or if no growth of the space can be used.
    """
    scale, y = _checked(points, values)
    among = tuple(sorted(set(search_space(expectation.growth) if space is None else space)))
    terms = _Terms.of(among, scale)
    parts = [
        _choose(y[start : start + MATCH_CHUNK], terms)
        for start in range(0, len(y) or 1, MATCH_CHUNK)
    ]
    chosen = np.concatenate([part[0] for part in parts])
    constant, coefficient, adjusted_r2, cv_error = np.concatenate([part[1] for part in parts], 1)
    # Without a model the code is -1, which selects the last entry.
    matches = np.array(
        [*(expectation.match(growth) for growth in among), DeviationMatch.NO_MODEL], np.int8
    )
    match = matches[chosen]
    return Validation(
        expectation, among, chosen, constant, coefficient, adjusted_r2, cv_error, match
    )


def _checked(points: npt.ArrayLike, values: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    scale, y = np.asarray(points, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if scale.ndim != 1 or not scale.size or not (np.isfinite(scale) & (scale > 0)).all():
        raise ValueError("points must be a list of finite numbers above zero")
    if len(np.unique(scale)) != len(scale):
        raise ValueError("points must differ")
    if y.ndim != 2 or y.shape[1] != len(scale):
        raise ValueError(f"values have shape {y.shape}; expected (rows, {len(scale)})")
    order = np.argsort(scale)
    return scale[order], y[:, order]


@dataclass(frozen=True, slots=True)
class _Terms:
    """Terms that can be fitted, their positions in the space, and that of O(1); -1 = not in it."""

    basis: Basis
    codes: IntArray
    flat: int

    @classmethod
    def of(cls, among: Sequence[Growth], points: FloatArray) -> _Terms:
        """Return the growths of a space that can be evaluated at `points`."""
        flat = among.index(CONSTANT_GROWTH) if CONSTANT_GROWTH in among else -1
        codes = [
            code
            for code, growth in enumerate(among)
            if code != flat
            and (points[0] >= 1 or not growth.log)
            and np.isfinite(growth(points)).all()
        ]
        if not codes:
            raise ValueError("nothing of the search space but O(1) can be evaluated at the points")
        growths = [among[code] for code in codes]
        return cls(Basis.at(points, growths, np.ones(len(codes), np.bool_)), np.array(codes), flat)


def _choose(y: FloatArray, terms: _Terms) -> tuple[Int16Array, FloatArray]:
    """Return the growth of each row, [n]; constant, coefficient, adjusted R^2, error, [4, n]."""
    present = ~np.isnan(y)
    usable = (present.sum(axis=1) >= MIN_POINTS["classic"]) & ~(np.isinf(y) | (y < 0)).any(axis=1)
    chosen = np.full(len(y), -1, dtype=np.int16)
    numbers = np.full((4, len(y)), np.nan)
    zero = usable & ~(y > 0).any(axis=1)
    if terms.flat >= 0:
        chosen[zero], numbers[:, zero] = terms.flat, 0.0
    row = np.flatnonzero(usable & ~zero)
    if row.size:
        unit = np.nanmax(y[row], axis=1)
        some = np.where(present[row], y[row] / unit[:, None], 0.0)
        best, found = _best(WeightedRows.relative(some, present[row], None), terms)
        chosen[row] = np.where(best < 0, terms.flat, terms.codes[best])
        found[0] *= unit
        found[1] *= unit / np.where(best < 0, 1.0, terms.basis.scale[best])
        numbers[:, row] = found
    numbers[:, chosen < 0] = np.nan
    return chosen, numbers


def _best(rows: WeightedRows, terms: _Terms) -> tuple[IntArray, FloatArray]:
    """Return the term of each row, -1 = constant; constant, coefficient, R^2 and error."""
    one = fit_one_term(rows, terms.basis)
    for term in np.flatnonzero(terms.basis.decreasing):
        _without_constant(one, int(term), rows, terms.basis)
    flat = solve(np.ones((*rows.y.shape, 1)), rows)
    freedom = rows.points[:, None] - np.where(one.form == WITH_CONSTANT, 2.0, 1.0)
    reference = flat.cv / (rows.points - 1)
    # Equal exact numbers have no variation that a term could explain.
    reference = np.where(flat.cv > rows.points * EXACT**2, reference, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        adjusted = 1 - one.cv / freedom / reference[:, None]
    adjusted[np.isnan(adjusted) | np.isinf(one.cv)] = -np.inf
    row, best = np.arange(len(adjusted)), adjusted.argmax(axis=1)
    value = adjusted[row, best]
    growing = (value > 0) | ((terms.flat < 0) & np.isfinite(value))
    constant = np.where(growing, one.constant[row, best], flat.coefficients[:, 0])
    slope = np.where(growing, one.slope[row, best], 0.0)
    left = np.where(growing, one.cv[row, best], flat.cv)
    numbers = [constant, slope, np.where(growing, value, 0.0), np.sqrt(left / rows.points)]
    return np.where(growing, best, -1), np.array(numbers)


def _without_constant(one: OneTerm, term: int, rows: WeightedRows, basis: Basis) -> None:
    """Replace the fit of a falling term by one without a constant, which it would fall towards."""
    column = np.broadcast_to(basis.values[term], rows.y.shape)[..., None]
    alone = solve(column, rows)
    one.form[:, term] = WITHOUT_CONSTANT
    one.constant[:, term], one.slope[:, term] = 0.0, alone.coefficients[:, 0]
    one.cv[:, term] = alone.cv
