"""Call paths of host calls from their intervals, against a stack of one moment after the other."""

from __future__ import annotations

import random

import numpy as np

from callpath_modeler.profile.schema import Region
from cells import cells
from cpmodel_gpu.host_calls import NestedCalls, ThreadCalls, nested
from cpmodel_gpu.paths import Paths


def calls_of(*calls: tuple[str, int, int], slack: int = 0) -> tuple[Paths, NestedCalls]:
    """Return the call paths of calls (name, start, end) of one thread."""
    paths = Paths()
    regions = paths.regions.numbers(Region(name) for name, *_ in calls)
    start, end = (np.array([each[k] for each in calls], np.int64) for k in (1, 2))
    return paths, nested(paths, ThreadCalls(start, end, regions), slack)


def by_path(paths: Paths, values: np.ndarray) -> dict[str, int]:
    """Return the values other than zero by the names of their call path."""
    names = [region.name for region in paths.regions.all]
    return {
        "/".join(names[k] for k in paths.regions_of(path)): int(values[path])
        for path in np.flatnonzero(values)
    }


def test_a_call_inside_another_one_is_below_it():
    paths, found = calls_of(("main", 0, 100), ("solve", 10, 60), ("send", 20, 30), ("io", 70, 90))
    assert by_path(paths, found.time) == {
        "main": 30, "main/solve": 40, "main/solve/send": 10, "main/io": 20,
    }  # fmt: skip
    assert set(by_path(paths, found.visits).values()) == {1}


def test_paths_are_in_the_order_of_the_calls_not_of_their_starts():
    paths, found = calls_of(("send", 20, 30), ("main", 0, 100), ("solve", 10, 60))
    names = [region.name for region in paths.regions.all]
    assert [names[paths.regions_of(path)[-1]] for path in found.path] == ["send", "main", "solve"]


def test_of_calls_with_the_same_start_the_longer_one_is_outside():
    paths, found = calls_of(("inner", 0, 5), ("outer", 0, 10))
    assert by_path(paths, found.time) == {"outer": 5, "outer/inner": 5}


def test_a_call_that_begins_at_the_end_of_another_one_follows_it():
    paths, found = calls_of(("first", 0, 10), ("second", 10, 20))
    assert by_path(paths, found.time) == {"first": 10, "second": 10}


def test_a_call_that_crosses_another_one_continues_outside_of_it():
    paths, found = calls_of(("a", 0, 10), ("b", 5, 20), ("c", 12, 14))
    assert by_path(paths, found.time) == {"a": 5, "a/b": 5, "b": 8, "b/c": 2}
    assert by_path(paths, found.visits) == {"a": 1, "a/b": 1, "b/c": 1}
    assert found.crossing == 1


def test_rounding_makes_no_call_cross_another_one():
    paths, found = calls_of(("a", 0, 100), ("b", 50, 101), ("c", 100, 200), slack=2)
    assert by_path(paths, found.time) == {"a": 50, "a/b": 50, "c": 100}
    assert found.crossing == 0


def test_siblings_that_overlap_by_rounding_are_siblings():
    paths, found = calls_of(("f", 0, 100), ("a", 0, 51), ("b", 50, 100), slack=2)
    assert set(by_path(paths, found.time)) >= {"f/a", "f/b"}
    assert set(by_path(paths, found.visits)) == {"f", "f/a", "f/b"}


def test_a_call_chain_is_above_calls_outside_of_ranges_only():
    paths = Paths()
    regions = paths.regions.numbers(Region(name) for name in ("main", "range", "launch"))
    chain = paths.callee(0, int(regions[0]))
    start, end = np.array([0, 5, 20]), np.array([10, 6, 21])
    below = np.array([chain, chain, chain], np.int32)
    found = nested(paths, ThreadCalls(start, end, regions[[1, 2, 2]], below))
    assert by_path(paths, found.time) == {
        "main/range": 9, "main/range/launch": 1, "main/launch": 1,
    }  # fmt: skip


def test_fifty_thousand_calls_inside_each_other_take_no_recursion():
    depth = 50_000
    calls = [("f", k, 2 * depth - k) for k in range(depth)]
    paths, found = calls_of(*calls)
    assert len(paths) == depth + 1
    assert found.time.sum() == 2 * depth


@cells("seed", range(40))
def test_each_moment_belongs_to_the_calls_that_are_open_then(seed):
    chance = random.Random(seed)
    calls, nesting = [], seed % 2 == 0
    for k in range(60 if nesting else 20):
        begin = chance.randrange(0, 200)
        stop = begin + chance.randrange(1, 60 if nesting else 30)
        calls.append((f"f{k % 7}", begin, stop))
    if nesting:
        calls = [
            (n, 2 * a, 2 * b)
            for n, a, b in calls
            if not any(a < c < b < d or c < a < d < b for _, c, d in calls)
        ]
    paths, found = calls_of(*calls)
    covered = {t for _, a, b in calls for t in range(a, b)}
    assert found.time.sum() == len(covered)
    assert found.time.min() >= 0
    assert found.visits.sum() == len(calls)
    if nesting:
        assert found.crossing == 0
        last = {t: max((a, -b, k) for k, (_, a, b) in enumerate(calls) if a <= t < b)[2]
                for t in covered}  # fmt: skip
        names = [region.name for region in paths.regions.all]
        for k, (name, *_) in enumerate(calls):
            assert names[paths.regions_of(int(found.path[k]))[-1]] == name
        by_call = np.bincount([*last.values()], minlength=len(calls))
        expected = np.bincount(found.path, by_call, minlength=len(paths))
        assert found.time.tolist() == expected.tolist()
