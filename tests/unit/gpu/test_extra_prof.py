"""Call trees of Extra-Prof: forms of nodes, and hostile contents."""

from __future__ import annotations

import struct

import msgspec
import pytest

import extra_prof_writer as ew
from callpath_modeler.errors import InputError, MalformedError
from callpath_modeler.profile.schema import Reduction
from cells import cells
from cpmodel_gpu import ExtraProfReader
from cpmodel_gpu.message_pack import unpacked

COUNTERS = ("energy_cpu", "energy_gpu", "energy")


@cells(
    "value",
    [0, 127, 128, 1 << 16, (1 << 64) - 1, -1, -33, -(1 << 63), 1.5, "", "a" * 40, "ä" * 300, None,
     True, [], [1, [2, ["x"]], []], list(range(70000))],
)  # fmt: skip
def test_every_type_of_value_is_unpacked(value):
    assert unpacked(msgspec.msgpack.encode(value)) == value


def test_lists_inside_each_other_take_no_recursion():
    depth = 100_000
    found, count = unpacked(b"\x91" * depth + b"\x90"), 0
    while found:
        found, count = found[0], count + 1
    assert count == depth


@cells("content", [b"", b"\x92\x01", b"\xdd\xff\xff\xff\xff", b"\xdb\x7f\xff\xff\xff", b"\xcb\x00",
                   b"\x81\x01\x02", b"\xc7\x01\x02", b"\xc1"])  # fmt: skip
def test_an_incomplete_object_is_refused(content):
    with pytest.raises(MalformedError):
        unpacked(content)


def test_a_list_of_a_huge_length_takes_no_memory():
    with pytest.raises(MalformedError):
        unpacked(struct.pack(">BI", 0xDD, 0xFFFFFFFF) + b"\x01" * 10)


def test_activities_that_run_at_the_same_time_are_no_calls(tmp_path):
    path = ew.write(tmp_path / "profile.extra-prof.msgpack", ew.small())
    with ExtraProfReader().open(path) as profile:
        tree = profile.call_tree
        assert not any("OVERLAP" in tree.path(row) for row in range(len(tree)))
        time = profile.reduce("time", Reduction.MAX)
        assert time.total == pytest.approx(600e-9)
        assert profile.reduce("energy_cpu", Reduction.MAX).total == pytest.approx(10e-6)


def test_the_energy_of_components_is_added_up(tmp_path):
    path = ew.write(tmp_path / "profile.extra-prof.msgpack", ew.small())
    with ExtraProfReader().open(path) as profile:
        of = {name: profile.reduce(name, Reduction.MAX).total for name in COUNTERS}
        assert of["energy"] == pytest.approx(of["energy_cpu"] + of["energy_gpu"])
        assert of["energy"] == pytest.approx(17e-6)
        assert not [each for each in profile.findings() if each.code == "CPM105"]


def test_callees_with_more_energy_than_their_caller_are_reported(tmp_path):
    callee = ew.node("callee", [50], energy=[[9], [0]])
    tree = ew.node("", [], ew.node("main", [60], callee, energy=[[5], [0]]), visits=[])
    path = ew.write(tmp_path / "profile.extra-prof.msgpack", tree)
    with ExtraProfReader().open(path) as profile:
        found = [each.message for each in profile.findings() if each.code == "CPM105"]
    assert found == [
        f"{metric}: 1 call path of callees that have more than their caller"
        for metric in ("energy_cpu", "energy")
    ]


def test_threads_are_side_by_side(tmp_path):
    path = ew.write(tmp_path / "profile.extra-prof.msgpack", ew.small(threads=2))
    with ExtraProfReader().open(path) as profile:
        assert (profile.extent.processes, profile.extent.threads) == (1, 2)
        assert profile.reduce("time", Reduction.MAX).run_time == pytest.approx(600e-9)
        assert profile.reduce("time of all threads", Reduction.MAX).total == pytest.approx(720e-9)


@cells(
    "change",
    [
        lambda node: node.__setitem__(2, 99),
        lambda node: node.__setitem__(2, []),
        lambda node: node.__setitem__(0, 5),
        lambda node: node.__setitem__(1, "x"),
        lambda node: node.__setitem__(3, "x"),
        lambda node: node.__setitem__(4, ["x"]),
        lambda node: node.__setitem__(4, [-5]),
        lambda node: node.__setitem__(4, [float("nan")]),
        lambda node: node.__setitem__(5, [1e300]),
        lambda node: node.__delitem__(slice(3, None)),
    ],
)
def test_a_node_without_meaning_is_refused(tmp_path_factory, change):
    tree = ew.small()
    change(tree[1][0])
    path = ew.write(tmp_path_factory.mktemp("a") / "a.extra-prof.msgpack", tree)
    with pytest.raises(InputError, match="node"), ExtraProfReader().open(path):
        pass
