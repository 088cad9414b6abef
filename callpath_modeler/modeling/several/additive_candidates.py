"""Sums of a factor of each of three parameters or more: terms beyond the two that pairs have.

Where runs vary one parameter at a time, two products and a constant fit such a sum exactly, and say
hundreds of times as much where all are large. There are millions of sums; of each parameter the few
terms are tried that leave least beside any functions of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import (
    LogPriors,
    Posterior,
    fitted_values,
    values_at_points,
)
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.mixture.screen import smoothed
from callpath_modeler.modeling.mixture.total_evidence import log_probability_of_all
from callpath_modeler.modeling.several.additive_models import (
    FEWEST,
    AdditiveFits,
    AdditiveTerms,
    fit_additive,
    largest_of_each,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_ASKED = 0.2
"""How probable laws of so many parameters are where sums are worth a look."""
_MATTERS = 1e-3
_NEGLIGIBLE = 1e-7


@dataclass(frozen=True, slots=True)
class AdditiveCandidates:
    """What is believed of some rows, sums among it.

    Attributes
    ----------
    rows : [n] which they are
    found : M candidates of these, with coefficients [1 + D, M]
    codes : [M, D] their shapes, -1 = none
    """

    rows: IntArray
    found: Posterior
    codes: IntArray

    def fitted(self, hypotheses: Hypotheses) -> FloatArray:
        """Return the mean of the models of each row at the points, [n, K]."""
        return values_at_points(self.found, self.codes, hypotheses)


def with_additive_models(
    found: Posterior,
    data: ScaledRows,
    sums: AdditiveTerms | None,
    hypotheses: Hypotheses,
    ways: Deviations,
    beliefs: LogPriors,
) -> AdditiveCandidates | None:
    """Add sums to what is believed of rows that depend on three parameters or more.

    None where there are no sums, and where none matters.
    """
    if sums is None:
        return None
    many = sums.axes[hypotheses.codes(found.chosen)].any(axis=1).sum(axis=1) >= FEWEST
    asked = np.bincount(found.row, found.weight * many, len(found.variance)) > _ASKED
    rows = np.flatnonzero(asked)
    if not rows.size:
        return None
    fitted = smoothed(data.take(rows), fitted_values(found.repeated(rows), hypotheses))
    rows, fitted, parts = _tried(rows, fitted, data, sums, hypotheses, ways)
    if not rows.size:
        return None
    some, their, tried = data.take(rows), found.repeated(rows), AdditiveFits.joined(parts)
    log_sum = tried.log_probability(beliefs)
    variance = -largest_of_each(tried.row, -tried.residual, len(rows))
    log_others = log_probability_of_all(their, some, fitted, variance, hypotheses, ways, beliefs)
    top = np.maximum(log_others, largest_of_each(tried.row, log_sum, len(rows)))
    weight = np.exp(log_sum - top[tried.row])
    whole = np.bincount(tried.row, weight, len(rows)) + np.exp(log_others - top)
    weight /= whole[tried.row]
    share = np.asarray(np.bincount(tried.row, weight, len(rows)), dtype=np.float64)
    matters = np.flatnonzero(share > _MATTERS)
    if not matters.size:
        return None
    place = np.full(len(rows), -1)
    place[matters] = np.arange(len(matters))
    few = tried.take((weight > _NEGLIGIBLE) & (place[tried.row] >= 0), place)
    believed = few.believed(some.take(matters), ways, beliefs)
    return _together(
        rows[matters], their.repeated(matters), believed, few, share[matters], hypotheses
    )


def _tried(
    rows: IntArray,
    fitted: FloatArray,
    data: ScaledRows,
    sums: AdditiveTerms,
    hypotheses: Hypotheses,
    ways: Deviations,
) -> tuple[IntArray, FloatArray, list[AdditiveFits]]:
    """Try sums with `rows` [n]; return those that can be such, what is `fitted` [n, K], and all."""
    told, parts = list[int](), list[AdditiveFits]()
    for k, row in enumerate(rows):
        one = data.take(np.array([row]))
        part = fit_additive(len(parts), one, fitted[k : k + 1], sums, hypotheses, ways)
        if part is not None:
            told.append(k)
            parts.append(part)
    return rows[told], fitted[told], parts


def _together(
    rows: IntArray,
    others: Posterior,
    believed: Posterior,
    few: AdditiveFits,
    share: FloatArray,
    hypotheses: Hypotheses,
) -> AdditiveCandidates:
    """Put sums, of which one is the law with a probability of `share` [n], beside the others."""
    most = few.codes.shape[1]
    rest, codes = 1 - share, np.full((len(others.row), most), -1, dtype=np.intp)
    codes[:, :2] = hypotheses.codes(others.chosen)
    numbers = np.zeros((1 + most, len(others.row)))
    numbers[:3] = others.coefficients
    square = np.zeros((1 + most, 1 + most, len(others.row)))
    square[*np.triu_indices(3)] = others.covariance
    covariance = square[*np.triu_indices(1 + most)]
    row = np.concatenate([others.row, believed.row])
    order = np.argsort(row, kind="stable")
    weight = [others.weight * rest[others.row], believed.weight * share[believed.row]]
    found = Posterior(
        row[order],
        # A sum is none of the hypotheses; nor does it break.
        np.concatenate([others.chosen, 0 * believed.chosen])[order],
        np.concatenate(weight)[order],
        np.concatenate([numbers, believed.coefficients], axis=1)[:, order],
        np.concatenate([covariance, believed.covariance], axis=1)[:, order],
        rest * others.variance + share * believed.variance,
        rest * others.drift + share * believed.drift,
    )
    return AdditiveCandidates(
        rows, found, np.concatenate([codes, few.codes[believed.chosen]])[order]
    )
