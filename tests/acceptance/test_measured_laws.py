"""Models of real profiles whose laws follow exactly from their algorithms."""

from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm


def fitted(path, metric, where="", locations="mean"):
    read = cpm.ReadOptions(metrics=(metric,), locations=cpm.Reduction(locations))
    return cpm.fit(cpm.load([path], cpm.LoadOptions(read, where)), metric)


@pytest.mark.parametrize("series", ["shared", "sample"])
def test_snap_receives_2560_times_one_minus_one_over_root_p(request, series, samples):
    path = samples / "snap"
    if series == "shared":
        path = request.getfixturevalue("shared_data") / "scorep" / "snap.weak"
    model = fitted(path, "visits")["dim3_sweep/**/precv_d_3d/MPI_Recv"]
    assert model.formula() == "2560 - 2560 * p^(-1/2)"
    assert model.status == "ok"
    assert model.predict([1024]).value[0] == pytest.approx(2560 * (1 - 1 / 32))


def test_ft_sends_25165824_over_p_bytes_in_all_to_all(shared_data):
    fit = fitted(shared_data / "scorep" / "npb_ft.strong", "bytes_sent")
    model = fit["transpose_x_yz/**/MPI_Alltoall"]
    assert model.growth == "O(p^-1)"
    assert model.predict([4096]).value[0] == pytest.approx(25165824 / 4096)
    assert model.status == "ok"


@pytest.mark.parametrize("series", ["shared", "sample"])
def test_lulesh_books_192_p_bytes_for_all_reduce(request, series, samples):
    path = samples / "lulesh"
    if series == "shared":
        path = request.getfixturevalue("shared_data") / "scorep" / "lulesh.weak"
    model = fitted(path, "bytes_sent")["TimeIncrement/MPI_Allreduce"]
    assert model.growth == "O(p)"
    assert model.predict([1000]).value[0] == pytest.approx(192_000)


def test_lulesh_halo_visits_that_saturate_are_not_claimed_as_growth(samples):
    fit = fitted(samples / "lulesh", "visits")
    model = fit["LagrangeNodal/CalcForceForNodes/MPI_Isend"]
    assert model.status == "outside"
    # The true values stay below 25 * 26, so the band must contain such values.
    assert model.predict([4096]).low[0] < 25 * 26


@pytest.mark.parametrize(
    ("program", "expected"),
    [("npb_ft.strong", "strong"), ("comd.weak", "weak"), ("amg.weak", "weak")],
)
def test_scaling_is_recognised(shared_data, program, expected):
    experiment = cpm.load([shared_data / "scorep" / program])
    assert experiment.scaling == expected


@pytest.mark.parametrize("locations", ["mean", "sum"])
@pytest.mark.parametrize("program", ["lulesh.weak", "amg.weak", "snap.weak"])
def test_no_cost_is_lost_where_call_paths_come_and_go(shared_data, program, locations):
    read = cpm.ReadOptions(metrics=("time", "visits"), locations=cpm.Reduction(locations))
    experiment = cpm.load([shared_data / "scorep" / program], cpm.LoadOptions(read))
    for column in experiment.columns.values():
        parts = np.nansum(column.exclusive, axis=0)
        # The program's total was measured separately, so this is not a tautology.
        assert parts == pytest.approx(column.total, rel=1e-9)
    assert not [f for f in experiment.findings if f.code == "CPM114"]


@pytest.fixture(scope="module")
def daint(shared_data):
    return shared_data / "third_party" / "cubex" / "lulesh_daint"


def test_daint_iterations_grow_as_the_cube_root_of_p(daint):
    model = fitted(daint, "visits", "size=30,p<=216", "max")["main/TimeIncrement"]
    measured = cpm.load([daint], cpm.LoadOptions(cpm.ReadOptions(("visits",)), "size=30"))
    points, values = measured.by_point("visits", "p")
    assert points[-1] == 343
    assert model.growth == "O(p^(1/3))"
    assert model.predict([343]).value[0] == pytest.approx(values[model.row, -1, 0], rel=0.005)


@pytest.mark.parametrize("size", [30, 40])
def test_daint_total_and_order_are_predicted_from_smaller_runs(daint, size):
    fit = fitted(daint, "time", f"size={size},p<=216", "max")
    ranking = cpm.rank(fit, 343)
    read = cpm.ReadOptions(locations=fit.experiment.reduction)
    everything = cpm.load([daint], cpm.LoadOptions(read, where=f"size={size}"))
    _, values = everything.by_point("time", "p")
    assert ranking.total[0] == pytest.approx(np.nansum(values[:, -1, 0]), rel=0.08)
    measured = everything.columns["time"].run_time[-1]
    assert ranking.run_time.total[0] == pytest.approx(measured, rel=0.08)
    paths = [everything.tree.path(int(row)) for row in ranking.order[:2]]
    assert paths == [
        "int main(int, char**)",
        "int main(int, char**)/void TimeIncrement(Domain&)/MPI_Allreduce",
    ]


def test_extra_p_s_toy_follows_the_law_it_was_written_with(shared_data):
    """MetaCG's program sleeps: foo takes 4 X seconds, bar 4."""
    fit = fitted(shared_data / "third_party" / "cubex" / "metacg_inputmodeling" / "002", "time")
    assert fit.parameter == "X"
    assert fit["main/foo"].growth == "O(X)"
    assert fit["main/foo"].predict([100]).value[0] == pytest.approx(400, rel=0.01)
    assert fit["main/bar"].growth == "O(1)"
