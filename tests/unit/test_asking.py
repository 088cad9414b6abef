"""What every front end calls, on experiments without files."""

from __future__ import annotations

from callpath_modeler import asking
from synthetic import fitted


def findings(values, target):
    return {f.code for f in asking.findings_at(fitted(values), target)}


def test_a_target_far_beyond_the_data_is_said():
    values = {"main": [1, 2, 4, 8, 16]}
    assert "CPM205" in findings(values, 32 * 16)
    assert "CPM205" not in findings(values, 64)
