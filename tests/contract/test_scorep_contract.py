from __future__ import annotations

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.testing import ReaderContract
from cpmodel_scorep import CubexReader


class TestSmallCubex(ReaderContract):
    reader_class = CubexReader

    @pytest.fixture(scope="class", params=["raw", "zlib"])
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        tree = cw.Tree([-1, 0, 1, 0], ["main", "solve", "MPI_Allreduce", "io"])
        seconds = np.array([[1.0, 2, 3], [4, 5, 6], [0, 1, 0.5], [9, 0, 0]])
        metrics = [
            cw.MetricToWrite("time", tree.subtree_sums(seconds), "INCLUSIVE", unit="sec"),
            cw.MetricToWrite("visits", np.ones((4, 3)), dtype="UINT64"),
            cw.MetricToWrite("min_time", seconds, dtype="MINDOUBLE", unit="sec"),
            cw.MetricToWrite("bytes_sent", 8 * seconds, dtype="UINT64", unit="bytes"),
        ]
        machine = cw.Machine([1, 1, 1])
        return cw.write(folder / "s.cubex", tree, metrics, machine, codec=request.param)

    @pytest.fixture
    def known(self):
        return {
            ("time", "main"): 2.0,
            ("time", "main/solve"): 5.0,
            ("time", "main/solve/MPI_Allreduce"): 0.5,
            ("visits", "main/io"): 1.0,
            ("bytes_sent", "main/io"): 24.0,
        }


class TestCubexWithGpus(ReaderContract):
    reader_class = CubexReader
    damaged = 100

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        tree = cw.Tree([-1, 0, 0, 2, 2], ["main", "MPI_Wait", "KERNELS", "gpu_a", "gpu_b"])
        machine = cw.Machine([1, 1], gpus=2, creators=["MPI Rank 1", "MPI Rank 0"])
        own = np.zeros((5, 6))
        own[:2, :2] = [[5, 6], [1, 0.5]]
        own[3:, 2:] = [[1, 2, 3, 4], [4, 0, 2, 8]]
        metrics = [
            cw.MetricToWrite("time", tree.subtree_sums(own), "INCLUSIVE", unit="sec"),
            cw.MetricToWrite("visits", np.ceil(own), dtype="UINT64"),
            cw.MetricToWrite("max_time", own, dtype="MAXDOUBLE", unit="sec"),
        ]
        return cw.write(folder / "s.cubex", tree, metrics, machine)

    @pytest.fixture
    def known(self):
        return {
            ("time", "main"): 5.5,
            ("time", "main/KERNELS/gpu_a"): 0.0,
            ("time on GPU streams", "main/KERNELS/gpu_a"): 5.0,
            ("time on GPU streams", "main/KERNELS/gpu_b"): 7.0,
            ("time on GPU streams", "main"): 0.0,
            ("visits on GPU streams", "main/KERNELS/gpu_b"): 7.0,
        }


class TestMeasuredCubex(ReaderContract):
    reader_class = CubexReader
    damaged = 10

    @pytest.fixture
    def profile(self, samples):
        return samples / "lulesh" / "lulesh.p8.r1" / "profile.cubex"

    @pytest.fixture
    def known(self):
        # 25 time steps, of which the first needs no agreement on its length.
        steps = "int main(int, char**)/void TimeIncrement(Domain&)"
        return {("visits", steps): 25.0, ("visits", f"{steps}/MPI_Allreduce"): 24.0}
