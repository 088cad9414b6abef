"""Recovery of the models published for Sweep3D, MILC and HOMME (SC13) from synthetic data.

The measurements behind the models were not published, so the data are the models with 1 % noise.
"Dominant" means that a term leads asymptotically, unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from callpath_modeler.analysis.uncertain import at_most, limited, marks_of_trust
from callpath_modeler.arrays import FloatArray, Int8Array
from callpath_modeler.modeling import FitStatus, Models, Prediction, SearchSpace, fit
from cells import cells

Law = Callable[[FloatArray], FloatArray]

SEEDS = 40

SWEEP_P1 = 2.0 ** np.arange(6, 12)
SWEEP_P2 = 2.0 ** np.arange(6, 14)
SWEEP_TARGET = 262_144.0
MILC_P = 2.0 ** np.arange(7, 17)
MILC_V = np.array([81, 256, 400, 625, 900, 1080, 1296, 1512, 1764, 2058, 2401.0])
HOMME_P4 = np.array([600, 1176, 4056, 7776, 13824, 14406, 15000.0])
HOMME_P5 = np.append(HOMME_P4, [15606, 16224, 23814, 31974, 43350])
HOMME_TARGET = 130_000.0

FINER = SearchSpace.of(["0", "1/4", "1/3", "1/2", "2/3", "3/4", "1", "3/2", "2", "5/2", "3"])
FINER_WITH_FIVE_QUARTERS = SearchSpace.of([*FINER.exponents, "5/4"])


def constant(value: float) -> Law:
    return lambda p: np.full_like(p, value)


def quadratic(base: float, factor: float) -> Law:
    return lambda p: base + factor * p**2


SWEEP: dict[str, tuple[Law, str]] = {
    "sweep -> MPI_Recv": (lambda p: 4.03 * p**0.5, "O(p^(1/2))"),
    "sweep": (constant(582.19), "O(1)"),
    "sweep -> MPI_Send": (lambda p: 11.49 + 0.09 * p**0.5 * np.log2(p), "O(p^(1/2) log p)"),
    # 0.02 % over the measured range: constant in effect, below any noise.
    "source": (lambda p: 6.86 + 9.68e-5 * np.log2(p), "O(1)"),
}
MILC: dict[str, tuple[Law, str]] = {
    "compute_gen_staple_field": (constant(0.024), "O(1)"),
    "g_vecdoublesum -> MPI_Allreduce": (lambda p: 6.30e-6 * np.log2(p) ** 2, "O(log^2 p)"),
    "mult_adj_su3_fieldlink_lathwvec": (constant(0.004), "O(1)"),
}
HOMME: dict[str, tuple[Law, str]] = {
    "vlaplace_sphere_wk": (quadratic(24.44, 2.26e-7), "O(p^2)"),
    "laplace_sphere_wk": (quadratic(21.84, 1.96e-7), "O(p^2)"),
    "biharmonic_wk": (quadratic(17.92, 1.57e-7), "O(p^2)"),
    "divergence_sphere_wk": (quadratic(8.02, 7.56e-8), "O(p^2)"),
    "vorticity_sphere": (quadratic(6.51, 7.09e-8), "O(p^2)"),
    "divergence_sphere": (quadratic(7.74, 6.91e-8), "O(p^2)"),
    "gradient_sphere": (quadratic(6.33, 6.88e-8), "O(p^2)"),
    "advance_hypervis": (quadratic(5.5, 3.91e-8), "O(p^2)"),
    "compute_and_apply_rhs": (constant(49.09), "O(1)"),
    "euler_step": (constant(28.13), "O(1)"),
    # Dominates the value at the target, 1584 of 1755 s; below 25,000 the other term does.
    "box_rearrange -> MPI_Reduce": (lambda p: 3.63e-6 * p**1.5 + 7.21e-13 * p**3, "O(p^3)"),
}


def measured(
    law: Law, points: FloatArray, repetitions: int, noise: str, seed: int = 1
) -> FloatArray:
    """Return SEEDS series with 1 % noise, [SEEDS, K, R]."""
    random = np.random.default_rng(seed)
    shape = (SEEDS, len(points), repetitions)
    if noise == "uniform":
        factor = 1 + random.uniform(-0.005, 0.005, shape)
    else:
        factor = 1 + random.normal(0, 0.01, shape)
    return law(points)[None, :, None] * factor


def share_of(models: Models, growth: str) -> float:
    return float(np.mean([models.growth(row).text() == growth for row in range(len(models))]))


@cells("repetitions", [1, 5])
@cells(
    ("points", "laws"),
    [(SWEEP_P1, SWEEP), (SWEEP_P2, SWEEP), (MILC_P, MILC), (HOMME_P5, HOMME)],
)
@cells(("noise", "least"), [("uniform", 0.95), ("gaussian", 0.9)])
def test_the_growth_of_every_published_kernel_is_found(
    points: FloatArray,
    laws: dict[str, tuple[Law, str]],
    repetitions: int,
    noise: str,
    least: float,
) -> None:
    missed = {}
    for kernel, (law, growth) in laws.items():
        models = fit(points, measured(law, points, repetitions, noise), method="classic")
        if share_of(models, growth) < least:
            missed[kernel] = share_of(models, growth)
    assert not missed


@cells("repetitions", [1, 5])
@cells(
    ("points", "laws"),
    [(SWEEP_P1, SWEEP), (SWEEP_P2, SWEEP), (MILC_P, MILC), (HOMME_P5, HOMME)],
)
@cells(("noise", "least"), [("uniform", 0.95), ("gaussian", 0.8)])
def test_a_mixture_finds_the_published_growth_and_holds_the_value_beyond(
    points: FloatArray,
    laws: dict[str, tuple[Law, str]],
    repetitions: int,
    noise: str,
    least: float,
) -> None:
    target = np.array([4 * points[-1]])
    for kernel, (law, growth) in laws.items():
        models = fit(points, measured(law, points, repetitions, noise))
        band, truth = models.predict(target), law(target)[0]
        assert share_of(models, growth) >= least, kernel
        assert np.mean((band.low <= truth) & (truth <= band.high)) >= 0.9, kernel


@pytest.mark.parametrize(
    ("points", "least"), [(SWEEP_P1, 0.85), (SWEEP_P2, 0.95)], ids=["P1", "P2"]
)
def test_the_two_terms_of_the_allreduce_of_sweep3d_are_of_the_published_power(
    points: FloatArray, least: float
) -> None:
    # Over a factor of 32 in p, 1.06 sqrt(p) + 0.03 sqrt(p) log p is within 1 % of other pairs of
    # terms: the power is what can be asked for, and so it is for the value at the target.
    def law(p: FloatArray) -> FloatArray:
        return 1.06 * p**0.5 + 0.03 * p**0.5 * np.log2(p)

    models = fit(points, measured(law, points, 5, "uniform"), method="classic")
    powers = np.array([float(models.growth(row).exponent) for row in range(SEEDS)])
    error = np.abs(models.values([SWEEP_TARGET])[:, 0] / law(np.array([SWEEP_TARGET])) - 1)
    assert np.mean(powers == 0.5) >= least
    assert np.median(error) < 0.136  # published error of P2


@pytest.mark.parametrize("points", [SWEEP_P1, SWEEP_P2], ids=["P1", "P2"])
@pytest.mark.parametrize("repetitions", [1, 5])
def test_the_published_ranking_of_sweep3d_comes_out(points: FloatArray, repetitions: int) -> None:
    laws: list[Law] = [
        SWEEP["sweep -> MPI_Recv"][0],
        SWEEP["sweep"][0],
        lambda p: 1.06 * p**0.5 + 0.03 * p**0.5 * np.log2(p),
        constant(12.0),  # MPI_Send from P1, where it is published as constant
        SWEEP["source"][0],
    ]
    right = 0
    data = [measured(law, points, repetitions, "uniform", seed) for seed, law in enumerate(laws)]
    for series in range(SEEDS):
        models = fit(points, np.stack([values[series] for values in data]))
        order = np.argsort(-models.values([SWEEP_TARGET])[:, 0])
        right += list(order) == [0, 2, 1, 3, 4] or list(order) == [0, 1, 2, 3, 4]
    assert right >= 0.9 * SEEDS


def test_homme_below_15000_processes_is_constant_but_for_the_reduce() -> None:
    published = {"vlaplace": 49.53, "laplace": 44.08, "biharmonic": 34.40, "rhs": 48.68}
    for value in published.values():
        models = fit(HOMME_P4, measured(constant(value), HOMME_P4, 1, "gaussian"))
        assert share_of(models, "O(1)") >= 0.95

    def reduce_law(p: FloatArray) -> FloatArray:
        return 0.026 + 2.53e-6 * p**1.5 + 1.24e-12 * p**3

    models = fit(HOMME_P4, measured(reduce_law, HOMME_P4, 5, "uniform"))
    assert share_of(models, "O(1)") == 0.0
    # A range in which both terms have the same size does not show which power leads.
    powers = np.array([float(models.growth(row).exponent) for row in range(SEEDS)])
    assert (powers >= 1.5).all()


HOMME_BELOW = (49.53, 44.08, 34.40, 16.88, 9.74, 15.36, 14.77, 9.76, 48.68, 28.08)
"""Times of the kernels of HOMME below 15,000 processes."""


def drawn(laws: list[Law], points: FloatArray, noise: float, seed: int) -> FloatArray:
    """Return one program, [laws, K, 5], with normal noise."""
    values = np.array([law(points) for law in laws])
    random = np.random.default_rng(seed)
    return np.abs(values[..., None] * (1 + random.normal(0, noise, (*values.shape, 5))))


def marked(models: Models, target: float) -> tuple[Int8Array, Prediction]:
    """Return the marks of trust at a target, and the bands."""
    band = models.predict(np.array([target]))
    value, low, high = (each[:, 0] for each in (band.value, band.low, band.high))
    limits = limited(models, value, target / float(models.points[-1]))
    return at_most(marks_of_trust(value, low, high), value, limits), band


@pytest.mark.parametrize("noise", [0.01, 0.02, 0.05, 0.1])
def test_no_marks_stand_beside_a_wrong_band_of_the_reduce_of_homme(noise: float) -> None:
    def reduce_law(p: FloatArray) -> FloatArray:
        return 0.026 + 2.53e-6 * p**1.5 + 1.24e-12 * p**3

    laws = [reduce_law, *(constant(value) for value in HOMME_BELOW)]
    truth, honest = reduce_law(np.array([HOMME_TARGET]))[0], 0
    for seed in range(45):
        models = fit(HOMME_P4, drawn(laws, HOMME_P4, noise, seed))
        marks, band = marked(models, HOMME_TARGET)
        honest += marks[0] <= 1 or bool(band.low[0, 0] <= truth <= band.high[0, 0])
        assert noise > 0.02 or (marks[1:] >= 3).all()
    assert honest >= 0.93 * 45  # without laws that fit as well: 98, 54 and 68 % from 2 % noise on


@pytest.mark.parametrize(("noise", "least"), [(0.01, 4.0), (0.02, 3.9), (0.05, 3.7), (0.1, 2.7)])
def test_squares_that_many_scales_show_keep_their_marks(noise: float, least: float) -> None:
    laws = [law for law, _ in HOMME.values()]
    programs = [fit(HOMME_P5, drawn(laws, HOMME_P5, noise, seed)) for seed in range(20)]
    assert np.mean([marked(models, HOMME_TARGET)[0] for models in programs]) >= least


@cells(
    ("law", "growth", "space"),
    [
        (lambda v: 72 * v**0.75, "O(V^(3/4))", FINER),
        (lambda v: 5.64e4 * v, "O(V)", FINER),
        (lambda v: 1.95e6 * v, "O(V)", FINER),
        (lambda v: 1.16e8 + 3.24e5 * v**1.25, "O(V^(5/4))", FINER_WITH_FIVE_QUARTERS),
        (lambda v: 5.11e4 + 1.38e4 * v**0.25, "O(V^(1/4))", FINER),
        (constant(2.31e3), "O(1)", FINER),
        (constant(1.27e5), "O(1)", FINER),
    ],
)
@cells("repetitions", [1, 5])
def test_milc_in_grid_points_per_process_with_the_published_exponents(
    law: Law, growth: str, space: SearchSpace, repetitions: int
) -> None:
    models = fit(MILC_V, measured(law, MILC_V, repetitions, "uniform"), space=space)
    found = [models.growth(row).text("V") for row in range(SEEDS)]
    assert found.count(growth) >= 0.9 * SEEDS


def test_milc_message_size_is_found_in_the_default_space() -> None:
    models = fit(MILC_V, (72 * MILC_V**0.75)[None, :, None])
    assert models.growth(0).text("V") == "O(V^(3/4))"
    assert models.status[0] == FitStatus.OK


EXACT_LAWS: dict[str, tuple[FloatArray, Law, str]] = {
    "saturating messages": (
        np.array([4, 9, 16, 25, 36, 49, 64.0]),
        lambda p: 2560 * (1 - p**-0.5),
        "O(1)",
    ),
    "saturating messages from one process": (
        np.array([1, 4, 9, 16, 25, 64.0]),
        lambda p: 2560 * (1 - p**-0.5),
        "O(1)",
    ),
    "bytes of a strong-scaling run": (2.0 ** np.arange(1, 7), lambda p: 25165824 / p, "O(p^-1)"),
    "messages to everyone": (np.array([8, 27, 64, 125.0]), lambda p: 192 * p, "O(p)"),
    "iterations": (2.0 ** np.arange(1, 6), constant(931.0), "O(1)"),
    "iterations until convergence": (
        np.array([27, 64, 125, 216.0]),
        lambda p: 310 * np.cbrt(p) + 20,
        "O(p^(1/3))",
    ),
}


@cells("repetitions", [1, 3])
@cells("name", EXACT_LAWS)
def test_exact_counts_come_out_exactly(name: str, repetitions: int) -> None:
    points, law, growth = EXACT_LAWS[name]
    models = fit(points, np.repeat(law(points)[None, :, None], repetitions, axis=2))
    targets = np.array([343.0, 4096.0, 1e6])
    assert models.growth(0).text() == growth
    assert models.status[0] in (FitStatus.OK, FitStatus.CONSTANT)
    assert models.values(targets)[0] == pytest.approx(law(targets), rel=1e-6)


def test_visits_that_grow_with_the_cube_root_are_found_from_four_points() -> None:
    points = np.array([27, 64, 125, 216.0])
    for base in (0.0, 40.0, 900.0):
        models = fit(points, (base + 412 * np.cbrt(points))[None, :, None])
        assert models.values([343.0])[0, 0] == pytest.approx(base + 412 * 7, rel=0.005)


def test_iterations_until_convergence_may_miss_their_law_by_a_few() -> None:
    points = np.array([27, 64, 125, 216.0])
    counts = np.round(1118 * np.cbrt(points) - 209) + np.array([0, 1, -1, 1])
    models = fit(points, counts[None, :, None])
    assert models.growth(0).text() == "O(p^(1/3))"
    assert models.status[0] == FitStatus.OK
    assert models.values([343.0])[0, 0] == pytest.approx(1118 * 7 - 209, rel=0.005)


def test_saturating_halo_visits_are_not_claimed_to_follow_a_model() -> None:
    for repetitions, sides in ((1, 4), (2, 4), (5, 4), (1, 6), (1, 8)):
        side = np.arange(2.0, 2 + sides)
        counts = 25 * ((3 * side - 2) ** 3 / side**3 - 1)
        models = fit(side**3, np.repeat(counts[None, :, None], repetitions, axis=2))
        assert models.status[0] == FitStatus.OUTSIDE
        band = models.predict([1000.0])
        truth = 25 * ((3 * 10 - 2) ** 3 / 10**3 - 1)
        assert band.low[0, 0] <= truth <= band.high[0, 0]


@cells("repetitions", [1, 5])
@cells("sd", [0.01, 0.05, 0.1, 0.2])
def test_constants_are_not_said_to_grow(sd: float, repetitions: int) -> None:
    random = np.random.default_rng(7)
    points = 2.0 ** np.arange(3, 8)
    data = 5.0 * (1 + random.normal(0, sd, (2000, 5, repetitions)))
    models = fit(points, np.abs(data))
    assert np.mean(models.leading_coefficient() != models.coefficients[:, 0]) <= 0.03
