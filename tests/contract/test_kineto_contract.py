from __future__ import annotations

import pytest

import kineto_writer as kw
from callpath_modeler.testing import ReaderContract
from cpmodel_kineto import KinetoReader

LAUNCH = "ProfilerStep/forward/aten::mm/cudaLaunchKernel"


class TestKineto(ReaderContract):
    reader_class = KinetoReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        return kw.training(0, 1).write(folder / "run" / "trace.json")

    @pytest.fixture
    def known(self):
        return {
            ("time", "ProfilerStep/forward"): 2 * (400 - 100 - 5) * 1e-6,
            ("time", LAUNCH): 21e-6,
            ("time", "ProfilerStep/backward/wait for gloo:all_reduce"): 2 * 300e-6,
            ("time", "ProfilerStep/backward"): 2 * 60e-6,
            ("time of all threads", "ProfilerStep/AddmmBackward0"): 2 * 60e-6,
            ("time of all threads", "ProfilerStep/gloo:all_reduce"): 2 * 350e-6,
            ("visits", "ProfilerStep/gloo:all_reduce"): 2.0,
            ("visits", "ProfilerStep/backward/wait for gloo:all_reduce"): 0.0,
            ("bytes_sent", "ProfilerStep/gloo:all_reduce"): 2000.0,
            ("collectives", "ProfilerStep/gloo:all_reduce"): 2.0,
            ("time on GPU streams", f"{LAUNCH}/mm<4>"): 160e-6,
            ("GPU busy", "<program>"): 200e-6,
            ("bytes_host_to_device",
             "ProfilerStep/forward/cudaMemcpyAsync/copy host to device"): 8192.0,
        }  # fmt: skip


class TestKinetoOfRanks(ReaderContract):
    reader_class = KinetoReader
    damaged = 40

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        return kw.run(folder / "run.p2")

    @pytest.fixture
    def known(self):
        return {
            ("time", LAUNCH): 21e-6,
            ("visits", "ProfilerStep"): 2.0,
            ("visits on GPU streams", f"{LAUNCH}/mm<4>"): 2.0,
        }
