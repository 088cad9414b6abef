from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.testing import ReaderContract
from callpath_modeler.testing.hpctoolkit import Kind, Layout, Measured, Scope, write_database
from cpmodel_hpctoolkit import HpctoolkitLoopsReader, HpctoolkitReader

CONTEXTS = [
    Scope(-1, Kind.FUNCTION, "main thread"),
    Scope(0, Kind.FUNCTION, "main", "/src/main.c", 3),
    Scope(1, Kind.LOOP, file="/src/main.c", line=5),
    Scope(2, Kind.LINE, file="/src/main.c", line=6),
    Scope(3, Kind.FUNCTION, "solve(double)", "/src/solve.c", 20),
    Scope(4, Kind.LINE, file="/src/solve.c", line=21),
]


class _Database(ReaderContract):
    @pytest.fixture(
        scope="class", params=[Layout(), Layout(early=True, elide=False)], ids=["today", "early"]
    )
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")

        def costs(rank):
            seconds = np.array([0, 0.5, 0, 1.0, 0, 2.0]) * (rank + 1)
            return {"CPUTIME (sec)": seconds, "cycles": 1000 * seconds, "GKER (sec)": 0 * seconds}

        measured = [Measured({"NODE": 0, "RANK": r, "THREAD": 0}, costs(r)) for r in range(3)]
        path = folder / "hpctoolkit-app-database"
        return write_database(path, CONTEXTS, measured, layout=request.param)


class TestDatabase(_Database):
    reader_class = HpctoolkitReader

    @pytest.fixture
    def known(self):
        return {
            ("CPUTIME", "main"): 3.0,
            ("CPUTIME", "main/solve(double)"): 4.0,
            ("cycles", "main/solve(double)"): 4000.0,
            ("GKER", "main"): 0.0,
        }


class TestDatabaseWithLoops(_Database):
    reader_class = HpctoolkitLoopsReader

    @pytest.fixture
    def known(self):
        return {
            ("CPUTIME", "main"): 1.0,
            ("CPUTIME", "main/loop at main.c:5"): 2.0,
            ("CPUTIME", "main/loop at main.c:5/solve(double)"): 4.0,
        }


class TestMeasuredVersion2(ReaderContract):
    reader_class = HpctoolkitReader
    damaged = 40

    @pytest.fixture
    def profile(self, shared_data):
        return shared_data / "third_party" / "hpctoolkit" / "v2" / "cpi_p4"

    @pytest.fixture
    def known(self):
        # Another reader has three statements with 1387900, 1221250 and 196947 us below it.
        names = ["PMPI_Finalize", "MPID_Finalize", "MPIDI_CH3_Finalize", "psm_dofinalize"]
        path = "/".join(["main", "MPI_Finalize", *names, *["<unknown procedure>"] * 4])
        return {("CPUTIME", path): 0.7015235}
