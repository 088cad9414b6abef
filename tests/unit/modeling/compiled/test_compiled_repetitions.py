"""Statistics of repetitions in C and in NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.mixture import (
    row_models,
    scaled_rows,
)
from callpath_modeler.modeling.mixture import (
    scaled_rows as repetition_noise,
)
from callpath_modeler.modeling.repetitions import CENTRES, Centre
from cells import cells
from implementations import in_numpy
from many_rows import KINDS, many_rows

MANY = {"of forty": (4, 40), "of two": (5, 2)}


class Said(NamedTuple):
    """All statistics of some rows, from one of the two."""

    reps: repetition_noise.RepetitionStats
    spread: tuple[FloatArray, ...]
    status: npt.NDArray[np.int8]
    facts: tuple[npt.NDArray[np.int16], FloatArray, FloatArray]
    noise: repetition_noise.Noise
    quiet: repetition_noise.Noise


def said(points: FloatArray, y: FloatArray, how: Centre) -> Said:
    reps = repetition_noise.repetition_stats(y, how)
    told = repetition_noise.row_spread(reps)
    usable = np.flatnonzero(told[2] > 0)
    raw, dof, size = (each[usable] for each in told)
    pool = repetition_noise.pooled(raw, dof, size, repetition_noise.profile_of(reps.take(usable)))
    same = np.ones(len(points))
    return Said(
        reps,
        told,
        row_models.row_status(y, reps),
        row_models.point_counts(reps.count, points),
        pool.noise(reps.take(usable), 1.3),
        repetition_noise.Pool(is_known=False, profile=same).noise(reps, 1.0),
    )


def rows_of(kind: str) -> tuple[FloatArray, FloatArray]:
    """Return points, and rows of a kind with some exceptional ones."""
    if kind in KINDS:
        points, y = many_rows(KINDS[kind], 100)
    else:
        random = np.random.default_rng(2)
        points = np.arange(1.0, 1 + MANY[kind][0])
        y = random.lognormal(0, 0.3, (100, *MANY[kind]))
        y[random.uniform(size=y.shape) < 0.2] = np.nan
    y[0], y[1], y[2, 0], y[3, 1, 0] = 0.0, np.nan, np.nan, np.inf
    y[4, 0, 0], y[5, 1], y[6, 0, 0] = -1e9, -1.0, -np.inf
    y[10:40] *= 10.0 ** np.linspace(-290, 290, 30)[:, None, None]
    return points, y


@cells("how", CENTRES)
@pytest.mark.parametrize("kind", [*KINDS, *MANY])
def test_repetitions_say_to_c_what_they_say_to_numpy(kind: str, how: Centre) -> None:
    points, y = rows_of(kind)
    found = said(points, y, how)
    with in_numpy():
        expected = said(points, y, how)
    for name in ("centre", "count", "squares"):
        mine, numpy = (getattr(each.reps, name) for each in (found, expected))
        np.testing.assert_allclose(mine, numpy, rtol=1e-12, atol=1e-28)
    for mine, numpy in zip(found.spread, expected.spread, strict=True):
        np.testing.assert_allclose(mine, numpy, rtol=1e-12, atol=1e-28)
    np.testing.assert_array_equal(found.status, expected.status)
    for these, those in zip(found.facts, expected.facts, strict=True):
        np.testing.assert_array_equal(these, those)
    for one, other in ((found.noise, expected.noise), (found.quiet, expected.quiet)):
        for name in ("centre", "variance", "dof", "weight", "spread"):
            wanted = getattr(other, name)
            np.testing.assert_allclose(getattr(one, name), wanted, rtol=1e-9, err_msg=name)
        assert one.is_known == other.is_known


@pytest.mark.parametrize("kind", ["usual", "with gaps", "of forty"])
def test_the_order_of_repetitions_does_not_matter_to_the_last_bit(kind: str) -> None:
    _, y = rows_of(kind)
    shuffled = np.random.default_rng(0).permuted(y, axis=2)
    for how in CENTRES:
        found, other = (
            repetition_noise.repetition_stats(y, how),
            repetition_noise.repetition_stats(shuffled, how),
        )
        for name in ("centre", "count", "squares"):
            np.testing.assert_array_equal(getattr(found, name), getattr(other, name))


def test_rows_are_put_into_units_of_their_own_as_by_numpy() -> None:
    points, y = rows_of("with gaps")
    noise = said(points, y, "mean").noise
    found, unit = scaled_rows.data_of(points, noise)
    with in_numpy():
        expected, other = scaled_rows.data_of(points, noise)
    np.testing.assert_array_equal(unit, other)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.weight, expected.weight)
