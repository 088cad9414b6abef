"""Many profiles, read by one process or by several."""

from __future__ import annotations

import pytest

from callpath_modeler import parallel
from callpath_modeler.errors import DataError, InputError
from callpath_modeler.parallel import WorkerPool
from callpath_modeler.profile.schema import Extent, Reduction
from callpath_modeler.readers.assemble import ReadOptions, assemble
from callpath_modeler.readers.parallel_reading import read_files
from callpath_modeler.testing.checks import check_same_run
from synthetic import TIME, FakeMax, FakeMean, FakeReader, FakeSource, call_tree, registry

PATHS = ["main", "main/f"]


@pytest.fixture
def reader():
    return FakeReader()


@pytest.fixture
def eager(monkeypatch):
    """Two jobs use two processes for the smallest work, and their numbers are recorded."""
    started = []
    start = parallel._processes
    monkeypatch.setattr(parallel, "_processes", lambda n: started.append(n) or start(n))
    monkeypatch.setattr(parallel, "_PROCESS_COSTS", 1e-6)
    return started


def source(p, kind=FakeSource):
    return kind(call_tree(PATHS), {TIME: [1.0 / p, float(p)]}, Extent(p))


def files(reader, directory, profiles):
    """Write profiles in order of increasing size; the largest are read first."""
    found = []
    for p, profile in profiles.items():
        found.append(reader.add(directory, f"app.p{p}", profile))
        found[-1].path.write_bytes(b"x" * p)
    return found


def test_runs_and_refusals_come_in_the_order_of_the_files(reader, tmp_path, eager):
    profiles = {p: source(p) for p in (2, 4, 8, 16)}
    profiles[4], profiles[16] = InputError("app.p4: no", hint="mend"), InputError("p16", hint="?")
    given = files(reader, tmp_path, profiles)
    told = []
    results = [
        list(read_files(given, registry(reader), None, None, jobs=jobs, progress=told_to))
        for jobs, told_to in ((1, None), (2, lambda *done: told.append(done)))
    ]
    assert eager == [2]
    assert told == [(done, 4) for done in range(5)]
    for (file, one), (other, two) in zip(*results, strict=True):
        assert file == other
        if isinstance(one, InputError):
            assert (one.message, one.hint) == (two.message, two.hint)
        else:
            check_same_run(one[0], two[0])
    assert [file.path.name for file, _ in results[1]] == [file.path.name for file in given]


def test_the_first_profile_says_how_all_are_reduced_whichever_is_read_first(
    reader, tmp_path, eager
):
    profiles = {2: source(2, FakeMean), 4: source(4), 8: source(8)}
    given = files(reader, tmp_path, profiles)
    for jobs in (1, 2):
        made = assemble(given, registry(reader), ReadOptions(jobs=jobs))
        assert made.reduction is Reduction.MEAN
    profiles = {2: source(2), 4: source(4), 8: source(8, FakeMax)}
    given = files(reader, tmp_path, profiles)
    for jobs in (1, 2):
        with pytest.raises(DataError, match=r"app\.p8\.fake: holds no mean"):
            assemble(given, registry(reader), ReadOptions(jobs=jobs))
    assert eager == [2, 2]


def test_a_trace_is_as_large_as_what_lies_beside_it(reader, tmp_path, monkeypatch):
    seen = {}

    def noted(self, function, items, *, sizes, **others):  # noqa: ARG001
        seen.update(zip((item.path.name for item in items), sizes, strict=True))
        return map(function, items)

    monkeypatch.setattr(WorkerPool, "map", noted)
    given = files(reader, tmp_path, {2: source(2), 4: source(4)})
    beside = tmp_path / "app.p2"
    (beside / "deeper").mkdir(parents=True)
    (beside / "0.evt").write_bytes(b"x" * 100)
    (beside / "deeper" / "1.evt").write_bytes(b"x" * 1000)
    list(read_files(given, registry(reader), None, None, jobs=2))
    assert seen == {"app.p2.fake": 1102, "app.p4.fake": 4}
