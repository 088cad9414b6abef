from __future__ import annotations

from dataclasses import replace

from callpath_modeler.profile.schema import Metric, Reduction, Region


def test_seconds_make_a_metric_a_duration():
    assert Metric("time", "s").is_time
    assert not Metric("bytes_sent", "B").is_time


def test_reductions_go_by_the_names_that_users_type():
    assert Reduction("geomean") is Reduction.GEOMEAN
    assert str(Reduction.MAX) == "max"


def test_names_of_regions_can_be_printed_whatever_a_file_calls_them():
    region = Region("solve\n\x1b[31m<é>")
    assert region.name == r"solve\n\x1b[31m<é>"
    assert replace(region, line=3).name == region.name
