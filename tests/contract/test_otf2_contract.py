from __future__ import annotations

import shutil

import pytest

from callpath_modeler.testing import ReaderContract
from cpmodel_otf2 import TraceReader
from trace_writer import Comm, Thread, Trace, write_trace


class _Trace(ReaderContract):
    reader_class = TraceReader

    def copy_of(self, profile, folder):
        shutil.copytree(profile.parent, folder)
        return folder / profile.name


class TestTrace(_Trace):
    damaged = 100

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")

        def events(rank):
            yield "program_begin", 100, "/opt/app", ()
            yield "enter", 200, "main"
            yield "enter", 300, "MPI_Send"
            yield "mpi_send", 310, 1 - rank, Comm("WORLD"), 7, 1000
            yield "leave", 500 + 100 * rank, "MPI_Send"
            yield "leave", 1200, "main"
            yield "program_end", 1300, 0

        processes = [[Thread(list(events(rank)))] for rank in range(2)]
        return write_trace(folder / "trace", Trace(processes, resolution=1000))

    @pytest.fixture
    def known(self):
        return {
            ("time", "<program>"): 0.2,
            ("time", "main"): 0.75,
            ("time", "main/MPI_Send"): 0.25,
            ("visits", "main/MPI_Send"): 1.0,
            ("bytes_sent", "main/MPI_Send"): 1000.0,
            ("messages_received", "main/MPI_Send"): 0.0,
        }


class TestTraceWithGpus(_Trace):
    damaged = 100

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")

        def stream(*ticks):
            now = 100
            for each in ticks:
                yield "enter", now, "gpu_a"
                yield "leave", now + each, "gpu_a"
                now += each + 10

        host = [("program_begin", 100, "/opt/app", ()), ("program_end", 1300, 0)]
        groups = [
            (1, [Thread([*stream(10, 20)], "GPU"), Thread([*stream(50)], "GPU")]),
            (0, [Thread([*stream(70)], "GPU")]),
        ]
        trace = Trace([[Thread(host)]] * 2, resolution=1000, accelerators=groups)
        return write_trace(folder / "trace", trace)

    @pytest.fixture
    def known(self):
        return {
            ("time", "<program>"): 1.2,
            ("time", "KERNELS/gpu_a"): 0.0,
            ("time on GPU streams", "KERNELS/gpu_a"): 0.075,
            ("visits on GPU streams", "KERNELS/gpu_a"): 2.0,
        }


class TestMeasuredTrace(_Trace):
    damaged = 40

    @pytest.fixture
    def profile(self, shared_data):
        return shared_data / "third_party/otf2/ping-pong-papi_p2/traces.otf2"

    @pytest.fixture
    def known(self):
        main = "int main(int, char**)"
        return {("visits", f"{main}/MPI_Send"): 8.0, ("bytes_sent", f"{main}/MPI_Send"): 4177920.0}
