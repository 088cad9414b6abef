"""One profile and two scales of every format: views, ranking, page and exports without models."""

from __future__ import annotations

import csv
import io
import json
import re

import networkx as nx
import numpy as np
import pytest

import caliper_writer
import cube_writer as cw
import hpctoolkit_files
import tau_writer
from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database
from cells import cells
from communication import traced, uneven

SCALES = (4, 64)
# Cost per process at p = 4 and 64. Under strong scaling, an ideal cost at 64 is a sixteenth.
LBMHD = {"mhd": (720.0, 67.0), "mhd/caf_allsum_dp": (16.0, 18.0), "mhd/decomp": (16.0, 15.0)}
MILC = {"main": (64.0, 65.0), "main/wait_gather": (2.0, 24.0), "main/do_gather": (1.0, 11.0)}


def cubex(folder, p, costs):
    names = [path.rpartition("/")[2] for path in costs]
    values = np.array([cost[SCALES.index(p)] for cost in costs.values()])[:, None]
    tree = cw.Tree([-1, 0, 0], names)
    metrics = [
        cw.MetricToWrite("time", values * np.ones((1, p)), unit="sec"),
        cw.MetricToWrite("visits", np.full((3, p), 7.0), dtype="UINT64"),
    ]
    run = folder / f"app.p{p}.r1"
    run.mkdir(parents=True)
    cw.write(run / "profile.cubex", tree, metrics, cw.Machine([1] * p))
    return run


def hpctoolkit4(folder, p, costs):
    paths = list(costs)
    contexts = [Scope(-1, Kind.FUNCTION, "main thread")]
    for path in paths:
        caller, _, name = path.rpartition("/")
        parent = paths.index(caller) + 1 if caller else 0
        contexts.append(Scope(parent, Kind.FUNCTION, name, f"{name}.c", 1))
    values = np.array([0.0, *(cost[SCALES.index(p)] for cost in costs.values())])
    threads = [
        Measured({"NODE": 0, "RANK": rank, "THREAD": 0}, {"CPUTIME": values}) for rank in range(p)
    ]
    return write_database(folder / f"app.p{p}", contexts, threads)


def hpctoolkit2(folder, p, _costs):
    folder.mkdir(exist_ok=True)
    return hpctoolkit_files.write(folder / f"app.p{p}", threads=1.0)


def caliper(folder, p, _costs):
    folder.mkdir(exist_ok=True)
    path = folder / f"app.p{p}.cali"
    path.write_text(caliper_writer.summed(p))
    return path


def tau(folder, p, costs):
    times = {
        path.replace("/", " => "): (1.0, 1e6 * cost[SCALES.index(p)])
        for path, cost in costs.items()
    }
    timers = tau_writer.call_paths(times)
    return tau_writer.write(folder / f"app.p{p}", {(rank, 0, 0): timers for rank in range(p)})


def trace(folder, p, _costs):
    pytest.importorskip("otf2")
    folder.mkdir(exist_ok=True)
    return traced(folder / f"app.p{min(p, 8)}", min(p, 8), uneven)


def folded(folder, p, costs):
    folder.mkdir(exist_ok=True)
    path = folder / f"app.p{p}.folded"
    lines = (
        f"{stack.replace('/', ';')} {cost[SCALES.index(p)]:.0f}" for stack, cost in costs.items()
    )
    path.write_text("\n".join(lines) + "\n")
    return path


def table(folder, p, costs):
    folder.mkdir(exist_ok=True)
    path = folder / f"app.p{p}.csv"
    lines = (f"{stack},{cost[SCALES.index(p)]}" for stack, cost in costs.items())
    path.write_text("\n".join(["callpath,time", *lines]) + "\n")
    return path


FORMATS = (cubex, hpctoolkit4, hpctoolkit2, caliper, tau, trace, folded, table)


def rows(outcome):
    assert outcome.status == 0, outcome.err
    listed = csv.DictReader(io.StringIO(outcome.out))
    return [{name.partition("[")[0]: cell for name, cell in row.items()} for row in listed]


def no_empty_words(text):
    for word in ("nan", "no model", "●", "○", "predicted", "band"):
        assert word not in text, text


