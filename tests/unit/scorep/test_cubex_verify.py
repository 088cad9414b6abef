from __future__ import annotations

import warnings

import numpy as np
import pytest

import cube_writer as cw
from cpmodel_scorep import CubexReader, rows


def metrics_for(tree, columns):
    rng = np.random.default_rng(3)
    values = rng.integers(1, 99, (len(tree), columns)).astype(float)
    present = np.arange(len(tree)) % 3 != 1
    return [
        cw.MetricToWrite("visits", values, dtype="UINT64"),
        cw.MetricToWrite("time", tree.subtree_sums(values), "INCLUSIVE", unit="sec"),
        cw.MetricToWrite("min_time", values, dtype="MINDOUBLE", unit="sec"),
        cw.MetricToWrite("max_time", values, dtype="MAXDOUBLE", unit="sec"),
        cw.MetricToWrite("sent", values, dtype="TAU_ATOMIC", unit="bytes", present=present),
        cw.MetricToWrite(
            "ins", values.astype("i8").view("u8") - np.uint64(50), "EXCLUSIVE", "UINT64"
        ),
    ]


@pytest.fixture
def profile_path(tmp_path):
    tree, machine = cw.random_tree(20, seed=2), cw.Machine([2, 2], ids=[0, 2, 1, 3])
    return cw.write(tmp_path / "a.cubex", tree, metrics_for(tree, 4), machine)


def test_both_readers_agree_on_every_value(profile_path):
    agreements = CubexReader().verify(profile_path)
    assert [agreement.metric for agreement in agreements] == [
        "visits",
        "time",
        "min_time",
        "max_time",
        "sent",
        "ins",
    ]
    assert [agreement.compared for agreement in agreements] == [80, 80, 80, 80, 52, 80]
    assert all(not a.differing and not a.note for a in agreements)


def test_a_wrong_value_is_counted(profile_path, monkeypatch):
    right = rows.RawRows.read

    def wrong(self, first, stop, out):
        right(self, first, stop, out)
        out[0, 0] += 1

    monkeypatch.setattr(rows.RawRows, "read", wrong)
    assert [a.differing for a in CubexReader().verify(profile_path)] == [1] * 6


def test_a_row_in_the_wrong_place_is_counted(profile_path, monkeypatch):
    right = rows.read_index

    def wrong(container, member, call_paths):
        index = right(container, member, call_paths)
        return rows.Index(index.byte_order, np.roll(index.numbers, 1))

    monkeypatch.setattr("cpmodel_scorep.profile.read_index", wrong)
    assert all(a.differing > 0 for a in CubexReader().verify(profile_path))


def test_what_the_other_reader_cannot_open_is_said(tmp_path):
    tree, machine = cw.random_tree(20, roots=2), cw.Machine([1])
    path = cw.write(tmp_path / "a.cubex", tree, metrics_for(tree, 1), machine)
    for agreement in CubexReader().verify(path):
        assert agreement.compared == 0
        assert agreement.note.startswith("pycubexr cannot open the file: AssertionError")


def test_what_the_other_reader_cannot_read_is_said_and_the_rest_compared(tmp_path):
    tree, machine = cw.random_tree(20), cw.Machine([1])
    metrics = metrics_for(tree, 1)
    content = dict(cw.members_of(tree, metrics, machine))
    content["0.index"] = cw.rows_of(metrics[0], tree, index="dense")[0]
    del content["5.index"], content["5.data"]
    path = cw.pack(tmp_path / "a.cubex", content.items())
    visits, _, low, *_, instructions = CubexReader().verify(path)
    assert visits.note.startswith("pycubexr cannot read it: error")
    assert instructions.note == "absent in both readers"
    assert (low.compared, low.differing) == (20, 0)


def test_comparing_leaves_warnings_and_logs_as_they_were(profile_path):
    before = list(warnings.filters)
    CubexReader().verify(profile_path)
    assert warnings.filters == before
