"""Profiles whose rows several workers reduce, compared with those that one worker reads."""

from __future__ import annotations

import gzip
import itertools
import multiprocessing
import os
import pickle
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.errors import InputError, WorkerDiedError
from callpath_modeler.profile.schema import COMPUTED, Reduction
from callpath_modeler.readers.base import Workers
from callpath_modeler.support.parallel import WorkerPool
from cells import cells
from cpmodel_scorep import CubexReader, rows, stream
from cpmodel_scorep import profile as opened

ROWS = 90


@pytest.fixture(autouse=True)
def small_sections(monkeypatch):
    """A block of two or three rows, and sections of a few blocks."""
    monkeypatch.setattr(rows, "BLOCK_BYTES", 100)
    monkeypatch.setattr(rows, "SECTION_BYTES", 300)
    monkeypatch.setattr(stream, "_SPARSE_PAYS", 0)


def members(*, damaged=False, **variant):
    """Return the members of a file of metrics of each kind, whose sums depend on their order."""
    rng = np.random.default_rng(7)
    tree, machine = cw.random_tree(ROWS, roots=2, seed=4), cw.Machine([2, 1, 2])
    cost = rng.random((ROWS, machine.locations)) + 0.1
    counts = rng.integers(0, 3, cost.shape).astype(float)
    present = rng.random(ROWS) > 0.3
    minima, work, time = np.where(counts > 0, cost, 0.0), cost.copy(), tree.subtree_sums(cost)
    work[~present] = 0.0
    if damaged:
        work[5], work[40, 1], work[77, 2] = np.nan, np.inf, -3.0
        time[8, 0], time[30:50:4] = np.inf, -1.0
    metrics = [
        cw.MetricToWrite("visits", counts, dtype="UINT64"),
        cw.MetricToWrite("time", time, "INCLUSIVE", unit="sec"),
        cw.MetricToWrite("work", work, unit="usec", present=present),
        cw.MetricToWrite("ins", tree.subtree_sums(counts), "INCLUSIVE", "UINT64", unit="#"),
        cw.MetricToWrite("min_time", minima, dtype="MINDOUBLE", unit="sec"),
    ]
    return dict(cw.members_of(tree, metrics, machine, **variant))


