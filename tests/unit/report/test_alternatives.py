"""What else a model could be, as people read of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from callpath_modeler.modeling import Alternative, Growth
from callpath_modeler.report.model import listed_alternatives


def told(*runners_up, ascii_only=True):
    """List alternatives of these formulas and weights."""

    def alternatives(row, parameter, *, pretty):
        assert (row, parameter, pretty) == (0, "p", not ascii_only)
        growth = Growth(1, 0)
        return tuple(Alternative(text, growth, weight, (), ()) for text, weight in runners_up)

    fitted = SimpleNamespace(parameter="p", models=SimpleNamespace(alternatives=alternatives))
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
