"""Screening of the hypotheses of each row, and errors of first models.

For the correlation, the errors of each row are compared by direction, as a vector over the points
with length 1. A level and a power of each parameter are removed first. Models that miss these alike
have missed growth, which is no effect of the runs. See docs/explanation/hypotheses.md, 'Errors that
are correlated'.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import (
    LARGE_MISFIT,
    LEAST_RATIO,
    LOG_2,
    LOG_2PI,
    PARALLEL,
)
from callpath_modeler.modeling.constants.hypotheses import WITHIN
from callpath_modeler.modeling.constants.noise import (
    EXACT_VARIANCE,
    FEWEST_WITNESSES,
    GROWTHS,
    LIKENESS_BY_CHANCE,
    MOST_DOUBLINGS,
    NATS_BY_CHANCE,
    NO_DIRECTION,
    STEEPEST_NOISE,
)
from callpath_modeler.modeling.constants.outcome import (
    EXACT_MISFIT,
    FEWEST_MISFITS,
    LEAST_MISFIT,
    MISFIT_DEVIATIONS,
    MOST_ROUNDED,
    OF_NORMAL,
    TIMES_MEDIAN_MISFIT,
)
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.scaled_rows import Drift, ScaledRows, error_unit, floor_of
from callpath_modeler.modeling.shapes import doublings

_GROWTHS = np.linspace(-STEEPEST_NOISE, STEEPEST_NOISE, GROWTHS)


def error_correlation(data: ScaledRows, fitted: FloatArray, *, noise_known: bool) -> float:
    """Return the correlation between the errors of rows, from 0 to 1.

    The squared length of the sum of n independent directions is n on average, that of n equal ones
    is n^2.

    Parameters
    ----------
    data : n rows. Rows with missing values are left out. So are rows whose repetitions agree,
        because a count that is the same in every run misses its law for other reasons than the runs
    fitted : [n, K] fitted values
    noise_known : whether there are repetitions
    """
    error, free = _directions(data, fitted, noise_known=noise_known)
    count = len(error)
    if count < 2 or free.shape[1] < 1:
        return 0.0
    likeness = float((error.sum(axis=0) ** 2).sum()) / count
    chance = 1 + LIKENESS_BY_CHANCE * float(np.sqrt(2 / free.shape[1]))
    return min(max(likeness - chance, 0.0) / (count - 1), 1.0)


def noise_by_scale(data: ScaledRows, fitted: FloatArray, correlation: float) -> FloatArray:
    """Return the relative variance of the noise of points without repetitions, about 1, [K].

    The noise is normal. Its variance is a factor of the row times a power of p that all rows share.
    The directions of errors then follow the angular central Gaussian distribution (Tyler:
    Statistical analysis for the angular central Gaussian distribution on the sphere, Biometrika
    1987). The power with the largest likelihood is used, shrunk by the part of the gain in
    likelihood that chance may bring.

    Parameters
    ----------
    data, fitted : as in `error_correlation`, for one parameter and without repetitions
    correlation : correlation of the errors; rows that err alike are few witnesses
    """
    error, free = _directions(data, fitted, noise_known=False)
    count, freedom = len(error), free.shape[1]
    witnesses = count / (1 + (count - 1) * correlation)
    even = np.ones(len(data.points))
    # A single direction has the same probability under any noise.
    if witnesses < FEWEST_WITNESSES or freedom < 2:
        return even
    scale = doublings(data.points)
    scale *= min(1.0, MOST_DOUBLINGS / float(scale.max()))
    variance = 2.0 ** (_GROWTHS[:, None] * (scale.mean() - scale))
    covariance = np.einsum("kd,gk,ke->gde", free, variance, free)
    error = error @ free
    length = np.einsum("nd,gde,ne->gn", error, np.linalg.inv(covariance), error, optimize=True)
    of_size = np.linalg.slogdet(covariance)[1]
    likely = -0.5 * witnesses * (of_size + freedom * np.log(length).mean(axis=1))
    best = int(likely.argmax())
    gain = float(likely[best] - likely[len(_GROWTHS) // 2])
    return np.asarray(variance[best] ** max(0.0, 1 - NATS_BY_CHANCE / max(gain, NATS_BY_CHANCE)))


def _directions(
    data: ScaledRows, fitted: FloatArray, *, noise_known: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the errors of rows as directions over the points, [n', K].

    They are orthogonal to a level and a power of each parameter. The second array has an
    orthonormal basis of their space as columns, [K, free].
    """
    whole = (data.weight > 0).all(axis=1) & ((data.variance > EXACT_VARIANCE) | (not noise_known))
    rows, fitted = data.take(whole), fitted[whole]
    error = np.clip((rows.values - fitted) / error_unit(rows, fitted), -1.0, 1.0)
    smooth = np.column_stack([np.ones(len(data.points)), np.log(data.points)])
    basis, _ = np.linalg.qr(smooth, mode="complete")
    taken, free = np.split(basis, [smooth.shape[1]], axis=1)
    error = error - error @ taken @ taken.T
    length = np.sqrt((error**2).sum(axis=1))
    return error[length > NO_DIRECTION] / length[length > NO_DIRECTION, None], free


