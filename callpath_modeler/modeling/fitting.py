"""Models of measurements: arrays in, arrays out.

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from callpath_modeler.argument_checks import CONFIDENCE
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.constants.limits import MOST_PARAMETERS, MOST_POINTS
from callpath_modeler.modeling.model_columns import METHODS
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.noise import CENTRES, Centre, centred
from callpath_modeler.modeling.parallel_map import MapLike
from callpath_modeler.modeling.terms import CLASSIC_SPACE, DEFAULT_SPACE, JOINT_SPACE, SearchSpace

if TYPE_CHECKING:
    from callpath_modeler.modeling.empirical_bayes import FittedPriors

Method = Literal["mixture", "classic"]


_CLASSIC_CENTRES = ("median", "mean", "min")
"""Centres that the classic method supports."""


def fit(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    method: Method = "mixture",
    space: SearchSpace | None = None,
    folds: int | None = None,
    aggregate: Centre = "mean",
    confidence: float = CONFIDENCE,
    priors: FittedPriors | None = None,
    each: MapLike = map,
) -> Models:
    """Return a model of every row.

    Parameters
    ----------
    p : array_like [K] or [K, D]
        Points: distinct values of the parameter above zero, in any order; or of 2 to 5 parameters,
        which the classic method does not support.
    y : array_like [n, K, R]
        Values, in the unit of the metric, with repetitions along the last axis; NaN = missing.
    method : {'mixture', 'classic'}
        Give every hypothesis a probability, with noise and priors learnt from all rows; or choose
        one hypothesis per row by cross-validation and term refinement.
    space : SearchSpace, optional
        Terms of the models; by default those of the method. Terms with logarithms are left out if a
        point is below 1, since they are negative there.
    folds : int, optional
        Folds of the cross-validation of the classic method, point k (in order of p) in fold k
        modulo `folds`; None = leave one out.
    aggregate : {'mean', 'median', 'trimmed', 'midrange', 'first-quartile', 'min'}
        The centre of repetitions. Only means add up over rows. The classic method supports mean,
        median and min.
    confidence : float
        Confidence of the bands, between 0 and 1.
    priors : FittedPriors, optional
        What `learn` returns for other rows with the same points, space and centre. The models of
        the rows then do not depend on each other. None = learn from the rows; the classic method
        learns nothing.
    each : MapLike
        Map over parts of the rows; it has no effect on the models.

    Returns
    -------
    Models
        One model per row, in order, with an outcome in ``status``.

    Raises
    ------
    ValueError
        If shapes, points or settings are not as described.
    """
    points, values = _checked(p, y, confidence)
    if method not in METHODS:
        raise ValueError(f"method is {method!r}; expected one of {', '.join(METHODS)}")
    if aggregate not in CENTRES:
        raise ValueError(f"aggregate is {aggregate!r}; expected one of {', '.join(CENTRES)}")
    chosen = space or default_space(method, several=points.ndim > 1)
    if method == "classic":
        if points.ndim > 1:
            raise ValueError("the classic method models one parameter")
        from callpath_modeler.modeling.classic.fitting import fit_classic

        if aggregate not in _CLASSIC_CENTRES:
            raise ValueError(
                f"the classic method does not support {aggregate}; use mean, median or min"
            )
        if folds is not None and not 2 <= folds <= len(points):
            raise ValueError(f"{folds} folds; expected 2 to {len(points)}, the number of points")
        order = np.argsort(points)
        return fit_classic(
            points[order],
            # The order of points and repetitions must not affect the rounding of sums.
            np.sort(values[:, order], axis=2),
            space=chosen,
            folds=folds,
            aggregate=aggregate,  # type: ignore[arg-type] # checked above
            confidence=confidence,
            each=each,
        )
    from callpath_modeler.modeling.application import fit_mixture

    if folds is not None:
        raise ValueError("folds are an option of the classic method only")
    return fit_mixture(
        points,
        values,
        space=chosen,
        aggregate=aggregate,
        confidence=confidence,
        priors=priors,
        each=each,
    )


def learn(
    p: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    method: Method = "mixture",
    space: SearchSpace | None = None,
    aggregate: Centre = "mean",
) -> FittedPriors | None:
    """Return noise and priors that are learnt from some rows, for the models of others.

    Parameters
    ----------
    p, y, method, space, aggregate
        As for `fit`.

    Returns
    -------
    FittedPriors or None
        None for the classic method, which learns nothing.

    Raises
    ------
    ValueError
        If shapes, points or settings are not as described.
    """
    points, values = _checked(p, y)
    if method == "classic":
        return None
    from callpath_modeler.modeling.application import learn_priors

    chosen = space or default_space(method, several=points.ndim > 1)
    return learn_priors(points, values, chosen, aggregate)


def default_space(method: Method, *, several: bool = False) -> SearchSpace:
    """Return the default search space of a method."""
    if method == "classic":
        return CLASSIC_SPACE
    return JOINT_SPACE if several else DEFAULT_SPACE


def centre(y: npt.ArrayLike, aggregate: Centre = "mean") -> FloatArray:
    """Return one value per point from its repetitions, as `fit` does.

    Parameters
    ----------
    y : array_like [n, K, R]
        Values; NaN = missing.
    aggregate : {'mean', 'median', 'trimmed', 'midrange', 'first-quartile', 'min'}
        The centre; ``Models.aggregate`` names the one that was modelled.

    Returns
    -------
    ndarray [n, K]
        NaN where no repetition has a value.
    """
    return centred(np.asarray(y, dtype=np.float64), aggregate)


def _checked(
    p: npt.ArrayLike, y: npt.ArrayLike, confidence: float = CONFIDENCE
) -> tuple[FloatArray, FloatArray]:
    points = np.array(p, dtype=np.float64)
    values = np.asarray(y, dtype=np.float64)
    if points.ndim not in (1, 2) or not points.size or not _usable(points).all():
        raise ValueError("points must be a list of finite numbers above zero")
    if points.ndim > 1 and not 2 <= points.shape[1] <= MOST_PARAMETERS:
        raise ValueError(f"points in several parameters need 2 to {MOST_PARAMETERS}")
    if len(points) > MOST_POINTS:
        raise ValueError(f"{len(points)} points; a model can use at most {MOST_POINTS}")
    if len(np.unique(points, axis=0)) != len(points):
        raise ValueError("points must differ; repetitions go along the last axis of the values")
    if values.ndim != 3 or values.shape[1] != len(points) or values.shape[2] == 0:
        raise ValueError(
            f"values have shape {values.shape}; expected (rows, {len(points)}, repetitions)"
        )
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected a number between 0 and 1")
    return points, values


def _usable(points: FloatArray) -> BoolArray:
    return np.asarray(np.isfinite(points) & (points > 0))
