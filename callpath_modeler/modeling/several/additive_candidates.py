"""Sums of three and four terms: a factor of each of three parameters or more.

If runs vary one parameter at a time, two products and a constant fit such a sum exactly, and
predict hundreds of times as much where all parameters are large. There are millions of sums. So
only a few terms of each parameter are tried: those with the smallest residuals together with
arbitrary functions of the others. See docs/explanation/several-parameters.md, 'Sums of three and
four terms'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.outcome import NEGLIGIBLE
from callpath_modeler.modeling.constants.several import ASKED, FEWEST_IN_SUMS, MATTERS
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import (
    LogPriors,
    Posterior,
    fitted_values,
    values_at_points,
)
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.mixture.screened_hypotheses import smoothed
from callpath_modeler.modeling.mixture.total_evidence import log_probability_of_all
from callpath_modeler.modeling.several.additive_models import (
    AdditiveFits,
    AdditiveTerms,
    fit_additive,
    largest_of_each,
)


@dataclass(frozen=True, slots=True)
class AdditiveCandidates:
    """Posterior of some rows that includes sums of more than two terms.

    Attributes
    ----------
    rows : [n] numbers of the rows
    found : posterior with M candidates of these rows and coefficients [1 + D, M]
    codes : [M, D] shapes of the candidates, -1 = none
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
    """Return the posterior of rows that depend on three parameters or more, sums included.

    The result is None without sums, or if no sum matters.
    """
    if sums is None:
        return None
    many = sums.axes[hypotheses.codes(found.chosen)].any(axis=1).sum(axis=1) >= FEWEST_IN_SUMS
    asked = np.bincount(found.row, found.weight * many, len(found.variance)) > ASKED
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
    matters = np.flatnonzero(share > MATTERS)
    if not matters.size:
        return None
    place = np.full(len(rows), -1)
    place[matters] = np.arange(len(matters))
    few = tried.take((weight > NEGLIGIBLE) & (place[tried.row] >= 0), place)
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
    """Return the rows that may follow a sum, their `fitted` values [n, K], and the sums of each."""
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
    """Return the posterior of sums, with a total weight of `share` [n], and other candidates."""
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
        # A sum is not in the list of hypotheses and has no break, so it has the number of the
        # constant.
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
