"""Files that cause known errors in other readers, and unreadable files."""

from __future__ import annotations

import gzip
import os
import struct
import warnings

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import MetricStatus, Reduction
from callpath_modeler.readers.base import Match
from cells import cells
from cpmodel_scorep import CubexReader

TREE = cw.Tree([-1, 0, 0], ["main", "a", "b"])
MACHINE = cw.Machine([1, 1])
VALUES = np.array([[10.0, 12.0], [3.0, 4.0], [5.0, 6.0]])
TIME = cw.MetricToWrite("time", VALUES, "INCLUSIVE", unit="sec")
VISITS = cw.MetricToWrite("visits", VALUES, dtype="UINT64")


def members(metrics=(TIME, VISITS), tree=TREE, machine=MACHINE, **variant):
    return dict(cw.members_of(tree, list(metrics), machine, **variant))


def write(tmp_path, content, **layout):
    return cw.pack(tmp_path / "profile.cubex", content.items(), **layout)


def with_anchor(content, *changes):
    text = content["anchor.xml"]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return {**content, "anchor.xml": text}


def assert_reads(path):
    with CubexReader().open(path) as profile:
        got = profile.reduce("time", Reduction.SUM)
        assert got.exclusive.tolist() == [4.0, 7.0, 11.0]
        assert got.total == 22.0
        assert profile.reduce("visits", Reduction.MAX).exclusive.tolist() == [12.0, 4.0, 6.0]
        return {finding.code: finding for finding in profile.findings()}


def read_everything(path):
    with CubexReader().open(path) as profile:
        for metric in profile.metrics:
            if metric.status is MetricStatus.DATA:
                profile.reduce(metric.metric.name, Reduction.MAX)


def assert_refused(path, *words):
    with pytest.raises(InputError) as caught:
        read_everything(path)
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message
    for word in words:
        assert word in caught.value.message
    return caught.value


def test_several_roots(tmp_path):
    tree = cw.Tree([-1, 0, -1, 2], ["main", "a", "other", "b"])
    values = np.array([[3.0], [1.0], [7.0], [5.0]])
    metric = cw.MetricToWrite("time", values, "INCLUSIVE", unit="sec")
    with CubexReader().open(
        cw.write(tmp_path / "a.cubex", tree, [metric], cw.Machine([1]))
    ) as profile:
        got = profile.reduce("time", Reduction.MAX)
        assert got.exclusive.tolist() == [2.0, 1.0, 2.0, 5.0]
        assert got.total == 10.0
        assert profile.call_tree.roots.tolist() == [0, 2]


def test_an_extra_empty_block_after_a_member_that_fills_its_blocks(tmp_path):
    content = {"remapping.spec": b"x" * 1024, **members(), "misc": b"y" * 512}
    assert not assert_reads(write(tmp_path, content, tail="cube"))


def test_plain_padding_and_names_with_a_leading_dot(tmp_path):
    assert not assert_reads(write(tmp_path, members(), tail="tar", prefix="./"))


def test_checksums_of_headers_are_not_looked_at(tmp_path, monkeypatch):
    plain = cw.header
    monkeypatch.setattr(cw, "header", lambda name, size: plain(name, size, b"\0", b"9999999\0"))
    assert not assert_reads(write(tmp_path, members()))


def test_a_long_size_in_an_extended_header(tmp_path):
    content = members()
    path = tmp_path / "a.cubex"
    record = b"21 size=%011d\n" % len(content["0.data"])
    cw.pack(path, [("x", record)])
    extended = bytearray(path.read_bytes()[:1024])
    extended[156:157] = b"x"
    cw.pack(path, content.items())
    raw = bytearray(path.read_bytes())
    raw[124:136] = b"00000000000\0"
    path.write_bytes(bytes(extended) + raw)
    assert not assert_reads(path)


def test_a_file_packed_as_a_whole(tmp_path):
    path = write(tmp_path, members())
    packed = tmp_path / "profile.cubex.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert CubexReader().match(packed) is Match.CONTENT
    assert not assert_reads(packed)


def test_headers_that_claim_wrong_sizes(tmp_path):
    content = members()
    path = write(tmp_path, content)
    raw = bytearray(path.read_bytes())
    for name, size in ((b"0.data", 4), (b"1.data", 9000)):
        at = raw.find(name + b"\0")
        raw[at + 124 : at + 136] = b"%011o\0" % size
    path.write_bytes(raw)
    assert "CPM124" in assert_reads(path)


