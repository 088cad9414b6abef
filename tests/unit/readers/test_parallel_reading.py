"""Many profiles, read by one process or by several."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from callpath_modeler.errors import DataError, InputError
from callpath_modeler.profile.schema import Extent, Reduction
from callpath_modeler.readers import profile_runs
from callpath_modeler.readers.assemble import ReadOptions, assemble
from callpath_modeler.readers.profile_runs import ReadRequest, read_files
from callpath_modeler.support import parallel
from callpath_modeler.support.parallel import WorkerPool
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
    monkeypatch.setattr(parallel, "PROCESS_COSTS", 1e-6)
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
        list(read_files(given, registry(reader), ReadRequest(), None, jobs=jobs, progress=told_to))
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
    list(read_files(given, registry(reader), ReadRequest(), None, jobs=2))
    assert seen == {"app.p2.fake": 1102, "app.p4.fake": 4}


class FakeDividingReader(FakeReader):
    """A reader that divides a profile, and notes with how many parts, and by how many threads."""

    def __init__(self):
        super().__init__("dividing", ".divided")
        self.divided = {}

    @contextmanager
    def open_for(self, workers, path):
        with self.open(path) as source:
            threads = set(workers.each(lambda _: threading.get_ident(), range(workers.parts)))
            self.divided[path.name] = threading.get_ident() not in threads, workers.parts
            yield source


SIZES = {
    "one": ([1000], 2, [0]),
    "one that is too small": ([99], 8, []),
    "two of one size": ([1000, 1000], 2, []),
    "one far larger than the others": ([50, 1000, 60, 70], 8, [1]),
    "a series": ([10, 20, 40, 800, 1600], 4, [4, 3]),
    "a series of large ones": ([100, 200, 400, 800, 1600], 4, [4, 3, 2, 1, 0]),
    "more workers than profiles": ([3000, 3000, 3000], 64, [0, 1, 2]),
    "many of one size": ([1000] * 30, 2, []),
    "one worker": ([1000], 1, []),
}
"""Sizes of profiles, the number of workers, and which profiles they divide."""


@pytest.mark.parametrize(("sizes", "workers", "wanted"), SIZES.values(), ids=SIZES.keys())
def test_profiles_are_divided_if_that_takes_less_time(
    tmp_path, monkeypatch, sizes, workers, wanted
):
    monkeypatch.setattr(profile_runs, "_SMALLEST_DIVIDED", 100)
    monkeypatch.setattr(profile_runs, "_SECONDS_TO_OPEN", 10.0)
    monkeypatch.setattr(profile_runs, "_SECONDS_PER_STORED_BYTE", 1.0)
    one = FakeDividingReader()
    given = [one.add(tmp_path, f"app.p{k}", source(k + 1)) for k in range(len(sizes))]
    assert profile_runs._divided(given, sizes, registry(one), workers, 0.0) == wanted
    # Unless a profile is too small, there is nothing to wait for.
    every = sorted(range(len(sizes)), key=lambda k: -sizes[k])
    late = profile_runs._divided(given, sizes, registry(one), workers, 1e6)
    assert late == (wanted if min(sizes) < 100 else every)
    other = FakeReader()
    given = [other.add(tmp_path, f"app.p{k}", source(k + 1)) for k in range(len(sizes))]
    assert profile_runs._divided(given, sizes, registry(other), workers, 0.0) == []


@pytest.mark.usefixtures("eager")
def test_the_largest_profile_is_divided_and_results_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(profile_runs, "_SMALLEST_DIVIDED", 100)
    monkeypatch.setattr(profile_runs, "_SECONDS_PER_STORED_BYTE", 1.0)
    reader = FakeDividingReader()
    profiles = {2: source(2), 500: source(500), 4: source(4), 600: InputError("no", hint="mend")}
    given, told = files(reader, tmp_path, profiles), []
    whole = list(read_files(given, registry(reader), ReadRequest(), None))
    parts = list(
        read_files(
            *(given, registry(reader), ReadRequest(), None),
            jobs=3,
            progress=lambda *done: told.append(done),
        )
    )
    assert reader.divided == {"app.p500.divided": (True, 12)}
    assert list(dict.fromkeys(told)) == [(done, 4) for done in range(1, 5)]
    assert [file for file, _ in parts] == given
    for (_, one), (_, other) in zip(whole, parts, strict=True):
        if isinstance(one, InputError):
            assert one.message == other.message
        else:
            check_same_run(one[0], other[0])


@pytest.mark.parametrize("words", [{"balance": object()}, {"processes": object()}], ids=min)
def test_what_needs_values_of_processes_is_read_by_one(tmp_path, monkeypatch, words):
    monkeypatch.setattr(profile_runs, "_SMALLEST_DIVIDED", 1)
    monkeypatch.setattr(profile_runs, "_tried", lambda *_, workers=None: workers or [])
    reader = FakeDividingReader()
    (file,) = files(reader, tmp_path, {500: source(500)})
    with pytest.raises(IndexError):
        list(read_files([file], registry(reader), ReadRequest(**words), None, jobs=2))


def test_an_error_that_ends_the_reading_comes_in_the_order_of_the_files(tmp_path, monkeypatch):
    monkeypatch.setattr(profile_runs, "_SMALLEST_DIVIDED", 100)
    monkeypatch.setattr(profile_runs, "_SECONDS_PER_STORED_BYTE", 1.0)
    reader = FakeDividingReader()
    given = files(reader, tmp_path, {2: source(2, FakeMax), 500: source(500, FakeMax)})
    with pytest.raises(DataError, match=r"app\.p2\.divided: holds no mean"):
        list(read_files(given, registry(reader), ReadRequest(), Reduction.MEAN, jobs=2))