@cells("write", FORMATS)
@cells("count", [1, 2])
def test_every_format_is_viewed_at_one_and_at_two_scales(run, tmp_path, write, count):
    runs = tmp_path / "runs"
    sources = [write(runs, p, LBMHD) for p in SCALES[:count]]
    for command in ("rank", "views"):
        shown = run(command, *sources)
        assert shown.status == 0, shown.err
        no_empty_words(shown.out)
        more = "two more scales" if count == 1 else "one more scale"
        assert f"{more} would allow models" in " ".join(shown.out.split())
        assert ("excl." in shown.out) == (count == 2)
    listed = rows(run("rank", *sources, "-f", "csv"))
    ranked = [row for row in listed if row["rank"]]
    assert ranked
    assert {row["basis"] for row in ranked} == {"measured"}
    assert not any(row["model"] or row["predicted"] for row in listed)
    one = run("show", *sources, ranked[0]["id"])
    assert one.status == 0, one.err
    no_empty_words(one.out)
    page = tmp_path / "report.html"
    assert run("report", *sources, "-o", page).status == 0
    html = re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert "would allow models" in html
    assert "no model" not in html
    graph = nx.parse_graphml(run("export", *sources, "-f", "graphml").out)
    assert len(graph) == len(listed)
    of_csv = rows(run("export", *sources, "-f", "csv"))
    assert [row["callpath"] for row in of_csv] == [row["callpath"] for row in listed]
    stacks = run("export", *sources, "-f", "folded").out.splitlines()
    assert len(stacks) >= 2
    flame = run("export", *sources, "-f", "svg")
    assert flame.status == 0
    assert flame.out.startswith("<?xml")


@cells("write", [cubex, hpctoolkit4, tau])
@cells(
    ("costs", "scaling", "inclusive", "exclusive"),
    [
        (LBMHD, "strong", {"mhd": 0.53, "caf_allsum_dp": 0.17, "decomp": 0.14}, {"mhd": 0.22}),
        (MILC, "weak", {"main": 0.33, "wait_gather": 0.22, "do_gather": 0.10}, {"main": 0.01}),
    ],
)
def test_two_scales_have_the_excess_work_of_the_literature(
    run, tmp_path, write, costs, scaling, inclusive, exclusive
):
    """LBMHD and MILC in Coarfa et al. (ICS 2007), with made costs of the published excess work."""
    sources = [write(tmp_path / "runs", p, costs) for p in SCALES]
    listed = rows(run("rank", *sources, "--scaling", scaling, "-f", "csv"))
    of_rank = {row["callpath"].rpartition("/")[2]: row for row in listed}
    viewed = rows(run("views", *sources, "--scaling", scaling, "-f", "csv"))
    of_views = {row["path"].rpartition("/")[2]: row for row in viewed}
    for name, share in inclusive.items():
        own = exclusive.get(name, share)
        assert float(of_rank[name]["excess_inclusive"]) == pytest.approx(share, abs=1e-6)
        assert float(of_rank[name]["excess_exclusive"]) == pytest.approx(own, abs=1e-6)
        assert float(of_views[name]["excess_inclusive"]) == pytest.approx(share, abs=1e-6)
        assert float(of_views[name]["excess_exclusive"]) == pytest.approx(own, abs=1e-6)
    before = {path.rpartition("/")[2]: cost[0] for path, cost in costs.items()}
    for name, cost in before.items():
        assert float(of_rank[name]["value_at_base"]) == pytest.approx(cost, rel=1e-6)
    # The order is that of the exclusive loss, and the text states the scaling.
    own = [float(row["excess_exclusive"]) for row in listed if row["rank"]]
    assert own == sorted(own, reverse=True)
    text = " ".join(run("views", *sources, "--scaling", scaling).out.split())
    assert "excess: inclusive excess work" in text
    assert f"{scaling} scaling" in text
    total = next(iter(inclusive.values()))
    assert f"From p = 4 to 64, {100 * total:.0f} % of " in text


def test_two_scales_equal_the_table_of_excess(run, series):
    runs = series()
    two = [runs / "app.p2.r1", runs / "app.p16.r1"]
    by_excess = rows(run("excess", *two, "-f", "csv"))
    for sources in (two, [runs, "--pair", "2,16"], [runs, "--pair", "16,2"]):
        viewed = {row["path"]: row for row in rows(run("views", *sources, "-f", "csv"))}
        for row in by_excess:
            same = viewed[row["path"]]
            assert float(same["excess_inclusive"]) == pytest.approx(float(row["excess_inclusive"]))
            assert float(same["excess_exclusive"]) == pytest.approx(float(row["excess_exclusive"]))