def test_dense_and_empty_indices(tmp_path):
    content = members(index="dense")
    content["1.index"] = b"CUBEX.INDEX" + struct.pack("<IHB", 1, 0, 1)
    content["1.data"] = b"CUBEX.DATA"
    with CubexReader().open(write(tmp_path, content)) as profile:
        assert profile.reduce("visits", Reduction.SUM).exclusive.tolist() == [0, 0, 0]
        assert profile.reduce("time", Reduction.SUM).total == 22.0


def test_derived_void_and_unsupported_metrics_are_listed_and_do_not_hinder_others(tmp_path):
    extra = [
        cw.MetricToWrite("ratio", VALUES, "POSTDERIVED"),
        cw.MetricToWrite("share", VALUES, "PREDERIVED_EXCLUSIVE"),
        cw.MetricToWrite("shape", VALUES, dtype="HISTOGRAM(5)"),
        cw.MetricToWrite("law", VALUES, dtype="SCALE_FUNC"),
        cw.MetricToWrite("level", VALUES, "SIMPLE"),
        cw.MetricToWrite("nothing", VALUES),
    ]
    content = with_anchor(
        members([TIME, VISITS, *extra]),
        (b"<descr>of nothing</descr>", b"<val>VOID</val>"),
        (b"<descr>of ratio</descr>", b"<cubepl rowwise=false>a < b && c</cubepl>"),
    )
    path = write(tmp_path, content)
    found = assert_reads(path)
    assert found["CPM107"].count == 5
    assert "CPM111" in found
    with CubexReader().open(path) as profile:
        status = {metric.metric.name: metric.status for metric in profile.metrics}
        assert status["ratio"] is status["share"] is MetricStatus.DERIVED
        assert status["shape"] is status["law"] is status["nothing"] is MetricStatus.UNSUPPORTED
        assert all(metric.note for metric in profile.metrics if metric.status != "data")
        with pytest.raises(KeyError):
            profile.reduce("ratio", Reduction.MAX)
        with pytest.raises(KeyError):
            profile.reduce("no such metric", Reduction.MAX)


def test_a_metric_without_type_is_exclusive(tmp_path):
    metric = cw.MetricToWrite("time", VALUES, None, unit="sec")
    with CubexReader().open(write(tmp_path, members([metric]))) as profile:
        assert profile.reduce("time", Reduction.SUM).total == 40.0


def test_ghost_metrics_are_found_under_their_own_member_names(tmp_path):
    metric = cw.MetricToWrite("bytes_sent", VALUES, unit="bytes", ghost=True)
    with CubexReader().open(write(tmp_path, members([metric]))) as profile:
        assert profile.reduce("bytes_sent", Reduction.SUM).total == 40.0


def test_several_roots_of_the_system_tree(tmp_path):
    old = b'<locationgroup Id="1">'
    second = b'</systemtreenode></systemtreenode><systemtreenode Id="7"><name>x</name>'
    second += b'<class>machine</class><systemtreenode Id="8"><name>y</name><class>node</class>'
    content = with_anchor(members(), (old, second + old))
    path = write(tmp_path, content)
    assert not assert_reads(path)
    with CubexReader().open(path) as profile:
        assert profile.extent.nodes == 2
        assert profile.extent.processes == 2


@cells(
    ("name", "written"),
    [
        ("f & g", b"f & g"),
        ("operator<", b"operator<"),
        ("caf\u00e9", b"caf\xe9"),
        ("a?b", b"a\x01b"),
        ("a?b", b"a&#1;b"),
        ("a&nbsp;b", b"a&nbsp;b"),
    ],
)
def test_names_that_are_no_xml_are_repaired(tmp_path, name, written):
    path = write(
        tmp_path, with_anchor(members(), (b"<name>a</name>", b"<name>%b</name>" % written))
    )
    assert "CPM111" in assert_reads(path)
    with CubexReader().open(path) as profile:
        assert profile.call_tree.regions[profile.call_tree.region[1]].name == name


def test_unquoted_attributes_are_repaired_and_quoted_ones_left_alone(tmp_path):
    plain = b'<attr key="note" value="a b=c d"/>\n<attr key=odd value="x<y"/>\n<metrics>'
    path = write(tmp_path, with_anchor(members(), (b"<metrics>", plain)))
    assert "CPM111" in assert_reads(path)
    with CubexReader().open(path) as profile:
        assert profile.definitions.attributes["note"] == "a b=c d"
        assert profile.definitions.attributes["odd"] == "x<y"


@pytest.mark.parametrize("codec", ["raw", "zlib"])
def test_data_that_end_early_read_as_zero_and_are_reported(tmp_path, codec):
    content = members(codec=codec)
    content["0.data"] = content["0.data"][:-10]
    with CubexReader().open(write(tmp_path, content)) as profile:
        cells = profile.per_location("time", inclusive=True)
        assert cells[:2].tolist() == VALUES[:2].tolist()
        assert not cells[2].any()
        (finding,) = profile.findings()
        assert (finding.code, finding.count) == ("CPM103", 1)


