"""Models from the C library and from NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Models, fit
from callpath_modeler.modeling.constants.outcome import FAR
from callpath_modeler.modeling.mixture import row_models
from callpath_modeler.modeling.mixture.candidates import candidates
from callpath_modeler.modeling.mixture.posterior import LogPriors, far_tables, posterior
from callpath_modeler.modeling.mixture.residuals import MisfitBaseline
from callpath_modeler.modeling.stored import to_arrays
from cells import cells
from implementations import in_numpy
from many_rows import KINDS, many_rows, screened

# The tolerance is absolute, because residuals of exact values are rounding errors.
_LEFT = {"rss": 1e-22, "cv_error": 1e-10, "r2": 1e-9, "adjusted_r2": 1e-9}


def both(points: FloatArray, y: FloatArray) -> list[Models]:
    """Return the models with the library and without it."""
    written = fit(points, y)
    with in_numpy("write_models"):
        return [written, fit(points, y)]


def assert_alike(found: Models, expected: Models) -> None:
    same = (found.terms == expected.terms).all(axis=1)
    same &= (found.alternative_terms == expected.alternative_terms).all(axis=(1, 2))
    # Rounding decides between two of equal weight.
    assert same.mean() >= 0.99
    columns, wanted = (to_arrays(each.take(same))[0] for each in (found, expected))
    for name in ("status", "used", "unit", "spread", "drift", "dof", "noise"):
        np.testing.assert_array_equal(columns[name], wanted[name], err_msg=name)
    for name in ("coefficients", "weight", "alternative_coefficients", *_LEFT):
        atol = _LEFT.get(name, 0.0)
        np.testing.assert_allclose(columns[name], wanted[name], 1e-9, atol, err_msg=name)
    np.testing.assert_allclose(columns["alternative_weight"], wanted["alternative_weight"], 1e-6)
    # The last entries are differences.
    largest = np.abs(wanted["root"]).max(axis=2, keepdims=True)
    assert (np.abs(columns["root"] - wanted["root"]) <= 1e-6 * largest).all()


@cells("kind", KINDS)
def test_models_and_alternatives_are_those_of_numpy(kind: str) -> None:
    points, y = many_rows(KINDS[kind], 300, seed=7)
    y *= 10.0 ** np.random.default_rng(1).uniform(-280, 270, 300)[:, None, None]
    assert_alike(*both(points, y))


def test_models_in_several_parameters_are_those_of_numpy() -> None:
    grid = np.array([(p, n) for p in (8, 16, 32, 64) for n in (10, 20, 30, 40)], dtype=float)
    random = np.random.default_rng(3)
    power, other = random.choice([0, 0.5, 1], (2, 60, 1))
    y = 1 + grid[:, 0] ** power * grid[:, 1] ** other / 50
    noisy = y[..., None] * (1 + 0.05 * random.standard_normal((60, 16, 3)))
    assert_alike(*both(grid, noisy))


def test_counts_and_laws_that_are_none_have_the_outcome_of_numpy() -> None:
    points = 2.0 ** np.arange(2, 9)
    random = np.random.default_rng(5)
    counts = np.round(random.uniform(1, 100, (200, 1)) * points ** random.choice([0, 1], (200, 1)))
    counts[::4] += random.integers(0, 30, (50, 7))
    assert_alike(*both(points, counts[..., None]))
    assert_alike(*both(points, counts[..., None] * np.ones(3)))


@pytest.mark.usefixtures("way")
def test_where_there_are_few_alternatives_no_others_are_told() -> None:
    models = fit(*many_rows(KINDS["quiet"], 100))
    nothing = models.alternative_weight == 0
    assert nothing.any()
    assert (models.alternative_terms[nothing] == -1).all()
    assert (models.alternative_coefficients[nothing] == 0).all()
    assert (models.root[:, 1:][nothing] == 0).all()


def test_a_row_without_candidates_has_no_terms_whatever_the_others_have() -> None:
    points, y = many_rows(KINDS["usual"], 3)
    data, chosen, known, ways = screened(points, y)
    found = candidates(data, chosen, known, ways)
    found = posterior(found, data, ways, LogPriors(known.log_prior, ways.log_prior))
    two = structs.replace(found.repeated(np.arange(2)), variance=found.variance, drift=found.drift)
    columns, far = row_models.empty_columns(3, 1), far_tables(points, known, FAR)
    row_models.write_models(
        columns, np.arange(3), two, data, np.ones(3), known, far, MisfitBaseline()
    )
    assert (columns["terms"][2] == -1).all()
    assert columns["weight"][:2].all()
    assert columns["weight"][2] == 0


@pytest.mark.usefixtures("way")
def test_the_last_bits_of_predictions_do_not_decide_who_stands_for_whom() -> None:
    points, y = many_rows(KINDS["with zeros"], 200)
    data, chosen, known, ways = screened(points, y)
    rows = len(data.values)
    found = candidates(data, chosen, known, ways)
    found = posterior(found, data, ways, LogPriors(known.log_prior, ways.log_prior))
    rounding = 1 + 1e-14 * np.random.default_rng(1).uniform(-1, 1, found.coefficients.shape)
    far, written = far_tables(points, known, FAR), []
    for coefficients in (found.coefficients, found.coefficients * rounding):
        columns = row_models.empty_columns(rows, 1)
        other = structs.replace(found, coefficients=np.ascontiguousarray(coefficients))
        unit = np.ones(rows)
        row_models.write_models(
            columns, np.arange(rows), other, data, unit, known, far, MisfitBaseline()
        )
        written.append(columns)
    for name in ("terms", "alternative_terms", "alternative_weight"):
        np.testing.assert_array_equal(written[0][name], written[1][name])
