"""Caliper files of other projects, compared with an independent conversion and another reader."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from importlib.util import find_spec

import numpy as np
import pytest

from callpath_modeler.profile.schema import Reduction
from cpmodel_caliper import CaliperReader

SERIES = [
    ("lulesh_opal_weak", "lulesh_opal_weak.jsonl", ("p",), 5),
    ("lulesh_quartz_weak", "lulesh_quartz_weak_p8-125.jsonl", ("p", "size"), 100),
    ("sort/team6_mergesort_random", "sort/team6_mergesort_random.jsonl", ("p", "n"), 70),
    ("sort/team16_bitonic_random", "sort/team16_bitonic_random.jsonl", ("p", "n"), 70),
    ("sort/team22_samplesort_random", "sort/team22_samplesort_random.jsonl", ("p", "n"), 70),
]
_ROUNDED = 5e-10
"""The conversions have nine decimals."""


def told(path, names):
    found = dict(re.findall(r"(?<![a-z])(p|size|n)(\d+)", path.name))
    return tuple(int(found[name]) for name in names)


@pytest.mark.parametrize(("folder", "table", "names", "count"), SERIES)
def test_every_value_is_that_of_the_independent_conversion(
    shared_data, folder, table, names, count
):
    data = shared_data / "third_party" / "caliper"
    read = defaultdict(list)
    files = sorted((data / folder).glob("*.cali"))
    assert len(files) == count
    for path in files:
        with CaliperReader().open_runs(path) as runs:
            source = runs[0].source
            tree = source.call_tree
            exclusive = source.reduce("time", Reduction.MEAN).exclusive
            assert source.extent.processes == told(path, names)[0]
        inclusive = tree.inclusive(exclusive)
        for row in range(len(tree)):
            key = told(path, names), tree.path(row)
            read["time_excl_mean", key].append(exclusive[row])
            read["time_inc_mean", key].append(inclusive[row])
    expected = defaultdict(list)
    for line in (data / table).read_text().splitlines():
        row = json.loads(line)
        key = tuple(row["params"][name] for name in names), row["callpath"].replace("->", "/")
        expected[row["metric"], key].append(row["value"])
    compared = 0
    for key, values in expected.items():
        if key[0] != "time_inc_max":
            np.testing.assert_allclose(sorted(read[key]), sorted(values), rtol=1e-9, atol=_ROUNDED)
            compared += len(values)
    assert compared == 2 * len([key for key in expected.values() for _ in key]) // 3


def test_the_reader_of_calipers_authors_agrees(shared_data):
    if find_spec("caliperreader") is None:
        pytest.skip("needs caliper-reader")
    compared = 0
    for path in sorted((shared_data / "third_party" / "caliper").rglob("*.cali"))[::7]:
        for agreement in CaliperReader().verify(path):
            assert agreement.differing == 0, path
            compared += agreement.compared
    assert compared > 4000


def test_the_costs_of_every_file_add_up(shared_data):
    for path in (shared_data / "third_party" / "caliper").rglob("*.cali"):
        with CaliperReader().open_runs(path) as runs:
            reduced = runs[0].source.reduce("time", Reduction.SUM)
            assert runs[0].source.findings() == []
        assert reduced.exclusive.sum() == pytest.approx(reduced.total, rel=1e-12), path
