"""Programs of measured traces: exact at numbers of processes that were not traced, or refused."""

from __future__ import annotations

import tarfile
from dataclasses import replace

import pytest

from callpath_modeler.errors import DataError
from communication import recorded
from cpmodel_commspec.checking import differences
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.replay.loggp import replay
from cpmodel_commspec.replay.platform import platform_of
from cpmodel_commspec.replay.run_time import program_of
from cpmodel_commspec.scalable.expansion import expanded, scale_at
from cpmodel_commspec.scalable.extrapolation import extrapolate
from cpmodel_commspec.scalable.hold_out import hold_out


def unpacked(shared_data, tmp_path_factory, name):
    """Return the folder of an archive of traces; without it, the test is skipped."""
    packed = shared_data / "traces" / "patterns" / f"{name}.tar.xz"
    if not packed.is_file():
        pytest.skip(f"needs {name}.tar.xz in ../shared/data/traces/patterns")
    folder = tmp_path_factory.mktemp(name)
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def patterns(shared_data, tmp_path_factory):
    return unpacked(shared_data, tmp_path_factory, "patterns")


@pytest.fixture(scope="module")
def simulated(shared_data, tmp_path_factory):
    return unpacked(shared_data, tmp_path_factory, "simulated")


@pytest.mark.parametrize("name", ["serial.0.03", "stencil.0", "stencil.0.03", "cg.0.03"])
def test_run_times_at_four_times_the_scale_are_within_their_bands(name, simulated):
    traces = [at(simulated, name, p) for p in (4, 8, 16)]
    found = extrapolate(traces)
    scale = scale_at(found.told, 64)
    held = hold_out(found)
    predicted = seconds_of(expanded(found.told, scale, found.times))
    run = seconds_of(at(simulated, name, 64))
    assert predicted == pytest.approx(run, rel=0.03)
    assert abs(run / predicted - 1) <= held.band(scale, held.error)


def seconds_of(traced):
    told = specify(traced)
    ranks = [
        replace(one, computing=own.computing, last=own.last)
        for one, own in zip(program_of(told), traced.ranks, strict=True)
    ]
    platform = platform_of("infiniband")
    return replay(told.shapes, told.communicators, ranks, platform).seconds


def at(patterns, name, processes):
    return recorded(patterns / f"{name}.{processes}" / "traces.otf2")


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("gath", (12, 24)),
        ("uneven", (12, 24)),
        ("oddeven", (12, 24)),
        ("wany", (12, 24)),
        ("pen", (12, 24, 64)),
        ("halo3d", (12, 24)),
        ("convg", (12, 24)),
    ],
)
def test_measured_patterns_are_exact_where_they_were_not_trained(name, targets, patterns):
    told = extrapolate([at(patterns, name, p) for p in (4, 8, 16, 32)]).told
    for processes in targets:
        there = expanded(told, scale_at(told, processes))
        assert list(differences(there, at(patterns, name, processes))) == []


def test_a_logarithm_that_no_trace_rounds_is_refused_and_one_that_a_trace_rounds_is_exact(patterns):
    told = extrapolate([at(patterns, "diss", p) for p in (4, 8, 16, 32)]).told
    with pytest.raises(DataError, match="no trace tells how it is rounded"):
        expanded(told, scale_at(told, 24))
    told = extrapolate([at(patterns, "diss", p) for p in (4, 8, 12, 16, 32)]).told
    there = expanded(told, scale_at(told, 24))
    assert list(differences(there, at(patterns, "diss", 24))) == []
