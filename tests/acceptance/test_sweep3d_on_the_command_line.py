"""Ranking of profiles that follow the published models of Sweep3D."""

from __future__ import annotations

import csv
import io
import subprocess
import sys

import numpy as np
import pytest

import cube_writer as cw

POINTS = [2**k for k in range(6, 12)]
# The models published from these points (SC13, P1).
KERNELS = {
    "sweep": lambda _: 582.19,
    "sweep/MPI_Recv": lambda p: 3.99 * p**0.5,
    "sweep/MPI_Send": lambda _: 11.66,
    "global_int_sum/MPI_Allreduce": lambda p: 0.94 * p**0.5 + 0.04 * p**0.5 * np.log2(p),
    "source": lambda p: 6.86 + 9.68e-5 * np.log2(p),
}
TREE = cw.Tree(
    parents=[-1, 0, 1, 1, 0, 4, 0],
    names=["sweep3d", "sweep", "MPI_Recv", "MPI_Send", "global_int_sum", "MPI_Allreduce", "source"],
    roles={"sweep3d": "artificial"},
)
ROWS = [1, 2, 3, 5, 6]


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep3d")
    rng = np.random.default_rng(1)
    for p in POINTS:
        for repetition in range(1, 4):
            times = np.zeros((len(TREE), p))
            noise = 1 + 0.01 * rng.uniform(-0.5, 0.5, len(KERNELS))
            times[ROWS] = [[n * f(p)] * p for n, f in zip(noise, KERNELS.values(), strict=True)]
            inclusive = TREE.subtree_sums(times)
            metric = cw.MetricToWrite("time", inclusive, kind="INCLUSIVE", unit="sec")
            run = folder / f"sweep3d.p{p}.r{repetition}.cubex"
            cw.write(run, TREE, [metric], cw.Machine([1] * p))
    return folder


def rank(profiles, *options):
    files = sorted(str(path) for path in profiles.glob("*.cubex"))
    command = [sys.executable, "-m", "callpath_modeler", "rank", *files, *options, "-f", "csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_the_published_ranking_and_shares_come_out(profiles):
    rows = rank(profiles, "--target", "262144")
    order = [row["callpath"] for row in rows[:3]]
    assert order[0] == "sweep/MPI_Recv"
    assert set(order[1:]) == {"sweep", "global_int_sum/MPI_Allreduce"}
    by_path = {row["callpath"]: row for row in rows}
    share = KERNELS["sweep/MPI_Recv"](262144) / sum(f(262144) for f in KERNELS.values())
    assert float(by_path["sweep/MPI_Recv"]["share_at_target"]) == pytest.approx(share, abs=0.05)
    assert by_path["sweep/MPI_Recv"]["growth"] == "O(p^(1/2))"
    constant = [path for path, row in by_path.items() if row["status"] == "constant"]
    assert sorted(constant) == ["source", "sweep", "sweep/MPI_Send"]


def test_bands_hold_what_the_published_models_say(profiles):
    for row in rank(profiles, "--target", "8192"):
        if row["callpath"] in KERNELS:
            truth = KERNELS[row["callpath"]](8192)
            assert float(row["low[s]"]) <= truth <= float(row["high[s]"]), row["callpath"]


def test_receiving_loses_most_of_the_run_at_the_target(profiles):
    rows = rank(profiles, "--target", "262144", "--by", "loss")
    assert rows[0]["callpath"] == "sweep/MPI_Recv"
    before, after = KERNELS["sweep/MPI_Recv"](64), KERNELS["sweep/MPI_Recv"](262144)
    total = sum(f(262144) for f in KERNELS.values())
    assert float(rows[0]["excess_exclusive"]) == pytest.approx((after - before) / total, rel=0.05)
