"""Version 2: XML, with and without files of values of single threads."""

from __future__ import annotations

import struct

import pytest

from callpath_modeler.errors import InputError
from callpath_modeler.profile.schema import PROGRAM, Extent, Reduction
from callpath_modeler.readers.base import ReducedSource
from cpmodel_hpctoolkit import HpctoolkitLoopsReader
from hpctoolkit_files import XML, write, write_metric_db

RENAMED = "main/f<int>(int)"


def exclusive(source, reduction):
    tree = source.call_tree
    values = source.reduce("CPUTIME", reduction).exclusive
    return {tree.path(row): values[row] * 1e6 for row in range(len(tree))}


def test_sums_come_from_the_xml_where_nothing_else_is(reader, tmp_path):
    with reader.open(write(tmp_path)) as source:
        assert exclusive(source, Reduction.SUM) == pytest.approx(
            {PROGRAM: 0, "main": 12, RENAMED: 18}
        )
        assert source.reduce("CPUTIME", Reduction.SUM).total == pytest.approx(30e-6)
        assert source.extent == Extent(0, 0, 0)
        assert isinstance(source, ReducedSource)
        assert list(source.reductions) == [Reduction.SUM]
        assert [finding.code for finding in source.findings()] == ["CPM126"]
        with pytest.raises(ValueError, match="max cannot be computed from sums"):
            source.reduce("CPUTIME", Reduction.MAX)


def test_traces_tell_the_processes_of_sums(reader, tmp_path):
    write(tmp_path)
    for rank in range(3):
        (tmp_path / f"app-{rank:06d}-000-2a803c80-{rank}-0.hpctrace").touch()
    (tmp_path / "app-000000-500-2a803c80-0-0.hpctrace").touch()
    with reader.open(tmp_path) as source:
        assert source.extent == Extent(3, 1, 1)
        assert list(source.reductions) == [Reduction.MEAN, Reduction.SUM]
        assert exclusive(source, Reduction.MEAN)["main"] == pytest.approx(4)


def test_sums_of_a_single_thread_are_its_values(reader, tmp_path):
    write(tmp_path)
    (tmp_path / "app-000000-000-2a803c80-7-0.hpctrace").touch()
    with reader.open(tmp_path) as source:
        assert not isinstance(source, ReducedSource)
        assert exclusive(source, Reduction.MAX)["main"] == pytest.approx(12)
        assert exclusive(source, Reduction.IMBALANCE)["main"] == pytest.approx(1e6)


def test_values_of_threads_come_from_metric_db_files(reader, tmp_path):
    write(tmp_path)
    for rank, thread, factor in [(0, 0, 1.0), (0, 1, 3.0), (4, 0, 2.0), (4, 500, 9.0)]:
        write_metric_db(tmp_path, rank, thread, factor)
    with reader.open(tmp_path) as source:
        assert source.extent == Extent(2, 2, 1)
        assert exclusive(source, Reduction.SUM)["main"] == pytest.approx(12 * (3 + 2))
        assert exclusive(source, Reduction.MIN)[RENAMED] == pytest.approx(18 * 2)
        assert source.reduce("CPUTIME", Reduction.MEAN).total == pytest.approx(30e-6 * 2.5)


def test_locations_that_are_not_the_stored_sum_are_refused(reader, tmp_path):
    write(tmp_path, threads=6)
    for rank in range(3):
        write_metric_db(tmp_path, rank, 0, 2.0)
    with reader.open(tmp_path) as source:
        assert exclusive(source, Reduction.MAX)["main"] == pytest.approx(24)
    next(tmp_path.glob("*-000002-*.metric-db")).unlink()
    with reader.open(tmp_path) as source, pytest.raises(InputError, match=r"120, stored .* is 180"):
        source.reduce("CPUTIME", Reduction.MAX)


def test_values_of_threads_are_read_in_either_byte_order(reader, tmp_path):
    write(tmp_path, threads=6)
    write_metric_db(tmp_path, 0, 0, 1.0)
    write_metric_db(tmp_path, 1, 0, 5.0, order="little")
    with reader.open(tmp_path) as source:
        assert exclusive(source, Reduction.MAX)["main"] == pytest.approx(12 * 5)


def test_a_total_with_six_digits_gives_way_to_the_sum_it_rounds(reader, tmp_path):
    for printed, total in (("30.0002", 30e-6), ("31", 31e-6)):
        write(
            tmp_path,
            XML.replace('<M n="10" v="30"/><M n="12"', f'<M n="10" v="{printed}"/><M n="12"'),
        )
        with reader.open(tmp_path) as source:
            assert source.reduce("CPUTIME", Reduction.SUM).total == pytest.approx(total, rel=1e-12)


