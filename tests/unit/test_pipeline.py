"""What every front end calls, on experiments without files."""

from __future__ import annotations

from callpath_modeler import pipeline
from callpath_modeler.analysis.rank import rank
from synthetic import fitted


def findings(values, target, *, inclusive):
    made = rank(fitted(values, inclusive=inclusive), target)
    return {f.code: f for f in pipeline._target_findings(made)}


def test_inclusive_models_that_outgrow_their_caller_are_counted():
    # The caller's own time shrinks as its callee's grows: together they look constant.
    values = {"main": [31, 30, 28, 24, 16], "main/f": [1, 2, 4, 8, 16]}
    found = findings(values, 256, inclusive=True)
    assert found["CPM206"].count == 1
    assert "CPM206" not in findings(values, 256, inclusive=False)


def test_a_target_far_beyond_the_data_is_said():
    values = {"main": [1, 2, 4, 8, 16]}
    assert "CPM205" in findings(values, 32 * 16, inclusive=False)
    assert "CPM205" not in findings(values, 64, inclusive=False)
