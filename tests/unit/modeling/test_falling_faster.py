"""Times that fall faster than the share of work of a process: sorting, solving, caches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import FitStatus, Models, fit
from cells import cells

P = 8 * 2.0 ** np.arange(6)
FAR = 16 * P[-1:]


def sorting(log_of_all: float) -> Callable[[FloatArray], FloatArray]:
    """Each of p processes sorts its share."""
    return lambda p: (log_of_all - np.log2(p)) / p


def measured(law: Callable[[FloatArray], FloatArray], noise: float = 0.02) -> Models:
    random = np.random.default_rng(1)
    y = law(P)[None, :, None] * (1 + noise * random.standard_normal((40, len(P), 3)))
    return fit(P, y)


@cells("power", [-1.05, -1.1, -1.15, -1.2, -4 / 3, -1.5, -2, -3])
def test_powers_below_that_of_shared_work_are_within_the_class(power: float) -> None:
    models, truth = measured(lambda p: p**power), FAR**power
    far = models.predict(FAR)
    assert np.median(np.abs(far.value / truth - 1)) < 0.1
    assert ((far.low <= truth) & (truth <= far.high)).mean() >= 0.9
    assert (models.status == FitStatus.OK).mean() >= 0.9


@cells("log_of_all", [20, 22, 25, 30, 40])
def test_who_sorts_a_share_takes_less_than_a_share(log_of_all: float) -> None:
    models, truth = measured(sorting(log_of_all)), sorting(log_of_all)(FAR)
    far = models.predict(FAR)
    assert np.median(np.abs(np.log(far.value / truth))) < 0.1
    assert ((far.low <= truth) & (truth <= far.high)).mean() >= 0.85
    assert (models.predict([2.0**40]).value > 0).all()


def test_work_that_is_shared_is_not_said_to_fall_faster() -> None:
    models = measured(lambda p: 1 / p)
    assert np.mean([models.formula(row).endswith("* p^-1") for row in range(40)]) >= 0.9
    far = measured(lambda p: 1 / p + 1e-3).predict(FAR)
    truth = 1 / FAR + 1e-3
    assert np.median(np.abs(np.log(far.value / truth))) < 0.1
    assert ((far.low <= truth) & (truth <= far.high)).mean() >= 0.9


@cells("power", [-0.8, -1.1, -1.25])
@cells("beside", [lambda p: p / 512, lambda p: np.log2(p) / 9])
def test_what_grows_beside_other_work_is_seen(
    power: float, beside: Callable[[FloatArray], FloatArray]
) -> None:
    points = 16 * 2.0 ** np.arange(6)
    target = np.array([16 * points[-1]])
    law, truth = ((p / 512) ** power + 0.2 * beside(p) for p in (points, target))
    others = [points**0, np.log2(points), points**0.5, 1 / points, 1 / points + 0.001]
    rows = np.array([*[law] * 8, *others * 8])
    noise = np.random.default_rng(3).standard_normal((*rows.shape, 3))
    found = fit(points, rows[..., None] * (1 + 0.03 * noise)).predict(target)
    assert ((found.low[:8] <= truth) & (truth <= found.high[:8])).mean() >= 0.75
