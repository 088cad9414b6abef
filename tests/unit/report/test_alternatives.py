"""What else a model could be, as people read of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from callpath_modeler.modeling import Alternative, Growth
from callpath_modeler.report.model import listed_alternatives, probability


def fitted_with(*runners_up, ascii_only=True, weight=0.5):
    """Make a model of a weight that has alternatives of these formulas and weights."""

    def alternatives(row, parameter, *, pretty):
        assert (row, parameter, pretty) == (0, "p", not ascii_only)
        growth = Growth(1, 0)
        return tuple(Alternative(text, growth, weight, (), ()) for text, weight in runners_up)

    models = SimpleNamespace(alternatives=alternatives, weight=[weight])
    return SimpleNamespace(parameter="p", models=models)


def told(*runners_up, ascii_only=True):
    """List alternatives of these formulas and weights."""
    fitted = fitted_with(*runners_up, ascii_only=ascii_only)
    found = listed_alternatives(fitted, 0, ascii_only=ascii_only)
    return [(other.formula, pytest.approx(other.weight)) for other in found]


def test_hypotheses_that_are_the_same_along_one_parameter_are_told_once():
    # In p and n they are two, in p alone, with n held, they are one.
    found = told(("2 * p", 0.20), ("3", 0.15), ("2 * p", 0.10))
    assert found == [("2 * p", 0.30), ("3", 0.15)]


def test_together_they_may_come_before_others_or_be_worth_a_word():
    found = told(("3", 0.15), ("2 * p", 0.10), ("2 * p", 0.08), ("4", 0.006), ("4", 0.006))
    assert found == [("2 * p", 0.18), ("3", 0.15), ("4", 0.012)]


def test_what_has_hardly_any_weight_is_not_told():
    assert told(("2 * p", 0.2), ("3", 0.009), ascii_only=False) == [("2 * p", 0.2)]


def test_a_model_that_is_less_probable_than_another_says_why_it_is_the_model():
    def said(fitted):
        return probability(fitted, 0, listed_alternatives(fitted, 0, ascii_only=True))

    assert said(fitted_with(("2 * p", 0.27), weight=0.36)) == "probability 36 %"
    fitted = fitted_with(("2 * p", 0.20), ("3", 0.15), ("2 * p", 0.10), weight=0.16)
    assert said(fitted) == "probability 16 %, nearest to all that could be"
