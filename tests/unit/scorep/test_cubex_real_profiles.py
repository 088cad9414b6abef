"""Measured profiles, compared with dumps of the reference tool and with another reader."""

from __future__ import annotations

import csv
import re
from collections import defaultdict

import numpy as np
import pytest

from callpath_modeler.profile.schema import MetricStatus, Reduction
from callpath_modeler.readers.base import Match

SCOREP = {
    "amg.p4.r1": "amg.weak/amg.p4.r1",
    "comd.p8.r1": "comd.weak/comd.p8.r1",
    "lulesh.p27.r1": "lulesh.weak/lulesh.p27.r1",
    "lulesh.p8.r1": "lulesh.weak/lulesh.p8.r1",
    "npb_ft.p8.r1": "npb_ft.strong/npb_ft.p8.r1",
    "snap.p9.r1": "snap.weak/snap.p9.r1",
    "lulesh.p8.default": "variants/lulesh.p8.default",
    "lulesh.p8.cube_tuple": "variants/lulesh.p8.cube_tuple",
    "lulesh.p8.thread_sum": "variants/lulesh.p8.thread_sum",
    "lulesh.p8.thread_tuple": "variants/lulesh.p8.thread_tuple",
    "lulesh_omp.p8t2": "variants/lulesh_omp.p8t2",
}
DUMPED = {
    "blast.p64.r1": "profile.cubex",
    "call_tree_test": "call_tree_test.cubex",
    "time.p4.n2000.x1.r0": "profile.cubex",
}
TUPLE = re.compile(r"\((\d+),[^)]*\):([^,]+),[^,\n]+")


def dumped(path):
    """Return {(cnode id, location id): {metric: value}} of a dump; tuples as their sums."""

    def as_sum(found):
        return "0" if found[1] == "0" else repr(int(found[1]) * float(found[2]))

    lines = TUPLE.sub(as_sum, path.read_text()).splitlines()
    names = [name.strip() for name in lines[0].split(",")][2:]
    table = {}
    for line in lines[1:]:
        fields = line.split(",")
        if len(fields) == len(names) + 2:
            values = dict(zip(names, map(float, fields[2:]), strict=True))
            table[int(fields[0]), int(fields[1])] = values
    return table


def assert_equal_to_dump(reader, profile_path, dump_path, *, inclusive):
    table = dumped(dump_path)
    with reader.open(profile_path) as profile:
        row_of = {number: row for row, number in enumerate(profile.layout.ids.tolist())}
        rows = [row_of[cnode] for cnode, _ in table]
        columns = [location for _, location in table]
        names = [name for name in next(iter(table.values())) if name in profile.stored]
        assert names
        for name in names:
            metric = profile.stored[name].declared.metric
            ticks = metric.unit == "ticks"
            if inclusive and (ticks or not metric.additive):
                continue  # dumps add up ticks, which are inclusive, and extremes of callees
            cells = profile.per_location(name, inclusive=inclusive or ticks)
            want = np.array([values[name] for values in table.values()])
            got = cells[rows, columns]
            # Six digits are printed; differences of inclusive times keep their rounding.
            noise = 1e-9 * np.abs(cells).max(initial=0)
            np.testing.assert_allclose(got, want, 1.1e-5, noise, err_msg=f"{profile_path} {name}")


@pytest.mark.parametrize("flavour", ["incl", "excl"])
@pytest.mark.parametrize("name", SCOREP)
def test_every_value_equals_the_dump_of_the_reference_tool(reader, shared_data, name, flavour):
    dump = shared_data / "scorep" / "oracle" / f"{name}.{flavour}.csv"
    path = shared_data / "scorep" / SCOREP[name] / "profile.cubex"
    assert_equal_to_dump(reader, path, dump, inclusive=flavour == "incl")


@pytest.mark.parametrize("flavour", ["incl", "excl"])
@pytest.mark.parametrize("name", DUMPED)
def test_every_value_equals_dumps_shipped_with_third_party_profiles(
    reader, shared_data, name, flavour
):
    folder = shared_data / "third_party" / "cubex" / "pycubexr" / name
    path = folder / DUMPED[name]
    assert_equal_to_dump(reader, path, folder / f"{flavour}.csv", inclusive=flavour == "incl")


