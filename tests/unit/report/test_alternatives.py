"""Probability of a model and its alternatives, as text."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from callpath_modeler.modeling import Alternative, FitStatus, Growth, fit
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.model_formulas import HypothesisSummary, hypotheses

TARGET = 1000.0


def fitted_with(*runners_up, weight=0.5, status=FitStatus.OK):
    """Return a model that predicts 1, with a weight, and alternatives: formula, value, weight."""

    class Models(SimpleNamespace):
        def alternatives(self, row, parameter, *, pretty):
            assert (row, parameter, pretty) == (0, "p", False)
            growth = Growth(1, 0)
            return tuple(
                Alternative(text, growth, weight, (), (value,))
                for text, value, weight in runners_up
            )

        def take(self, rows):
            assert rows == [0]
            return SimpleNamespace(values=lambda _: np.ones((1, 1)))

    models = Models(weight=[weight], status=[status], method="mixture")
    return SimpleNamespace(parameter="p", models=models)


def told(*runners_up, weight=0.5) -> HypothesisSummary:
    return hypotheses(
        fitted_with(*runners_up, weight=weight), 0, TARGET, style=TextStyle(ascii_only=True)
    )


def listed(*runners_up):
    others = told(*runners_up).others
    return [(other.formula, pytest.approx(other.weight)) for other in others]


def test_hypotheses_that_are_the_same_along_one_parameter_are_told_once():
    # They differ in p and n, but are equal in p with n fixed.
    found = listed(("2 * p", 2, 0.20), ("3", 3, 0.15), ("2 * p", 2, 0.10))
    assert found == [("2 * p", 0.30), ("3", 0.15)]


def test_together_they_may_come_before_others_or_be_worth_a_word():
    found = listed(
        ("3", 3, 0.15), ("2 * p", 2, 0.10), ("2 * p", 2, 0.08), ("4", 4, 0.006), ("4", 4, 0.006)
    )
    assert found == [("2 * p", 0.18), ("3", 0.15), ("4", 0.012)]


def test_what_has_hardly_any_weight_is_not_told():
    assert listed(("2 * p", 2, 0.2), ("3", 3, 0.009)) == [("2 * p", 0.2)]


def test_hypotheses_that_predict_nearly_the_same_are_one():
    found = told(("1.02", 1.02, 0.3), ("2", 2, 0.2), ("2.1", 2.1, 0.2), ("3", 3, 0.1), weight=0.2)
    assert found.weight == pytest.approx(0.5)
    assert [(each.formula, each.weight) for each in found.others] == [
        ("2", pytest.approx(0.4)),
        ("3", 0.1),
    ]
    assert found.sentence == "probability 50 %"


def test_a_model_that_is_less_probable_than_another_says_what_its_value_is():
    assert told(("2 * p", 2, 0.27), weight=0.36).sentence == "probability 36 %"
    found = told(("2 * p", 2, 0.20), ("3", 3, 0.15), ("2 * p", 2, 0.10), weight=0.16)
    assert (
        found.sentence == "probability 16 %; chosen because its prediction is in the middle of all"
    )


def test_outside_the_model_class_there_is_no_probability():
    fitted = fitted_with(weight=1.0, status=FitStatus.OUTSIDE)
    found = hypotheses(fitted, 0, TARGET, style=TextStyle(ascii_only=True))
    assert "%" not in found.sentence


@pytest.mark.parametrize("repetitions", [1, 3])
def test_no_alternative_is_more_probable_unless_the_text_says_so(repetitions):
    random = np.random.default_rng(7)
    p = 2.0 ** np.arange(1, 7)
    powers = random.choice([-1, 0, 0.3, 0.5, 1, 1.5], (2, 150, 1))
    y = random.uniform(0, 1, (150, 1)) * p ** powers[0] + random.uniform(0, 1, (150, 1)) * p
    scatter = 1 + 0.1 * random.standard_normal((150, len(p), repetitions))
    models = fit(p, y[..., None] * scatter)
    fitted = SimpleNamespace(parameter="p", models=models)
    undecided = 0
    for row in range(len(models)):
        found = hypotheses(fitted, row, 256.0, style=TextStyle(ascii_only=True))
        most = max((other.weight for other in found.others), default=0.0)
        assert found.weight >= most or "in the middle" in found.sentence
        assert found.weight >= models.weight[row]
        undecided += found.weight < most
    assert undecided < 0.2 * len(models)
