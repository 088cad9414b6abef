"""Models in several parameters, and their slices along one."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from callpath_modeler.modeling import (
    Break,
    Difference,
    FitStatus,
    Product,
    SearchSpace,
    Term,
    along,
    fit,
    with_rows,
)
from callpath_modeler.modeling.evaluation import peaks, shape_table
from callpath_modeler.modeling.fitting import default_space
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.modeling.mixture.candidates import candidates
from callpath_modeler.modeling.mixture.learn import learn
from callpath_modeler.modeling.mixture.screen import screen
from callpath_modeler.modeling.products import NOTHING
from callpath_modeler.modeling.roots import covariances
from callpath_modeler.modeling.several.catalogue import SHARED
from callpath_modeler.modeling.several.hypotheses import joint_hypotheses
from callpath_modeler.modeling.stored import from_arrays, to_arrays
from many_rows import rows_to_fit

P = (8.0, 16.0, 32.0, 64.0, 128.0)
N = (10.0, 20.0, 30.0, 40.0, 50.0)
LAWS = {
    "nothing": lambda p, n: 5 + 0 * p * n,
    "volume shared": lambda p, n: n**3 / p,
    "both at once": lambda p, n: 3 + p * np.log2(n),
    "volume and messages": lambda p, n: 1e-3 * n**3 / p + 1e-4 * n**2 * np.log2(p),
    "each alone": lambda p, n: 0.01 * n**2 + np.sqrt(p),
    "one only": lambda p, n: 1 + 1e-3 * n**3 + 0 * p,
    "the other only": lambda p, n: 2 + 0.5 * np.log2(p) + 0 * n,
}


def grid(*axes):
    return np.array(list(product(*axes)))


def measured(points, laws, noise=0.02, repetitions=3, seed=0):
    rng = np.random.default_rng(seed)
    exact = np.array([law(*points.T) for law in laws])
    factor = 1 + noise * rng.uniform(-0.5, 0.5, (*exact.shape, repetitions))
    return exact[..., None] * factor


@pytest.fixture(scope="module")
def surfaces():
    points = grid(P, N)
    return fit(points, measured(points, LAWS.values()))


def test_laws_in_two_parameters_are_found(surfaces):
    names = ("p", "n")
    shapes = [
        {surfaces.shapes[code].text(names) for code in codes if code >= 0}
        for codes in surfaces.terms
    ]
    assert shapes == [
        set(),
        {"p^-1 * n^3"},
        {"p * log2(n)"},
        {"p^-1 * n^3", "log2(p) * n^2"},
        {"p^(1/2)", "n^2"},
        {"n^3"},
        {"log2(p)"},
    ]
    assert surfaces.formula(1, names).endswith(" * p^-1 * n^3")


@pytest.mark.parametrize(
    "law",
    [
        lambda p, n: 20 + 0.1 * p**1.5 * n**0.5 * np.log2(n) + 2e-3 * n**3,
        lambda p, n: 20 + 0.02 * p ** (2 / 3) * n * np.log2(n) + 3e-3 * p**2,
    ],
)
def test_a_product_is_found_beside_a_factor_of_another_law(law):
    points = grid(P, N)
    found = along(fit(points, measured(points, [law])), 0, [1.0, 200.0]).predict([2048.0])
    truth = float(law(2048.0, 200.0))
    assert found.value[0, 0] == pytest.approx(truth, rel=0.1)
    assert found.low[0, 0] <= truth <= found.high[0, 0]


EXCHANGES = {
    "8 * (p - 1) * n": lambda p, n: 8 * (p - 1) * n,
    "100 * (1 - p^-1) * n^2": lambda p, n: 100 * (1 - 1 / p) * n**2,
    "5000 + 8 * (p - 1) * n": lambda p, n: 5000 + 8 * (p - 1) * n,
    "300 * (p - 1) + 8 * (p - 1) * n": lambda p, n: (p - 1) * (300 + 8 * n),
    "50 * log2(p) + 200 * (1 - p^-1) * n": lambda p, n: 200 * n * (1 - 1 / p) + 50 * np.log2(p),
    "2 * (p^2 - p) * n": lambda p, n: 2 * p * (p - 1) * n,
    "1000 * p^-1 * log2(p) * n": lambda p, n: 1000 * n * np.log2(p) / p,
    "5 * p^(-2/3) * n^2 + 1 * p^-1 * n^3": lambda p, n: n**3 / p + 5 * n**2 / p ** (2 / 3),
}


@pytest.mark.parametrize("first", [1.0, 2.0, 8.0])
def test_exchanges_with_all_but_oneself_and_surfaces_of_volumes_are_found(first):
    points = grid(first * 2.0 ** np.arange(5), N)
    models = fit(points, measured(points, EXCHANGES.values(), noise=0.0, repetitions=1))
    found = [set(models.formula(row, ("p", "n")).split(" + ")) for row in range(len(models))]
    assert found == [set(formula.split(" + ")) for formula in EXCHANGES]
    assert (models.status == FitStatus.OK).all()
    at = np.array([16 * points[-1, 0], 200.0])
    truth = np.array([law(*at) for law in EXCHANGES.values()])
    for axis in range(2):
        band = along(models, axis, at).predict([at[axis]])
        assert band.value[:, 0] == pytest.approx(truth)
        assert (band.low[:, 0] > 0.99 * truth).all()
        assert (band.high[:, 0] < 1.01 * truth).all()


@pytest.mark.parametrize(
    ("formula", "law"),
    [
        ("2 * (p - 1) * n * m", lambda p, n, m: 2 * (p - 1) * n * m),
        ("50 * n + 2 * (p - 1) * m", lambda p, n, m: 50 * n + 2 * (p - 1) * m),
        (
            "5 * p^(-2/3) * n^2 * m + 1 * p^-1 * n^3 * m",
            lambda p, n, m: m * (n**3 / p + 5 * n**2 / p ** (2 / 3)),
        ),
    ],
)
def test_of_three_parameters_exchanges_and_surfaces_have_further_factors(formula, law):
    points = grid(P[:4], N[:4], (2.0, 4.0, 8.0))
    models = fit(points, measured(points, [law], noise=0.0, repetitions=1))
    found = models.formula(0, ("p", "n", "m"))
    assert set(found.split(" + ")) == set(formula.split(" + "))


@pytest.mark.parametrize("first", [1.0, 8.0])
def test_slices_of_differences_have_the_error_of_their_product(first):
    points = grid(first * 2.0 ** np.arange(5), N)
    laws = [EXCHANGES[name] for name in list(EXCHANGES)[:5]]
    values = measured(points, laws, noise=0.1)
    models = fit(points, values)
    for p, n in product((2.0, 8.0, 128.0, 2048.0), (10.0, 50.0, 200.0)):
        truth = np.array([law(p, n) for law in laws])
        for axis, target in enumerate((p, n)):
            line = along(models, axis, [p, n])
            band = line.predict([target])
            inside = first <= p <= 16 * first and 10 <= n <= 50
            assert band.value == pytest.approx(models.values([[p, n]]))
            assert (band.low > 0).all()
            if inside:
                assert (band.high / band.low < 1.3).all()
                assert (band.low[:, 0] <= truth).all()
                assert (truth <= band.high[:, 0]).all()
    along_p = along(models, 0, [1.0, 20.0])
    assert [str(along_p.growth(row)) for row in (0, 1)] == ["O(p)", "O(1)"]


def test_what_noise_adds_to_a_sum_of_two_terms_does_not_cost_it_its_law():
    points = grid(P, N)
    values = measured(points, [lambda p, n: 500 * n / p + p] * 20, seed=3)
    # Each by itself: no other call path tells what the habit is.
    rows = [fit(points, row[None]) for row in values]
    found = [along(models, 0, [1.0, 50.0]).predict([2048.0]) for models in rows]
    truth = 500 * 50 / 2048 + 2048
    held = [each.low[0, 0] <= truth <= each.high[0, 0] for each in found]
    assert np.mean(held) >= 0.8
    assert np.mean([models.coefficients[0, 0] == 0 for models in rows]) >= 0.9


def test_far_beyond_both_ends_predictions_are_right_and_the_band_holds(surfaces):
    p, n = 2048.0, 500.0
    truth = np.array([float(law(p, n)) for law in LAWS.values()])
    found = along(surfaces, 0, [1.0, n]).predict([p])
    assert found.value[:, 0] == pytest.approx(truth, rel=0.03)
    assert (found.low[:, 0] <= truth).all()
    assert (truth <= found.high[:, 0]).all()
    assert (found.high[:, 0] / found.low[:, 0] < 1.5).all()


def test_nothing_is_negative_beyond_points_where_work_no_longer_fits_into_a_cache():
    points = grid(P[:3], N[:3])
    models = fit(points, measured(points, [lambda p, n: n / p * np.where(n / p > 1, 2e3, 1e3)]))
    for held in ([P[-1], N[0]], [P[-1], N[-1]], [P[-1], 10 * N[-1]]):
        band = along(models, 0, held).predict([128.0, 2048.0, 1e5])
        assert (band.value > 0).all()
        assert (band.low > 0).all()


def test_a_product_that_falls_with_a_parameter_is_never_less_a_constant():
    known = joint_hypotheses(default_space("mixture", several=True), grid(P, N))
    size = len(known.shapes)
    offset = np.isfinite(known.log_prior[1 + size : 1 + 2 * size])
    there = {shape for shape, is_there in zip(known.shapes, offset, strict=True) if is_there}
    mixed = {
        shape
        for shape in known.shapes
        if any(factor.decreasing for factor in shape.factors) and not shape.decreasing
    }
    assert mixed
    assert not mixed & there
    assert there >= {Product((SHARED, NOTHING)), Product((SHARED, SHARED))}


@pytest.mark.parametrize("axis", [0, 1])
def test_a_slice_says_what_the_surface_says(surfaces, axis):
    targets = np.array([3.0, 100.0, 1e5])
    at = np.array([70.0, 33.0])
    points = np.tile(at, (len(targets), 1))
    points[:, axis] = targets
    assert along(surfaces, axis, at).values(targets) == pytest.approx(surfaces.values(points))


def test_a_slice_has_the_growth_along_its_parameter(surfaces):
    along_p, along_n = (along(surfaces, axis, [64.0, 30.0]) for axis in (0, 1))
    assert str(along_p.growth(3)) == "O(log p)"
    assert str(along_n.growth(3)) == "O(p^3)"
    assert str(along_p.growth(5)) == "O(1)"
    assert along_p.points.tolist() == list(P)


def test_terms_that_become_one_are_added():
    space = SearchSpace.of([1], [0], max_terms=2)
    points = grid((1.0, 2.0, 4.0, 8.0), (1.0, 3.0, 9.0, 27.0))
    models = fit(points, measured(points, [lambda p, n: 2 * p + p * n], noise=0.0), space=space)
    line = along(models, 0, [1.0, 5.0])
    assert line.formula(0) == "7 * p"
    # Coefficients vary together: the covariance of their sum is that of the values at p = 1.
    whole, found = (
        covariances(each.root[0, 0], each.terms[0], peaks(shape_table(each.shapes, each.points)))
        for each in (models, line)
    )
    change = np.array([0.0, 1.0, 5.0])
    order = models.terms[0]
    assert models.shapes[order[0]].text(("p", "n")) == "p"
    assert found[1, 1] == pytest.approx(change @ whole @ change, rel=1e-5)


def test_values_held_far_outside_widen_the_band():
    points = grid(P, N)
    rough = [lambda p, n: (p * n) ** 0.5 * (1 + 0.3 * np.sin(7 * p + n))] * 8
    models = fit(points, measured(points, rough))
    assert (models.drift > 0).all()
    near, far = (along(models, 0, [1.0, n]) for n in (50.0, 5e5))
    assert (far.spread > near.spread).all()
    widths = [np.log(band.high / band.low).min() for band in (far.predict(P), near.predict(P))]
    assert widths[0] > widths[1]


def test_slices_along_each_parameter_know_what_is_not_known_along_it():
    rng, points = np.random.default_rng(5), grid(P, N)
    powers = rng.uniform(0.3, 2.5, (120, 2))
    laws = [
        lambda p, n, i=i, k=k: 20 + 40 * (p / P[-1]) ** i + 40 * (n / N[-1]) ** k for i, k in powers
    ]
    models = fit(points, measured(points, laws, noise=0.3))
    for axis, at in enumerate(([2048.0, 30.0], [32.0, 200.0])):
        band = along(models, axis, at).predict([at[axis]])
        truth = np.array([law(*at) for law in laws])
        held = (band.low[:, 0] <= truth) & (truth <= band.high[:, 0])
        assert held.mean() >= 0.9


def test_each_parameter_has_runners_up_that_stand_for_all():
    models = fit(grid(P, N), measured(grid(P, N), LAWS.values(), noise=0.3))
    sets = models.alternative_weight.reshape(len(models), 2, -1)
    assert models.weight[:, None] + sets.sum(axis=2) == pytest.approx(1.0, abs=1e-5)
    for axis in range(2):
        slices = along(models, axis, [64.0, 20.0])
        assert (slices.alternative_weight == sets[:, axis]).all()


def breaks(shape):
    return any(isinstance(factor, Break) for factor in shape.factors)


def structure(known, first, second):
    """Name what a pair is made of."""
    if any(breaks(known.shapes[code]) for code in (first, second)):
        return "break"
    axes = sorted(len(known.shapes[code].axes) for code in (first, second))
    if axes == [1, 1]:
        alike = known.shapes[first].axes == known.shapes[second].axes
        return "one parameter" if alike else "sum"
    shared = any(
        len(known.shapes[code].axes) > 1 and any(f.decreasing for f in known.shapes[code].factors)
        for code in (first, second)
    )
    return "products" if axes[0] > 1 else "shared" if shared else "beside"


def test_pairs_of_each_structure_are_a_kind_and_neither_parameter_is_preferred():
    known = joint_hypotheses(default_space("mixture", several=True), grid(P, P))
    pairs = slice(1 + 3 * len(known.shapes), None)
    some = np.flatnonzero(np.isfinite(known.log_prior[pairs]))[::29]
    kinds, named = known.kinds[pairs], {}
    for pair in some:
        its = structure(known, known.first[pair], known.second[pair])
        named.setdefault(its, set()).add(kinds[pair])
    assert sorted(named) == ["beside", "break", "one parameter", "products", "shared", "sum"]
    assert sorted(map(len, named.values())) == [1] * 6
    assert len(set.union(*named.values())) == 6
    prior = np.bincount(known.kinds, np.exp(known.log_prior))
    assert prior.sum() == pytest.approx(1)
    alone = [np.exp(known.log_prior[1 + c]) for c, s in enumerate(known.shapes) if s.axes == {0}]
    other = [np.exp(known.log_prior[1 + c]) for c, s in enumerate(known.shapes) if s.axes == {1}]
    assert sorted(alone) == pytest.approx(sorted(other))


def test_one_call_path_is_no_habit_of_an_application():
    points = grid(P, N)
    noisy = measured(points, [lambda p, n: 20 + 40 * (p / 128) ** 1.5 + 40 * (n / 50) ** 2], 0.3)
    # What suits is thousands of pairs, and no one of them gains by being looked at twice.
    assert fit(points, noisy).weight[0] < 0.5


@pytest.mark.parametrize(("rows", "habit"), [(1, False), (30, True)])
def test_what_one_call_path_says_of_a_hypothesis_is_no_habit_but_what_many_say_is(rows, habit):
    points = grid(P[:3], N[:3])
    law = measured(points, [lambda p, n: 3 * np.sqrt(p) * n + 50], noise=0.01, repetitions=5)
    data, ways = rows_to_fit(points, np.concatenate([law] * rows))
    known = joint_hypotheses(default_space("mixture", several=True), points)
    chosen = screen(data, known, known.log_prior, ways.extremes)
    found = candidates(data, chosen, known, ways)
    after, _ = learn(found, known, known.log_prior, ways.log_prior)
    code = 1 + [shape.text(("p", "n")) for shape in known.shapes].index("p^(1/2) * n")
    kind = (known.kinds == known.kinds[code]) & np.isfinite(known.log_prior)
    gain = after[code] - known.log_prior[code] - np.median(after[kind] - known.log_prior[kind])
    assert (gain > 1) == habit
    assert habit or gain == pytest.approx(0, abs=0.01)


def test_units_points_rows_and_repetitions_may_come_in_any_order():
    points = grid(P, N)
    values = measured(points, LAWS.values(), noise=0.1)
    rng = np.random.default_rng(1)
    shuffled, rows = rng.permutation(len(points)), rng.permutation(len(values))
    first = fit(points, values)
    other = fit(points[shuffled], values[rows][:, shuffled, ::-1] * 1e-3)
    assert other.terms.tolist() == first.terms[rows].tolist()
    assert other.coefficients == pytest.approx(first.coefficients[rows] * 1e-3, rel=1e-6)
    assert other.weight == pytest.approx(first.weight[rows], rel=1e-6)


def test_which_parameter_comes_first_does_not_matter():
    points = grid(P, N)
    values = measured(points, LAWS.values())
    one, two = fit(points, values), fit(points[:, ::-1], values)
    target = np.array([[1024.0, 200.0]])
    assert two.values(target[:, ::-1]) == pytest.approx(one.values(target), rel=0.02)


@pytest.mark.parametrize("parameters", [3, 4])
def test_more_parameters_are_modelled_as_well(parameters):
    axes = (P[:4], N[:3], (1.0, 2.0, 4.0), (3.0, 6.0, 12.0))[:parameters]
    points = grid(*axes)
    laws = [
        lambda *at: at[1] ** 2 / at[0] + 0.2 * at[-1],
        lambda *at: at[1] ** 2 * at[2] / at[0] + 0.2 * at[-1] * np.log2(at[0]),
        lambda *at: 7 + 0 * at[0],
    ]
    models = fit(points, measured(points, laws, noise=0.01))
    target = [256.0, 100.0, 8.0, 24.0][:parameters]
    truth = np.array([float(law(*target)) for law in laws])
    found = along(models, 0, target).predict(target[:1])
    assert found.value[[0, 2], 0] == pytest.approx(truth[[0, 2]], rel=0.03)
    # Among four, the second law is no longer among the pairs that are tried: the band is honest.
    assert (found.low[:, 0] <= truth).all()
    assert (truth <= found.high[:, 0]).all()


@pytest.mark.parametrize(
    "law",
    [
        lambda p, n, m: 20 + p ** (2 / 3) * np.log2(p) ** 2 + 0 * n * m,
        lambda p, n, m: 5 + n**1.5 * np.log2(n) ** 2 * m ** (1 / 3) + 0 * p,
        lambda p, n, m: 9 + 0.2 * p**1.5 + 0.3 * m**2 * np.log2(m) + 0 * n,
    ],
)
def test_of_three_parameters_some_may_have_no_effect(law):
    points = grid(P[:4], N[:4], (2.0, 4.0, 8.0, 16.0))
    at = [512.0, 150.0, 64.0]
    found = along(fit(points, measured(points, [law])), 0, at).predict(at[:1])
    truth = float(law(*np.array(at)))
    assert found.value[0, 0] == pytest.approx(truth, rel=0.05)
    assert found.low[0, 0] <= truth <= found.high[0, 0]


def test_only_shapes_that_a_model_has_are_kept(surfaces):
    used = {*surfaces.terms.ravel().tolist(), *surfaces.alternative_terms.ravel().tolist()}
    assert used - {-1} == set(range(len(surfaces.shapes)))


def test_a_design_that_is_no_grid_is_enough():
    cross = [(p, 30.0) for p in P] + [(32.0, n) for n in N if n != 30.0]
    points = np.array(cross)
    models = fit(points, measured(points, [LAWS["both at once"]], noise=0.01))
    assert models.values([[1024.0, 100.0]])[0, 0] == pytest.approx(
        float(LAWS["both at once"](1024.0, 100.0)), rel=0.1
    )


def test_two_products_that_are_one_at_all_points_are_no_pair():
    points = np.array([(p, 14.0) for p in (1.0, 2.0, 4.0, 8.0, 16.0)] + [(1.0, n) for n in N[1:]])
    values = 50 * (1 + 0.1 * np.random.default_rng(0).uniform(-0.5, 0.5, (20, len(points), 3)))
    models = fit(points, values)
    # At one process, and so wherever n varies, log2(p) is zero: its products with n are all alike.
    assert (models.status == FitStatus.CONSTANT).all()
    band = along(models, 0, [1.0, 800.0]).predict([256.0])
    assert (band.low > 25).all()
    assert (band.high < 100).all()


def test_rows_without_enough_values_have_no_model():
    points = grid(P[:3], N[:3])
    values = np.full((2, 9, 1), np.nan)
    values[1, :, 0] = 3.0
    values[0, :2, 0] = 1.0
    models = fit(points, values)
    assert np.isnan(models.values([[100.0, 100.0]])[0, 0])
    assert models.values([[100.0, 100.0]])[1, 0] == pytest.approx(3.0)


def test_models_are_stored_and_come_back(surfaces):
    arrays, header = to_arrays(surfaces)
    again = from_arrays(arrays, header)
    assert again.shapes == surfaces.shapes
    assert again.points.tolist() == surfaces.points.tolist()
    assert again.formula(3, ("p", "n")) == surfaces.formula(3, ("p", "n"))


@pytest.mark.parametrize(
    ("points", "settings", "words"),
    [
        (np.ones((4, 5)), {}, "2 to 4"),
        (grid((1.0, 2.0), (0.0, 2.0)), {}, "above zero"),
        (grid((1.0, 2.0), (1.0, 1.0)), {}, "differ"),
        (grid((1.0, 2.0), (1.0, 2.0)), {"method": "classic"}, "one parameter"),
    ],
)
def test_points_that_make_no_sense_are_refused(points, settings, words):
    with pytest.raises(ValueError, match=words):
        fit(points, np.ones((1, len(points), 1)), **settings)


def test_bands_and_slices_ask_for_what_they_need(surfaces):
    with pytest.raises(ValueError, match="held"):
        surfaces.predict([[1.0, 2.0]])
    with pytest.raises(ValueError, match="2 parameters"):
        surfaces.values([3.0])
    with pytest.raises(ValueError, match="finite and above zero"):
        along(surfaces, 0, [1.0, np.inf])
    with pytest.raises(ValueError, match="nothing to hold"):
        along(along(surfaces, 0, [1.0, 2.0]), 0, [1.0])


def test_where_surfaces_come_to_nothing_slices_have_bands_without_a_warning():
    points = grid(P, N)
    laws = [lambda _, n: n - 10, lambda _, n: np.log2(n / 10), lambda _, n: 1 - 10 / n]
    found = along(fit(points, measured(points, laws * 4)), 0, [1.0, 10.0]).predict(P)
    assert (found.low >= 0).all()
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()


def test_rows_of_a_slice_can_be_those_of_a_line(surfaces):
    line = fit(P, measured(np.array(P)[:, None], [lambda p: 1 + p**1.5] * len(LAWS)))
    slice_ = along(surfaces, 0, [1.0, 30.0])
    chosen = np.arange(len(LAWS)) % 2 == 0
    both = with_rows(slice_, line, chosen)
    targets = [100.0, 1000.0]
    expected = np.where(chosen[:, None], line.values(targets), slice_.values(targets))
    assert both.values(targets) == pytest.approx(expected)
    assert both.formula(0) == line.formula(0)
    assert both.formula(1) == slice_.formula(1)


def test_a_product_knows_its_growth_and_its_parameters():
    root = Term(Fraction(1, 2), 0)
    shape = Product((Term(Fraction(-1), 0), NOTHING, Term(Fraction(1, 2), 1)))
    assert shape.growth == Growth(Fraction(-1, 2), 1)
    assert not shape.decreasing
    assert Product((Term(Fraction(-1), 0), NOTHING)).decreasing
    assert not Product((NOTHING, root)).decreasing
    assert shape.text(("p", "n", "k")) == "p^-1 * k^(1/2) * log2(k)"


def test_a_difference_may_be_a_factor():
    root, shared = (Term(Fraction(power), 0) for power in ("1/2", "-1"))
    rising, easing = Difference(root, NOTHING), Difference(NOTHING, shared)
    points = np.array([[1.0, 3.0], [4.0, 3.0], [16.0, 5.0]])
    shapes = [Product((rising, NOTHING)), Product((easing, root)), Product((root, shared))]
    table = shape_table(shapes, points)[:-1]
    assert table == pytest.approx(np.array([shape(points) for shape in shapes]))
    assert table[0].tolist() == [0.0, 1.0, 3.0]
    assert table[1] == pytest.approx([0.0, 0.75 * np.sqrt(3), 0.9375 * np.sqrt(5)])
    assert (rising.growth, easing.growth) == (Growth(Fraction(1, 2), 0), Growth(Fraction(0), 0))
    assert easing(np.inf) == 1
    assert rising(np.inf) == np.inf
    shape = Product((easing, Term(Fraction(2), 0)))
    assert not shape.decreasing
    assert shape.text(("p", "n")) == "(1 - p^-1) * n^2"
    assert shape.text(("p", "n"), pretty=True) == "(1 - p⁻¹) n²"
    assert Product((rising, NOTHING)).text(("p", "n")) == "(p^(1/2) - 1)"
    assert Product.from_header(shape.to_header()) == shape
