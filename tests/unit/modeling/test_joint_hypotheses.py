"""Hypotheses in several parameters, their kinds, and priors."""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from callpath_modeler.modeling import Break, Product, fit, slice_along
from callpath_modeler.modeling.factor_catalogue import SHARED
from callpath_modeler.modeling.fitting import default_space
from callpath_modeler.modeling.mixture.candidates import candidates
from callpath_modeler.modeling.mixture.posterior import maximize_evidence
from callpath_modeler.modeling.mixture.residuals import screen
from callpath_modeler.modeling.products import NOTHING
from callpath_modeler.modeling.products_of_factors import _joint_hypotheses, joint_hypotheses
from many_rows import rows_to_fit
from surfaces import N, P, grid, measured


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


def test_another_process_makes_the_hypotheses_again():
    """Their arrays are 150 MB in three parameters, and went along with each task of a process."""
    known = joint_hypotheses(default_space("mixture", several=True), grid(P, N))
    sent = pickle.dumps(known)
    assert len(sent) < known.log_prior.nbytes
    _joint_hypotheses.cache_clear()
    made = pickle.loads(sent)  # noqa: S301 - our own
    assert made is not known
    for name in ("table", "scale", "first", "second", "products", "kinds", "log_prior"):
        assert getattr(made, name).tobytes() == getattr(known, name).tobytes(), name


def test_hypotheses_with_other_limits_are_sent_as_they_are():
    known = joint_hypotheses(default_space("mixture", several=True), grid(P, N)).for_habits
    made = pickle.loads(pickle.dumps(known))  # noqa: S301 - our own
    assert made.kept == known.kept


def breaks(shape):
    return any(isinstance(factor, Break) for factor in shape.factors)


def structure(known, first, second):
    """Return a name for the structure of a pair."""
    shapes = [known.shapes[code] for code in (first, second)]
    if any(map(breaks, shapes)):
        return "break"
    axes = sorted(len(known.shapes[code].axes) for code in (first, second))
    if axes == [1, 1]:
        alike = known.shapes[first].axes == known.shapes[second].axes
        u_shaped = shapes[0].decreasing != shapes[1].decreasing
        return ("u-shape" if u_shaped else "one parameter") if alike else "sum"
    shared = any(
        len(known.shapes[code].axes) > 1 and any(f.decreasing for f in known.shapes[code].factors)
        for code in (first, second)
    )
    if axes[0] > 1 and not is_a_sum_along_what_is_shared(*shapes):
        return "products"
    if axes[0] > 1 and any(one == two and one.decreasing for one, two in factors_of(*shapes)):
        return "of a share"
    return "shared" if shared else "beside"


def factors_of(*shapes):
    """Return the factors of shapes for each parameter."""
    return zip(*(shape.factors for shape in shapes), strict=True)


def is_a_sum_along_what_is_shared(*shapes):
    """Return whether all factors are equal except two of one parameter, one of which falls."""
    changed = [pair for pair in factors_of(*shapes) if pair[0] != pair[1]]
    return (
        len(changed) == 1
        and NOTHING not in changed[0]
        and any(factor.decreasing for factor in changed[0])
    )


def test_pairs_of_each_structure_are_a_kind_and_neither_parameter_is_preferred():
    known = joint_hypotheses(default_space("mixture", several=True), grid(P, P))
    pairs = slice(1 + 3 * len(known.shapes), None)
    some = np.flatnonzero(np.isfinite(known.log_prior[pairs]))[::7]
    kinds, named = known.kinds[pairs], {}
    for pair in some:
        its = structure(known, known.first[pair], known.second[pair])
        named.setdefault(its, set()).add(kinds[pair])
    of_one, of_two = ["one parameter", "u-shape"], ["of a share", "products", "shared", "sum"]
    assert sorted(named) == sorted(["beside", "break", *of_one, *of_two])
    assert sorted(map(len, named.values())) == [1] * 8
    assert len(set.union(*named.values())) == 8
    prior = np.bincount(known.kinds, np.exp(known.log_prior))
    assert prior.sum() == pytest.approx(1)
    alone = [np.exp(known.log_prior[1 + c]) for c, s in enumerate(known.shapes) if s.axes == {0}]
    other = [np.exp(known.log_prior[1 + c]) for c, s in enumerate(known.shapes) if s.axes == {1}]
    assert sorted(alone) == pytest.approx(sorted(other))


def test_one_call_path_is_no_habit_of_an_application():
    points = grid(P, N)
    noisy = measured(points, [lambda p, n: 20 + 40 * (p / 128) ** 1.5 + 40 * (n / 50) ** 2], 0.3)
    # Thousands of pairs fit, and no pair may gain weight from repeated screening.
    assert fit(points, noisy).weight[0] < 0.5


@pytest.mark.parametrize(("rows", "habit"), [(1, False), (30, True)])
def test_what_one_call_path_says_of_a_hypothesis_is_no_habit_but_what_many_say_is(rows, habit):
    points = grid(P[:3], N[:3])
    law = measured(points, [lambda p, n: 3 * np.sqrt(p) * n + 50], noise=0.01, repetitions=5)
    data, ways = rows_to_fit(points, np.concatenate([law] * rows))
    known = joint_hypotheses(default_space("mixture", several=True), points)
    chosen = screen(data, known, known.log_prior, ways.extremes)
    found = candidates(data, chosen, known, ways)
    after, _ = maximize_evidence(found, known, known.log_prior, ways.log_prior)
    code = 1 + [shape.text(("p", "n")) for shape in known.shapes].index("p^(1/2) * n")
    kind = (known.kinds == known.kinds[code]) & np.isfinite(known.log_prior)
    gain = after[code] - known.log_prior[code] - np.median(after[kind] - known.log_prior[kind])
    assert (gain > 1) == habit
    assert habit or gain == pytest.approx(0, abs=0.01)


SCALES = np.array([4.0, 8.0, 16.0, 32.0, 64.0])


def test_where_each_parameter_varied_alone_all_that_threads_do_is_of_a_share():
    points = np.array([(p, 1.0) for p in SCALES] + [(SCALES[0], t) for t in (2.0, 4.0, 8.0, 16.0)])
    whole = SCALES[-1]
    laws = [lambda p, t, s=s: whole / p * (1 / t + s * t / 16) for s in (0.02, 0.05, 0.1, 0.2)]
    target = np.array([16 * whole, 16.0])
    found = slice_along(fit(points, measured(points, laws, noise=0.02)), 0, target).predict(
        target[:1]
    )
    truth = np.array([law(*target) for law in laws])
    assert ((found.low[:, 0] <= truth) & (truth <= found.high[:, 0])).all()
    assert np.abs(np.log(found.value[:, 0] / truth)).max() < 0.7


def test_what_grows_beyond_all_numbers_is_no_hypothesis_and_no_warning():
    space = default_space("mixture", several=True)
    exponential = replace(space, exponential=(Fraction(1),))
    points = grid(P, [1000.0 * size for size in N])
    known = joint_hypotheses(exponential, points)
    assert np.isfinite(known.shapes.table(points)).all()
