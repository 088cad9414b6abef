"""Weighted regressions of many call paths on few features, with their evidence.

The evidence of a hypothesis is the probability of the measured times if its coefficients are
unknown: each coefficient is uniform between zero and the value at which its feature alone explains
the time of some point. With normal noise, it is the integral over the coefficients (Laplace's
method; Bishop: Pattern recognition and machine learning, 2006, section 4.4). It prefers the simpler
of two hypotheses that fit as well. A hypothesis with a coefficient that is not positive is left
out, because the one without this feature is a hypothesis of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray

_PARALLEL = 1e-7
"""Determinant of normalised features below which they are the same but for rounding."""
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Regression:
    """Regressions of n call paths on the same F features.

    Attributes
    ----------
    coefficients : [n, F], in seconds per unit of a feature
    root : [n, F, F] lower triangular root of their covariance
    misfit : [n] sum of squared residuals in units of the noise
    volume : [n] logarithm of the posterior volume of the coefficients relative to their prior
    holds : [n] whether all coefficients are positive and the features differ
    """

    coefficients: FloatArray
    root: FloatArray
    misfit: FloatArray
    volume: FloatArray
    holds: BoolArray


def regress(time: FloatArray, weight: FloatArray, features: FloatArray) -> Regression:
    """Return weighted least squares of times on features.

    Parameters
    ----------
    time : [n, K], seconds; 0 where the weight is 0
    weight : [n, K] inverse standard deviations; 0 = no value
    features : [n, K, F] values of features, not negative

    Returns
    -------
    Regression
        Without inflation of the noise.
    """
    count = features.shape[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where((weight > 0)[..., None], features / time[..., None], 0.0)
    scale = np.nan_to_num(share).max(axis=1)  # [n, F]: 1 / largest coefficient of the prior
    used = (scale > 0).all(axis=1)
    scale = np.maximum(scale, _TINY)
    design = np.where(used[:, None, None], features / scale[:, None, :], 0.0) * weight[..., None]
    normal = np.einsum("nkf,nkg->nfg", design, design)
    diagonal = np.sqrt(np.maximum(np.einsum("nff->nf", normal), _TINY))
    alike = normal / (diagonal[:, :, None] * diagonal[:, None, :])
    differ = used & (np.linalg.det(np.where(used[:, None, None], alike, np.eye(count))) > _PARALLEL)
    normal = np.where(differ[:, None, None], normal, np.eye(count))
    covariance = np.linalg.inv(normal)
    right = np.einsum("nkf,nk->nf", design, time * weight)
    found = np.einsum("nfg,ng->nf", covariance, right)
    residual = time * weight - np.einsum("nkf,nf->nk", design, found)
    determinant = np.linalg.det(covariance)
    holds = differ & (found > 0).all(axis=1) & (determinant > 0)
    covariance = np.where(holds[:, None, None], covariance, np.eye(count))
    root = np.linalg.cholesky(covariance) / scale[:, :, None]
    volume = 0.5 * np.log(np.maximum(determinant, _TINY)) + 0.5 * count * np.log(2 * np.pi)
    misfit = np.einsum("nk,nk->n", residual, residual)
    return Regression(found / scale, root, misfit, np.minimum(volume, 0.0), holds)
