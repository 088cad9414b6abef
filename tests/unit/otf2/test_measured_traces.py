"""Traces of Score-P, compared with independent counts and with profiles."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from callpath_modeler.profile.schema import Reduction
from callpath_modeler.profile.unify import unify
from cpmodel_otf2 import TraceReader
from cpmodel_scorep import CubexReader

TRACES = [
    "third_party/otf2/ping-pong_p2",
    "third_party/otf2/ping-pong-papi_p2",
    "third_party/otf2/stencil4d_p32",
    "scorep/traces/npb_is.trace/p4",
    "scorep/traces/npb_is.trace/p16",
    "scorep/traces/snap.trace/p4",
]


def replayed(folder):
    with TraceReader().open(folder / "traces.otf2") as profile:
        return profile


def rows_by_path(profile):
    tree = profile.call_tree
    return {tree.path(row): row for row in range(len(tree))}


@pytest.mark.parametrize("trace", TRACES)
def test_every_value_equals_that_of_the_interface_of_the_package(trace, shared_data):
    for found in TraceReader().verify(shared_data / trace / "traces.otf2"):
        assert found.compared > 0
        assert found.differing == 0


@pytest.mark.parametrize(
    ("name", "differing"),
    [
        ("ping-pong_p2", ()),
        # One process leaves the outer loop first. The counts take its return for one of the
        # innermost call, and its last barrier for one within the loop.
        (
            "stencil4d_p32",
            (
                "MPI_Barrier",
                "TRACER_Loop",
                "TRACER_Loop/TRACER_WallTime_Loop",
                "TRACER_Loop/TRACER_WallTime_Loop/TRACER_WallTime_InLoop",
                "TRACER_Loop/TRACER_WallTime_Loop/TRACER_WallTime_InLoop/MPI_Barrier",
            ),
        ),
    ],
)
def test_values_equal_counts_made_elsewhere(name, differing, shared_data):
    profile = replayed(shared_data / "third_party/otf2" / name)
    rows = rows_by_path(profile)
    visits = profile.reduce("visits", Reduction.SUM).exclusive
    time = profile.reduce("time", Reduction.SUM).exclusive
    inclusive = profile.call_tree.inclusive(time)
    with (shared_data / f"third_party/expected/otf2_{name}.csv").open() as file:
        expected = {line["callpath"]: line for line in csv.DictReader(file)}
    assert expected.keys() | set(differing) | {"<program>"} == rows.keys() | {"<program>"}
    for path, line in expected.items():
        if path not in differing:
            row = rows[path]
            assert visits[row] == float(line["visits"]), path
            assert inclusive[row] == pytest.approx(float(line["inclusive_s_sum"]), abs=1e-9)
            assert time[row] == pytest.approx(float(line["exclusive_s_sum"]), abs=1e-9)
    if differing:
        # As in the other 31 processes.
        assert [visits[rows[path]] for path in differing[:2]] == [32, 32]


def test_a_trace_and_a_profile_of_one_program_agree_in_visits_and_bytes(shared_data):
    trace = replayed(shared_data / "scorep/traces/lulesh.trace/p8")
    path = shared_data / "scorep/variants/lulesh.p8.default/profile.cubex"
    with CubexReader().open(path) as profile:
        traced, profiled = rows_by_path(trace), rows_by_path(profile)
        assert traced.keys() == profiled.keys()
        rows = [profiled[name] for name in traced]
        for metric in ("visits", "bytes_sent", "bytes_received"):
            expected = profile.per_location(metric, inclusive=False)[rows]
            np.testing.assert_array_equal(trace.per_location(metric), expected)


@pytest.mark.parametrize("processes", [4, 16])
def test_a_trace_and_a_profile_of_one_program_have_one_call_tree(processes, shared_data):
    trace = replayed(shared_data / f"scorep/traces/snap.trace/p{processes}")
    with CubexReader().open(
        shared_data / f"scorep/snap.weak/snap.p{processes}.r1/profile.cubex"
    ) as profile:
        assert rows_by_path(trace).keys() == rows_by_path(profile).keys()
        united = unify([trace.call_tree, profile.call_tree])
        assert len(united.tree) == len(profile.call_tree)


def test_what_traces_say_of_a_run(shared_data):
    profile = replayed(shared_data / "scorep/traces/npb_is.trace/p16")
    assert profile.extent.processes == 16
    assert profile.metadata["creator"] == "Score-P 8.4"
    assert profile.metadata["program"] == "is.W.x"
    papi = replayed(shared_data / "third_party/otf2/ping-pong-papi_p2")
    assert papi.reduce("PAPI_TOT_CYC", Reduction.SUM).total > 1e8