def large_misfits(residual: FloatArray, relative: FloatArray) -> IntArray:
    """Return the positions of the weighted sums of squares, [M], that do not belong to good fits.

    `relative` [M] is the sum of squares of a model that misses every value by its size.
    """
    return np.flatnonzero(residual > LARGE_MISFIT**2 * relative)


def log_residuals(
    values: FloatArray, modelled: FloatArray, weights: FloatArray, unit: FloatArray
) -> FloatArray:
    """Return the ratio of weighted sums of squares of logarithms to those of relative errors, [M].

    A model of a tenth of the value has a relative error of 0.9; a model of ten times the value has
    an error of 9. So relative errors favour models that are too small, such as a constant where
    values rise a hundredfold. Logarithms treat both alike, and agree with relative errors where a
    model fits.

    Parameters
    ----------
    values, modelled : [K, M] measured values; values of the models
    weights : [K, M] weights of the points, 0 = missing
    unit : [K, M] values that errors are relative to under these weights

    Returns
    -------
    ndarray [M]
        Factor for each sum of squares; this sum may be that of a regression whose coefficients are
        bounded afterwards.
    """
    squares = modelled - values
    squares *= squares
    # A bounded model may touch zero, and rounding decides on which side.
    positive = np.maximum(modelled, LEAST_RATIO * values)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        logarithms = np.log(positive / values)
    logarithms *= unit
    logarithms *= logarithms
    # A value of zero has no logarithm.
    np.copyto(logarithms, squares, where=~np.isfinite(logarithms))
    squares *= weights
    logarithms *= weights
    return np.asarray(
        logarithms.sum(axis=0) / np.maximum(squares.sum(axis=0), np.finfo(float).tiny)
    )


class MisfitBaseline(Struct, frozen=True):
    """Usual misfits of the models of a metric, relative to the values.

    Attributes
    ----------
    most : misfit above which a row without repetitions is far from its model, unlike other rows
    exact : whether whole numbers are exact, because most rows of them follow laws to the last digit
    """

    most: float = np.inf
    exact: bool = True

    def exactly(self, data: ScaledRows) -> FloatArray:
        """Return the largest misfits of laws of exact values, root mean squares, [n]."""
        if not self.exact:
            return np.full(len(data.values), np.inf)
        squares = np.where(data.weight > 0, 1 / np.maximum(data.values, floor_of(data)) ** 2, 0.0)
        rounding = data.rounding * squares.sum(axis=1) / np.maximum(data.used, 1.0)
        return np.asarray(np.sqrt(EXACT_MISFIT**2 + MOST_ROUNDED * rounding))


