from __future__ import annotations

from dataclasses import replace

from callpath_modeler.profile.schema import Metric, Reduction, Region


def test_seconds_make_a_metric_a_duration():
    assert Metric("time", "s").is_time
    assert not Metric("bytes_sent", "B").is_time


def test_calls_bytes_and_operations_are_what_is_needed_beside_time():
    needed = [Metric("visits", "1"), Metric("bytes_sent", "B"), Metric("PAPI_FP_OPS", "1")]
    others = [
        Metric("time", "s"),
        Metric("energy", "J"),
        Metric("PAPI_TOT_CYC", "1"),
        Metric("PAPI_RES_STL", "1"),
        Metric("min_visits", "1", additive=False),
    ]
    assert [each.is_requirement for each in [*needed, *others]] == [True] * 3 + [False] * 5


def test_reductions_go_by_the_names_that_users_type():
    assert Reduction("geomean") is Reduction.GEOMEAN
    assert str(Reduction.MAX) == "max"


def test_names_of_regions_can_be_printed_whatever_a_file_calls_them():
    region = Region("solve\n\x1b[31m<é>")
    assert region.name == r"solve\n\x1b[31m<é>"
    assert replace(region, line=3).name == region.name
