"""Cube files of models: other readers find the values of the ranking in them."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
import tarfile
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from callpath_modeler.analysis.answer import rank
from callpath_modeler.errors import OutputError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric, Region
from callpath_modeler.report.cube_file import Member, archive, cube_of_models
from callpath_modeler.studies import loading, pipeline
from callpath_modeler.support.atomic import write_file
from synthetic import POINTS, call_tree, experiment, fitted

P = np.array(POINTS)
LAWS = {
    "main": 1 + 0 * P,
    "main/solve": 0.5 * P**0.5 * np.log2(P),
    "main/solve/MPI_Send": 0.25 * P + 3,
    "main/solve/pack": 8 / P,  # superlinear: its lost cost is below zero
    "main/solve/late": np.where(P > 2, 2.0, np.nan),
}
SUFFIXES = {
    "": "at_largest", "_at_target": "value", "_at_target_low": "low", "_at_target_high": "high",
}  # fmt: skip


def ranking(values=LAWS, target=1024.0, **how):
    return rank(fitted(values, **how), target)


def of_tree(values, tree):
    return replace(experiment(values), tree=tree)


def content(found):
    return b"".join(cube_of_models(found).pieces)


def write(path, found):
    path.write_bytes(content(found))
    return path


def read(path):
    options = loading.LoadOptions(loading.ReadOptions(metrics=None))
    return loading.load([path], options)


def members(cube):
    with tarfile.open(fileobj=io.BytesIO(cube)) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar.getmembers()}


def parsed(cube):
    return ET.fromstring(members(cube)["anchor.xml"])  # noqa: S314 - we wrote it


def formulas(cube, number):
    """Return a function of x for each row of a metric of type SCALE_FUNC, and its measurements."""
    found = members(cube)
    rows = np.frombuffer(found[f"{number}.index"][22:], "<u4").tolist()
    data = found[f"{number}.data"][10:]
    assert len(data) == 848 * len(rows)
    functions = {}
    for place, row in enumerate(rows):
        value = data[848 * place : 848 * (place + 1)]
        terms, pairs = struct.unpack_from("<II", value)
        parts = [struct.unpack_from("<diIi", value, 8 + 20 * k) for k in range(terms)]
        seen = [struct.unpack_from("<idd", value, 8 + 20 * (terms + k)) for k in range(pairs)]
        assert not any(value[8 + 20 * (terms + pairs) :])
        functions[row] = parts, {p: mean for p, mean, _ in seen}
    return functions


def value_at(parts, x):
    return sum(a * x ** (b / c) * np.log2(x) ** d for a, b, c, d in parts)


def test_pycubexr_finds_the_values_of_the_ranking(tmp_path):
    pycubexr = pytest.importorskip("pycubexr")
    found = ranking()
    path = write(tmp_path / "models.cubex", found)
    with pycubexr.CubexParser(str(path)) as cube:
        assert [metric.name for metric in cube.all_metrics()][-3:] == [
            "time_lost", "time_excess", "time_model",
        ]  # fmt: skip
        columns = {suffix: getattr(found, name) for suffix, name in SUFFIXES.items()}
        columns |= {"_lost": found.excess.lost, "_excess": 100 * found.excess.exclusive}
        for suffix, values in columns.items():
            metric = cube.get_metric_by_name(f"time{suffix}")
            stored = cube.get_metric_values(metric)
            for row, value in enumerate(values.tolist()):
                cnode = cube.get_cnode(row)
                got = stored.cnode_values(cnode, convert_to_exclusive=True).tolist()
                assert got == [0.0 if np.isnan(value) else value]
            sums = stored.cnode_values(cube.get_cnode(0), convert_to_inclusive=True)
            assert sums == pytest.approx([np.nansum(values)])
        assert [cube.get_region(cube.get_cnode(row)).name for row in range(5)] == [
            path.rpartition("/")[2] for path in LAWS
        ]


def test_our_own_reader_finds_the_values_of_the_ranking(tmp_path):
    found = ranking()
    again = read(write(tmp_path / "models.cubex", found))
    assert again.tree.paths(range(5)) == list(LAWS)
    assert [region.paradigm for region in again.tree.regions] == [
        region.paradigm for region in found.fitted.experiment.tree.regions
    ]
    assert [each.code for each in again.findings] == ["CPM107", "CPM180"]
    assert "models of p = 1024" in again.findings[1].message
    for suffix, name in SUFFIXES.items():
        assert again.metric(f"time{suffix}").unit == "s"
        values = again.values(f"time{suffix}")[:, 0]
        np.testing.assert_array_equal(values, np.nan_to_num(getattr(found, name)))


def test_viewers_of_cube_find_the_values_of_the_ranking(tmp_path):
    if shutil.which("cube_dump") is None:
        pytest.skip("cube_dump of CubeLib is not installed, and Debian has no package of it")
    found = ranking()
    path = write(tmp_path / "models.cubex", found)
    words = ["cube_dump", "-m", "time_at_target", "-c", "all", "-x", "excl", "-s", "csv2", path]
    out = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    values = [float(line.split(",")[-1]) for line in out.splitlines()[1:]]
    assert values == pytest.approx(np.nan_to_num(found.value).tolist(), rel=1e-5)


def test_formulas_have_the_values_of_the_models():
    found = ranking()
    models = found.fitted.models
    functions = formulas(content(found), 6)
    assert set(functions) == {0, 1, 2, 3, 4}
    for row, (parts, seen) in functions.items():
        for x in (2.0, 32.0, 1024.0, 1e6):
            assert value_at(parts, x) == pytest.approx(models.values([x])[row, 0])
        measured = found.fitted.measured[row]
        assert seen == {
            int(p): mean for p, mean in zip(POINTS, measured, strict=True) if not np.isnan(mean)
        }


def test_differences_are_two_terms_and_breaks_have_no_formula():
    p = 2.0 ** np.arange(8)
    found = ranking(
        {"f": p - p ** (2 / 3), "ceiling": np.minimum(3 * p, 48), "zero": 0 * p, "g": 1 + 0 * p},
        points=p,
    )
    made = cube_of_models(found)
    functions = formulas(b"".join(made.pieces), 6)
    assert set(functions) == {0, 3}
    assert made.without_formula == 1
    models = found.fitted.models
    assert value_at(functions[0][0], 4096.0) == pytest.approx(models.values([4096.0])[0, 0])


def test_measurements_are_left_out_where_terms_need_the_room():
    p = np.arange(1.0, 61.0)
    functions = formulas(content(ranking({"f": 2 + 3 * p}, points=p)), 6)
    parts, seen = functions[0]
    assert len(parts) + len(seen) == 42
    assert max(seen) == 60


def test_scales_that_are_no_whole_numbers_are_left_out():
    p = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 3e9])
    _, seen = formulas(content(ranking({"f": 1 + 0 * p}, points=p, target=1e10)), 6)[0]
    assert set(seen) == {2, 4, 8, 16}


def test_the_same_ranking_has_the_same_bytes():
    assert content(ranking()) == content(ranking())


@pytest.mark.parametrize("scaling", [Scaling.WEAK, Scaling.STRONG])
def test_the_description_names_the_kind_of_scaling(scaling):
    text = members(content(ranking(scaling=scaling)))["anchor.xml"].decode()
    assert f"perfect {scaling} scaling from p = 2 to p = 1024" in text


def test_a_metric_that_does_not_add_up_has_neither_sums_nor_excess():
    found = ranking(metric=Metric("peak", "B", additive=False))
    root = parsed(content(found))
    declared = {m.findtext("uniq_name"): m.findtext("dtype") for m in root.iter("metric")}
    assert set(declared) == {f"peak{suffix}" for suffix in (*SUFFIXES, "_model")}
    assert declared["peak_at_target"] == "MAXDOUBLE"
    assert root.find("metrics/metric/uom").text == "bytes"


HOSTILE = (
    "a<b>&\"c'",
    "\x1b[31m",
    "]]>",
    "&amp;",
    "x" * 10_000,
    "\udc80",
    "\ufffe",
    "é€😀",
    "--!>",
)


def test_hostile_names_stay_text(tmp_path):
    regions = [Region(name, name, name, 1, name, name) for name in HOSTILE]
    n = len(regions)
    tree = CallTree.from_parents([-1] + [0] * (n - 1), range(n), regions)
    made = of_tree({f"f{k}": 1.0 + k + 0 * P for k in range(n)}, tree)
    found = rank(pipeline.fit(made), 64.0)
    root = parsed(content(found))
    assert [element.text for element in root.iter("name")][:n] == [each.name for each in regions]
    again = read(write(tmp_path / "models.cubex", found))
    assert [again.tree.name(row) for row in range(n)] == [each.name for each in regions]


def test_annotations_of_call_paths_are_read_back(tmp_path):
    notes = ["", "[n=4]", "[n=a,b,m=2=3]", "[it=1]", "(odd)", ""]
    tree = call_tree(["main", "main/f", "main/f", "main/g", "main/g", "main/h"], notes)
    made = of_tree({str(k): 1.0 + k + 0 * P for k in range(6)}, tree)
    found = rank(pipeline.fit(made), 64.0)
    again = read(write(tmp_path / "models.cubex", found))
    assert again.tree.paths(range(6)) == tree.paths(range(6))


def test_siblings_of_one_name_keep_their_numbers(tmp_path):
    tree = call_tree(["main", "main/f@1", "main/f@2"], ["", "", "#2"])
    made = of_tree({str(k): 1.0 + k + 0 * P for k in range(3)}, tree)
    found = rank(pipeline.fit(made), 64.0)
    again = read(write(tmp_path / "models.cubex", found))
    assert again.tree.paths(range(3)) == ["main", "main/f", "main/f#2"]
    assert again.values("time")[:, 0].tolist() == [1.0, 2.0, 3.0]


def test_a_deep_call_path_needs_no_recursion(tmp_path):
    depth = 5_000
    parents = np.arange(-1, depth - 1)
    tree = CallTree.from_parents(parents, np.arange(depth), [Region(f"f{k}") for k in range(depth)])
    made = of_tree({str(k): 1.0 + 0 * P for k in range(depth)}, tree)
    again = read(write(tmp_path / "models.cubex", rank(pipeline.fit(made), 64.0)))
    assert again.tree.parent.tolist() == parents.tolist()


def test_values_are_written_in_pieces_and_not_as_a_whole():
    n = 3_000
    tree = CallTree.from_parents(
        [-1] + [0] * (n - 1), np.arange(n), [Region(f"f{k}") for k in range(n)]
    )
    made = of_tree({str(k): 1.0 + k + 0 * P for k in range(n)}, tree)
    pieces = list(cube_of_models(rank(pipeline.fit(made), 64.0)).pieces)
    formulas_in_all = 848 * n
    assert sum(map(len, pieces)) > formulas_in_all
    assert max(map(len, pieces)) < 0.4 * formulas_in_all


def test_an_error_while_pieces_are_made_leaves_no_file(tmp_path):
    def pieces():
        yield b"begin"
        raise OSError(28, "No space left on device")

    path = tmp_path / "models.cubex"
    path.write_bytes(b"old")
    with pytest.raises(OutputError, match="the disk is full"):
        write_file(path, pieces(), overwrite=True)
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["models.cubex"]


def test_members_that_programs_pad_differently_are_refused():
    with pytest.raises(ValueError, match="padding"):
        list(archive([Member("a", 512, [bytes(512)])]))
    with pytest.raises(ValueError, match="3 B instead of 4 B"):
        list(archive([Member("a", 4, [bytes(3)])]))


def test_no_member_ends_with_a_whole_record():
    for length in range(400, 560):
        text = members(content(ranking({"f" * length: LAWS["main"]})))["anchor.xml"]
        assert len(text) % 512
