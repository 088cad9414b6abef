"""Columns of the models of many rows, without what is computed from them.

See docs/explanation/architecture.md, 'Types, in the order of the data flow'.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import Float32Array, FloatArray, Int8Array, Int16Array
from callpath_modeler.modeling.noise import Centre
from callpath_modeler.modeling.shapes import Shapes
from callpath_modeler.modeling.terms import SearchSpace

METHODS = ("mixture", "classic")
"""Methods of modelling: a probability for every hypothesis, or one choice by cross-validation."""

MIN_POINTS = {"mixture": 3, "classic": 4}
"""Smallest number of points with a value that a model of each method needs."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelColumns:
    """Columns of models, one model per row of n; T is the largest number of terms.

    Attributes
    ----------
    space : SearchSpace
        The search space of the models.
    shapes : Shapes
        The shapes that codes stand for, slowest growth first.
    method : str
        One of `METHODS`.
    aggregate : str
        The centre of repetitions that was modelled.
    points : ndarray [K] or [K, D]
        The points of the experiment, ascending. Models in D parameters have values and formulas.
        All other results need a slice, with all parameters but one held, from
        `lines.slices.slice_along`.
    confidence : float
        Confidence of the bands.
    correlation : float
        Correlation between the errors of rows: 0 = independent, 1 = the same.
    odd_scale : tuple of tuple and float, or None
        The point, if any, at which nearly all rows are off by one factor, judged by the other
        points: its value of each parameter (None = all values), and the factor. The point has
        little weight.
    terms : ndarray [n, T] of int16
        Positions in ``shapes``, slowest growth first; -1 = unused.
    coefficients : ndarray [n, T + 1]
        The constant, then one coefficient per term, in the unit of the metric; NaN without a model.
    covariance : ndarray [n, T + 1, T + 1]
        Covariance of the coefficients, in squared units of the metric, with the classic method;
        [n, 0, 0] with the mixture method, which keeps `root`.
    spread : ndarray [n]
        Relative standard deviation of a measured centre about the model, at the largest point.
    drift : ndarray [n]
        Relative variance that is added per doubling of the parameter beyond.
    dof : ndarray [n]
        Degrees of freedom of `spread`.
    cv_error : ndarray [n]
        Cross-validated relative error (root mean square), 0.03 = 3 %.
    r2, adjusted_r2, rss : ndarray [n]
        R^2, adjusted R^2 and sum of squares of the relative residuals.
    noise : ndarray [n]
        Relative standard deviation of one repetition; NaN without repetitions.
    status : ndarray [n] of int8
        Codes of `FitStatus`.
    used : ndarray [n] of int16
        Number of points with a value.
    since : ndarray [n]
        First point that follows the model, if an earlier law holds for smaller values of the
        parameter; 0 if the model holds for all values.
    before : ndarray [n] of int16
        The shape of the law before `since`; -1 = none.
    before_coefficients : ndarray [n, 2]
        The constant and the coefficient of that law, in the unit of the metric.
    low_p, high_p : ndarray [n]
        Smallest and largest point with a value; NaN with several parameters.
    weight : ndarray [n]
        Probability of the model; with the classic method its Akaike weight among itself and its
        alternatives.
    alternative_terms, alternative_coefficients, alternative_weight : ndarray [n, A, ...]
        The alternatives, most probable first; a weight of 0 = none. Of D parameters, the first A /
        D belong to slices along the first parameter, and so on; each set represents all hypotheses.
    unit : ndarray [n]
        The unit of `root`: the largest value of each row, in the unit of the metric.
    root : ndarray [n, 1 + A, 6] of float32
        Errors of the coefficients of the model and its alternatives, with the mixture method: roots
        of their covariances, see module `roots`; [n, 0, 6] with the classic method.
    """

    space: SearchSpace
    shapes: Shapes
    method: str
    aggregate: Centre
    points: FloatArray
    confidence: float
    correlation: float
    odd_scale: tuple[tuple[float | None, ...], float] | None
    terms: Int16Array
    coefficients: FloatArray
    covariance: FloatArray
    spread: FloatArray
    drift: FloatArray
    dof: FloatArray
    cv_error: FloatArray
    r2: FloatArray
    adjusted_r2: FloatArray
    rss: FloatArray
    noise: FloatArray
    status: Int8Array
    used: Int16Array
    since: FloatArray
    before: Int16Array
    before_coefficients: FloatArray
    low_p: FloatArray
    high_p: FloatArray
    weight: FloatArray
    alternative_terms: Int16Array
    alternative_coefficients: FloatArray
    alternative_weight: npt.NDArray[np.floating]
    unit: FloatArray
    root: Float32Array

    def __post_init__(self) -> None:
        """Make every column read-only."""
        for name in ("points", *column_names()):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.status)

    def take(self, rows: npt.ArrayLike | slice) -> Self:
        """Return the models of some rows.

        Parameters
        ----------
        rows : array_like of int or bool, or slice
            Row numbers or a mask; a slice copies nothing.

        Returns
        -------
        Self
            The models, in this order.
        """
        wanted = rows if isinstance(rows, slice) else np.asarray(rows)
        if not isinstance(wanted, slice) and wanted.size == 0:
            wanted = wanted.astype(np.intp)
        return replace(self, **{name: getattr(self, name)[wanted] for name in column_names()})

    @property
    def axes(self) -> int:
        """Number of parameters of the models."""
        return 1 if self.points.ndim == 1 else self.points.shape[1]


def column_names() -> tuple[str, ...]:
    """Return the names of the fields of `ModelColumns` that are columns over rows."""
    names = [field.name for field in fields(ModelColumns)]
    return tuple(names[names.index("terms") :])
