"""Weighted regressions of many call paths on few features, with their evidence.

The evidence of a hypothesis is the probability of the measured times if its coefficients are
unknown: each coefficient is uniform between zero and the value at which its feature alone explains
the time of some point. With normal noise, it is the integral over the coefficients (Laplace's
method; Bishop: Pattern recognition and machine learning, 2006, section 4.4). It prefers the simpler
of two hypotheses that fit as well. A hypothesis with a coefficient that is not positive is left
out, because the one without this feature is a hypothesis of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray

_PARALLEL = 1e-7
"""Squared sine between features below which they are the same but for rounding."""


class Regression(Struct, frozen=True):
    """Regressions of n call paths on the same F features.

    Attributes
    ----------
    coefficients : [n, F], in seconds per unit of a feature
    root : [n, F, F] root of their covariance, which is ``root @ root.T``
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
    used = weight > 0
    share = np.divide(features, time[..., None], out=np.zeros_like(features), where=used[..., None])
    scale = share.max(axis=1)  # [n, F]: 1 / largest coefficient of the prior
    known = (scale > 0).all(axis=1) & np.isfinite(scale).all(axis=1)
    scale = np.where(known[:, None], scale, 1.0)
    design = np.where(known[:, None, None], features / scale[:, None, :], 0.0) * weight[..., None]
    columns = [np.ascontiguousarray(design[..., f]) for f in range(count)]
    wanted = time * weight
    lower, differ = _cholesky(columns, known)
    inverse = _inverse(lower)
    # Solve L L' c = X' y by both triangular systems.
    right = [np.einsum("nk,nk->n", column, wanted) for column in columns]
    half = [_sum(inverse[f][g] * right[g] for g in range(f + 1)) for f in range(count)]
    found = [_sum(inverse[g][f] * half[g] for g in range(f, count)) for f in range(count)]
    residual = wanted - _sum(c[:, None] * column for c, column in zip(found, columns, strict=True))
    coefficients = np.stack(found, axis=1)
    holds = differ & (coefficients > 0).all(axis=1)
    root = np.zeros((len(time), count, count))
    for f in range(count):
        for g in range(f, count):
            root[:, f, g] = inverse[g][f] / scale[:, f]
    determinant = _sum(-np.log(lower[f][f]) for f in range(count))
    volume = determinant + 0.5 * count * np.log(2 * np.pi)
    misfit = np.einsum("nk,nk->n", residual, residual)
    return Regression(coefficients / scale, root, misfit, np.minimum(volume, 0.0), holds)


_Triangle = list[list[FloatArray]]
"""Elements [n] of the rows of lower triangular matrices."""


def _cholesky(columns: list[FloatArray], known: BoolArray) -> tuple[_Triangle, BoolArray]:
    """Return Cholesky factors of normal matrices, and which of them are regular, [n].

    There are few columns and many rows, so loops over columns are faster than a call for each row.
    """
    lower: _Triangle = []
    regular = known
    for f, column in enumerate(columns):
        row: list[FloatArray] = []
        for g in range(f):
            product = np.einsum("nk,nk->n", column, columns[g])
            product -= _sum((row[h] * lower[g][h] for h in range(g)), like=product)
            row.append(product / lower[g][g])
        square = np.einsum("nk,nk->n", column, column)
        rest = square - _sum((each**2 for each in row), like=square)
        regular = regular & (rest > _PARALLEL * square)
        row.append(np.sqrt(np.where(regular, rest, 1.0)))
        lower.append(row)
    return lower, regular


def _inverse(lower: _Triangle) -> _Triangle:
    """Return the inverses of lower triangular matrices."""
    found: _Triangle = []
    for f, row in enumerate(lower):
        inverse: list[FloatArray] = []
        for g in range(f):
            product = _sum((row[h] * found[h][g] for h in range(g, f)), like=row[f])
            inverse.append(-product / row[f])
        inverse.append(1 / row[f])
        found.append(inverse)
    return found


def _sum(parts: Iterable[FloatArray], like: FloatArray | None = None) -> FloatArray:
    """Return the sum of arrays; of none, zeros `like` an array."""
    total: FloatArray | None = None
    for part in parts:
        total = part if total is None else total + part
    if total is None:
        assert like is not None  # only sums over earlier columns are empty
        return np.zeros_like(like)
    return total
