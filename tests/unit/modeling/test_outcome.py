"""Outcomes: the status and the model of each row."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import FitStatus, SearchSpace, fit
from callpath_modeler.modeling.mixture.posterior import Posterior
from callpath_modeler.modeling.mixture.row_models import logarithms, minimum_expected_loss

POINTS = 2.0 ** np.arange(3, 9)


def measured(law: FloatArray, noise: float, rows: int, repetitions: int, seed: int) -> FloatArray:
    random = np.random.default_rng(seed)
    return law[:, None] * (1 + noise * random.normal(0, 1, (rows, len(law), repetitions)))


def delayed(rows: int) -> FloatArray:
    """Return values whose noise only delays, so that the smallest repetition is the centre."""
    random = np.random.default_rng(0)
    law = 3 + 2 * POINTS
    return law[:, None] * (1 + 0.1 * random.exponential(1, (rows, 6, 5)))


@pytest.mark.parametrize("aggregate", ["median", "min"])
def test_a_row_whose_centres_are_zero_is_zero_whatever_its_means(aggregate: str) -> None:
    y = np.tile([0.0, 0.0, 5.0], (1, 6, 1))
    models = fit(POINTS, y, aggregate=aggregate)  # type: ignore[arg-type]
    assert models.status[0] == FitStatus.ZERO
    assert models.predict([1e6]).high[0, 0] == 0


def test_a_row_that_is_mostly_zero_does_not_harm_the_others() -> None:
    y = np.concatenate([np.tile([0.0, 0.0, 0.0, 0.0, 5.0], (1, 6, 1)), delayed(30)])
    models = fit(POINTS, y, aggregate="min")
    assert models.status[0] == FitStatus.ZERO
    # Two runs in a row of one of the thirty happen to be late by more than all others.
    assert (models.status[1:] != FitStatus.OK).sum() <= 1
    assert np.median(models.values([1024.0])[1:]) == pytest.approx(3 + 2 * 1024, rel=0.1)


def test_a_centre_below_zero_makes_a_row_negative() -> None:
    y = np.concatenate([delayed(1), delayed(30)])
    y[0, 2] = [-1.0, 15.0, 15.0, 15.0, 15.0]
    assert fit(POINTS, y, aggregate="min").status[0] == FitStatus.NEGATIVE


@pytest.mark.parametrize("rows", [1, 20, 60])
def test_three_points_that_follow_a_law_within_noise_are_not_outside(rows: int) -> None:
    points = POINTS[:3]
    for law in (3 + 2 * points, 5 / points + 0.1, 5 + 0 * points):
        status = fit(points, measured(law, 0.02, rows, 5, seed=rows)).status
        assert (status == FitStatus.OUTSIDE).mean() <= 0.02


def chosen(rows: list[list[tuple[float, float]]]) -> list[int]:
    """Return the candidate that is the model of each row of (probability, prediction)."""
    row = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
    weight, far = np.array([pair for each in rows for pair in each]).T
    nothing = np.zeros((6, len(row)))
    found = Posterior(row, row, weight, nothing[:3], nothing, *np.zeros((2, len(rows))))
    log = logarithms(far)
    return minimum_expected_loss(found, log, np.lexsort((log, row))).tolist()


def test_the_model_is_the_most_probable_form_of_what_is_closest_to_all() -> None:
    # 0.3 alone for 10; 0.15, 0.25 and 0.2 for about 100, 0.1 for far more.
    assert chosen([[(0.3, 10.0), (0.15, 97.0), (0.25, 100.0), (0.2, 104.0), (0.1, 900.0)]]) == [2]


def test_of_equals_the_lowest_and_first_is_the_model_whatever_rounding_says() -> None:
    more = 0.5 * (1 + 1e-14)
    assert chosen([[(0.5, 10.0), (more, 20.0)]]) == [0]
    assert chosen([[(0.5, 20.0), (more, 10.0)]]) == [1]
    assert chosen([[(0.5, 10.0), (more, 10.0), (0.5, 10.0)]]) == [0]
    assert chosen([[(0.5, 10.0), (0.51, 20.0)]]) == [1]


def test_where_nothing_agrees_the_model_is_among_all_the_others() -> None:
    assert chosen([[(0.2, 1.0), (0.45, 3.0), (0.35, 9.0)]]) == [1]
    # The most probable one is far from the others, which are close together.
    assert chosen([[(0.3, 1.0), (0.25, 50.0), (0.2, 60.0), (0.25, 70.0)]]) == [2]


def test_what_is_far_out_draws_less_than_what_is_nearer() -> None:
    rows = [[(0.4, 1.0), (0.38, 1.2), (0.22, far)] for far in (3.0, 1e3, 1e300)]
    assert chosen(rows) == [1, 3, 6]


def test_rows_do_not_agree_with_each_other() -> None:
    rows = [[(0.6, 0.0), (0.4, 5.0)], [(0.6, 0.0), (0.4, 5.0)], [(0.4, 5.0), (0.6, 1e305)]]
    assert chosen(rows) == [0, 2, 5]


def test_the_error_of_points_left_out_is_that_of_least_squares_without_them() -> None:
    points = 2.0 ** np.arange(3, 9)
    y = (3 + 0.5 * points + 2 * np.array([0.1, -0.2, 0.3, -0.1, 0.2, -0.3]))[None, :, None]
    models = fit(points, y, space=SearchSpace.of([1], [0], max_terms=1))
    assert models.formula(0).endswith("* p")
    found = models.coefficients[0, 0] + models.coefficients[0, 1] * points
    design = np.stack([np.ones(6), points], axis=1) / y[0]
    hat = np.diag(design @ np.linalg.pinv(design))
    left = (y[0, :, 0] - found) / y[0, :, 0] / (1 - hat)
    assert models.cv_error[0] == pytest.approx(np.sqrt((left**2).mean()), rel=1e-6)
