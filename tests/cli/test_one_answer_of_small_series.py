"""All commands state the numbers of small series that were computed by hand.

The run time T and the excess work X of the program belong to each measured scale: under weak
scaling X = (T_q - T_2) / T_q, and under strong scaling X = (q T_q - 2 T_2) / (q T_q).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

import callpath_modeler as cpm
import cube_writer as cw
from callpath_modeler import LoadOptions, ReadOptions, Study
from callpath_modeler.studies.pipeline import FitOptions
from hybrid_timelines import FORMATS, Timeline
from one_answer import Commands

P = (2, 4, 8, 16, 32)
WEAK, STRONG = ("--scaling", "weak"), ("--scaling", "strong")


@dataclass
class Series:
    """A small series.

    Attributes
    ----------
    write : function that writes it into a folder and returns its path
    run_time : T by scale, in the unit of the metric; with sums, that of one process
    words : options of commands
    power : of p in the ideal time, 0 = weak, -1 = strong
    far : targets beyond the data
    """

    write: Callable
    run_time: Mapping[float, float]
    words: tuple = WEAK
    power: int = 0
    far: tuple = (64.0, 512.0)
    locations: str | None = None
    aggregate: str = "mean"


def table(text, name="runs.csv"):
    def write(folder):
        path = folder / name
        path.write_text(text)
        return path

    return write


def rows(values, points=P, *, column="p", metric="time [s]"):
    """Return a table; `values` has a function of the scale for each call path: a list of runs."""
    lines = [f"callpath,{column},repetition,{metric}"]
    for path, of in values.items():
        for p in points:
            known = enumerate(of(p), 1)
            lines += [f"{path},{p},{run},{value!r}" for run, value in known if value is not None]
    return table("\n".join(lines) + "\n")


def cubes(folder):
    """Write profiles of p processes: the first one solves .5 p seconds longer than the others."""
    tree = cw.Tree([-1, 0, 0], ["main", "solve", "io"])
    for p in P:
        solve = np.full(p, 4.0)
        solve[0] += 0.5 * p
        time = np.array([np.full(p, 0.75), solve, np.full(p, 0.25)])
        metric = cw.MetricToWrite("time", tree.subtree_sums(time), "INCLUSIVE", unit="sec")
        run = folder / f"app.p{p}.r1"
        run.mkdir(parents=True)
        cw.write(run / "profile.cubex", tree, [metric], cw.Machine([1] * p))
    return folder


def timelines(folder):
    for p in (4, 16, 64):
        FORMATS["tau"](folder / f"app.p{p}.r1", [Timeline([1.0, 1.0], 0.05 * p, True)] * p)
    return folder


def two_parameters():
    lines = ["callpath,p,n,time [s]"]
    for p in (2, 4, 8, 16):
        for n in (1, 2, 4, 8):
            lines += [f"main,{p},{n},{5.0 * n!r}", f"main/wait,{p},{n},{0.1 * p!r}"]
    return table("\n".join(lines) + "\n")


MAIN_AND_WAIT = {"main": lambda _: [20.0], "main/wait": lambda p: [0.1 * p]}
IO = {"main": lambda _: [10.0, 10.0, 10.0]}
SERIES = {
    "one run a scale": Series(rows(MAIN_AND_WAIT), {p: 20 + 0.1 * p for p in P}),
    "three runs": Series(
        rows({"main": lambda _: [20.0, 20.2, 19.8], "main/wait": lambda p: [0.1 * p] * 3}),
        {p: 20 + 0.1 * p for p in P},
    ),
    "a zero in one repetition": Series(
        rows(IO | {"main/io": lambda p: [0.0, 0.3 * p, 0.6 * p]}), {p: 10 + 0.3 * p for p in P}
    ),
    "a call path that one repetition lacks": Series(
        rows(IO | {"main/io": lambda p: [None, 0.3 * p, 0.6 * p]}), {p: 10 + 0.3 * p for p in P}
    ),
    "a call path that small scales lack": Series(
        rows(MAIN_AND_WAIT | {"main/late": lambda p: [2.0 if p >= 8 else None]}),
        {p: 20 + 0.1 * p + (2 if p >= 8 else 0) for p in P},
    ),
    "one scale without repetitions": Series(
        rows({"main": lambda p: [20.0] if p == 8 else [19.0, 21.0]}), dict.fromkeys(P, 20.0)
    ),
    "two parameters": Series(two_parameters(), {p: 40 + 0.1 * p for p in (2, 4, 8, 16)}),
    "two scales": Series(rows(MAIN_AND_WAIT, (2, 32)), {2: 20.2, 32: 23.2}, far=()),
    "two scales with repetitions": Series(
        rows({"main": lambda p: [p, p + 2.0]}, (2, 32)), {2: 3.0, 32: 33.0}, far=()
    ),
    "one scale": Series(rows(MAIN_AND_WAIT, (8,)), {8: 20.8}, words=(), far=()),
    "strong scaling": Series(
        rows({"main": lambda p: [64 / p], "main/serial": lambda _: [2.0]}),
        {p: 2 + 64 / p for p in P},
        words=STRONG,
        power=-1,
    ),
    "another parameter": Series(
        rows({"main": lambda n: [3.0 * n]}, column="n"), {n: 3.0 * n for n in P}, words=()
    ),
    "counts": Series(
        rows({"main": lambda _: [7], "main/f": lambda p: [5 * p]}, metric="visits"),
        {p: 7 + 5 * p for p in P},
    ),
    "medians": Series(
        rows({"main": lambda _: [10.0, 11.0, 15.0], "main/f": lambda p: [p, p, p]}),
        {p: 11.0 + p for p in P},
        words=(*WEAK, "--aggregate", "median"),
        aggregate="median",
    ),
    "imbalance": Series(cubes, {p: 5 + 0.5 * p for p in P}),
    "sums over processes": Series(
        cubes,
        {p: 5 + 0.5 * p for p in P},
        words=(*WEAK, "--locations", "sum"),
        locations="sum",
    ),
    "maxima over processes": Series(
        cubes,
        {p: 5 + 0.5 * p for p in P},
        words=(*WEAK, "--locations", "max"),
        locations="max",
    ),
    "threads": Series(timelines, {p: 1 + 0.05 * p for p in (4, 16, 64)}, far=(128.0, 1024.0)),
}


@pytest.mark.parametrize("name", SERIES)
def test_all_commands_state_the_numbers_of_a_small_series(run, tmp_path, name):
    series = SERIES[name]
    source = series.write(tmp_path / "runs" if series.write in (cubes, timelines) else tmp_path)
    scaling = {0: "weak", -1: "strong"}[series.power] if "--scaling" in series.words else None
    reading = ReadOptions(scaling=scaling, locations=series.locations)
    fitting = FitOptions(aggregate=series.aggregate)
    models, _ = Study(source, LoadOptions(read=reading), fitting).at()
    commands = Commands(run, source, models, tmp_path, series.words)
    base, largest = min(series.run_time), max(series.run_time)
    for target in {base, largest} if len(series.run_time) < 3 else {largest}:
        whole = series.run_time[target]
        ranking = commands.check(float(target))
        by = target if ranking["locations"] == "sum" else 1
        assert commands.stated(ranking)[0] == pytest.approx(whole * by)
        if ranking["excess"] is not None and target > base:
            expected = series.run_time[base] * (target / base) ** series.power
            assert ranking["excess"]["program"] == pytest.approx(1 - expected / whole)
    for target in series.far[-1:]:
        assert commands.check(target)["basis"] == "predicted"


def test_a_call_path_that_waits_for_threads_loses_its_part_of_the_run_time(run, tmp_path):
    """From p = 4 to 64, MPI_Allreduce takes 3 s more, and the program 4.2 s in place of 1.2 s."""
    source = timelines(tmp_path / "runs")
    models = cpm.fit(cpm.load(source))
    ranking = Commands(run, source, models, tmp_path, WEAK).check(64.0)
    (row,) = [row for row in ranking["rows"] if "MPI_Allreduce" in row["callpath"]]
    assert row["excess_exclusive"] == pytest.approx(3.0 / 4.2)
    assert "71 %" in run("excess", source, "--pair", "4,64", *WEAK).out
