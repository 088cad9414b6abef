"""`cpmodel why` on measured programs names the requirements that their algorithms state."""

from __future__ import annotations

import json

import pytest

ROOT_OF_256 = 16


@pytest.mark.parametrize(
    ("series", "call_path", "target", "metric", "law"),
    [
        ("npb_ft.strong", "**/transpose_x_yz/**/MPI_Alltoall", 256, "bytes_sent", 25165824 / 256),
        ("npb_ft.strong", "**/transpose_xy_z/**/MPI_Alltoall", 256, "bytes_sent", 8388608 / 256),
        ("snap.weak", "**/precv_d_3d/MPI_Recv", 256, "visits", 2560 * (1 - 1 / ROOT_OF_256)),
        ("lulesh.weak", "**/TimeIncrement/MPI_Allreduce", 512, "bytes_sent", 192 * 512),
        # Measured at 64 processes, in runs that are not in the series.
        ("amg.weak", "**/hypre_BoomerAMGCycle/hypre_ParCSRRelax", 64, "visits", 260),
        ("amg.weak", "**/hypre_ParKrylovInnerProd/**/MPI_Allreduce", 64, "bytes_sent", 8 * 64 * 59),
        (
            "comd.weak",
            "main/timestep/redistributeAtoms/**/MPI_Sendrecv",
            256,
            "bytes_sent",
            3.512e6,
        ),
    ],
)
def test_requirements_follow_the_algorithm(
    run, shared_data, series, call_path, target, metric, law
):
    answer = _why(run, shared_data / "scorep" / series, call_path, "--target", target)
    rows = {row["metric"]: row for row in answer["rows"]}
    assert rows[metric]["at_target"] == pytest.approx(law, rel=0.06)


@pytest.mark.parametrize(
    "call_path", ["**/TimeIncrement", "**/CalcTimeConstraintsForElems/CalcHydroConstraintForElems"]
)
def test_iterations_that_grow_are_the_driver_of_lulesh(run, shared_data, call_path):
    # The number of iterations grows as p^(1/3); the machine was not shared.
    series = shared_data / "third_party" / "cubex" / "lulesh_daint"
    answer = _why(run, series, call_path, "--where", "size=40", "--target", 1000)
    rows = {row["metric"]: row for row in answer["rows"]}
    assert answer["why"] == "more work"
    assert answer["law"] == "in proportion to requirements"
    assert answer["explained"]["low"] > 0.5
    assert rows["visits"]["growth"] == "O(p^(1/3))"


def test_messages_to_all_others_are_the_law_of_an_all_to_all(run, shared_data):
    answer = _why(
        run, shared_data / "scorep" / "npb_ft.strong", "**/transpose_x_yz/**/MPI_Alltoall"
    )
    first = answer["algorithms"][0]
    assert "p - 1" in first["time"]
    assert first["probability"] > 0.5


@pytest.mark.parametrize(
    ("series", "call_path"),
    [
        ("snap.weak", "**/precv_d_3d/MPI_Recv"),
        ("comd.weak", "main/timestep/redistributeAtoms/**/MPI_Sendrecv"),
        ("lulesh.weak", "**/CalcForceForNodes/MPI_Isend"),
    ],
)
def test_messages_on_shared_processors_wait(run, shared_data, series, call_path):
    # Up to 125 processes shared two processors: the READMEs of the series say what must wait.
    answer = _why(run, shared_data / "scorep" / series, call_path)
    assert answer["why"].startswith("waits")
    assert answer["unexplained"]["low"] > 0.3


def _why(run, *arguments):
    return json.loads(run("why", *arguments, "-f", "json").out)
