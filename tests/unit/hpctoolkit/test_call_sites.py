"""Call sites: calls of one function from several lines of one caller."""

from __future__ import annotations

import json
import zlib

import numpy as np
import pytest

import call_sites
import callpath_modeler as cpm
from call_sites import COSTS, EXCESS, contexts, write_run, write_series
from callpath_modeler import store
from callpath_modeler.analysis.excess_work import measured_excess
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.profile.pattern import find_one, match
from callpath_modeler.readers.base import CallSiteSource
from cpmodel_hpctoolkit import HpctoolkitReader
from hpctoolkit_files import write

WEAK = cpm.ReadOptions(scaling=cpm.Scaling.WEAK)
SITES = [f"main/exchange:{line}" for line in EXCESS]


def loaded(folder, read=WEAK, **options):
    return cpm.load([folder], cpm.LoadOptions(read, **options))


def paths(experiment):
    return [experiment.tree.path(row) for row in range(len(experiment.tree))][1:]


def excess_of(experiment):
    found = measured_excess(experiment, "REALTIME", "p", 4, 64)
    return dict(zip(paths(experiment), found.inclusive[1:].tolist(), strict=True))


def test_three_calls_of_a_function_lose_56_3_and_0_percent(tmp_path):
    found = loaded(write_series(tmp_path))
    assert paths(found) == ["main", *SITES]
    excess = excess_of(found)
    assert [excess[path] for path in SITES] == pytest.approx([0.56, 0.03, 0.0], abs=1e-12)
    assert found.tree.site.tolist() == [-1, -1, 31, 57, 80]


def test_calls_are_joined_on_request(tmp_path):
    found = loaded(write_series(tmp_path), fold="call-sites")
    assert paths(found) == ["main", "main/exchange"]
    assert excess_of(found)["main/exchange"] == pytest.approx(0.59)
    assert not found.findings


def test_joined_calls_have_the_maximum_of_their_sum(tmp_path):
    # Two processes, each slow in another call: the maxima of the calls add up to more.
    known = contexts(sites=(31, 57))
    own = np.zeros((2, len(known)))
    places = [k for k, scope in enumerate(known) if scope.line == 5]
    own[0, places], own[1, places] = (3, 1), (1, 3)
    ranks = [
        call_sites.Measured({"RANK": rank, "THREAD": 0}, {"REALTIME (sec)": own[rank]})
        for rank in range(2)
    ]
    call_sites.write_database(tmp_path / "app.p2", known, ranks)
    read = cpm.ReadOptions(locations=cpm.Reduction.MAX)
    assert loaded(tmp_path, read, fold="call-sites").values()[2, 0] == 4
    assert loaded(tmp_path, read).values()[2:, 0].tolist() == [3, 3]


def test_a_single_call_has_no_line_in_its_name(tmp_path):
    write_run(tmp_path / "app.p4", 4, COSTS[4][:2], contexts(sites=(31,)))
    found = loaded(tmp_path)
    assert paths(found) == ["main", "main/exchange"]
    assert found.tree.ids() == loaded(tmp_path, fold="call-sites").tree.ids()


def test_a_call_in_a_loop_has_its_line(tmp_path):
    write_series(tmp_path, loop=True)
    assert paths(loaded(tmp_path)) == ["main", *SITES]
    with_loops = loaded(tmp_path, reader="hpctoolkit-loops")
    assert sorted(paths(with_loops)) == [
        "main",
        "main/exchange:57",
        "main/exchange:80",
        "main/loop at main.c:30",
        "main/loop at main.c:30/exchange",
    ]


def test_a_pattern_without_a_line_names_all_calls(tmp_path):
    tree = loaded(write_series(tmp_path)).tree
    assert match(tree, "main/exchange").sum() == 3
    assert match(tree, "**/ex*").sum() == 3
    assert tree.path(find_one(tree, "main/exchange:57")) == "main/exchange:57"
    with pytest.raises(UsageError, match="names 3 call paths"):
        find_one(tree, "exchange")


def test_runs_are_united_by_line(tmp_path):
    # Each run has sampled other calls; the call in line 57 is the only one that both have.
    write_run(tmp_path / "app.p4", 4, COSTS[4][:3], contexts(sites=(31, 57)))
    write_run(tmp_path / "app.p64", 64, (20.0, 8.0, 9.0), contexts(sites=(57, 80)))
    found = loaded(tmp_path)
    assert paths(found) == ["main", *SITES]
    np.testing.assert_array_equal(found.values()[1:], [[20, 20], [4, np.nan], [7, 8], [np.nan, 9]])


def test_an_edit_above_the_caller_changes_no_call(tmp_path):
    write_run(tmp_path / "app.p4", 4, COSTS[4])
    write_run(tmp_path / "app.p64", 64, COSTS[64], contexts(shift=7))
    assert excess_of(loaded(tmp_path)) == pytest.approx(
        {"main": 0.59, **dict(zip(SITES, EXCESS.values(), strict=True))}
    )


def test_runs_without_lines_join_the_calls_of_all(tmp_path):
    write_run(tmp_path / "app.p4", 4, COSTS[4])
    write_run(tmp_path / "app.p64", 64, (20.0, 80.0), contexts(sites=(0,)))
    found = loaded(tmp_path)
    assert paths(found) == ["main", "main/exchange"]
    assert [finding.code for finding in found.findings if finding.code != "CPM125"] == ["CPM148"]
    assert found.values()[2].tolist() == [21, 80]


def test_version_2_keeps_call_sites(tmp_path):
    with HpctoolkitReader().open(write(tmp_path / "app.p2")) as source:
        assert isinstance(source, CallSiteSource)
        tree = source.with_call_sites().call_tree
        sites = {tree.path(row): int(tree.site[row]) for row in range(len(tree))}
        # The inlined call has no line; the other is called in line 11.
        assert sorted(tree.site.tolist()) == [-1, -1, -1, 11]
        assert sites["main"] == -1


@pytest.mark.parametrize(
    "lines", [np.array([-1, -1, 31, 57], "<i4"), np.array([-1, -1, -9, 57, 80], "<i4")]
)
def test_a_store_with_impossible_lines_is_broken(tmp_path, lines):
    folder = write_series(tmp_path / "runs")
    for p in (8, 16, 32):
        write_run(folder / f"app.p{p}", p, COSTS[4])
    path = tmp_path / "s.cpm"
    store.write([cpm.fit(loaded(folder))], path)
    np.save(path / "sites.npy", lines)
    header, checksums = path / "header.json", path / "checksums.json"
    content = json.loads(header.read_text())
    content["arrays"]["sites"] = ["<i4", list(lines.shape)]
    header.write_text(json.dumps(content))
    sums = json.loads(checksums.read_text())
    for name in ("header.json", "sites.npy"):
        sums[name] = zlib.crc32((path / name).read_bytes())
    checksums.write_text(json.dumps(sums))
    with pytest.raises(InputError, match=r"line"):
        loaded(path)


@pytest.mark.parametrize("fold", [(), "call-sites"])
def test_a_store_keeps_call_sites(tmp_path, fold):
    folder = write_series(tmp_path / "runs")
    for p in (8, 16, 32):
        write_run(folder / f"app.p{p}", p, COSTS[4])
    store.write([cpm.fit(loaded(folder))], tmp_path / "s.cpm")
    again = loaded(tmp_path / "s.cpm", fold=fold)
    assert paths(again) == paths(loaded(folder, fold=fold))
    assert again.tree.is_same_as(loaded(folder, fold=fold).tree)
    np.testing.assert_allclose(again.values(), loaded(folder, fold=fold).values())
