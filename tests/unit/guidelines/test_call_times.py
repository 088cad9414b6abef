"""Measured times of calls for a replay, from campaigns of a simulated library."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark_output import P, flawless, planted, times, write
from callpath_modeler.errors import InputError, UsageError
from cells import cells
from cpmodel_guidelines.tuning.call_times import call_times


def of(tmp_path, law=planted, **options):
    return call_times([str(write(tmp_path, "reprompi", law, **options))])


def table(path, *rows):
    path.write_text("\n".join(["library,call,p,size,repetition,latency_us", *rows, ""]))
    return str(path)


def test_a_measured_size_has_its_time_and_the_faster_way(tmp_path):
    found = of(tmp_path).at("allreduce", P, 256)
    low, value, high = (1e6 * each for each in found.seconds)
    assert value == pytest.approx(planted("Allreduce", 256), rel=0.03)
    assert low < planted("Allreduce", 256) < high
    assert found.is_judged
    way = found.instead
    assert (way.guideline, way.parts) == (
        "Allreduce <= Reduce + Bcast", (("reduce", 256), ("bcast", 256)),
    )  # fmt: skip
    # The law has a factor of 1.4; each end belongs to the same end of the call.
    before, after = np.array(found.seconds), np.array(way.seconds)
    factors = before / after
    assert factors[0] < 1.4 < factors[2]
    assert (np.diff(factors) > 0).all()


def test_sizes_of_a_way_are_those_of_its_guideline(tmp_path):
    way = of(tmp_path).at("reduce_scatter", P, 64).instead
    assert way.guideline == "Reduce_scatter <= Allreduce(p*m)"
    assert way.parts == (("allreduce", P * 64),)


def test_a_time_between_two_sizes_encloses_both(tmp_path):
    known = of(tmp_path)
    less, found, more = (known.at("allreduce", P, size) for size in (512, 700, 1024))
    assert found.seconds[0] < less.seconds[1] < found.seconds[1] < more.seconds[1]
    assert more.seconds[1] < found.seconds[2]
    assert found.instead.guideline == "Allreduce <= Reduce + Bcast"
    assert found.instead.parts == (("reduce", 700), ("bcast", 700))


def test_a_way_between_two_sizes_is_faster_at_both(tmp_path):
    def law(name, size):
        return (planted if size <= 512 else flawless)(name, size)

    found = of(tmp_path, law)
    assert found.at("allreduce", P, 512).instead is not None
    assert found.at("allreduce", P, 700).instead is None
    assert found.at("allreduce", P, 1024).instead is None


def test_a_library_without_flaws_has_no_faster_way(tmp_path):
    found = of(tmp_path, flawless)
    call = found.at("allreduce", P, 256)
    assert (call.is_judged, call.instead) == (True, None)
    assert "8 mpiruns find a violation" in found.power


def test_the_interval_is_that_of_one_more_run(tmp_path):
    found = of(tmp_path, flawless, mpiruns=8, noise=0.2)
    # The runs are seeded, so these are not in the campaign.
    inside = [
        found.at(name, P, int(size)).seconds[0] <= 1e-6 * time
        and 1e-6 * time <= found.at(name, P, int(size)).seconds[2]
        for seed in range(8, 28)
        for (name, size), time in times(flawless, seed, 0.2).items()
    ]
    assert 0.92 < np.mean(inside) < 0.98


@cells(
    ("call", "why"),
    [
        (("scan", P, 8), "not measured"),
        (("send", P, 8), "not measured"),
        (("allreduce", 8, 8), "measured at p = 4 only"),
        (("allreduce", P, 3), "measured with 4 to 2048 bytes only"),
        (("allreduce", P, 2049), "measured with 4 to 2048 bytes only"),
    ],
)
def test_a_call_that_was_not_measured_says_so(call, why, tmp_path):
    assert of(tmp_path).at(*call) == why


def test_too_few_mpiruns_judge_nothing(tmp_path):
    found = of(tmp_path, mpiruns=3)
    assert "nothing can be shown" in found.power
    call = found.at("allreduce", P, 256)
    assert (call.is_judged, call.instead) == (False, None)


def test_one_mpirun_has_no_scatter(tmp_path):
    found = of(tmp_path, mpiruns=1)
    low, value, high = found.at("allreduce", P, 256).seconds
    assert low == value == high
    assert not found.at("allreduce", P, 256).is_judged


def test_times_without_a_guideline_are_known(tmp_path):
    path = table(tmp_path / "t.csv", ",Bcast,4,8,1,2.5", ",Bcast,4,8,2,2.5")
    found = call_times([path])
    assert found.at("bcast", 4, 8).seconds == pytest.approx((2.5e-6,) * 3)
    assert "no guideline can be checked" in found.power


def test_impossible_times_are_not_used(tmp_path):
    rows = [f",Bcast,4,8,{k},{time}" for k, time in ((1, "1e-9"), (2, 1), (3, "1e9"))]
    path = table(tmp_path / "t.csv", *rows, ",Reduce,4,8,1,4e9")
    found = call_times([path])
    assert np.isfinite(found.at("bcast", 4, 8).seconds).all()
    assert found.at("reduce", 4, 8) == "measured as more than an hour"


def test_two_libraries_are_refused(tmp_path):
    path = table(tmp_path / "t.csv", "A,Bcast,4,8,1,2", "B,Bcast,4,8,1,2")
    with pytest.raises(UsageError, match="2 libraries") as caught:
        call_times([path])
    assert caught.value.hint == "give the files of one: A, B"


def test_another_file_is_refused(tmp_path):
    (tmp_path / "x.dat").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="not the output of a known benchmark"):
        call_times([str(tmp_path / "x.dat")])
