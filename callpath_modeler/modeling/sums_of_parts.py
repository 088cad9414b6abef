"""Models of sums whose parts have laws of their own, written with two terms.

A sum of two models has up to four terms, and a product of two has others. This module finds the
nearest model with two terms. It is near from the smallest scale to far beyond the largest one, and
predicts the same within a few percent.

See docs/explanation/requirements.md, 'Waiting is predicted from what delays it'.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, Int16Array, IntArray
from callpath_modeler.modeling.constants.outcome import (
    BARELY,
    FAR_AWAY,
    MOST_DRIFT,
    NEAR,
    NEARER,
    OF_OWN_LAW,
)
from callpath_modeler.modeling.lines import rows_replaced, with_alternatives
from callpath_modeler.modeling.model_columns import FitStatus, numbers_of_root
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.shapes import Shapes


class _Nearest(Struct, frozen=True):
    """The nearest models to n functions.

    Attributes
    ----------
    terms : [n, 2] positions in shapes, the slower growth first; -1 = none
    coefficients : [n, 3] the constant first
    distance : [n] root mean square of the relative difference; inf = none was found
    """

    terms: Int16Array
    coefficients: FloatArray
    distance: FloatArray


class SumsOfParts(Struct, frozen=True, eq=False):
    """Sums of parts of m rows at S scales.

    Attributes
    ----------
    scales : [S] values of the parameter, ascending: the points, and scales beyond
    values : [m, S] the sums
    variance : [m, S] variance of their logarithms
    """

    scales: FloatArray
    values: FloatArray
    variance: FloatArray


def with_sums_of_parts(models: Models, rows: IntArray, sums: SumsOfParts) -> Models:
    """Return models in which some rows follow the sum of their parts.

    Parameters
    ----------
    models : models in one parameter, of the mixture method
    rows : [m] rows that have parts, ascending
    sums : their sums

    Returns
    -------
    Models
        The models that rows had are alternatives. Rows whose sum is not near any model with two
        terms keep their model.
    """
    shapes = Shapes.of(models.space.terms)
    nearest = _nearest(shapes, sums.scales, sums.values)
    near = nearest.distance <= NEAR
    if not near.any():
        return models
    before = models.take(rows[near])
    count, alternatives = before.alternative_weight.shape
    terms = before.terms.shape[1]
    codes = np.full((count, terms), -1, np.int16)
    numbers = np.zeros((count, 1 + terms))
    codes[:, :2], numbers[:, :3] = nearest.terms[near], nearest.coefficients[near]
    constant = (codes < 0).all(axis=1)
    multiple = sums.scales / models.points[-1]
    spread, drift = _spread_and_drift(multiple, sums.variance[near])
    made = replace(
        before,
        shapes=shapes,
        terms=codes,
        coefficients=numbers,
        root=_hardly_uncertain(before, terms),
        weight=np.ones(count),
        alternative_terms=np.full((count, alternatives, terms), -1, np.int16),
        alternative_coefficients=np.zeros((count, alternatives, 1 + terms)),
        alternative_weight=np.zeros_like(before.alternative_weight),
        status=np.where(constant, FitStatus.CONSTANT, FitStatus.OK).astype(np.int8),
        spread=spread,
        drift=drift,
        since=np.zeros(count),
        before=np.full(count, -1, np.int16),
        before_coefficients=np.zeros((count, 2)),
    )
    both = with_alternatives(made, before, np.full(count, OF_OWN_LAW))
    return rows_replaced(models, _most_probable(both, alternatives), rows[near])


def _most_probable(models: Models, count: int) -> Models:
    """Return models with `count` alternatives; those that are left out have no weight."""
    names = ("alternative_terms", "alternative_coefficients", "alternative_weight")
    kept = {name: getattr(models, name)[:, :count] for name in names}
    whole = models.weight + kept["alternative_weight"].sum(axis=1)
    kept["alternative_weight"] = (kept["alternative_weight"] / whole[:, None]).astype(np.float32)
    weight = models.weight / whole
    return replace(models, **kept, weight=weight, root=models.root[:, : 1 + count])


def _hardly_uncertain(models: Models, terms: int) -> Any:
    """Return roots of coefficients whose errors are part of the drift."""
    count, alternatives = models.alternative_weight.shape
    root = np.zeros((count, 1 + alternatives, numbers_of_root(terms)), np.float32)
    # A model with one term turns about the largest point.
    root[:, 0, 0], root[:, 0, 3] = BARELY, -BARELY
    return root


def _spread_and_drift(multiple: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the relative deviation at the largest point, and what its variance grows by, [n].

    Parameters
    ----------
    multiple : [S] scales in units of the largest point
    variance : [n, S] variance of the logarithm of predictions there
    """
    spread = variance[:, multiple == 1][:, 0]
    beyond = multiple >= 2
    more = (variance[:, beyond] - spread[:, None]) / np.log2(multiple[beyond])
    return np.sqrt(spread), np.asarray(np.clip(more.max(axis=1), 0.0, MOST_DRIFT))