def written(path, *, packed=False, **variant):
    cw.pack(path, members(**variant).items())
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def again(thing):
    """Return what another process would get."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - ours


def pickled_map(function, parts):
    """Do each part with what another process would get, and return what it would send."""
    for part in parts:
        sent, items = again((function, part))
        yield again(sent(items))


def read(path, workers=None):
    """Return the bytes of all reductions, and the findings."""
    reader, found = CubexReader(), {}
    with reader.open_for(workers, path) if workers else reader.open(path) as profile:
        for metric, how in itertools.product(profile.stored, COMPUTED):
            got = profile.reduce(metric, how)
            numbers = np.array([got.total, got.run_time]).tobytes()
            uneven = b"" if got.imbalance is None else got.imbalance.tobytes()
            found[metric, how] = got.exclusive.tobytes() + numbers + uneven
        return found, list(profile.findings())


VARIANTS = [
    {},
    {"codec": "zlib"},
    {"codec": "zlib", "index": "dense"},
    {"endian": ">"},
    {"gz": True},
    {"damaged": True},
    {"packed": True},
]


@cells("variant", VARIANTS)
def test_every_number_of_parts_gives_the_same_bits(tmp_path, variant):
    path = written(tmp_path / "a.cubex", **variant)
    whole = read(path)
    for parts in (2, 1000):
        assert read(path, Workers(map, parts)) == whole
    with ThreadPoolExecutor(3) as executor, WorkerPool(3, executor=executor) as pool:
        for parts in (2, 1000):
            assert read(path, Workers(pool.map, parts)) == whole
    # Another process opens the file again for each part, so that a few parts are enough.
    if not variant.get("packed"):
        for parts in (2, 3):
            assert read(path, Workers(pickled_map, parts)) == whole


@pytest.mark.parametrize("variant", VARIANTS[:3], ids=str)
def test_sections_change_no_value_of_a_call_path(tmp_path, variant, monkeypatch):
    path = written(tmp_path / "a.cubex", **variant)
    found = []
    for size in (1, 300, 1 << 30):
        monkeypatch.setattr(rows, "SECTION_BYTES", size)
        with CubexReader().open(path) as profile:
            every = itertools.product(profile.stored, COMPUTED)
            found.append([profile.reduce(metric, how) for metric, how in every])
    for one, other in itertools.combinations(found, 2):
        for got, wanted in zip(one, other, strict=True):
            np.testing.assert_array_equal(got.exclusive, wanted.exclusive)
            np.testing.assert_array_equal(got.imbalance, wanted.imbalance)
            assert got.total == pytest.approx(wanted.total, rel=1e-14, nan_ok=True)


def test_the_work_is_divided_and_no_row_is_in_two_parts(tmp_path):
    path, given = written(tmp_path / "a.cubex"), []

    def noted(function, parts):
        found = [*map(function, parts)]
        given.append(found)
        return found

    with CubexReader().open_for(Workers(noted, 4), path) as profile:
        for metric in profile.stored:
            profile.reduce(metric, Reduction.MEAN)
    # Five metrics of the file, and the sums over threads of its time.
    assert [len(parts) for parts in given] == [4] * 6
    for parts in given:
        assert all(len(part.rows) for part in parts)
        joined = np.concatenate([part.rows for part in parts])
        assert len(np.unique(joined)) == len(joined)


def test_a_family_is_never_in_two_sections(tmp_path):
    with CubexReader().open(written(tmp_path / "a.cubex")) as profile:
        divided = profile.metric_pass(profile.stored["time"])
        order = profile.layout.enumeration(profile.stored["time"].order)
        caller = profile.layout.parents[order]
        assert len(divided.sections) > 5
        assert [stop for _, stop in divided.sections][-1] == ROWS
        for (_, stop), (first, _) in itertools.pairwise(divided.sections):
            assert stop == first
            assert caller[first] != caller[first - 1]


def test_a_single_family_is_one_section(tmp_path):
    tree = cw.Tree([-1, *[0] * 60], ["main", *(f"f{k}" for k in range(60))])
    values = tree.subtree_sums(np.random.default_rng(1).random((61, 4)))
    time = cw.MetricToWrite("time", values, "INCLUSIVE", unit="sec")
    path = cw.write(tmp_path / "a.cubex", tree, [time], cw.Machine([1] * 4))
    with CubexReader().open(path) as profile:
        assert len(profile.metric_pass(profile.stored["time"]).sections) == 1
    assert read(path, Workers(map, 8)) == read(path)


def test_there_are_never_many_totals_of_all_locations(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "SECTION_BYTES", 1)
    monkeypatch.setattr(rows, "_MOST_SECTIONS", 9)
    with CubexReader().open(written(tmp_path / "a.cubex")) as profile:
        assert len(profile.metric_pass(profile.stored["visits"]).sections) <= 10


def test_a_packed_file_is_not_unpacked_by_each_process(tmp_path):
    with CubexReader().open(written(tmp_path / "a.cubex", packed=True)) as profile:
        whole = profile.metric_pass(profile.stored["time"])
        part_of = opened.SharedPass(profile, whole, Reduction.MEAN, CubexReader().open)
        with pytest.raises(pickle.PicklingError):
            pickle.dumps(part_of)


def test_rows_that_are_cut_off_are_the_same_finding(tmp_path):
    content = members()
    content["0.data"] = content["0.data"][: ROWS // 2 * 5 * 8]
    path = cw.pack(tmp_path / "a.cubex", content.items())
    whole = read(path)
    assert "CPM103" in {finding.code for finding in whole[1]}
    for each in (map, pickled_map):
        assert read(path, Workers(each, 4)) == whole


def test_a_row_that_is_broken_is_the_same_error(tmp_path):
    content = members(codec="zlib")
    content["2.data"] = content["2.data"][:-30] + b"\xff" * 20 + content["2.data"][-10:]
    path = cw.pack(tmp_path / "a.cubex", content.items())
    errors = []
    with ThreadPoolExecutor(3) as executor, WorkerPool(3, executor=executor) as pool:
        for workers in (None, Workers(map, 4), Workers(pool.map, 4)):
            with pytest.raises(InputError) as caught:
                read(path, workers)
            errors.append((caught.value.message, caught.value.hint))
    assert errors == errors[:1] * 3


def die_elsewhere(here, *given):
    if os.getpid() != here:
        os.kill(os.getpid(), signal.SIGKILL)
    return given


def test_a_worker_that_is_killed_is_the_one_error(tmp_path, monkeypatch):
    path = written(tmp_path / "a.cubex")
    monkeypatch.setattr(opened, "_part", partial(die_elsewhere, os.getpid()))
    executor = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))
    with executor, WorkerPool(2, executor=executor) as pool:
        workers = Workers(partial(pool.map, named=lambda _: str(path)), 4)
        with pytest.raises(WorkerDiedError, match=r"ended during its work \(.*a\.cubex\)"):
            read(path, workers)


def test_processes_that_open_the_file_again_give_the_same_bits(tmp_path):
    path = written(tmp_path / "a.cubex", damaged=True)
    whole = read(path)
    executor = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))
    with executor, WorkerPool(2, executor=executor) as pool:
        assert read(path, Workers(pool.map, 4)) == whole
