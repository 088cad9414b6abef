"""Costs of single lines, and their excess work."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import callpath_modeler as cpm
from call_sites import COSTS, contexts, write_run, write_series
from callpath_modeler.analysis.further_excess import line_losses
from callpath_modeler.profile.pattern import find_one
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import LineSource
from callpath_modeler.studies.study import Study
from callpath_modeler.testing.hpctoolkit import write_database
from cpmodel_hpctoolkit import HpctoolkitLoopsReader, HpctoolkitReader
from hpctoolkit_files import write, write_metric_db

WEAK = cpm.ReadOptions(scaling=cpm.Scaling.WEAK)


def of_lines(source, metric="CPUTIME", reduction=Reduction.SUM):
    """Return the costs of lines, by call path and line."""
    found = source.line_costs(metric, reduction)
    tree, costs = source.call_tree, defaultdict(float)
    for row, file, line, cost in zip(
        found.row, found.file, found.line, found.exclusive.tolist(), strict=True
    ):
        costs[tree.path(int(row)), found.files[file], int(line)] += cost
    return costs


def measured(folder, **options):
    found = cpm.load([folder], cpm.LoadOptions(WEAK, **options).with_lines())
    return Study(found).measured()


def losses(fitted, path):
    return line_losses(fitted, np.array([find_one(fitted.experiment.tree, path)]))


def test_lines_have_the_cost_of_their_statements(reader, tmp_path, contexts, ranks):
    write_database(tmp_path, contexts, ranks)
    with reader.open(tmp_path) as source:
        assert isinstance(source, LineSource)
        # Costs of loops themselves (2 and 3) and of call instructions belong to no line.
        assert of_lines(source) == {
            ("main", "/src/main.c", 5): 10.0,
            ("main", "/src/main.c", 9): 40.0,
            ("main/solve", "/src/solve.c", 21): 130.0,
            ("main/solve/norm", "/src/norm.h", 3): 80.0,
        }


@pytest.mark.parametrize("reader", [HpctoolkitReader(), HpctoolkitLoopsReader()])
@pytest.mark.parametrize("sites", [False, True])
def test_lines_do_not_exceed_their_call_path(reader, tmp_path, contexts, ranks, sites):
    write_database(tmp_path, contexts, ranks)
    with reader.open(tmp_path) as opened:
        source = opened.with_call_sites() if sites else opened
        whole = source.reduce("CPUTIME", Reduction.MEAN).exclusive
        found = source.line_costs("CPUTIME", Reduction.MEAN)
        sums = np.bincount(found.row, found.exclusive, len(whole))
        assert (sums <= whole * (1 + 1e-9)).all()
        assert sums.sum() > 0.5 * whole.sum()


def test_lines_of_version_2(tmp_path):
    write(tmp_path / "app.p2", threads=3)
    for rank, factor in enumerate((1, 2)):
        write_metric_db(tmp_path / "app.p2", rank, 0, factor)
    with HpctoolkitReader().open(tmp_path / "app.p2") as source:
        found, whole = defaultdict(float), source.reduce("CPUTIME", Reduction.SUM).exclusive
        for (path, file, line), cost in of_lines(source).items():
            assert file == "./src/app.c"
            found[path, line] = cost * 1e6
        assert found == pytest.approx({("main", 10): 36.0, ("main/f<int>(int)", 2): 54.0})
        assert sum(found.values()) == pytest.approx(1e6 * whole.sum())


def test_calls_and_statements_have_their_excess_work(tmp_path):
    fitted = measured(write_series(tmp_path))
    found = losses(fitted, "main")
    place = {line: value for (_, line), value in found.values.items()}
    assert place == pytest.approx({14: 0.0, 31: 0.56, 57: 0.03, 80: 0.0})
    assert found.worst == ("/src/main.c", 31)
    assert (found.base, found.scale) == (4, 64)
    assert losses(fitted, "main/exchange:57").values == {("/src/main.c", 5): pytest.approx(0.03)}


@pytest.mark.parametrize("locations", [Reduction.SUM, Reduction.MEAN])
@pytest.mark.parametrize("scaling", [cpm.Scaling.WEAK, cpm.Scaling.STRONG])
def test_lines_follow_the_formulas_of_call_paths(tmp_path, locations, scaling):
    write_series(tmp_path)
    read = cpm.ReadOptions(locations=locations, scaling=scaling)
    found = cpm.load([tmp_path], cpm.LoadOptions(read).with_lines())
    fitted = Study(found).measured()
    excess = cpm.measured_excess(found, "REALTIME", "p", 4, 64)
    row = find_one(found.tree, "main/exchange:31")
    assert losses(fitted, "main").values["/src/main.c", 31] == pytest.approx(excess.inclusive[row])
    assert losses(fitted, "main/exchange:31").values["/src/main.c", 5] == pytest.approx(
        excess.exclusive[row]
    )


def test_one_profile_has_shares_of_lines(tmp_path):
    write_run(tmp_path / "app.p64", 64, COSTS[64])
    found = losses(measured(tmp_path), "main")
    assert found.is_share
    assert found.values["/src/main.c", 31] == pytest.approx(0.6)
    assert found.values["/src/main.c", 14] == pytest.approx(0.2)


def test_lines_are_those_of_the_runs_that_are_chosen(tmp_path):
    write_series(tmp_path)
    write_run(tmp_path / "app.p8", 8, (0.0, 400.0, 0.0, 0.0))
    fitted = measured(tmp_path, where="p!=8")
    assert losses(fitted, "main").values["/src/main.c", 31] == pytest.approx(0.56)


@pytest.mark.parametrize("options", [{"hide": "**/exchange"}, {"ignore": "**/exchange:57"}])
def test_lines_stay_with_their_call_paths_when_others_are_left_out(tmp_path, options):
    fitted = measured(write_series(tmp_path), **options)
    found = losses(fitted, "main").values
    if "hide" in options:
        assert found["/src/main.c", 5] == pytest.approx(0.59)
        assert ("/src/main.c", 31) not in found
    else:
        # 31 s of 41 s and 90 s remain; line 80 keeps its 10 s.
        assert found["/src/main.c", 31] == pytest.approx(56 / 90)
        assert losses(fitted, "main/exchange:80").values["/src/main.c", 5] == pytest.approx(0)


def test_joined_calls_have_the_sum_of_their_lines(tmp_path):
    fitted = measured(write_series(tmp_path), fold="call-sites")
    assert losses(fitted, "main/exchange").values["/src/main.c", 5] == pytest.approx(0.59)
    assert losses(fitted, "main").values == {("/src/main.c", 14): 0.0}


def test_lines_are_read_on_request_only(tmp_path):
    found = cpm.load([write_series(tmp_path)])
    assert found.lines == ()
    assert losses(Study(found).measured(), "main").worst == ("/src/main.c", 31)


def test_contexts_without_lines_have_none(tmp_path):
    write_run(tmp_path / "app.p4", 4, COSTS[4][:2], contexts("", sites=(0,)))
    fitted = measured(tmp_path)
    assert losses(fitted, "main").values == {("", 14): pytest.approx(20 / 24)}
