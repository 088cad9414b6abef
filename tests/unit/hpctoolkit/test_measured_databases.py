"""Databases of other projects: laws of all databases, and results of other readers."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import Extent, MetricStatus, Reduction
from cells import cells
from cpmodel_hpctoolkit import HpctoolkitLoopsReader, HpctoolkitReader
from cpmodel_hpctoolkit.binary import BinaryFile, ProfileFile
from cpmodel_hpctoolkit.meta import read_meta

VERSION_4 = [
    "third_party/hpctoolkit/v4/acc_f3",
    "third_party/hpctoolkit/v4/d.foo",
    "third_party/hpctoolkit/v4/inline.meta.db",
    "third_party/hpctoolkit/v4/loop-fork-cycles",
    "third_party/hpctoolkit/v4/loop-inline",
    "third_party/hpctoolkit/v4/multithread",
    "third_party/hpctoolkit/v4/ping-pong_p2",
    "third_party/hpctoolkit/v4/vectorAdd",
    "hpctoolkit_synthetic/deep",
    *(f"hpctoolkit_synthetic/scal2000/app_{p}" for p in (8, 16, 32, 64, 128)),
]
VERSION_2 = [
    f"third_party/hpctoolkit/v2/{name}"
    for name in ("acc_f3", "cpi_p4", "inline.xml.db", "osu_allgather_p10x2", "vectorAdd")
]
EXTENTS = {
    "cpi_p4": Extent(4, 1, 1),
    "osu_allgather_p10x2": Extent(10, 2, 1),
    "ping-pong_p2": Extent(2, 1, 1),
    "inline.meta.db": Extent(1, 8, 1),
    "vectorAdd": Extent(1, 1, 1),
}


def with_data(source):
    return [d.metric.name for d in source.metrics if d.status is MetricStatus.DATA]


@cells("reader", [HpctoolkitReader(), HpctoolkitLoopsReader()])
@cells("name", [*VERSION_4, *VERSION_2])
def test_exclusive_values_add_up_to_the_program(reader, shared_data, name):
    with reader.open(shared_data / name) as source:
        assert with_data(source)
        for metric in with_data(source):
            found = source.reduce(metric, Reduction.SUM)
            np.testing.assert_allclose(found.exclusive.sum(), found.total, rtol=1e-9)
        assert source.extent == EXTENTS.get(name.rpartition("/")[2], source.extent)


@cells("name", VERSION_4)
def test_version_4_conserves_cost(shared_data, name):
    """The laws of hpcprof's propagation, on the file's own values, scope by scope."""
    meta = read_meta(shared_data / name / "meta.db")
    contexts, n = meta.contexts, len(meta.contexts)
    place = np.full(int(meta.ids.max()) + 1, -1)
    place[meta.ids] = np.arange(n)

    def of(values):
        known = values.contexts[values.contexts < len(place)]
        table = np.zeros(n + 1)
        table[place[known]] = values.values[values.contexts < len(place)]
        return table[:n]

    def below(values, rows):
        total = np.zeros(n)
        inner = np.flatnonzero(rows & (contexts.parent >= 0))
        np.add.at(total, contexts.parent[inner], values[inner])
        return total

    with BinaryFile(shared_data / name / "profile.db") as file:
        profiles = ProfileFile(file, meta.kinds)
        for metric in meta.metrics:
            summary = profiles.summary
            inclusive = of(profiles.read(summary, metric.in_summary["execution"]))
            own = of(profiles.read(summary, metric.in_summary["function"]))
            whole = profiles.whole(summary).get(metric.in_summary["execution"], 0.0)
            size = max(whole, 1e-300)
            everything = np.ones(n, bool)
            assert abs(own[contexts.called].sum() - whole) <= 1e-9 * size
            rest = inclusive - below(inclusive, everything)
            assert np.abs(rest - (own - below(own, meta.lexical))).max() <= 1e-9 * size
            assert rest.min() >= -1e-9 * size
            for scope, stored in (("execution", inclusive), ("function", own)):
                of_threads = sum(
                    of(profiles.read(profile, metric.in_profile[scope]))
                    for profile in profiles.profiles
                )
                assert np.abs(of_threads - stored).max() <= 1e-9 * size


@cells("name", VERSION_4)
def test_both_files_of_values_agree(reader, shared_data, name):
    found = reader.verify(shared_data / name)
    assert sum(agreement.compared for agreement in found) > 0
    assert not any(agreement.differing for agreement in found)


def by_path(tree: CallTree, values):
    table: dict[str, float] = {}
    for row in range(len(tree)):
        path = "->".join(tree.names(row))
        table[path] = table.get(path, 0.0) + values[row]
    return table


def functions_only(path):
    """Return a path of another reader without loops, statements and call sites."""
    names = [name for name in path.split("->") if not re.search(r":\d+$", name)]
    names = [re.sub(r"^\d+:", "", name) for name in names if name != "<program root>"]
    return "->".join(names).replace("<thread root>", "application thread") or "<program>"


def rows_of_another_reader(folder, name):
    with (folder / "third_party/expected" / f"hpctoolkit_{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def of_locations(source):
    """Return the exclusive values in microseconds, [locations x call paths]."""
    measure = source.stored["CPUTIME"].measure
    threads = [thread for process in source.database.places.threads for thread in process]
    read = source.database.of_location
    return np.stack([read(measure, thread).column.values for thread in threads])


@pytest.mark.parametrize("name", ["cpi_p4", "osu_allgather_p10x2"])
def test_another_reader_finds_the_same_inclusive_values(reader, shared_data, name):
    rows = rows_of_another_reader(shared_data, name)
    summed: dict[str, float] = {}
    largest: dict[str, list[float]] = {}
    for row in rows:
        if not re.search(r":\d+$", row["callpath"]):
            path = functions_only(row["callpath"])
            summed[path] = summed.get(path, 0.0) + float(row["time_incl_sum_us"])
            largest.setdefault(path, []).append(float(row["time_incl_max_us"]))
    with reader.open(shared_data / "third_party/hpctoolkit/v2" / name) as source:
        assert source.extent.processes == int(rows[0]["n_ranks"])
        tree = source.call_tree
        values = np.stack([tree.inclusive(own) for own in of_locations(source)])
        ours = by_path(tree, values.sum(axis=0))
        ours_largest = by_path(tree, values.max(axis=0))
    # One table omits values below its last row, here parts of some call paths.
    least = min(float(row["time_incl_sum_us"]) for row in rows)
    complete = 0
    for path, value in summed.items():
        if ours[path] != pytest.approx(value, rel=1e-5):
            assert 0 < least < value < ours[path]
        elif len(largest[path]) == 1:
            assert ours_largest[path] == pytest.approx(largest[path][0], rel=1e-5)
            complete += 1
    assert complete >= 16


def test_another_reader_finds_the_same_exclusive_values(reader, shared_data):
    # The other table ends before its statements do.
    name = "cpi_p4"
    exclusive: dict[str, float] = {}
    for row in rows_of_another_reader(shared_data, name):
        path = functions_only(row["callpath"])
        exclusive[path] = exclusive.get(path, 0.0) + float(row["time_excl_sum_us"])
    with reader.open(shared_data / "third_party/hpctoolkit/v2" / name) as source:
        ours = by_path(source.call_tree, of_locations(source).sum(axis=0))
    assert ours == pytest.approx(exclusive, rel=1e-5)


def inclusive_by_path(source, metric):
    values = source.reduce(metric, Reduction.SUM).exclusive
    return by_path(source.call_tree, source.call_tree.inclusive(values))


@pytest.mark.parametrize("name", ["vectorAdd", "acc_f3"])
def test_both_versions_of_a_program_agree(reader, shared_data, name):
    """Two runs of one program have equal work of the accelerator in paths of equal name."""
    folder = shared_data / "third_party" / "hpctoolkit"
    with reader.open(folder / "v2" / name) as two, reader.open(folder / "v4" / name) as four:
        compared = 0
        for metric in ("GKER:COUNT", "GXCOPY:COUNT", "GXCOPY:H2D", "GXCOPY:D2H"):
            ours, theirs = (inclusive_by_path(source, metric) for source in (two, four))
            assert ours["<program>"] == theirs["<program>"] > 0
            for path in ours.keys() & theirs.keys():
                assert ours[path] == theirs[path], path
                compared += ours[path] > 0
        assert compared >= 16
