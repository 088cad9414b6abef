"""Tables of `nsys stats`: rows without meaning."""

from __future__ import annotations

import pytest

import nsys_stats_files as ns
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Reduction
from cells import cells
from cpmodel_gpu import NsysStatsReader

TITLES = "Time (%),Total Time (ns),Instances,Name"


@cells("row", ["5,many,1,k", "5,-3,1,k", "5,nan,1,k", "5,1e300,1,k"])
def test_a_sum_that_is_no_number_is_refused_with_its_line(tmp_path_factory, row):
    path = tmp_path_factory.mktemp("a") / "a_cuda_gpu_kern_sum.csv"
    path.write_text(f"{TITLES}\n5,3,1,k\n{row}\n")
    with pytest.raises(InputError, match="line 3"), NsysStatsReader().open(path):
        pass


def test_two_columns_with_one_title_end_no_reading(tmp_path):
    path = tmp_path / "a_cuda_gpu_kern_sum.csv"
    path.write_text("Time (%),Time (%),Total Time (ns),Instances,Name\n1,2,3\n1,1,30,2,k\n")
    with pytest.raises(InputError, match="no calls"), NsysStatsReader().open(path):
        pass


def test_a_table_of_ranges_alone_is_refused(tmp_path):
    path = tmp_path / "a_nvtx_sum.csv"
    path.write_text(
        "Time (%),Total Time (ns),Instances,Avg (ns),Style,Range\n100,5,1,5,PushPop,a\n"
    )
    with pytest.raises(InputError) as caught, NsysStatsReader().open(path):
        pass
    assert "nsys export" in caught.value.hint


def test_the_times_of_calls_are_no_run_time(tmp_path):
    with NsysStatsReader().open(ns.write(tmp_path / "run")) as profile:
        assert not any(each.metric.can_be_run_time for each in profile.metrics)
        total = profile.reduce("time of all threads", Reduction.MAX).total
        assert total == pytest.approx(2000e-9)
        copied = profile.reduce("bytes_host_to_device", Reduction.MAX).total
        assert copied == pytest.approx(4e6)