@pytest.mark.parametrize("table", ["cubex_lulesh_daint.csv", "cubex_metacg_002.csv"])
def test_reductions_equal_what_another_reader_computed(reader, shared_data, table):
    third_party = shared_data / "third_party"
    by_file = defaultdict(list)
    with (third_party / "expected" / table).open() as lines:
        for line in csv.DictReader(lines):
            by_file[line["file"]].append(line)
    for name, lines in by_file.items():
        with reader.open(third_party / name.removeprefix("dev/")) as profile:
            assert profile.extent.processes == int(lines[0]["n_locations"])
            computed = {
                "visits_excl_sum": profile.reduce("visits", Reduction.SUM).exclusive,
                "time_incl_sum_s": profile.inclusive("time", Reduction.SUM),
                "time_excl_sum_s": profile.reduce("time", Reduction.SUM).exclusive,
                "time_incl_max_s": profile.inclusive("time", Reduction.MAX),
            }
            tree = profile.call_tree
            row_of = {tree.path(row): row for row in range(len(tree))}
            for line in lines:
                names = line["callpath"].split("->")
                row = row_of["/".join(names[1:]) if len(names) > 1 else "<program>"]
                for column, values in computed.items():
                    want = float(line[column])
                    assert values[row] == pytest.approx(want, rel=1e-7, abs=1e-7), line


def measured_profiles(shared_data):
    """Return the profiles of measurement tools, without those that must be refused."""
    measured = ("scorep", "third_party")
    return sorted(path for name in measured for path in (shared_data / name).rglob("*.cubex"))


def test_every_profile_opens_and_reduces(reader, shared_data):
    paths = measured_profiles(shared_data)
    assert len(paths) > 200
    for path in paths:
        assert reader.match(path) is Match.CONTENT
        with reader.open(path) as profile:
            readable = [m for m in profile.metrics if m.status is MetricStatus.DATA]
            first = next(m for m in readable if m.metric.additive).metric.name
            got = profile.reduce(first, Reduction.SUM)
            assert len(got.exclusive) == len(profile.call_tree)


def test_pycubexr_agrees_wherever_it_can_read(reader, shared_data):
    compared = 0
    for path in measured_profiles(shared_data):
        if re.search(r"\.r[2-5]$", path.parent.name):
            continue
        for agreement in reader.verify(path):
            assert agreement.differing == 0, (path, agreement)
            assert agreement.compared or agreement.note, (path, agreement)
            compared += agreement.compared
    assert compared > 500_000


def test_shares_of_time_add_up_to_the_run(reader, shared_data):
    for run in ("amg.weak/amg.p16.r1", "snap.weak/snap.p9.r1", "comd.weak/comd.p64.r1"):
        with reader.open(shared_data / "scorep" / run / "profile.cubex") as profile:
            got = profile.reduce("time", Reduction.SUM)
            assert got.exclusive.sum() == pytest.approx(got.total, rel=1e-9)
            assert not profile.findings()


def test_an_archive_with_wrong_sizes_in_its_headers_is_read_like_a_sound_one(reader, shared_data):
    variants = shared_data / "scorep" / "variants"
    with (
        reader.open(variants / "lulesh.p8.zlib" / "profile.cubex") as broken,
        reader.open(variants / "lulesh.p8.default" / "profile.cubex") as sound,
    ):
        assert {f.code for f in broken.findings()} == {"CPM124"}
        for name in ("visits", "bytes_sent", "bytes_received"):
            got = broken.reduce(name, Reduction.SUM)
            assert got.exclusive.tolist() == sound.reduce(name, Reduction.SUM).exclusive.tolist()
        assert broken.reduce("time", Reduction.MAX).total == pytest.approx(1.1, rel=0.3)


@pytest.mark.parametrize(
    ("variant", "codes"),
    [
        ("lulesh.p8.default", set()),
        ("lulesh.p8.cube_tuple", set()),
        ("lulesh.p8.thread_sum", {"CPM108"}),
        ("lulesh.p8.thread_tuple", {"CPM108"}),
        ("lulesh.p8.key_threads", {"CPM108"}),
        ("lulesh.p8.cluster_threads", {"CPM108"}),
        ("lulesh_omp.p8t2", set()),
    ],
)
def test_formats_whose_columns_are_no_threads_are_recognised(reader, shared_data, variant, codes):
    path = shared_data / "scorep" / "variants" / variant / "profile.cubex"
    with reader.open(path) as profile:
        assert {finding.code for finding in profile.findings()} == codes
        assert profile.extent.processes == 8
        assert profile.extent.threads == (0 if codes else 2 if "omp" in variant else 1)
        assert profile.extent.nodes == 1
        assert profile.metadata["command line"].endswith(("-s 8 -i 10", "-s 8 -i 5"))
        assert profile.metadata["program"] == "lulesh2.0"
        assert profile.metadata["creator"] == "Score-P 8.4"
