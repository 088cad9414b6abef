from __future__ import annotations

import json

import pytest

import caliper_writer as cw
from callpath_modeler.testing import ReaderContract
from cpmodel_caliper import CaliperReader

SPLIT = {
    "data": [
        [0.5, 0, None],
        [1.0, 0, 0],
        [2.5, 0, 1],
        [0.7, 1, None],
        [1.2, 1, 0],
        [3.5, 1, 1],
        [0.25, 1, 2],
    ],
    "columns": ["time", "mpi.rank", "path"],
    "column_metadata": [
        {"is_value": True, "attribute.unit": "sec"},
        {"is_value": True},
        {"is_value": False},
    ],
    "nodes": [
        {"label": "main", "column": "path"},
        {"label": "solve", "column": "path", "parent": 0},
        {"label": "MPI_Allreduce", "column": "path", "parent": 1},
    ],
    "mpi.world.size": "2",
    "cali.caliper.version": "2.10.0",
}
RECORDS = [
    {"mpi.rank": rank, "path": "/".join(path), "sum#time.duration.ns": seconds * 1e9}
    for rank, path, seconds in (
        (0, ("main",), 1.0),
        (1, ("main",), 1.2),
        (0, ("main", "solve"), 2.5),
        (1, ("main", "solve"), 3.5),
        (1, ("main", "solve", "MPI_Allreduce"), 0.25),
    )
]


class TestSums(ReaderContract):
    reader_class = CaliperReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / "small.cali"
        path.write_text(cw.summed(problem_size=30))
        return path

    @pytest.fixture
    def known(self):
        return {
            ("time", "<program>"): 0.125,
            ("time", "main"): 4.0,
            ("time", "main/solve"): 15.0,
            # The average over the ranks that have the region would be 4.
            ("time", "main/io"): 1.0,
        }


class TestRanks(ReaderContract):
    reader_class = CaliperReader

    @pytest.fixture(scope="class", params=["cali", "split", "records"])
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        paths = {
            ("main",): [1.0, 1.2],
            ("main", "solve"): [2.5, 3.5],
            ("main", "solve", "MPI_Allreduce"): [0.0, 0.25],
        }
        text = {
            "cali": lambda: cw.per_rank(paths),
            "split": lambda: json.dumps(SPLIT),
            "records": lambda: json.dumps(RECORDS),
        }[request.param]()
        path = folder / ("small.cali" if request.param == "cali" else "small.json")
        path.write_text(text)
        return path

    @pytest.fixture
    def known(self):
        return {
            ("time", "main"): 1.1,
            ("time", "main/solve"): 3.0,
            ("time", "main/solve/MPI_Allreduce"): 0.125,
        }


class TestMeasured(ReaderContract):
    reader_class = CaliperReader
    damaged = 30

    @pytest.fixture
    def profile(self, shared_data):
        name = "lulesh_opal_weak/lulesh.p27.size30.r1.cali"
        return shared_data / "third_party" / "caliper" / name

    @pytest.fixture
    def known(self):
        # Only one rank gathers; the other 26 have no time in it.
        return {("time", "MPI_Gather"): 1e-5 / 27, ("time", "MPI_Allreduce"): 0.000701 / 27}
