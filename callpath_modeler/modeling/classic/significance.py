"""When a term pays: tests that know how many hypotheses were tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.classic.search import Basis
from callpath_modeler.modeling.noise import EXACT

LEVEL = 0.02
"""Probability of a false term that a test may leave, all hypotheses together."""

HINT_LEVEL = 0.2
"""The same for what the points before the largest have to hint at."""

MORE_LEVEL = 0.005
"""The same for a second and further term: a false one of high power ruins an extrapolation."""

_LACK_LEVEL = 0.05
USUAL_SPREAD = 0.1
USUAL_DOF = 1.0
"""Without repetitions, noise is believed to be about this, as firmly as one residual tells."""


@dataclass(frozen=True, slots=True)
class PureError:
    """What repetitions say about the noise of the centres of n rows.

    Attributes
    ----------
    variance : ndarray [n]
        Relative variance of a centre; not below that of exact numbers.
    dof : ndarray [n]
        Its degrees of freedom; 0 without repetitions.
    """

    variance: FloatArray
    dof: FloatArray

    def take(self, rows: IntArray) -> PureError:
        """Return some of the rows."""
        return PureError(self.variance[rows], self.dof[rows])

    def unexplained(self, rss: FloatArray, freedom: FloatArray) -> BoolArray:
        """Tell where residuals exceed what the repetitions allow, or nothing is known of noise.

        Parameters
        ----------
        rss : ndarray [n]
            Weighted sums of squares of a model.
        freedom : ndarray [n]
            Their degrees of freedom.

        Returns
        -------
        ndarray [n]
            Lack of fit at the 5 % level; True without repetitions.
        """
        from scipy import special

        ratio = rss / np.maximum(freedom, 1.0) / self.variance
        lack = special.fdtrc(np.maximum(freedom, 1.0), np.maximum(self.dof, 1.0), ratio)
        return np.asarray((self.dof == 0) | (lack < _LACK_LEVEL))


def floored(rss: FloatArray, points: FloatArray) -> FloatArray:
    """Raise sums of squares to those of exact numbers, so that zero noise has finite odds."""
    return np.maximum(rss, points * EXACT**2)


def path_length(basis: Basis) -> tuple[float, int]:
    """Measure the room that the one-term hypotheses take among all directions.

    The centred, normed terms lie on curves on the unit sphere: a rising curve from saturation over
    logarithms to the highest power, and a falling one of decreasing terms. Terms of second class
    do not count: one is chosen only where a privileged one explains nearly as much.

    Parameters
    ----------
    basis : Basis
        Terms in order of growth.

    Returns
    -------
    length : float
        Total length of the curves, in radians.
    curves : int
        How many there are.
    """
    values = basis.values[basis.first_class]
    centred = values - values.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(centred, axis=1, keepdims=True)
    unit = centred / np.where(norm > 0, norm, 1.0)
    decreasing = basis.decreasing[basis.first_class]
    falling, growing = unit[decreasing], unit[~decreasing]
    rising = np.concatenate([-falling, growing])
    return _curve(rising) + _curve(falling), int(len(rising) > 0) + int(len(falling) > 0)


def _curve(unit: FloatArray) -> float:
    steps = (unit[1:] * unit[:-1]).sum(axis=1)
    return float(np.arccos(np.clip(steps, -1.0, 1.0)).sum())


def one_term_probability(
    none: FloatArray,
    one: FloatArray,
    points: FloatArray,
    pure: PureError,
    pooled: BoolArray,
    room: tuple[float, int],
) -> FloatArray:
    """Probability that the best of all one-term hypotheses does so well on a constant by chance.

    The volume of a tube around the curves of `path_length` (Hotelling 1939; Johansen and
    Johnstone 1990): exact for small probabilities, and an upper bound always. It replaces the
    F-test of one hypothesis, which does not know that the best of many was picked.

    Parameters
    ----------
    none, one : ndarray [n]
        Weighted sums of squares without and with the term.
    points : ndarray [n]
        Points used.
    pure : PureError
        Noise from repetitions.
    pooled : ndarray [n]
        Where it adds its degrees of freedom to those of the residuals.
    room : tuple
        Result of `path_length`.

    Returns
    -------
    ndarray [n]
        Probabilities, up to 1.
    """
    extra = np.where(pooled, pure.dof, 0.0)
    probability = _tube(none, one, points, (extra, pure.variance), room)
    # Four or five single runs say next to nothing of noise, so that growth by a factor would be
    # taken for it. They need not: few programs vary by more than a tenth from run to run.
    belief = _tube(none, one, points, (USUAL_DOF, USUAL_SPREAD**2), room)
    return np.where(pure.dof == 0, np.minimum(probability, belief), probability)


def _tube(
    none: FloatArray,
    one: FloatArray,
    points: FloatArray,
    noise: tuple[FloatArray | float, FloatArray | float],
    room: tuple[float, int],
) -> FloatArray:
    """Probability of chance, given further degrees of freedom of noise and its variance."""
    from scipy import special

    length, curves = room
    extra, variance = noise
    total = floored(none, points) + extra * variance
    left = floored(one, points) + extra * variance
    freedom = points - 1 + extra
    share = np.clip(1 - left / total, 0.0, 1.0)
    tube = length / (2 * np.pi) * (1 - share) ** (np.maximum(freedom - 2, 0.0) / 2)
    caps = curves * 0.5 * special.betainc((freedom - 1) / 2, 0.5, 1 - share)
    return np.asarray(np.minimum(tube + caps, 1.0))


def more_terms_probability(
    fewer: FloatArray,
    more: FloatArray,
    added: FloatArray,
    freedom: FloatArray,
    points: FloatArray,
    pure: PureError,
    tried: FloatArray,
) -> FloatArray:
    """Probability, by an F-test times the number of hypotheses tried, that terms help by chance.

    Parameters
    ----------
    fewer, more : ndarray [n]
        Weighted sums of squares before and after.
    added : ndarray [n]
        Coefficients added.
    freedom : ndarray [n]
        Degrees of freedom after.
    points : ndarray [n]
        Points used.
    pure : PureError
        Noise from repetitions; counted where the larger model leaves nothing unexplained.
    tried : ndarray [n]
        How many hypotheses were compared.

    Returns
    -------
    ndarray [n]
        Probabilities, up to 1.
    """
    from scipy import special

    left = floored(more, points)
    extra = np.where(pure.unexplained(left, freedom), 0.0, pure.dof)
    below = np.maximum(freedom + extra, 1.0)
    noise = (left + extra * pure.variance) / below
    step = np.maximum(added, 1.0)
    ratio = np.maximum(floored(fewer, points) - left, 0.0) / step / noise
    return np.asarray(np.minimum(special.fdtrc(step, below, ratio) * tried, 1.0))