def test_deep_chains_of_calls(tmp_path):
    tree = cw.random_tree(50_000, chain=True)
    values = np.arange(50_000.0, 0, -1)[:, np.newaxis]
    metric = cw.MetricToWrite("time", values, "INCLUSIVE", unit="sec")
    with CubexReader().open(
        cw.write(tmp_path / "a.cubex", tree, [metric], cw.Machine([1]))
    ) as profile:
        assert profile.reduce("time", Reduction.MAX).exclusive.tolist() == [1.0] * 50_000
        assert profile.call_tree.end[0] == 50_000
        assert profile.inclusive("time", Reduction.MAX).tolist() == values[:, 0].tolist()


def test_tasks_are_detached(tmp_path):
    names = ["prog", "main", "TASKS", "task", "THREADS"]
    roles = dict.fromkeys(["prog", "TASKS", "THREADS"], "artificial")
    tree = cw.Tree([-1, 0, 0, 2, 0], names, roles)
    time = np.array([[10.0], [4.0], [16.0], [16.0], [5.0]])
    metrics = [
        cw.MetricToWrite("time", time, "INCLUSIVE", unit="sec"),
        cw.MetricToWrite("visits", np.ones((5, 1)), dtype="UINT64"),
    ]
    with CubexReader().open(
        cw.write(tmp_path / "a.cubex", tree, metrics, cw.Machine([1]))
    ) as profile:
        got = profile.reduce("time", Reduction.MAX)
        assert got.exclusive.tolist() == [1.0, 4.0, 5.0]
        assert got.total == 10.0
        assert profile.reduce("visits", Reduction.SUM).total == 3.0
        assert profile.per_location("time", inclusive=False)[:, 0].tolist() == [1.0, 4.0, 5.0]
        assert [(f.code, f.count) for f in profile.findings()] == [("CPM109", 2)]


def test_two_metrics_of_one_name_count_as_the_first(tmp_path):
    twin = cw.MetricToWrite("time", VALUES * 5, unit="sec")
    assert "CPM118" in assert_reads(write(tmp_path, members([TIME, VISITS, twin])))


def test_unreadable_files_are_refused_in_one_line(tmp_path):
    text, empty, folder = tmp_path / "a.cubex", tmp_path / "b.cubex", tmp_path / "c.cubex"
    text.write_text("just some text\n" * 100)
    empty.touch()
    folder.mkdir()
    assert_refused(text, "not a Cube profile")
    assert_refused(empty, "empty")
    assert_refused(folder, "directory")
    assert_refused(tmp_path / "nothing.cubex", "No such file")
    os.mkfifo(tmp_path / "pipe.cubex")
    assert_refused(tmp_path / "pipe.cubex", "device")
    assert CubexReader().match(tmp_path / "pipe.cubex") is Match.NO
    text.write_bytes(b"\x1f\x8b\x08\0 rubbish")
    assert_refused(text, "gzip")
    text.write_bytes(gzip.compress(gzip.compress(b"<cube>")))
    assert_refused(text, "gzip twice")
    text.write_bytes(gzip.compress(write(tmp_path, members()).read_bytes())[:-200])
    assert_refused(text, "gzip")


def test_an_archive_without_definitions_is_refused(tmp_path):
    content = members()
    del content["anchor.xml"]
    assert_refused(write(tmp_path, content), "anchor.xml", "missing", "cut off")
    raw = write(tmp_path, members()).read_bytes()
    path = tmp_path / "cut.cubex"
    path.write_bytes(raw[: raw.find(b"anchor.xml") - 100])
    assert_refused(path, "anchor.xml", "missing", "cut off")
    path.write_bytes(raw[: raw.find(b"<system>")])
    assert_refused(path, "definitions cannot be read")


@cells(
    ("change", "word"),
    [
        ((b"<name>a</name>", b"<name>a</eman>"), "definitions"),
        ((b'calleeId="1"', b'calleeId="99"'), "region 99"),
        ((b'calleeId="1"', b'calleeId="x"'), "not a number"),
        ((b'calleeId="1"', b""), "without"),
        ((b'<location Id="1">', b'<location Id="0">'), "the same id"),
        ((b"<type>process</type>", b"<type>metrics</type>"), "no location"),
        ((b'type="INCLUSIVE"', b'type="STRANGE"'), "STRANGE"),
        ((b"<cube version", b'<!DOCTYPE a [<!ENTITY b "c">]><cube version'), "document type"),
        ((b'<metric id="0"', b'<metric id="99999999999999999999"'), "out of range"),
        ((b'<cnode id="0"', b'<node id="0"'), "definitions"),
    ],
)
def test_definitions_that_make_no_sense_are_refused(tmp_path, change, word):
    assert_refused(write(tmp_path, with_anchor(members(), change)), word)


