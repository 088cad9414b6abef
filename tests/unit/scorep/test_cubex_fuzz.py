"""Files with arbitrary bytes are read or refused, without any other error."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import Reduction
from cpmodel_scorep import CubexReader

LIMIT = 20 << 20  # bytes; no count in a small file may make the reader ask for more
REAL = [
    "scorep/variants/lulesh.p8.zlib/profile.cubex",
    "scorep/variants/lulesh_omp.p8t2/profile.cubex",
    "third_party/cubex/pycubexr/test_only_files/cube-values_example.cubex",
    "third_party/cubex/extrap_tests/single_parameter/mm.x10y1z1.r1/profile.cubex",
]


def small(tmp_path, codec):
    tree = cw.random_tree(8, roots=2, seed=1)
    machine = cw.Machine([2, 1])
    values = np.arange(24.0).reshape(8, 3)
    metrics = [
        cw.MetricToWrite("time", tree.subtree_sums(values), "INCLUSIVE", unit="sec"),
        cw.MetricToWrite("visits", values, dtype="UINT64"),
        cw.MetricToWrite("min_time", values, dtype="MINDOUBLE", unit="sec"),
        cw.MetricToWrite("bytes_sent", values, dtype="TAU_ATOMIC", unit="bytes"),
    ]
    return cw.write(tmp_path / "s.cubex", tree, metrics, machine, codec=codec).read_bytes()


def complaints(path):
    """Read everything and yield errors of this project; other errors propagate."""
    try:
        with CubexReader().open(path) as profile:
            for metric in profile.metrics:
                if metric.status.is_readable:
                    try:
                        profile.reduce(metric.metric.name, Reduction.MAX)
                        profile.reduce(metric.metric.name, Reduction.GEOMEAN)
                    except InputError as error:
                        yield error.message
            profile.findings()
    except InputError as error:
        yield error.message


def read_all(path):
    """Read everything, and return whether nothing was refused."""
    told = [*complaints(path)]
    for message in told:
        assert message.startswith(str(path))
        assert "\n" not in message
    return not told


def damaged(raw, rng, seed):
    content = bytearray(raw)
    if seed % 3 == 0:
        del content[rng.randrange(len(content)) :]
    if seed % 3 == 1:
        start = rng.randrange(len(content))
        content[start : start + 8] = rng.randbytes(8)
    for _ in range(rng.randrange(1, 20)):
        if content:
            content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content)


def fuzz(path, raw, seeds):
    path.write_bytes(raw)
    assert read_all(path)
    outcomes = set()
    tracemalloc.start()
    try:
        for seed in seeds:
            rng = random.Random(seed)
            path.write_bytes(damaged(raw, rng, seed))
            try:
                outcomes.add(read_all(path))
            except Exception as error:
                error.add_note(f"seed {seed}")
                raise
            assert tracemalloc.get_traced_memory()[1] < LIMIT, f"seed {seed}"
            tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
    # Neither is right for all of them.
    assert outcomes == {True, False}


@pytest.mark.parametrize("codec", ["raw", "zlib"])
def test_damaged_small_profiles_are_read_or_refused(tmp_path, codec):
    fuzz(tmp_path / "f.cubex", small(tmp_path, codec), range(150))


@pytest.mark.parametrize("name", REAL)
def test_damaged_measured_profiles_are_read_or_refused(tmp_path, shared_data, name):
    fuzz(tmp_path / "f.cubex", (shared_data / name).read_bytes(), range(20))


def test_damaged_cube_3_profiles_are_read_or_refused(tmp_path):
    tree, machine = cw.random_tree(8), cw.Machine([2, 1])
    metrics = [cw.MetricToWrite("time", np.arange(24.0).reshape(8, 3), unit="sec")]
    fuzz(tmp_path / "f.cube", cw.cube3(tree, metrics, machine), range(150))


def test_every_truncation_of_a_profile_is_read_or_refused(tmp_path):
    raw = small(tmp_path, "raw")
    path = tmp_path / "f.cubex"
    outcomes = set()
    for size in [*range(0, len(raw), 97), len(raw)]:
        path.write_bytes(raw[:size])
        outcomes.add(read_all(path))
    assert outcomes == {True, False}


def test_random_changes_of_definitions_are_read_or_refused(tmp_path):
    raw = small(tmp_path, "raw")
    begin, end = raw.find(b"<?xml"), raw.find(b"</cube>")
    path, outcomes = tmp_path / "f.cubex", set()
    for seed in range(200):
        rng = random.Random(seed)
        content = bytearray(raw)
        for _ in range(rng.randrange(1, 4)):
            content[rng.randrange(begin, end)] = rng.choice(b"<>/\"'& 0129azA\x00\xff-=")
        path.write_bytes(content)
        outcomes.add(read_all(path))
    assert outcomes == {True, False}
