"""Significance tests for terms, which take the number of hypotheses into account.

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.classic.search import Basis
from callpath_modeler.modeling.constants.classic import LACK_LEVEL, USUAL_DOF, USUAL_SPREAD
from callpath_modeler.modeling.constants.noise import EXACT


@dataclass(frozen=True, slots=True)
class PureError:
    """Noise of the centres of n rows, from repetitions.

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
        """Return where residuals exceed the noise of repetitions, or noise is unknown.

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
        return np.asarray((self.dof == 0) | (lack < LACK_LEVEL))


def floored(rss: FloatArray, points: FloatArray) -> FloatArray:
    """Return sums of squares, at least those of exact numbers, so that odds stay finite."""
    return np.maximum(rss, points * EXACT**2)


def path_length(basis: Basis) -> tuple[float, int]:
    """Return the length of the curves that the one-term hypotheses form among all directions.

    The centred, normed terms lie on curves on the unit sphere: a rising curve from saturation over
    logarithms to the highest power, and a falling one of decreasing terms. Terms of second class
    do not count, because one is chosen only if a privileged one explains nearly as much.

    Parameters
    ----------
    basis : Basis
        Terms in order of growth.

    Returns
    -------
    length : float
        Total length of the curves, in radians.
    curves : int
        Number of curves.
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
    """Return the probability that the best one-term hypothesis fits a constant so well by chance.

    It is the volume of a tube around the curves of `path_length` (Hotelling 1939; Johansen and
    Johnstone 1990): exact for small probabilities, and always an upper bound. It replaces the
    F-test of one hypothesis, which does not take into account that the best of many was chosen.

    Parameters
    ----------
    none, one : ndarray [n]
        Weighted sums of squares without and with the term.
    points : ndarray [n]
        Points used.
    pure : PureError
        Noise from repetitions.
    pooled : ndarray [n]
        Whether its degrees of freedom are added to those of the residuals.
    room : tuple
        Result of `path_length`.

    Returns
    -------
    ndarray [n]
        Probabilities, up to 1.
    """
    extra = np.where(pooled, pure.dof, 0.0)
    probability = _tube(none, one, points, (extra, pure.variance), room)
    # Four or five single runs say almost nothing about noise, so growth by a factor would be taken
    # for noise. But few programs vary by more than a tenth from run to run.
    belief = _tube(none, one, points, (USUAL_DOF, USUAL_SPREAD**2), room)
    return np.where(pure.dof == 0, np.minimum(probability, belief), probability)


def _tube(
    none: FloatArray,
    one: FloatArray,
    points: FloatArray,
    noise: tuple[FloatArray | float, FloatArray | float],
    room: tuple[float, int],
) -> FloatArray:
    """Return the probability of chance, given the degrees of freedom and variance of noise."""
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
    """Return the probability that further terms help by chance.

    It is the probability of an F-test times the number of hypotheses tried.

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
        Noise from repetitions; used where the larger model leaves nothing unexplained.
    tried : ndarray [n]
        Number of hypotheses that were compared.

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
