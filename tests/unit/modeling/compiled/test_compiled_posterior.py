"""Posterior of candidates in the C library and in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from callpath_modeler.modeling.mixture.candidates import candidates
from callpath_modeler.modeling.mixture.posterior import (
    LogPriors,
    fitted_values,
    maximize_evidence,
    posterior,
)
from cells import cells
from implementations import in_numpy
from many_rows import KINDS, many_rows, screened


def given(name, count=300):
    """Return candidates, the data, deviations, priors and hypotheses."""
    points, y = many_rows(KINDS[name], count)
    data, chosen, known, ways = screened(points, y)
    found = candidates(data, chosen, known, ways)
    return found, data, ways, LogPriors(known.log_prior, ways.log_prior), known


def check_same(found, expected):
    for field in structs.fields(found):
        one, other = (getattr(each, field.name) for each in (found, expected))
        size = np.abs(other).max(axis=0) if other.ndim == 2 else np.abs(other)
        assert (np.abs(one - other) <= 1e-12 + 1e-9 * size).all(), field.name


@cells("name", KINDS)
def test_the_library_believes_what_numpy_believes(name):
    *arguments, known = given(name)
    found = posterior(*arguments)
    fitted = fitted_values(found, known)
    with in_numpy():
        check_same(found, posterior(*arguments))
        np.testing.assert_allclose(fitted, fitted_values(found, known), rtol=1e-9, atol=1e-15)
    assert np.bincount(found.row, found.weight) == pytest.approx(1, abs=1e-4)


def test_candidates_may_come_in_any_order():
    found, *others, known = given("usual", 40)
    order = np.random.default_rng(1).permutation(len(found.row))
    mixed = structs.replace(
        found, **{f.name: getattr(found, f.name)[..., order] for f in structs.fields(found)}
    )
    one, other = posterior(found, *others), posterior(mixed, *others)
    assert other.row.tolist() == one.row.tolist()
    assert other.variance == pytest.approx(one.variance, rel=1e-12)
    beliefs = others[-1]
    for learnt, again in zip(
        *(
            maximize_evidence(each, known, beliefs.hypotheses, beliefs.deviations)
            for each in (found, mixed)
        ),
        strict=True,
    ):
        np.testing.assert_allclose(again, learnt, rtol=1e-12)


def test_with_and_without_the_library_the_same_is_learnt():
    points, y = many_rows(KINDS["usual"], 200)
    data, chosen, known, ways = screened(points, y)

    def learnt():
        found = candidates(data, chosen, known, ways)
        return maximize_evidence(found, known, known.log_prior, ways.log_prior)

    hypotheses_learnt, deviations_learnt = learnt()
    with in_numpy("candidates"):
        expected, deviations_expected = learnt()
    there = np.isfinite(expected)
    assert there.tolist() == np.isfinite(hypotheses_learnt).tolist()
    np.testing.assert_allclose(hypotheses_learnt[there], expected[there], rtol=1e-7)
    np.testing.assert_allclose(deviations_learnt, deviations_expected, rtol=1e-7)


def test_a_row_is_believed_by_itself():
    found, data, ways, beliefs, _ = given("noisy", 30)
    every = posterior(found, data, ways, beliefs)
    its = found.row == 11
    alone = structs.replace(
        found, **{f.name: getattr(found, f.name)[..., its] for f in structs.fields(found)}
    )
    only = posterior(
        structs.replace(alone, row=np.zeros_like(alone.row)),
        data.take(np.array([11])),
        ways,
        beliefs,
    )
    its = every.row == 11
    np.testing.assert_array_equal(only.chosen, every.chosen[its])
    np.testing.assert_array_equal(only.weight, every.weight[its])
    np.testing.assert_array_equal(only.covariance, every.covariance[:, its])
    assert only.drift[0] == every.drift[11]
