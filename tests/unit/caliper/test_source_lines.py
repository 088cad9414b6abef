"""Call sites and lines of samples in Caliper profiles.

The forms are those of the manual of Caliper 2 (Sample profiling; Services, symbollookup).
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import caliper_writer as cw
import callpath_modeler as cpm
from caliper_samples import COSTS, EXCHANGE, FRAME, FUNCTION, MAIN, SAMPLE, SITES, Samples, run_of
from callpath_modeler.analysis.further_excess import line_losses
from callpath_modeler.profile.pattern import find_one
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.studies.study import Study
from callpath_modeler.testing.checks import check_lines
from cells import cells
from cpmodel_caliper import CaliperReader


@pytest.fixture
def series(tmp_path):
    for processes in COSTS:
        (tmp_path / f"app.p{processes}.cali").write_text(run_of(processes))
    return tmp_path


def profile(text, tmp_path, name="x.cali"):
    path = tmp_path / name
    path.write_text(text)
    with CaliperReader().open_runs(path) as (run,):
        return run.source


def named(tree, row):
    """Return a call path, with the line of its call if that is known."""
    site = tree.site[row]
    return tree.path(row) + (f":{site}" if site > 0 else "")


def values(source, metric="count"):
    found = source.reduce(metric, Reduction.MEAN).exclusive
    tree = source.call_tree
    return {named(tree, row): found[row] for row in range(len(tree)) if found[row]}


def lines_of(source, metric="count"):
    found = source.line_costs(metric, Reduction.MEAN)
    tree = source.call_tree
    return {
        (named(tree, int(row)), found.files[file], int(line)): cost
        for row, file, line, cost in zip(
            found.row, found.file, found.line, found.exclusive.tolist(), strict=True
        )
    }


def test_three_calls_of_a_function_have_their_own_cost(tmp_path):
    source = profile(run_of(4), tmp_path)
    assert values(source) == {
        "main": 20, "main/exchange:31": 4, "main/exchange:57": 7, "main/exchange:80": 10,
    }  # fmt: skip
    regions = {region.name: region.file for region in source.call_tree.regions}
    assert (regions["main"], regions["exchange"]) == (MAIN, EXCHANGE)
    assert lines_of(source) == {
        ("main", MAIN, 14): 20,
        ("main/exchange:31", EXCHANGE, 5): 4,
        ("main/exchange:57", EXCHANGE, 5): 7,
        ("main/exchange:80", EXCHANGE, 5): 10,
    }
    check_lines(source)


def test_excess_work_tells_the_losing_call_and_line(series):
    read = cpm.LoadOptions(cpm.ReadOptions(scaling=cpm.Scaling.WEAK)).with_lines()
    found = cpm.load([series], read)
    fitted = Study(found).measured("count")
    excess = cpm.measured_excess(found, "count", "p", 4, 64)
    by_path = {found.tree.path(row): value for row, value in enumerate(excess.inclusive.tolist())}
    for site, share in zip(SITES, (0.56, 0.03, 0.0), strict=True):
        assert by_path[f"main/exchange:{site}"] == pytest.approx(share)
    losses = line_losses(fitted, np.array([find_one(found.tree, "main")]))
    assert losses.worst == (MAIN, 31)
    assert losses.values[MAIN, 31] == pytest.approx(0.56)


def test_samples_without_places_of_callers_are_as_before(tmp_path):
    """`source.location` of hatchet-sample-profile states the lines of samples only."""
    writer = Samples(places=False, modules=False)
    for place, count in (("exchange.c:5", 3), ("exchange.c:6", 1), ("UNKNOWN:0", 2)):
        writer.sample([("main", None), ("exchange", None)], count, place=place)
    writer.globals({"mpi.world.size": 1})
    source = profile(writer.text(), tmp_path)
    assert not source.call_tree.has_sites
    assert values(source) == {"main/exchange": 6}
    assert lines_of(source) == {
        ("main/exchange", "exchange.c", 5): 3,
        ("main/exchange", "exchange.c", 6): 1,
    }


def test_regions_have_the_lines_of_their_samples(tmp_path):
    writer = cw.Writer()
    place = writer.node(writer.attribute(SAMPLE, cw.STRING, 20), "../src/solve.c:42")
    count = writer.attribute("count", cw.UINT, 85)
    region = writer.path(("main", "solve"))
    writer.lines += [
        f"__rec=ctx,ref={region}={place},attr={count},data=7",
        f"__rec=ctx,ref={region},attr={count},data=2",
    ]
    writer.globals({"mpi.world.size": 1})
    source = profile(writer.text(), tmp_path)
    assert values(source) == {"main/solve": 9}
    assert lines_of(source) == {("main/solve", "../src/solve.c", 42): 7}


def test_json_split_has_the_lines_of_samples(tmp_path):
    columns = [FUNCTION, SAMPLE, "mpi.rank", "count"]
    document = {
        "data": [[1, 2, 0, 3], [1, 3, 0, 4], [0, None, 0, 1], [1, 2, 1, 5], [1, None, 1, 2]],
        "columns": columns,
        "column_metadata": [{"is_value": name not in (FUNCTION, SAMPLE)} for name in columns],
        "nodes": [
            {"column": FUNCTION, "label": "main"},
            {"column": FUNCTION, "label": "solve", "parent": 0},
            {"column": SAMPLE, "label": "/src/solve.c:9"},
            {"column": SAMPLE, "label": "/src/solve.c:0"},
        ],
        "num_procs": 2,
    }
    source = profile(json.dumps(document), tmp_path, "x.json")
    assert values(source) == {"main": 0.5, "main/solve": 7}
    assert lines_of(source) == {("main/solve", "/src/solve.c", 9): 4}
    check_lines(source)


def test_lines_before_their_function_are_no_lines_of_calls(tmp_path):
    """Another order of the nodes must not move a line to another function."""
    writer = Samples(places=False, modules=False)
    frame = writer.attribute(FRAME, cw.STRING, 20)
    function = writer.attribute(FUNCTION, cw.STRING, 20)
    above = -1
    for name, line in (("main", 31), ("exchange", 5)):
        above = writer.node(frame, f"{MAIN}:{line}", above)
        above = writer.node(function, name, above)
    count = writer.attribute("count", cw.UINT, 85)
    writer.lines.append(f"__rec=ctx,ref={above},attr={count},data=7")
    writer.globals({"mpi.world.size": 1})
    source = profile(writer.text(), tmp_path)
    assert values(source) == {"main/exchange": 7}
    assert not source.call_tree.has_sites


@cells("place", ["", ":", ":7", "x", "x:", "x:-1", "x:1e5", "x:99999999999", "x:0"])
def test_a_place_that_is_none_is_not_known(tmp_path, place):
    writer = Samples()
    writer.sample([("main", place or "y"), ("solve", place or "y")], 3, place=place)
    writer.globals({"mpi.world.size": 1})
    source = profile(writer.text(), tmp_path)
    assert values(source) == {"main/solve": 3}
    assert lines_of(source) == {}
    assert not source.call_tree.has_sites
