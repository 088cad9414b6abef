"""The functions for all front ends, on experiments without files."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import default_space
from callpath_modeler.studies import pipeline, question
from synthetic import POINTS, experiment, fitted


def findings(values, target):
    return {f.code for f in question.findings_at(fitted(values), target)}


def test_a_target_far_beyond_the_data_is_said():
    values = {"main": [1, 2, 4, 8, 16]}
    assert "CPM205" in findings(values, 32 * 16)
    assert "CPM205" not in findings(values, 64)


def test_a_target_at_which_models_overflow_is_refused():
    space = replace(default_space("mixture"), exponential=(Fraction(1),))
    doubling = pipeline.fit(
        experiment({"main": [2.0**p for p in POINTS]}), options=pipeline.FitOptions(space=space)
    )
    assert question.checked_target(doubling, 512.0) == 512.0
    with pytest.raises(UsageError, match=r"at p = 4096 the models predict more than any number"):
        question.checked_target(doubling, 4096.0)
    assert question.checked_target(doubling, float("inf")) == float("inf")
