"""What is to be believed of each row: probabilities, coefficients, variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.candidates import Candidates, Data, candidates
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.learn import Deviations, learn

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Priors of hypotheses [H] and deviations [D], in logarithms."""

    hypotheses: FloatArray
    deviations: FloatArray


@dataclass(frozen=True, slots=True)
class Posterior:
    """What is left of the candidates: one entry per hypothesis, deviations summed over.

    Attributes
    ----------
    chosen : [n, C]
    weight : [n, C] probabilities, sum 1
    coefficients : [n, C, 3]
    covariance : [n, C, 6] of the coefficients
    variance, drift : [n] relative variance of a measured centre about the model at the largest
        point, and its growth per doubling of the distance from it
    fitted : [n, K] mean of the models at the points
    """

    chosen: IntArray
    weight: FloatArray
    coefficients: FloatArray
    covariance: FloatArray
    variance: FloatArray
    drift: FloatArray
    fitted: FloatArray


def posterior(
    found: Candidates, data: Data, known: Hypotheses, deviations: Deviations, beliefs: Beliefs
) -> Posterior:
    """Weigh the candidates by what is believed."""
    joint = found.log_evidence + beliefs.hypotheses[found.chosen][:, :, None] + beliefs.deviations
    joint = np.exp(joint - joint.max(axis=(1, 2), keepdims=True))
    joint /= joint.sum(axis=(1, 2), keepdims=True)
    weight = joint.sum(axis=2)
    drifts, of_drift = np.unique(deviations.drift, return_inverse=True)
    per_drift = np.stack([joint[:, :, of_drift == k].sum(axis=2) for k in range(len(drifts))], 2)
    share = per_drift / np.maximum(weight, 1e-300)[:, :, None]
    coefficients = np.einsum("ncl,nclq->ncq", share, found.coefficients)
    coefficients = np.where(weight[:, :, None] > 0, coefficients, 0.0)
    point = joint.sum(axis=1)
    variance = (point * found.variance).sum(axis=1)
    scatter = (
        np.stack(
            [
                (joint[:, :, of_drift == k] * found.variance[:, None, of_drift == k]).sum(axis=2)
                for k in range(len(drifts))
            ],
            2,
        )
        / np.maximum(weight, 1e-300)[:, :, None]
    )
    covariance = np.einsum("ncl,nclq->ncq", scatter, found.covariance)
    drift = (point * found.variance * deviations.drift).sum(axis=1)
    # Noise does not drift; only what exceeds it.
    drift = np.maximum(drift - (point * deviations.drift).sum(axis=1) * data.variance, 0.0)
    values = _values(found.chosen, coefficients, known)
    fitted = np.einsum("nc,nck->nk", weight, values)
    return Posterior(found.chosen, weight, coefficients, covariance, variance, drift, fitted)


def believe(data: Data, known: Hypotheses, deviations: Deviations, fitted: FloatArray) -> Beliefs:
    """Learn the priors from rows."""
    found = candidates(data, known, deviations, fitted)
    return Beliefs(
        *learn(
            found.log_evidence,
            found.chosen,
            known.groups,
            known.log_prior,
            deviations.log_prior,
        )
    )


def _values(chosen: IntArray, coefficients: FloatArray, known: Hypotheses) -> FloatArray:
    """Evaluate candidates at the points, [n, C, K]."""
    codes = shape_codes(chosen, known)
    table = np.concatenate([known.table, np.zeros((1, known.table.shape[1]))])
    return np.asarray(
        coefficients[:, :, :1]
        + coefficients[:, :, 1:2] * table[codes[..., 0]]
        + coefficients[:, :, 2:] * table[codes[..., 1]]
    )


def far_values(found: Posterior, data: Data, known: Hypotheses, factor: float) -> FloatArray:
    """Evaluate candidates at a multiple of the largest point, [n, C]."""
    target = np.array([factor * data.points[-1]])
    at = np.concatenate([[shape(target)[0] for shape in known.shapes] / known.scale, [0.0]])
    codes = shape_codes(found.chosen, known)
    numbers = found.coefficients
    # Beyond all numbers an exponential is infinite, and nothing times infinity is nothing.
    at = np.minimum(at, np.finfo(float).max / 1e9)
    return np.asarray(
        numbers[..., 0] + numbers[..., 1] * at[codes[..., 0]] + numbers[..., 2] * at[codes[..., 1]]
    )


def shape_codes(chosen: IntArray, known: Hypotheses) -> IntArray:
    """Return the shapes of hypotheses, [..., 2]; -1 = none."""
    size = len(known.shapes)
    first = np.concatenate([[-1], *([np.arange(size)] * 3), known.first])
    second = np.concatenate([np.full(1 + 3 * size, -1), known.second])
    return np.stack([first[chosen], second[chosen]], axis=-1).astype(np.intp)
