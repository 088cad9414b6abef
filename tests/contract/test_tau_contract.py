from __future__ import annotations

import pytest

import tau_writer as tw
from callpath_modeler.testing import ReaderContract
from cpmodel_tau import TauReader

GROUPS = {"MPI_Allreduce()": "MPI", ".TAU application": "TAU_USER"}
PATHS = {
    0: {
        ".TAU application": (1, 500_000.0),
        ".TAU application => main": (1, 1_000_000.0),
        ".TAU application => main => solve": (10, 2_500_000.0),
        ".TAU application => main => solve => MPI_Allreduce()": (40, 250_000.0),
    },
    1: {
        ".TAU application": (1, 500_000.0),
        ".TAU application => main": (1, 1_200_000.0),
        ".TAU application => main => solve": (10, 3_500_000.0),
    },
}
THREADS = {(rank, 0, 0): tw.call_paths(times, GROUPS) for rank, times in PATHS.items()}


def operations(timers):
    return [(name, calls, 2 * excl, 2 * incl, group) for name, calls, excl, incl, group in timers]


class TestCallPaths(ReaderContract):
    reader_class = TauReader

    @pytest.fixture(scope="class", params=["files", "metrics", "packed"])
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        directory = folder / "run.p2"
        counted = {at: operations(timers) for at, timers in THREADS.items()}
        if request.param == "packed":
            path = folder / "small.ppk"
            both = {at: {"TIME": t, "PAPI_FP_OPS": counted[at]} for at, t in THREADS.items()}
            path.write_bytes(tw.packed(both))
            return path
        if request.param == "metrics":
            tw.write(directory / "MULTI__TIME", THREADS)
            tw.write(directory / "MULTI__PAPI_FP_OPS", counted, "PAPI_FP_OPS")
            return directory
        return tw.write(directory, THREADS)

    @pytest.fixture
    def known(self):
        return {
            ("time", "<program>"): 0.5,
            ("time", "main"): 1.1,
            ("time", "main/solve"): 3.0,
            ("time", "main/solve/MPI_Allreduce"): 0.125,
            ("visits", "main/solve"): 10.0,
        }


class TestFlat(ReaderContract):
    reader_class = TauReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        timers = [t for t in THREADS[0, 0, 0] if "=>" not in t[0]]
        return tw.write(folder / "run.p1", {(0, 0, 0): timers})

    @pytest.fixture
    def known(self):
        return {("time", "main"): 1.0, ("time", "solve"): 2.5, ("visits", "MPI_Allreduce"): 40.0}
