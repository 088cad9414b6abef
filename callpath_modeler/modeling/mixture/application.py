"""All rows of one metric together: noise and habits are learnt, then each row is modelled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.candidates import Candidates, candidates
from callpath_modeler.modeling.mixture.deviations import Deviations, deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses, hypotheses
from callpath_modeler.modeling.mixture.learn import learn
from callpath_modeler.modeling.mixture.outcome import Columns, empty_columns, write_models
from callpath_modeler.modeling.mixture.posterior import (
    Beliefs,
    Posterior,
    fitted_values,
    posterior,
)
from callpath_modeler.modeling.mixture.screen import (
    Data,
    bounds,
    data_of,
    look,
    rough_fit,
    smoothed,
)
from callpath_modeler.modeling.mixture.spread import Noise, Within, noise_of, within
from callpath_modeler.modeling.models import MIN_POINTS, Models
from callpath_modeler.modeling.noise import Aggregate, Centre, relative_efficiency
from callpath_modeler.modeling.several.hypotheses import joint_hypotheses
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.terms import SearchSpace

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_CHUNK = 512
_MOST_HYPOTHESES = 2_000_000
_OFF = 3.0
_SAMPLE = 500
"""Rows that habits are learnt from: of all sizes, evenly."""


def fit_mixture(
    points: FloatArray,
    y: FloatArray,
    *,
    space: SearchSpace,
    aggregate: Aggregate,
    confidence: float,
) -> Models:
    """Give every hypothesis of every row a probability.

    Parameters
    ----------
    points : ndarray [K] or [K, D]
        Ascending.
    y : ndarray [n, K, R]
        Values, NaN = missing.
    space, aggregate, confidence
        As for `fit`, which checks them.

    Raises
    ------
    ValueError
        If no term of the space fits the points.
    """
    several = points.ndim > 1
    known = joint_hypotheses(space, points) if several else hypotheses(space, points)
    reps = _in_chunks(y, "mean")
    status, used = _outcomes(y, reps)
    rows = np.flatnonzero(status == FitStatus.OK)
    how, efficiency = _centre(points, y, reps, rows, known, aggregate)
    if how != "mean":
        reps = _in_chunks(y, how)
        # A centre may be zero, or below, where the mean is not.
        status, used = _outcomes(y, reps)
        rows = np.flatnonzero(status == FitStatus.OK)
    columns = empty_columns(len(y))
    _write_facts(columns, points, reps, status, used)
    if rows.size:
        noise = noise_of(_rows(reps, rows), efficiency)
        columns["noise"][rows] = noise.spread
        known_noise = deviations(noise_known=noise.known)
        beliefs = _beliefs(points, noise, known, known_noise)
        size = _at_once(known, _CHUNK)
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            data, unit = data_of(points, noise, part)
            found = _fit(data, known, known_noise, beliefs)
            write_models(columns, rows[part], found, data, unit, known)
    return Models(
        space=space,
        shapes=known.shapes,
        method="mixture",
        aggregate=how,
        points=points,
        confidence=confidence,
        **columns,
    )


def _in_chunks(y: FloatArray, how: Centre) -> Within:
    parts = [within(y[k : k + _CHUNK * 8], how) for k in range(0, max(len(y), 1), _CHUNK * 8)]
    return Within(
        np.concatenate([part.centre for part in parts]),
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.squares for part in parts]),
    )


def _rows(reps: Within, rows: IntArray) -> Within:
    return Within(reps.centre[rows], reps.count[rows], reps.squares[rows])


def _outcomes(y: FloatArray, reps: Within) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
    """Name the rows that cannot be modelled; the others are OK for now."""
    used = (reps.count > 0).sum(axis=1)
    centre = np.where(reps.count > 0, reps.centre, 0.0)
    status = np.full(len(y), FitStatus.OK, dtype=np.int8)
    status[(centre == 0).all(axis=1)] = FitStatus.ZERO
    status[(centre < 0).any(axis=1)] = FitStatus.NEGATIVE
    status[used < MIN_POINTS["mixture"]] = FitStatus.TOO_FEW_POINTS
    for start in range(0, len(y), _CHUNK * 8):
        part = slice(start, start + _CHUNK * 8)
        status[part][np.isinf(y[part]).any(axis=(1, 2))] = FitStatus.NON_FINITE
    return status, used


def _write_facts(
    columns: Columns,
    points: FloatArray,
    reps: Within,
    status: npt.NDArray[np.int8],
    used: npt.NDArray[np.int64],
) -> None:
    """Write what is known of rows without any model."""
    present = reps.count > 0
    columns["status"][:] = status
    columns["used"][:] = used
    if points.ndim == 1:
        columns["low_p"][:] = np.where(present, points, np.inf).min(axis=1)
        columns["high_p"][:] = np.where(present, points, -np.inf).max(axis=1)
    zero = status == FitStatus.ZERO
    columns["coefficients"][zero] = 0.0
    columns["weight"][zero] = 1.0
    for name, number in (("cv_error", 0.0), ("rss", 0.0), ("r2", 1.0), ("adjusted_r2", 1.0)):
        columns[name][zero] = number


def _centre(
    points: FloatArray,
    y: FloatArray,
    reps: Within,
    rows: IntArray,
    known: Hypotheses,
    aggregate: Aggregate,
) -> tuple[Centre, float]:
    """Choose the centre of repetitions by the noise about models of means."""
    if y.shape[2] < 3 or not rows.size:
        return ("mean" if aggregate == "auto" else aggregate), 1.0
    some = rows[_sample(reps.centre[rows], _at_once(known, _SAMPLE))]
    noise = noise_of(_rows(reps, some), 1.0)
    data, unit = data_of(points, noise, slice(None))
    ways = deviations(noise_known=noise.known)
    before = Beliefs(known.log_prior, ways.log_prior)
    beliefs = _learnt(data, known, ways, before, rough_fit(data, known))
    fitted = fitted_values(_fit(data, known, ways, beliefs), known) * unit[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = y[some] / fitted[:, :, None]
        # Where the model is off by more than noise, residuals are not noise.
        off = np.abs(noise.centre / fitted - 1) > _OFF * np.sqrt(noise.variance)[:, None]
    ratio[off] = np.nan
    return relative_efficiency(ratio[np.isfinite(ratio) & (ratio > 0)], y.shape[2], aggregate)


def _at_once(known: Hypotheses, most: int) -> int:
    """Return how many rows of `most` to take together: many hypotheses need much memory."""
    return max(16, min(most, _MOST_HYPOTHESES // len(known.log_prior)))


def _sample(centre: FloatArray, count: int) -> IntArray:
    """Return rows of all sizes, evenly; the same ones whatever the order of rows."""
    size = np.nanmax(np.where(np.isnan(centre), -np.inf, centre), axis=1)
    order = np.lexsort((*np.nan_to_num(centre).T, size))
    return order[:: -(-len(order) // count)]


def _beliefs(points: FloatArray, noise: Noise, known: Hypotheses, ways: Deviations) -> Beliefs:
    data, _ = data_of(points, noise, _sample(noise.centre, _at_once(known, _SAMPLE)))
    before = Beliefs(known.log_prior, ways.log_prior)
    beliefs = _learnt(data, known, ways, before, rough_fit(data, known))
    return _learnt(data, known, ways, before, _first_fit(data, known, ways, beliefs))


def _learnt(
    data: Data, known: Hypotheses, ways: Deviations, before: Beliefs, fitted: FloatArray
) -> Beliefs:
    found = _candidates(data, known, ways, before, fitted)
    return Beliefs(*learn(found, known.groups, before.hypotheses, before.deviations))


def _fit(data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs) -> Posterior:
    """Fit rows twice: errors are relative to the model, which is not known before."""
    return _posterior(data, known, ways, beliefs, _first_fit(data, known, ways, beliefs))


def _first_fit(data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs) -> FloatArray:
    """Return the values that weights are made of, [n, K]; for them drifts do not matter."""
    steady = ways.steady()
    few = Beliefs(beliefs.hypotheses, beliefs.deviations[: len(steady.drift)])
    found = _posterior(data, known, steady, few, rough_fit(data, known))
    return smoothed(data, fitted_values(found, known))


def _posterior(
    data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs, fitted: FloatArray
) -> Posterior:
    return posterior(_candidates(data, known, ways, beliefs, fitted), data, ways, beliefs)


def _candidates(
    data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs, fitted: FloatArray
) -> Candidates:
    looks = [look(data, known, fitted, drift) for drift in ways.drifts]
    bound = bounds(looks, data, known, beliefs.hypotheses)
    return candidates(data, looks, bound, known, ways, beliefs.hypotheses)
