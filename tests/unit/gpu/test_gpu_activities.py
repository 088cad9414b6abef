"""Busy, idle and exposed time of GPU activities, against counts of single moments."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cpmodel_gpu import activities
from cpmodel_gpu.activities import Activities, Copy, DeviceWork, Intervals


def work_of(rows: list[tuple[int, int, int, int, int]], block: int = 1000) -> DeviceWork:
    """Return the work of activities (start, end, path, device, stream)."""
    work = DeviceWork()
    for first in range(0, len(rows), block):
        start, end, path, device, stream = np.array(rows[first : first + block], np.int64).T
        work.add(Activities(start, end, path.astype(np.int32), device, stream))
    return work


def value(values, key: str, path: int = 0) -> int:
    """Return the value of a metric on a call path."""
    at, found = values[key]
    return int(found[at == path].sum())


NEVER = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def test_busy_time_is_the_union_and_time_the_sum_over_streams():
    work = work_of([(0, 10, 3, 0, 1), (5, 12, 4, 0, 2), (20, 30, 3, 0, 1)])
    found = work.values((0, 40), NEVER)
    assert value(found, "time", 3) == 20
    assert value(found, "time", 4) == 7
    assert value(found, "visits", 3) == 2
    assert value(found, "busy") == 22
    assert value(found, "idle") == 18
    assert (work.devices, work.streams) == (1, 2)


def test_devices_are_busy_beside_each_other():
    found = work_of([(0, 10, 3, 0, 1), (0, 10, 3, 7, 1)]).values((0, 10), NEVER)
    assert value(found, "busy") == 20
    assert value(found, "idle") == 0


def test_time_is_exposed_while_an_activity_runs_alone_and_the_host_waits():
    rows = [(0, 10, 3, 0, 1), (5, 12, 4, 0, 2), (20, 30, 5, 0, 1)]
    waits = Intervals.union(np.array([2, 25]), np.array([20, 28]))
    found = work_of(rows).values((0, 40), waits)
    assert value(found, "exposed", 3) == 3
    assert value(found, "exposed", 4) == 2
    assert value(found, "exposed", 5) == 3


def test_bytes_are_summed_by_direction():
    work = DeviceWork()
    one = np.ones(3, np.int64)
    copies = np.array([Copy.TO_DEVICE, Copy.TO_HOST, Copy.TO_DEVICE], np.int64)
    copied = np.array([100, 7, 11])
    work.add(Activities(0 * one, one, np.array([1, 1, 2], np.int32), one, one, copied, copies))
    found = work.values((0, 1), NEVER)
    assert value(found, "bytes_host_to_device", 1) == 100
    assert value(found, "bytes_host_to_device", 2) == 11
    assert value(found, "bytes_device_to_host", 1) == 7


@pytest.mark.parametrize("seed", range(30))
def test_values_equal_counts_of_single_moments(seed, monkeypatch):
    monkeypatch.setattr(activities, "_BLOCK", 7)
    chance = random.Random(seed)
    rows = []
    for _ in range(50):
        start = chance.randrange(300)
        row = start, start + chance.randrange(20), chance.randrange(1, 5), chance.randrange(2)
        rows.append((*row, 1))
    waiting = [(a, a + 30) for a in range(0, 300, 50)]
    begin, stop = (np.array(each) for each in zip(*waiting, strict=True))
    found = work_of(rows, 11).values((0, 400), Intervals.union(begin, stop))
    exposed, busy = dict.fromkeys(range(1, 5), 0), 0
    for t in range(400):
        running = [row for row in rows if row[0] <= t < row[1]]
        busy += len({row[3] for row in running})
        if len(running) == 1 and any(a <= t < b for a, b in waiting):
            exposed[running[0][2]] += 1
    assert value(found, "busy") == busy
    assert value(found, "idle") == 800 - busy
    assert {path: value(found, "exposed", path) for path in exposed} == exposed
