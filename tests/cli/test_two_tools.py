"""One experiment, measured with two tools: equal results, and an error for a mixed series."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import cube_writer as cw
from callpath_modeler.profile.schema import PROGRAM
from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database
from cells import cells

PARENTS = [-1, 0, 1, 1, 3, 1]
NAMES = ["app", "main", "setup", "solve<double>(int)", "MPI_Allreduce", "f(A/B*)"]
SCALES = (4, 8, 16, 32, 64)


def costs(p):
    """Exclusive seconds of each call path on each process."""
    rng = np.random.default_rng(p)
    own = np.array([0.0, 0.25, 3.0, 2.0, 0.1 * np.log2(p) ** 2, 0.02 * p**0.5])
    return own[:, None] * (1 + 0.05 * rng.random((6, p)))


def cubes(folder):
    tree = cw.Tree(PARENTS, NAMES, roles={"app": "artificial"})
    for p in SCALES:
        (folder / f"app.p{p}").mkdir(parents=True)
        metric = cw.MetricToWrite("CPUTIME", tree.subtree_sums(costs(p)), "INCLUSIVE", unit="sec")
        path = folder / f"app.p{p}" / "profile.cubex"
        cw.write(path, tree, [metric], cw.Machine([1] * p))
    return folder


def databases(folder):
    """Write the same as databases, which have lines with costs between functions."""
    scopes = [Scope(-1, Kind.FUNCTION, "main thread")]
    function, line = {0: 0}, {}
    for row, (parent, name) in enumerate(zip(PARENTS[1:], NAMES[1:], strict=True), start=1):
        function[row] = len(scopes)
        scopes.append(Scope(line.get(parent, 0), Kind.FUNCTION, name, "a.c", row))
        line[row] = len(scopes)
        scopes.append(Scope(function[row], Kind.LINE, file="a.c", line=row))
    for p in SCALES:
        own = np.zeros((len(scopes), p))
        own[[line[row] for row in range(1, 6)]] = costs(p)[1:]
        measured = [
            Measured({"RANK": rank, "THREAD": 0}, {"CPUTIME (sec)": own[:, rank]})
            for rank in range(p)
        ]
        write_database(folder / f"app.p{p}", scopes, measured, title="app")
    return folder


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    return cubes(folder / "cube"), databases(folder / "hpctoolkit")


def numbers(out):
    """Return a table with numeric cells, because sums may differ in their last digits."""
    table = []
    for row in csv.reader(io.StringIO(out)):
        cells = []
        for cell in row:
            try:
                cells.append(pytest.approx(float(cell), rel=1e-6, abs=1e-9))
            except ValueError:
                cells.append(cell)
        table.append(cells)
    return table


@cells("locations", ["max", "mean", "sum"])
@cells(
    "command",
    [
        ["rank", "--target", "1024", "-f", "csv"],
        ["rank", "--target", "1024", "-f", "csv", "--inclusive"],
        ["export", "--what", "values", "-f", "csv"],
        ["excess", "-f", "csv"],
    ],
)
def test_the_same_numbers_give_the_same_tables(run, both, command, locations):
    told = [run(command[0], folder, *command[1:], "--locations", locations) for folder in both]
    assert told[0].status == told[1].status == 0, told[0].err + told[1].err
    theirs = list(csv.reader(io.StringIO(told[1].out)))
    expected = numbers(told[0].out)
    assert len(theirs) == len(expected) > 5
    for row, wanted in zip(theirs, expected, strict=True):
        found = [
            cell if isinstance(w, str) else float(cell) for cell, w in zip(row, wanted, strict=True)
        ]
        assert found == wanted


def test_the_same_numbers_give_the_same_words(run, both):
    shown = []
    for folder in both:
        told = run("show", folder, "main/solve<double>(int)/MPI_Allreduce", "--target", "1024")
        assert told.status == 0
        lines = told.out.replace(str(folder), "EXP").splitlines()
        # The first line ends with file and line, which only one of the formats has.
        shown.append([lines[0].partition("   ")[0], *(line.rstrip() for line in lines[1:])])
    assert shown[0] == shown[1]


def test_two_tools_in_one_series_are_refused(run, both):
    mixed = [both[0] / "app.p4", both[0] / "app.p8", both[1] / "app.p16", both[1] / "app.p32"]
    run("rank", *mixed, "--target", "99").fails(4, "several tools", "hpctoolkit, scorep")


def test_two_tools_below_one_directory_are_refused(run, both):
    run("info", both[0].parent).fails(4, "several tools")


def metrics(folder, names_of):
    scopes = [Scope(-1, Kind.FUNCTION, "main thread"), Scope(0, Kind.FUNCTION, "main")]
    for p, names in names_of.items():
        measured = [
            Measured({"RANK": rank}, {f"{name} (sec)": [0, 1.0 + p] for name in names})
            for rank in range(p)
        ]
        write_database(folder / f"app.p{p}", scopes, measured)
    return folder


def test_two_run_times_in_one_series_are_refused(run, tmp_path):
    folder = metrics(tmp_path, {4: ["CPUTIME"], 8: ["CPUTIME"], 16: ["REALTIME"]})
    told = run("rank", folder, "--target", "99")
    told.fails(4, "CPUTIME in", "REALTIME in", "app.p16", "measure all runs with the same")


def test_a_metric_that_all_runs_have_is_named(run, tmp_path):
    both = ["CPUTIME", "REALTIME"]
    folder = metrics(tmp_path, {4: both, 8: both, 16: both, 32: ["CPUTIME"]})
    run("rank", folder, "--target", "99").fails(4, "-m CPUTIME")
    told = run("rank", folder, "--target", "99", "-m", "CPUTIME")
    assert told.status == 0
    assert "CPUTIME, exclusive" in told.out


def test_the_name_of_the_program_root_is_not_the_executables(run, both):
    told = run("export", both[1], "--what", "values", "-f", "csv")
    assert PROGRAM in told.out
    assert "main thread" not in told.out