def test_a_database_of_version_2_has_no_second_copy_to_verify_with(reader, tmp_path):
    (found,) = reader.verify(write(tmp_path))
    assert found.compared == 0
    assert found.note


def test_loops_are_kept_on_request(tmp_path):
    with HpctoolkitLoopsReader().open(write(tmp_path)) as source:
        assert exclusive(source, Reduction.SUM) == pytest.approx(
            {
                PROGRAM: 0,
                "main": 0,
                "main/loop at app.c:9": 12,
                "main/loop at app.c:9/f<int>(int)": 8,
                RENAMED: 10,
            }
        )


def test_regions_keep_file_line_and_module(reader, tmp_path):
    with reader.open(write(tmp_path)) as source:
        region = source.call_tree.regions[source.call_tree.region[1]]
        assert (region.name, region.file, region.line) == ("main", "./src/app.c", 7)
        assert region.module == "app"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version="2.2"', 'version="4.0"', "version '4.0'"),
        ("</HPCToolkitExperiment>", "", "no element found"),
        ('i="6"', 'i="six"', "'six' is not a number"),
        ('v="12"', 'v="twelve"', "'twelve' is not a number"),
        ("<!ELEMENT HPCToolkitExperiment ANY>", '<!ENTITY a "aaa">', "declarations of entities"),
        ("</PF></C></PF>", "</C></PF></PF>", "mismatched tag"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(reader, tmp_path, old, new, message):
    write(tmp_path, XML.replace(old, new))
    with pytest.raises(InputError, match=message) as caught, reader.open(tmp_path):
        pass
    assert "experiment.xml" in caught.value.message
    assert "(byte " in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "extends beyond the end"),
        (b"HPCPROF-metricdb__00.10b" + struct.pack(">ii", 11, 2), "extends beyond the end"),
        (b"HPCPROF-metricdb__00.10b" + struct.pack(">ii", -1, 2), "-1 call paths"),
        (b"x" * 300, "not the header"),
        (b"HPCPROF-metricdb__00.10b" + struct.pack(">ii", 3, 2) + bytes(48), "3 call paths"),
    ],
)
def test_a_broken_metric_db_file_is_named_with_its_place(reader, tmp_path, content, message):
    write(tmp_path)
    write_metric_db(tmp_path, 0, 0, 1.0)
    name = "1.app-000001-000-a8c00270-101-0.metric-db"
    (tmp_path / name).write_bytes(content)
    with reader.open(tmp_path) as source:
        with pytest.raises(InputError, match=message) as caught:
            source.reduce("CPUTIME", Reduction.MAX)
        assert name in caught.value.message
        assert "byte 0x" in caught.value.message


WITHOUT_SUFFIX = XML.replace(" (I)", "").replace(" (E)", "")


def without(xml, *numbers):
    """Return a database without some of its metrics."""
    lines = [
        line for line in xml.splitlines() if not any(f'<Metric i="{n}"' in line for n in numbers)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "xml",
    [
        WITHOUT_SUFFIX.replace('db-id="0"', 'db-id="0" t="inclusive"'),
        WITHOUT_SUFFIX.replace(":Sum", "").replace('db-id="0"', 'db-id="0" t="inclusive"'),
        without(WITHOUT_SUFFIX, 10, 12, 13),
        without(WITHOUT_SUFFIX, 10, 12, 13).replace(' t="exclusive"', ' t="nil"'),
        without(WITHOUT_SUFFIX, 11, 12, 13),
    ],
    ids=["attributes", "no statistic", "exclusive only", "no flavour", "inclusive only"],
)
@pytest.mark.parametrize("has_files", [False, True])
def test_metrics_without_a_flavour_in_their_name_are_read(reader, tmp_path, xml, has_files):
    write(tmp_path, xml)
    if has_files:
        write_metric_db(tmp_path, 0, 0, 1.0)
    with reader.open(tmp_path) as source:
        assert exclusive(source, Reduction.SUM) == pytest.approx(
            {PROGRAM: 0, "main": 12, RENAMED: 18}
        )
        assert source.reduce("CPUTIME", Reduction.SUM).total == pytest.approx(30e-6)


def test_a_name_with_colons_is_no_statistic(reader, tmp_path):
    write(tmp_path, WITHOUT_SUFFIX.replace("CPUTIME (usec):Sum", "amd64::CYCLES"))
    with reader.open(tmp_path) as source:
        assert "amd64::CYCLES" in {declared.metric.name for declared in source.metrics}
