from __future__ import annotations

import pytest

import profiler_files
import program_logs
import table_files as tf
import workflow_files as wf
from callpath_modeler.report.exports import for_extrap
from callpath_modeler.studies import loading
from callpath_modeler.testing import ReaderContract
from cpmodel_tables import (
    ExtrapReader,
    FoldedReader,
    HatchetReader,
    LogReader,
    ProfilerReader,
    TableReader,
    WorkflowReader,
)


class TestTables(ReaderContract):
    reader_class = TableReader

    @pytest.fixture(scope="class", params=["csv", "jsonl"])
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / f"small.{request.param}"
        path.write_text({"csv": tf.CSV, "jsonl": tf.JSON_LINES}[request.param])
        return path

    @pytest.fixture
    def known(self):
        return {("time", "main"): 1.0, ("time", "main/solve"): 2.5}


class TestExtrap(ReaderContract):
    reader_class = ExtrapReader

    @pytest.fixture(scope="class", params=["txt", "json", "extra-p"])
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        text = folder / "text" / "small.txt"
        text.parent.mkdir()
        text.write_text(tf.EXTRAP_TEXT)
        path = folder / f"small.{request.param}"
        content = for_extrap(loading.load([text]), path)
        path.write_bytes(content if isinstance(content, bytes) else "".join(content).encode())
        return path

    @pytest.fixture
    def known(self):
        return {("time", "main"): 1.0, ("time", "main/solve"): 2.5}


class TestFolded(ReaderContract):
    reader_class = FoldedReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / "small.folded"
        path.write_text(tf.FOLDED)
        return path

    @pytest.fixture
    def known(self):
        return {("samples", "main"): 1.0, ("samples", "main/solve"): 2.5}


class TestHatchet(ReaderContract):
    reader_class = HatchetReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / "small.json"
        path.write_text(tf.HATCHET)
        return path

    @pytest.fixture
    def known(self):
        return {("time", "main"): 1.0, ("time", "main/solve"): 2.5}


class TestWorkflows(ReaderContract):
    reader_class = WorkflowReader

    @pytest.fixture(scope="class", params=["log", "json", "dat"])
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / f"small.{request.param}"
        rows = [(p, 2.5) for p in (4, 8)]
        content = {
            "log": wf.perflog([wf.log_line(p, p, time=2.5) for p in (4, 8)]),
            "json": wf.report([wf.case_of(p, time=2.5) for p in (4, 8)]),
            "dat": wf.pretty("result", ["program", "tasks", "solve_time[s]"],
                             [("StreamTest", *row) for row in rows]),
        }  # fmt: skip
        path.write_text(content[request.param])
        return path

    @pytest.fixture
    def known(self):
        return {("solve_time", "StreamTest"): 2.5}


class TestLogs(ReaderContract):
    reader_class = LogReader

    @pytest.fixture(scope="class")
    @classmethod
    def profile(cls, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / "log.lammps"
        path.write_text(program_logs.PROGRAMS["LAMMPS"].log(2))
        return path

    @pytest.fixture
    def known(self):
        return {("time", "LAMMPS/Pair"): 23.0, ("time", "LAMMPS/Neigh"): 45.0}


class TestProfilers(ReaderContract):
    reader_class = ProfilerReader

    @pytest.fixture(scope="class", params=["threads.speedscope.json", "session.json", "cpu.pb.gz"])
    @classmethod
    def profile(cls, request, tmp_path_factory):
        folder = tmp_path_factory.mktemp("profile")
        path = folder / request.param
        path.write_bytes(profiler_files.FILES[request.param])
        return path

    @pytest.fixture
    def known(self):
        return {("time", "main"): 1.0, ("time", "main/solve"): 2.5}
