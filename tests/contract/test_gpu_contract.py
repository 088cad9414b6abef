from __future__ import annotations

import pytest

import extra_prof_writer as ew
import nsight_writer as nw
import nsys_stats_files as ns
import rocpd_writer as rw
import rocprof_files as rf
from callpath_modeler.testing import ReaderContract
from cpmodel_gpu import ExtraProfReader, NsightReader, NsysStatsReader, RocpdReader, RocprofReader


class TestNsight(ReaderContract):
    reader_class = NsightReader
    not_at_import = (*ReaderContract.not_at_import, "sqlite3")

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        return nw.small().write(folder / "run" / "small.sqlite")

    @pytest.fixture
    def known(self):
        launch = "main/step/cudaLaunchKernel_v7000"
        return {
            ("time", "main"): 500e-9,
            ("time", "main/step"): 155e-9,
            ("time", launch): 25e-9,
            ("visits", launch): 2.0,
            ("time on GPU streams", f"{launch}/add"): 200e-9,
            ("time on GPU streams", "(launch not recorded)/add"): 10e-9,
            ("visits on GPU streams", f"{launch}/mul"): 1.0,
            ("exposed GPU time", f"{launch}/add"): 50e-9,
            ("exposed GPU time", f"{launch}/mul"): 100e-9,
            ("GPU busy", "<program>"): 340e-9,
            ("GPU idle", "<program>"): 660e-9,
            ("bytes_host_to_device", "main/step/cudaMemcpyAsync_v3020/copy host to device"): 4096.0,
        }


class TestNsightOfRanks(ReaderContract):
    reader_class = NsightReader
    damaged = 40

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile") / "run.p2"
        for rank in range(2):
            report = nw.small(pid=100 + rank, factor=1 + rank)
            report.call("cudaMalloc_v3020", 700, 720, 50, 100 + rank, tid=7)
            report.write(folder / f"report.{rank}.sqlite")
        return folder

    @pytest.fixture
    def known(self):
        launch = "main/step/cudaLaunchKernel_v7000"
        return {
            ("time", "main"): 500e-9,
            ("time on GPU streams", f"{launch}/add"): 300e-9,
            ("time of all threads", "cudaMalloc_v3020"): 20e-9,
        }


class TestExtraProf(ReaderContract):
    reader_class = ExtraProfReader

    @pytest.fixture(scope="class", params=[1, 2])
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / "run" / "profile.extra-prof.msgpack"
        return ew.write(path, ew.small(threads=request.param))

    @pytest.fixture
    def known(self):
        kernel = "main/work/kernel launch/test"
        return {
            ("time", "main"): 300e-9,
            ("time", "main/work"): 150e-9,
            ("time", "main/work/kernel launch"): 50e-9,
            ("visits", "main/work"): 3.0,
            ("time on GPU streams", kernel): 400e-9,
            ("visits on GPU streams", kernel): 5.0,
            ("bytes_host_to_device", "main/cudaMemcpy/copy host to device"): 4096.0,
            ("energy_cpu", "main"): 6e-6,
            ("energy_gpu", kernel): 7e-6,
        }


class TestRocpd(ReaderContract):
    reader_class = RocpdReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        return rw.small(folder / "run" / "solver_results.db")

    @pytest.fixture
    def known(self):
        kernel = "main/hipLaunchKernel/add<float>"
        return {
            ("time", "main"): 520e-9,
            ("time", "main/hipMemcpy"): 100e-9,
            ("time on GPU streams", kernel): 100e-9,
            ("exposed GPU time", kernel): 100e-9,
            ("exposed GPU time", "main/hipMemcpy/copy host to device"): 70e-9,
            ("time on GPU streams", "(launch not recorded)/old"): 10e-9,
            ("bytes_host_to_device", "main/hipMemcpy/copy host to device"): 8192.0,
            ("GPU busy", "<program>"): 180e-9,
        }


class TestRocpdOfProcesses(ReaderContract):
    reader_class = RocpdReader
    damaged = 40

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        for k, number in enumerate((4711, 4733)):
            rw.small(folder / "run.p2" / f"{number}_results.db", factor=1 + k)
        return folder / "run.p2"

    @pytest.fixture
    def known(self):
        return {("time on GPU streams", "main/hipLaunchKernel/add<float>"): 150e-9}


class TestNsysStats(ReaderContract):
    reader_class = NsysStatsReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        return ns.write(folder / "run.p1")

    @pytest.fixture
    def known(self):
        return {
            ("time on GPU streams", "add"): 300e-9,
            ("visits on GPU streams", "add"): 3.0,
            ("time on GPU streams", "copy host to device"): 80e-9,
            ("bytes_host_to_device", "copy host to device"): 4e6,
            ("time of all threads", "cudaLaunchKernel"): 1200e-9,
            ("visits", "cudaLaunchKernel"): 4.0,
        }


class TestOldNsysStats(ReaderContract):
    reader_class = NsysStatsReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / "run" / "stats.csv"
        path.parent.mkdir()
        path.write_text(ns.OLD)
        return path

    @pytest.fixture
    def known(self):
        return {
            ("time on GPU streams", "add"): 300e-9,
            ("time of all threads", "cudaLaunchKernel"): 1200e-9,
        }


class TestRocprof(ReaderContract):
    reader_class = RocprofReader

    @pytest.fixture(scope="class", params=[("77",), ("77", "78")])
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        return rf.write(folder / "run", *request.param)

    @pytest.fixture
    def known(self):
        kernel = "main/hipLaunchKernel/add<float>"
        return {
            ("time", "main"): 520e-9,
            ("time", "main/hipMemcpy"): 100e-9,
            ("time on GPU streams", kernel): 100e-9,
            ("exposed GPU time", kernel): 100e-9,
            ("time on GPU streams", "main/hipMemcpy/copy host to device"): 70e-9,
            ("time on GPU streams", "(launch not recorded)/old"): 10e-9,
            ("GPU busy", "<program>"): 180e-9,
        }


class TestOneRocprofTrace(ReaderContract):
    reader_class = RocprofReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / "run" / "a_kernel_trace.csv"
        path.parent.mkdir()
        path.write_text(rf.TRACES["kernel_trace"])
        return path

    @pytest.fixture
    def known(self):
        return {("time on GPU streams", "(launch not recorded)/add<float>"): 100e-9}