def test_three_call_sites_of_one_function_stay_apart(run, tmp_path):
    """The excess work of three call sites is 56, 3 and 0 %, as functions of three callers."""
    costs = {4: (1.0, 1.0, 1.0, 41.0), 64: (57.0, 4.0, 1.0, 38.0)}
    sources = []
    for p, values in costs.items():
        contexts = [Scope(-1, Kind.FUNCTION, "main thread"), Scope(0, Kind.FUNCTION, "main")]
        for line in (10, 20, 30):
            place = len(contexts)
            contexts.append(Scope(1, Kind.LOOP, file="main.c", line=line))
            contexts.append(Scope(place, Kind.FUNCTION, "barrier", "barrier.c", 1))
        own = [0.0, values[3], 0.0, values[0], 0.0, values[1], 0.0, values[2]]
        threads = [
            Measured({"NODE": 0, "RANK": r, "THREAD": 0}, {"CPUTIME": np.array(own)})
            for r in range(p)
        ]
        sources.append(write_database(tmp_path / f"app.p{p}", contexts, threads))
    told = ("--reader", "hpctoolkit-loops", "--scaling", "weak", "-f", "csv")
    listed = rows(run("rank", *sources, *told))
    sites = [float(row["excess_exclusive"]) for row in listed if "barrier" in row["callpath"]]
    assert sites == pytest.approx([0.56, 0.03, 0.0])


def test_json_tells_that_values_are_measured(run, series):
    runs = series()
    found = json.loads(run("rank", runs / "app.p4.r1", "-f", "json").out)
    assert found["basis"] == "measured"
    assert found["repetitions"] == 1
    assert found["target"] == 4
    assert found["points"] == [4.0]
    assert found["total"]["predicted"] in {None, 0.0}


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["rank", "--target", "64"], 4, "all runs are at one scale"),
        (["rank", "--predicted"], 2, "--predicted"),
        (["rank", "--by", "growth"], 2, "--by growth"),
        (["rank", "--by", "share"], 2, "--by share"),
        (["rank", "--by", "loss"], 2, "no smaller scale"),
        (["rank", "--by", "loss", "--pair", "2,4"], 2, "all runs are at one scale"),
        (["export", "-f", "python"], 2, "-f python"),
        (["export", "-f", "csv", "--what", "models"], 2, "--what models"),
        (["views", "--parameter", "n"], 2, "no parameter 'n'"),
        (["fit", "-o", "x.cpm"], 4, "all runs are at one scale"),
    ],
)
def test_what_needs_models_is_refused_at_one_scale(run, series, options, status, words):
    command, *others = options
    run(command, series() / "app.p4.r1", *others).fails(status, words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pair", "2"], "malformed"),
        (["--pair", "2,3"], "no run at p = 3"),
        (["--pair", "2,2"], "one scale twice"),
        (["--pair", "2,4", "--pair", "2"], "malformed"),
        (["--pair", "2,4", "--pair", "4,3"], "no run at p = 3"),
        (["--pair", "2,3", "--target", "8"], "no run at p = 3"),
        (["--pair", "1,2", "--target", "2", "--where", "p<=2"], "--pair names the target already"),
    ],
)
def test_pairs_that_cannot_be_compared_are_refused(run, series, options, words):
    run("views", series(), *options).fails(2, words)


def test_without_a_target_a_ranking_is_at_four_times_the_largest_scale(run, series):
    runs = series()
    found = json.loads(run("rank", runs, "-f", "json").out)
    assert found["target"] == 4 * max(found["parameters"][0]["values"])
    run("rank", runs, "--verify", runs).fails(2, "no target scale")


def test_several_parameters_of_two_values_are_compared_along_one(run, tmp_path):
    path = tmp_path / "grid.csv"
    lines = [f"main,{p},{n},{10 * n / p if n == 2 else n}" for p in (2, 4) for n in (1, 2)]
    path.write_text("\n".join(["callpath,p,n,time", *lines]) + "\n")
    (found,) = rows(run("views", path, "--scaling", "weak", "-f", "csv"))
    assert float(found["value_at_base_inclusive"]) == 10
    assert float(found["value_at_target_inclusive"]) == 5
    (found,) = rows(run("views", path, "--scaling", "weak", "--at", "n=1", "-f", "csv"))
    assert float(found["excess_inclusive"]) == 0
    assert float(found["value_at_target_inclusive"]) == 1
