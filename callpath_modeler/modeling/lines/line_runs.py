"""Runs along one parameter, completed by the runs at other values of the held parameters.

If no run was made at the held values, the nearest run of that scale is moved there. Its values are
multiplied by the ratio of the surface at both places. An error in the shape of the surface along
the line cancels in that ratio, so the line keeps the shape that the other runs measured. See
docs/explanation/several-parameters.md, 'Runs along one parameter'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.fitting import centre
from callpath_modeler.modeling.models import Models


@dataclass(frozen=True, slots=True)
class LineRuns:
    """Values along one parameter at held values of the others, measured there or moved there.

    Attributes
    ----------
    points : [K] all measured values of the parameter, ascending
    values : [n, K, R] values; NaN = missing
    error : [n] relative standard deviation that moving adds at the largest moved scale; NaN = not
        known, 0 = no run was moved
    all_moved : whether no run was made at the held values
    """

    points: FloatArray
    values: FloatArray
    error: FloatArray
    all_moved: bool


@dataclass(frozen=True, slots=True)
class _Sources:
    """Settings from which the scales of a line come.

    Attributes
    ----------
    scales : [K] values of the parameter
    nearest, second : [K] nearest setting and the next one; -1 = there is no next one
    away : [K] doublings from the nearest setting to the held values
    apart : [K] doublings between both settings
    """

    scales: FloatArray
    nearest: IntArray
    second: IntArray
    away: FloatArray
    apart: FloatArray


def runs_along(
    surface: Models, axis: int, at: FloatArray, points: FloatArray, values: FloatArray
) -> LineRuns:
    """Return the runs along one parameter, completed by moved runs.

    Parameters
    ----------
    surface : n models in D parameters
    axis : the parameter
    at : [D] values of all parameters; that of `axis` has no effect
    points, values : [K, D] settings, and [n, K, R] values measured there
    """
    sources = _sources(points, axis, at)
    found = values[:, sources.nearest].copy()
    moved = np.flatnonzero(sources.away > 0)
    if not moved.size:
        return LineRuns(sources.scales, found, np.zeros(len(values)), all_moved=False)
    there = np.repeat(at[None], len(moved), axis=0)
    there[:, axis] = sources.scales[moved]
    with np.errstate(over="ignore"):
        found[:, moved] *= _ratio(surface, points[sources.nearest[moved]], there)[..., None]
    found[np.isinf(found)] = np.nan
    error = _error(surface, sources, moved, points, values)
    return LineRuns(sources.scales, found, error, all_moved=len(moved) == len(sources.scales))


def _sources(points: FloatArray, axis: int, at: FloatArray) -> _Sources:
    """Return the settings nearest to the held values at each scale; of ties, the larger."""
    place = np.log2(np.delete(points, axis, axis=1))
    away = np.abs(place - np.log2(np.delete(at, axis))).sum(axis=1)
    order = np.lexsort([*-place.T[::-1], np.round(away, 9)])
    scales, of_scale = np.unique(points[:, axis], return_inverse=True)
    ranked = [order[of_scale.ravel()[order] == k] for k in range(len(scales))]
    nearest = np.array([each[0] for each in ranked], dtype=np.intp)
    second = np.array([each[1] if len(each) > 1 else -1 for each in ranked], dtype=np.intp)
    apart = np.abs(place[nearest] - place[second]).sum(axis=1)
    return _Sources(scales, nearest, second, np.round(away[nearest], 9), apart)


def _ratio(surface: Models, here: FloatArray, there: FloatArray) -> FloatArray:
    """Return the ratio of the predictions of a surface at other settings to those here, [n, m].

    It is 1 where the surface predicts zero at the measured settings.
    """
    before, after = surface.values(here), surface.values(there)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.where(before > 0, after / before, 1.0)
    return np.asarray(np.where(np.isfinite(found), found, np.nan))


def _error(
    surface: Models, sources: _Sources, moved: IntArray, points: FloatArray, values: FloatArray
) -> FloatArray:
    """Return the error that moving adds at the largest moved scale, [n]; NaN = not known.

    The two nearest runs of each moved scale are moved onto each other. The variance beyond noise,
    per doubling between them, grows in proportion to the distance from the held values.
    """
    both = moved[sources.second[moved] >= 0]
    if not both.size:
        return np.full(len(values), np.nan)
    one, other = sources.nearest[both], sources.second[both]
    measured = [centre(values[:, each], surface.aggregate) for each in (one, other)]
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.log(measured[1] * _ratio(surface, points[other], points[one]) / measured[0])
        count = sum(1 / np.isfinite(values[:, each]).sum(axis=2) for each in (one, other))
        # A call path that is missing at a scale is NaN here and has no weight below.
        noise = np.nan_to_num(surface.noise)[:, None] ** 2 * count
    known = np.isfinite(off)
    variance = np.where(known, off**2 - noise, 0.0) / sources.apart[both]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = variance.sum(axis=1) / known.sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(mean, 0.0) * sources.away[moved].max()))
