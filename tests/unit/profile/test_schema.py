from __future__ import annotations

from callpath_modeler.profile.schema import Metric, Reduction


def test_seconds_make_a_metric_a_duration():
    assert Metric("time", "s").is_time
    assert not Metric("bytes_sent", "B").is_time


def test_reductions_go_by_the_names_that_users_type():
    assert Reduction("geomean") is Reduction.GEOMEAN
    assert str(Reduction.MAX) == "max"
