"""Values of processes of measured profiles, against pycubexr, otf2 and the databases themselves."""

from __future__ import annotations

import logging
import struct
import tarfile
import warnings
import zlib
from collections import defaultdict
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from callpath_modeler.errors import DataError
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.studies.loading import load
from callpath_modeler.studies.process_profile import process_profile

CUBES = (
    "scorep/amg.weak/amg.p16.r2",
    "scorep/comd.weak/comd.p32.r1",
    "scorep/lulesh.weak/lulesh.p64.r3",
    "scorep/npb_ft.strong/npb_ft.p16.r1",
    "scorep/snap.weak/snap.p16.r1",
    "scorep/variants/lulesh_omp.p8t2",
    "third_party/cubex/lulesh_daint/lulesh.p64.size30.r1",
    "third_party/cubex/pycubexr/kripke.p8.d2.g32.r1",
    "third_party/cubex/pycubexr/blast.p64.r1",
    "third_party/cubex/extrap_tests/simple_threaded/example.f3",
)
METRICS = ("time", "visits", "bytes_sent")


def rank_of_locations(path):
    """Return the rank of the process of each location, in order of location ids."""
    with tarfile.open(path) as archive:
        raw = archive.extractfile("anchor.xml").read()
    text = zlib.decompressobj(47).decompress(raw) if raw[:1] in (b"\x1f", b"\x78") else raw
    found = {}
    for group in ET.fromstring(text.rstrip(b"\0")).iter("locationgroup"):  # noqa: S314 - our files
        for location in group.iter("location"):
            found[int(location.get("Id"))] = int(group.findtext("rank"))
    return [found[number] for number in sorted(found)]


def by_pycubexr(path, metric):
    """Return exclusive and inclusive values [locations] of each call path, by names."""
    from pycubexr import CubexParser

    found = {}
    with CubexParser(str(path)) as cube:
        stored = cube.get_metric_values(cube.get_metric_by_name(metric), cache=False)
        count = len(cube.get_locations())

        def of(node):
            if node.id not in stored.cnode_indices:
                return np.zeros(count)
            return np.array(stored.cnode_values(node), float)

        nodes, order = [((), node) for node in cube.get_root_cnodes()], []
        while nodes:
            above, node = nodes.pop()
            names = (*above, cube.get_region(node).name)
            order.append((names, node))
            nodes += [(names, each) for each in node.get_children()]
        is_inclusive = "INCLUSIVE" in str(cube.get_metric_by_name(metric).metric_type)
        whole = {}
        for names, node in reversed(order):  # callees come first
            callees = node.get_children()
            if is_inclusive:
                own = of(node) - sum(map(of, callees), np.zeros(count))
                whole[node.id] = of(node)
            else:
                own = of(node)
                whole[node.id] = own + sum((whole[c.id] for c in callees), np.zeros(count))
            known = found.setdefault(names, np.zeros((2, count)))
            known += own, whole[node.id]
    return found


def _longest(totals, starts):
    """Return the longest thread of each process: the first one, unless another is 2 % longer."""
    found = []
    for begin, end in zip(starts, [*starts[1:], len(totals)], strict=True):
        own = totals[begin:end]
        found.append(begin + (0 if own[0] >= 0.98 * own.max() else int(own.argmax())))
    return found


@pytest.fixture
def silent():
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("run", CUBES)
def test_values_of_a_cube_profile_are_those_of_pycubexr(shared_data, run):
    (path,) = (shared_data / run).glob("*.cubex")
    ranks = np.array(rank_of_locations(path))
    compared = 0
    for metric in METRICS:
        experiment = load([path]) if metric == "time" else _with(path, metric)
        if experiment is None:
            continue
        tree = experiment.tree
        order = np.argsort(ranks, kind="stable")
        starts = np.flatnonzero(np.diff(ranks[order], prepend=-1))
        if metric == "time":
            roots = [values[1] for names, values in by_pycubexr(path, metric).items()
                     if len(names) == 1]  # fmt: skip
            longest = _longest(sum(roots)[order], starts)
        for names, values in _chosen(by_pycubexr(path, metric)):
            # The program, which newer files have as the root, is no caller in the experiment.
            rows = [k for k in range(len(tree)) if tree.names(k) in (names, names[1:] or None)]
            if len(rows) != 1:
                continue
            for inclusive in (False, True):
                found = process_profile(experiment, rows, metric, inclusive=inclusive).values[0]
                cells = values[int(inclusive)][order]
                expected = np.add.reduceat(cells, starts)
                if metric == "time":
                    expected = cells[longest]
                scale = np.abs(values[1]).max() + 1e-30
                np.testing.assert_array_equal(found.ranks, np.unique(ranks))
                np.testing.assert_allclose(found.values, expected, rtol=1e-9, atol=1e-9 * scale)
                compared += len(found)
    assert compared >= 24


def _with(path, metric):
    """Return the experiment with a metric, or None if the profile does not have it."""
    experiment = load([path], _all())
    known = experiment.columns.get(metric)
    return None if known is None or not known.exclusive.any() else experiment


def _all():
    from callpath_modeler.readers.assemble import ReadOptions
    from callpath_modeler.studies.loading import LoadOptions

    return LoadOptions(ReadOptions(metrics=None))