def misfit_baseline(data: ScaledRows, fitted: FloatArray) -> MisfitBaseline:
    """Return the usual misfits of some rows, with `fitted` [n, K] from their models.

    Rows differ in their noise. So a misfit is unusual only if it exceeds the median misfit by more
    than the misfits of rows scatter.
    """
    if len(fitted) < FEWEST_MISFITS:
        return MisfitBaseline()
    used = data.weight > 0
    relative = (data.values - fitted) / np.maximum(data.values, floor_of(data))
    squares = np.where(used, relative**2, 0.0).sum(axis=1)
    exact = np.sqrt(squares / data.used) <= MisfitBaseline().exactly(data)
    left = np.log(np.maximum(squares / np.maximum(data.used - 2, 1.0), 1e-18)) / 2
    middle = float(np.median(left))
    scatter = OF_NORMAL * float(np.median(np.abs(left - middle)))
    most = np.exp(middle + MISFIT_DEVIATIONS * scatter)
    most = max(float(most), TIMES_MEDIAN_MISFIT * float(np.exp(middle)), LEAST_MISFIT)
    return MisfitBaseline(most, bool(exact.mean() >= 0.5))


class ScreenedHypotheses(Struct, frozen=True):
    """Hypotheses of n rows that pass the screening, in addition to the constant of each row.

    Attributes
    ----------
    row, shape : [U] rows and shapes of the regressions on one shape
    families : positions among these with positive coefficients, as an offset, without a constant
    pair_row, pair : [P] rows and pairs of the regressions on two shapes
    variance : [n] rough variance of a point
    fitted : [n, K] values that errors are relative to
    scattered : rows for which these values are rough, as measurements are far from every model
    """

    row: IntArray
    shape: IntArray
    families: tuple[IntArray, ...]
    pair_row: IntArray
    pair: IntArray
    variance: FloatArray
    fitted: FloatArray
    scattered: IntArray

    def take(self, rows: IntArray) -> ScreenedHypotheses:
        """Return the hypotheses of some rows."""
        place = np.full(len(self.variance), -1)
        place[rows] = np.arange(len(rows))
        row, pair_row = place[self.row], place[self.pair_row]
        kept, kept_pairs = row >= 0, pair_row >= 0
        where = kept.cumsum() - 1
        return ScreenedHypotheses(
            row[kept],
            self.shape[kept],
            tuple(where[which[kept[which]]] for which in self.families),
            pair_row[kept_pairs],
            self.pair[kept_pairs],
            self.variance[rows],
            self.fitted[rows],
            np.flatnonzero(np.isin(rows, self.scattered)),
        )


def screen(
    data: ScaledRows, hypotheses: Hypotheses, log_prior: FloatArray, drifts: Sequence[Drift]
) -> ScreenedHypotheses:
    """Return the hypotheses that may matter under any drift.

    `log_prior` [H] belongs to the hypotheses; `drifts` are the extreme ones, no drift first.
    """
    result: ScreenedHypotheses = kernels().screen(data, hypotheses, log_prior, drifts)
    return result


def smoothed(data: ScaledRows, fitted: FloatArray) -> FloatArray:
    """Return fitted values within reach of measured ones, so that no bad fit distorts weights."""
    floor = floor_of(data)
    near = np.clip(fitted, data.values / WITHIN, data.values * WITHIN)
    return np.where(data.values > 0, near, np.maximum(fitted, floor))


def promise_of_pairs(hypotheses: Hypotheses, log_prior: FloatArray) -> float:
    """Return an upper bound of the log evidence of pairs with a constant, without the likelihood.

    It includes the prior, for a level and weights of all points of 1. In several parameters there
    are too many points for a useful bound, and it is infinite.
    """
    if hypotheses.fans is not None:
        return np.inf
    points, first, second = hypotheses.table.shape[1], hypotheses.first, hypotheses.second
    mean = hypotheses.table.mean(axis=1)
    square = (hypotheses.table**2).sum(axis=1) - points * mean**2
    both = square[first] * square[second]
    determinant = (
        both - (hypotheses.products.sum(axis=1) - points * mean[first] * mean[second]) ** 2
    )
    volume = -0.5 * np.log(points * np.maximum(determinant, PARALLEL * both))
    of_pairs = log_prior[1 + 3 * len(hypotheses.shapes) :]
    return float((of_pairs + volume).max(initial=-np.inf) + 1.5 * LOG_2PI + LOG_2)