@cells(
    ("member", "content", "word"),
    [
        ("0.index", b"RUBBISH.INDEX.......", "not an index"),
        ("0.index", b"CUBEX.INDEX\2\0\0\0\0\0\1", "byte order"),
        ("0.index", b"CUBEX.INDEX\1\0\0\0\0\0\2", "format 2"),
        ("0.index", b"CUBEX.INDEX\1\0\0\0\0\0\1\xff\xff\xff\xff", "4294967295 rows"),
        ("0.index", b"CUBEX.INDEX\1\0\0\0\0\0\1" + b"\3\0", "20 bytes"),
        (
            "0.index",
            b"CUBEX.INDEX\1\0\0\0\0\0\1" + struct.pack("<4I", 2, 0, 1, 2),
            "index of 2 rows",
        ),
        (
            "0.index",
            b"CUBEX.INDEX\1\0\0\0\0\0\1" + struct.pack("<3I", 2, 1, 0),
            "not ascending or out of range",
        ),
        (
            "0.index",
            b"CUBEX.INDEX\1\0\0\0\0\0\1" + struct.pack("<2I", 1, 9),
            "not ascending or out of range",
        ),
        (
            "0.index",
            b"CUBEX.INDEX\1\0\0\0\0\0\1" + struct.pack("<4I", 3, 0, 1, 1),
            "not ascending or out of range",
        ),
        ("0.data", b"RUBBISH", "not the data"),
        ("0.data", b"ZCUBEX.DATA" + b"\xff" * 8, "compressed rows"),
        ("0.data", b"ZCUBEX.DATA" + struct.pack("<4Q", 1, 0, 0, 5) + b"xxxxx", "row 0"),
    ],
)
def test_broken_members_are_refused_by_name_and_place(tmp_path, member, content, word):
    changed = {**members(), member: content}
    path = write(tmp_path, changed)
    error = assert_refused(path, member, word, "byte")
    assert error.hint


@pytest.mark.parametrize("named", [0, 2])
def test_data_of_more_rows_than_the_index_names_are_refused(tmp_path, named):
    count = struct.pack(f"<{1 + named}I", named, *range(named)) if named else b""
    content = {**members(), "0.index": b"CUBEX.INDEX\1\0\0\0\0\0\1" + count}
    assert_refused(write(tmp_path, content), "0.data", f"3 rows, of which the index names {named}")


def test_members_that_lack_their_other_half_make_a_metric_unreadable(tmp_path):
    for gone, word in (("0.data", "data"), ("0.index", "index")):
        content = members()
        del content[gone]
        with CubexReader().open(write(tmp_path, content)) as profile:
            assert profile.metrics[0].status is MetricStatus.UNSUPPORTED
            assert word in profile.metrics[0].note


def test_the_run_time_is_lost_not_zero_where_nothing_of_it_is_stored(tmp_path):
    content = members()
    del content["0.data"], content["0.index"]
    with CubexReader().open(write(tmp_path, content)) as profile:
        assert profile.metrics[0].status is MetricStatus.UNSUPPORTED
        assert "missing" in profile.metrics[0].note


def test_rows_of_infinite_values_count_as_missing_without_a_warning(tmp_path):
    endless = cw.MetricToWrite("time", np.full((3, 2), np.inf), "INCLUSIVE", unit="sec")
    path = write(tmp_path, members((endless, VISITS)))
    with CubexReader().open(path) as profile, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(profile.reduce("time", Reduction.MAX).exclusive[1:]).all()


def test_compressed_definitions_that_are_broken_are_refused(tmp_path):
    content = members(gz=True)
    whole = content["anchor.xml"]
    assert not assert_reads(write(tmp_path, content))
    assert_refused(write(tmp_path, {**content, "anchor.xml": whole[:200]}), "cut off")
    damaged = whole[:50] + b"\xff\xff\xff" + whole[53:]
    assert_refused(write(tmp_path, {**content, "anchor.xml": damaged}), "definitions")


def test_profiles_are_recognised_by_content_then_by_name(tmp_path):
    reader = CubexReader()
    path = write(tmp_path, members())
    renamed = path.rename(tmp_path / "data.bin")
    assert reader.match(renamed) is Match.CONTENT
    text = tmp_path / "a.cubex"
    text.write_text("text")
    assert reader.match(text) is Match.NAME
    assert reader.match(tmp_path / "notes.txt") is Match.NO
    other = tmp_path / "other.tar"
    cw.pack(other, [("README", b"x")])
    assert reader.match(other) is Match.NO