def _nearest(shapes: Shapes, scales: FloatArray, values: FloatArray) -> _Nearest:
    """Return the models with up to two terms that are nearest to functions [n, S]."""
    count = len(shapes)
    table = shapes.table(np.append(scales, scales[-1] * FAR_AWAY))[:count]
    far = np.append(1.0, table[:, -1])
    design = np.vstack([np.ones(len(scales)), table[:, :-1]])  # [1 + shapes, S]
    first, second = np.triu_indices(count, 1)
    pairs = np.column_stack([np.zeros_like(first), 1 + first, 1 + second])
    alone = np.column_stack([np.zeros(count, np.intp), 1 + np.arange(count)])
    one = np.zeros((1, 1), np.intp)
    terms = np.full((len(values), 2), -1, np.int16)
    numbers = np.zeros((len(values), 3))
    distance = np.full(len(values), np.inf)
    for row, wanted in enumerate(values):
        # A sum that vanishes somewhere is near no model there.
        if not wanted.min() > BARELY * wanted.max():
            continue
        found = [_regressions(design / wanted, far, kind) for kind in (one, alone, pairs)]
        enough = max(NEARER, min(off.min() for _, off in found))
        for kind, (coefficients, off) in zip((one, alone, pairs), found, strict=True):
            best = int(np.argmin(off))
            if off[best] <= enough:
                size = kind.shape[1]
                terms[row, : size - 1] = kind[best, 1:] - 1
                numbers[row, :size] = coefficients[best]
                distance[row] = off[best]
                break
    return _Nearest(terms, numbers, distance)


def _regressions(
    design: FloatArray, far: FloatArray, kinds: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients [N, T] that bring sums of functions closest to one, and distances [N].

    Parameters
    ----------
    design : [F, S] functions relative to the wanted one
    far : [F] the functions far beyond, where a sum must not be negative
    kinds : [N, T] functions of each sum
    """
    size = np.sqrt((design**2).mean(axis=1))
    scaled = design / size[:, None]
    products = scaled @ scaled.T
    sums = scaled.sum(axis=1)
    normal = products[kinds[:, :, None], kinds[:, None, :]]
    normal = normal + 1e-13 * design.shape[1] * np.eye(kinds.shape[1])
    solved = np.linalg.solve(normal, sums[kinds][..., None])[..., 0]
    fitted = np.einsum("nt,nts->ns", solved, scaled[kinds])
    off = np.sqrt(((fitted - 1) ** 2).mean(axis=1))
    coefficients = solved / size[kinds]
    holds: BoolArray = (fitted > 0).all(axis=1)
    holds &= (coefficients * far[kinds]).sum(axis=1) >= 0
    return coefficients, np.where(holds, off, np.inf)
