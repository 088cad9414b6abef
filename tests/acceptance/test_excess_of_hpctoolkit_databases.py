"""Excess work of HPCToolkit databases, compared with the formulas on their summary profiles.

This file has a second, simple reader of the databases. The summary profile contains the total S of
every context over all processes, inclusive (scope execution) and exclusive (function).
"""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.ensemble import losses

SCALES = (8, 16, 32, 64, 128)


def at(content, layout, offset):
    return struct.unpack_from("<" + layout, content, offset)


def text(content, offset):
    return content[offset : content.index(b"\0", offset)].decode()


def summary_metrics(meta):
    """Return the numbers of the sums of the first metric in the summary profile, by scope."""
    _, metrics = at(meta, "QQ", 0x30)
    (first,) = at(meta, "Q", metrics)
    _, _, summaries, _, count = at(meta, "QQQHH", first)
    found = {}
    for k in range(count):
        scope, _, combine, number = at(meta, "QQBxH", summaries + 24 * k)
        if combine == 0:
            found[text(meta, at(meta, "Q", scope)[0])] = number
    return found


def summary_values(profile):
    """Return the values of the summary profile, by context and metric."""
    _, infos = at(profile, "QQ", 0x10)
    (profiles,) = at(profile, "Q", infos)
    n_values, values, n_contexts, contexts = at(profile, "QQI4xQ", profiles)
    starts = [at(profile, "IQ", contexts + 12 * k) for k in range(n_contexts)]
    starts.append((0, n_values))
    return {
        (context, metric): value
        for (context, start), (_, end) in pairwise(starts)
        for metric, value in (at(profile, "Hd", values + 10 * k) for k in range(start, end))
    }


def totals(folder):
    """Return inclusive and exclusive totals of every call path, by names of functions."""
    meta, profile = ((folder / name).read_bytes() for name in ("meta.db", "profile.db"))
    metrics, values = summary_metrics(meta), summary_values(profile)
    _, header = at(meta, "QQ", 0x40)
    entries, count = at(meta, "QH", header)
    found: dict[tuple[str, ...], list[float]] = {}
    waiting = []
    for k in range(count):
        size, children, context = at(meta, "QQI", entries + 32 * k)
        waiting.append(((), context, True, size, children))
    while waiting:
        path, context, is_function, size, children = waiting.pop()
        if is_function:
            sums = found.setdefault(path, [0.0, 0.0])
            sums[0] += values.get((context, metrics["execution"]), 0.0)
            sums[1] += values.get((context, metrics["function"]), 0.0)
        place, end = children, children + size
        while place < end:
            inside, below, context, flags, relation, kind, words = at(meta, "QQIBBBB", place)
            called = relation == 1 and kind == 0
            assert called or (relation == 0 and kind in {1, 2})  # loops and lines
            names = path
            if called:
                assert flags & 1
                (function,) = at(meta, "Q", place + 0x20)
                names = (*path, text(meta, at(meta, "Q", function)[0]))
            waiting.append((names, context, called, inside, below))
            place += 0x20 + 8 * words
    return found


@pytest.fixture(scope="module")
def direct(shared_data):
    folder = shared_data / "hpctoolkit_synthetic" / "scal2000"
    return {p: totals(folder / f"app_{p}") for p in SCALES}


@pytest.mark.parametrize("locations", [cpm.Reduction.SUM, cpm.Reduction.MEAN])
@pytest.mark.parametrize("scaling", [cpm.Scaling.WEAK, cpm.Scaling.STRONG])
def test_the_excess_of_every_call_path_is_that_of_the_summary_profiles(
    shared_data, direct, scaling, locations
):
    folder = shared_data / "hpctoolkit_synthetic" / "scal2000"
    read = cpm.ReadOptions(locations=locations, scaling=scaling)
    found = losses(cpm.load([folder], cpm.LoadOptions(read, fold="call-sites")))
    assert found.pairs == ((8, 16), (8, 32), (8, 64), (8, 128))
    tree = found.experiment.tree
    paths = [tree.names(row) if tree.parent[row] >= 0 else () for row in range(len(tree))]
    assert len(set(paths)) == len(paths) > 1000

    def cost(p, path, flavour):
        # Every database holds 8 processes, whatever p its name says.
        return direct[p].get(path, (0.0, 0.0))[flavour] / (
            p if locations is cpm.Reduction.SUM else 8
        )

    for pair, (p, q) in enumerate(found.pairs):
        assert set(direct[p]) | set(direct[q]) == set(paths)
        # The slowest process takes less than one percent longer than the mean of all.
        run_time = float(found.run_time[found.columns(pair)[1]])
        assert 1 < run_time / (direct[q][()][0] / 8) < 1.01
        for row, path in enumerate(paths):
            for flavour, values in enumerate((found.excess.inclusive, found.excess.exclusive)):
                before, after = cost(p, path, flavour), cost(q, path, flavour)
                expected = (after - before) / run_time
                if scaling is cpm.Scaling.STRONG:
                    expected = (q * after - p * before) / (q * run_time)
                assert values[row, pair] == pytest.approx(expected, rel=1e-9, abs=1e-12)
