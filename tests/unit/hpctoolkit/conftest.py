from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope
from cpmodel_hpctoolkit import HpctoolkitReader

F, L, S = Kind.FUNCTION, Kind.LOOP, Kind.LINE


@pytest.fixture
def reader():
    return HpctoolkitReader()


@pytest.fixture
def contexts():
    """main calls solve from two lines, one in a nested loop; solve contains an inlined function."""
    return [
        Scope(-1, F, "main thread"),
        Scope(0, F, "main", "/src/main.c", 3),
        Scope(1, S, file="/src/main.c", line=5),
        Scope(1, L, file="/src/main.c", line=7),
        Scope(3, L, file="/src/main.c", line=8),
        Scope(4, S, file="/src/main.c", line=9),
        Scope(2, F, "solve", "/src/solve.c", 20),
        Scope(5, F, "solve", "/src/solve.c", 20),
        Scope(7, S, file="/src/solve.c", line=21),
        Scope(8, Kind.INSTRUCTION, line=0x400),
        Scope(7, Kind.INLINED, "norm", "/src/norm.h", 2),
        Scope(10, S, file="/src/norm.h", line=3),
        Scope(11, F, "MPI_Allreduce", module="/lib/libmpi.so.12"),
        Scope(12, S, line=0),
    ]


@pytest.fixture
def costs():
    """Exclusive costs of one thread, on lines and instructions as in real databases."""
    own = np.zeros(14)
    own[[2, 3, 4, 5, 6, 8, 9, 11, 13]] = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    return own


@pytest.fixture
def ranks(costs):
    return [
        Measured({"NODE": 0, "RANK": rank, "THREAD": 0}, {"CPUTIME (sec)": costs * (rank + 1)})
        for rank in range(4)
    ]