def _chosen(values):
    """Return the costliest call paths, exclusive and inclusive, and some others."""
    by_cost = sorted(values, key=lambda names: -values[names][0].sum())
    wide = sorted(values, key=lambda names: -values[names][1].sum())
    names = dict.fromkeys([*by_cost[:3], *wide[:2], *list(values)[:: max(1, len(values) // 3)]])
    return [(each, values[each]) for each in names]


def by_otf2(path, ranks):
    """Return exclusive times, inclusive times and visits [ranks] of call paths, by names."""
    import otf2

    found = defaultdict(lambda: np.zeros((3, ranks)))
    with otf2.reader.open(str(path)) as trace:
        stacks = defaultdict(list)
        for location, event in trace.events:
            rank, stack = int(location.group.name.rpartition(" ")[2]), stacks[location]
            if isinstance(event, otf2.events.Enter):
                stack.append([event.region.name, event.time, 0])
                found[tuple(each[0] for each in stack)][2, rank] += 1
            elif isinstance(event, otf2.events.Leave):
                names = tuple(each[0] for each in stack)
                _, entered, below = stack.pop()
                lasted = (event.time - entered) / trace.timer_resolution
                if stack:
                    stack[-1][2] += lasted
                found[names][:2, rank] += lasted - below, lasted
    return found


@pytest.mark.parametrize("run", ["npb_is.trace/p8", "snap.trace/p9"])
def test_values_of_a_trace_are_those_that_otf2_counts(shared_data, run):
    path = shared_data / "scorep" / "traces" / run / "traces.otf2"
    experiment = load([path], _all())
    tree, ranks = experiment.tree, experiment.runs[0].extent.processes
    compared = 0
    for names, values in sorted(by_otf2(path, ranks).items())[::7]:
        rows = [k for k in range(len(tree)) if tree.names(k) in (names, names[1:] or None)]
        if len(rows) != 1:
            continue
        asked = (("time", False), ("time", True), ("visits", False))
        for (metric, inclusive), expected in zip(asked, values, strict=True):
            found = process_profile(experiment, rows, metric, inclusive=inclusive).values[0]
            assert found.ranks.tolist() == list(range(ranks))
            np.testing.assert_allclose(found.values, expected, rtol=1e-9, atol=1e-9)
            compared += 1
    assert compared >= 9


def test_ranks_of_a_trace_have_their_nodes(shared_data):
    import otf2

    path = shared_data / "third_party" / "otf2" / "stencil4d_p32" / "traces.otf2"
    with otf2.reader.open(str(path)) as trace:
        groups = {location.group for location in trace.definitions.locations}
        nodes = {
            int(group.name.rpartition(" ")[2]): group.system_tree_parent.name for group in groups
        }
    found = process_profile(load([path]), [0])
    assert found.ranks.tolist() == list(range(32))
    assert found.nodes() == tuple(nodes[rank] for rank in range(32))
    assert len({*found.nodes()}) == 2


def test_values_of_an_old_database_are_those_of_its_files(shared_data):
    folder = shared_data / "third_party" / "hpctoolkit" / "v2" / "osu_allgather_p10x2"
    totals = defaultdict(list)
    for file in sorted(folder.glob("*.metric-db")):
        raw = file.read_bytes()
        nodes, metrics = struct.unpack(">II", raw[-8 * ((len(raw) - 32) // 8) - 8 :][:8])
        values = np.frombuffer(raw, ">f8", nodes * metrics, len(raw) - 8 * nodes * metrics)
        rank = int(file.name.split("-")[1])
        totals[rank].append(values.reshape(nodes, metrics)[:, 0].max() * 1e-6)
    experiment = load([folder])
    roots = np.flatnonzero(experiment.tree.parent == ROOT)
    found = process_profile(experiment, roots, inclusive=True).values[0]
    assert found.ranks.tolist() == sorted(totals)
    assert found.threads.tolist() == [2] * 10
    np.testing.assert_allclose(found.values, [max(totals[k]) for k in sorted(totals)], rtol=1e-6)
    np.testing.assert_allclose(found.lowest, [min(totals[k]) for k in sorted(totals)], rtol=1e-6)
    assert set(found.placement.nodes) == {"a8c00471"}


@pytest.mark.parametrize("run", ["v4/ping-pong_p2", "v4/multithread"])
def test_values_of_a_database_are_the_totals_that_it_stores(shared_data, run):
    from cpmodel_hpctoolkit.reader import HpctoolkitReader

    folder = shared_data / "third_party" / "hpctoolkit" / run
    experiment = load([folder])
    roots = np.flatnonzero(experiment.tree.parent == ROOT)
    found = process_profile(experiment, roots, inclusive=True).values[0]
    with HpctoolkitReader().open(folder) as profile:
        name = found.metric.name
        measure, scale = profile.stored[name].measure, profile.stored[name].scale
        stored = [
            [profile.database.of_location(measure, place).total * scale for place in threads]
            for threads in profile.database.places.threads
        ]
    fold = max if found.metric.is_time else sum
    np.testing.assert_allclose(found.values, [fold(each) for each in stored], rtol=1e-9)
    assert found.values.sum() > 0


def test_sums_over_processes_have_no_values_of_processes(shared_data):
    path = shared_data / "third_party/caliper/lulesh_opal_weak/lulesh.p27.size30.r1.cali"
    experiment = load([path])
    with pytest.raises(DataError, match="its values are sums over processes"):
        process_profile(experiment, [0])
