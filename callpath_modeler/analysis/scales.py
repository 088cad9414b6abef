"""Realistic scales: whole numbers, and cubes or squares if the measured scales are."""

from __future__ import annotations

import math

import numpy as np

from callpath_modeler.arrays import FloatArray

_DIGITS = 2


def power_of(points: FloatArray) -> int | None:
    """Return 3 if all points are cubes, 2 if squares, 1 if whole numbers, else None."""
    return next((power for power in (3, 2, 1) if _are_powers(points, power)), None)


def _are_powers(points: FloatArray, power: int) -> bool:
    return bool(np.isclose(np.round(points ** (1 / power)) ** power, points, rtol=1e-12).all())


def scale_to_run(points: FloatArray, least: float) -> float:
    """Return a realistic scale slightly above `least`.

    Parameters
    ----------
    points : [K] measured scales, ascending
    least : a scale above all of them
    """
    doublings = math.log2(least / points[-1])
    if math.isclose(doublings, round(doublings), abs_tol=1e-9):
        return least
    power = power_of(points)
    if power in {2, 3}:
        # Roots round: what is a cube is not to become the next one.
        return float(math.ceil(least ** (1 / power) * (1 - 1e-12)) ** power)
    place = math.floor(math.log10(least)) + 1 - _DIGITS
    step = 10.0 ** (place if power is None else max(place, 0))
    return float(f"{math.ceil(least / step * (1 - 1e-12)) * step:.12g}")
