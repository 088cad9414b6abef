"""Result tables of JUBE."""

from __future__ import annotations

import math

import pytest

import workflow_files as wf
from callpath_modeler.errors import InputError

TITLES = ["nodes", "tasks", "threads", "runtime_avg[s]", "bandwidth[MB/s]"]
ROWS = [(1, p, 2, wf.solve_time(p), 100 * p) for p in wf.SCALES]
CSV = "\n".join([",".join(TITLES), *(",".join(map(str, row)) for row in ROWS)]) + "\n"


def check(experiment, value_of):
    assert value_of(experiment, "runtime_avg", "<root>", p=8) == wf.solve_time(8)
    assert value_of(experiment, "bandwidth", "<root>", p=8) == 800
    metrics = {name: values.metric for name, values in experiment.columns.items()}
    assert metrics["runtime_avg"].unit == "s"
    assert not metrics["bandwidth"].additive
    assert [parameter.name for parameter in experiment.parameters] == ["p"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("result.dat", wf.pretty("result", TITLES, ROWS)),
        ("result.txt", wf.pretty("result", TITLES, ROWS)),
        ("RESULT.DAT", wf.pretty("result", TITLES, ROWS)),
        ("result.dat", wf.pretty("result", TITLES, ROWS, old=True)),
        ("result.dat", CSV),
        ("result.csv", CSV),
        ("result.out", CSV.replace(",", ";")),
        ("result.dat", CSV.replace(",", "|")),
        ("result.csv", CSV.replace(",", "|")),
        ("result.dat", wf.aligned(TITLES, ROWS)),
        ("result.csv", wf.aligned(TITLES, ROWS, " ; ")),
        ("jube.log", f"####\n# JUBE\n####\n\n{wf.pretty('result', TITLES, ROWS)}\ndone\n"),
        ("result.csv", wf.pretty("result", TITLES, ROWS)),
        ("result.csv", wf.pretty("result", TITLES, ROWS).removeprefix("result:\n")),
    ],
)
def test_every_style_of_a_table_holds_the_same_values(load, value_of, name, content):
    check(load(name, content), value_of)


def test_a_table_on_its_side_is_turned(load, value_of):
    cells = [[title, *map(str, column)] for title, column in
             zip(TITLES, zip(*ROWS, strict=True), strict=True)]  # fmt: skip
    lines = [f"| {' | '.join(cells_of)} |" for cells_of in cells]
    check(load("result.dat", "\n".join(["result:", *lines]) + "\n"), value_of)


def test_rows_that_are_alike_are_repetitions(load, value_of):
    rows = [*ROWS, *((*row[:3], row[3] + 1, row[4]) for row in ROWS)]
    experiment = load("result.dat", wf.pretty("result", TITLES, rows))
    assert value_of(experiment, "runtime_avg", "<root>", repetition=2, p=8) == 7


@pytest.mark.parametrize("name", ["result.dat", "result.csv"])
def test_iterations_are_repetitions(load, name):
    titles = ["p", "n", "jube_wp_iteration", "solve[s]"]
    rows = [(p, n, k, p + n + 0.1 * k) for p in wf.SCALES for n in (100, 200, 400) for k in (0, 1)]
    lines = [",".join(map(str, row)) for row in (titles, *rows)]
    content = wf.pretty("result", titles, rows) if name == "result.dat" else "\n".join(lines)
    experiment = load(name, content)
    assert [parameter.name for parameter in experiment.parameters] == ["p", "n"]
    assert [run.repetition for run in experiment.runs[:4]] == [1, 2, 1, 2]


def test_the_number_of_a_work_package_is_no_parameter(load):
    rows = [(100 + k, *row) for k, row in enumerate(ROWS)]
    experiment = load("result.dat", wf.pretty("result", ["jube_wp_id", *TITLES], rows))
    assert [parameter.name for parameter in experiment.parameters] == ["p"]


def test_the_mean_among_statistics_is_the_run_time(load):
    titles = ["tasks", "t_min[s]", "t_max[s]", "t_avg[s]", "t_std[s]", "t_cnt"]
    rows = [(p, 0.9 * p, 1.1 * p, p, 0.1, 3) for p in wf.SCALES]
    experiment = load("result.dat", wf.pretty("result", titles, rows))
    assert experiment.metric().name == "t_avg"
    assert experiment.metric("t_cnt").unit == "1"


def test_several_tables_of_other_metrics_are_about_the_same_runs(load, value_of):
    first = wf.pretty("times", ["tasks", "runtime[s]"], [row[1:4:2] for row in ROWS])
    second = wf.pretty("rates", ["tasks", "bandwidth[MB/s]"], [row[1::3] for row in ROWS])
    experiment = load("result.dat", f"{first}\n{second}")
    assert value_of(experiment, "runtime", "<root>", p=4) == 4
    assert value_of(experiment, "bandwidth", "<root>", p=4) == 400
    assert len(experiment.runs) == len(wf.SCALES)


@pytest.mark.parametrize(
    ("titles", "reason"),
    [
        (["tasks", "runtime[s]"], "both contain runtime"),
        (["n", "energy[J]"], "their parameters differ"),
    ],
)
def test_tables_that_do_not_belong_together_are_refused(load, titles, reason):
    first = wf.pretty("one", ["tasks", "runtime[s]"], [row[1:4:2] for row in ROWS])
    second = wf.pretty("two", titles, [row[1:4:2] for row in ROWS])
    with pytest.raises(InputError, match=f"one and two do not belong together: .*{reason}"):
        load("result.dat", f"{first}\n{second}")


def test_a_table_without_measurements_is_named(load):
    other = wf.pretty("names", ["kind", "note"], [("a", "b"), ("c", "d")])
    experiment = load("result.dat", f"{other}\n{wf.pretty('result', TITLES, ROWS)}")
    (found,) = [each for each in experiment.findings if each.code == "CPM125"]
    assert "names" in found.message


def test_missing_values_are_no_zeros(load, value_of):
    rows = [*ROWS[:-1], (*ROWS[-1][:3], "", ROWS[-1][4])]
    experiment = load("result.dat", wf.pretty("result", TITLES, rows))
    assert math.isnan(value_of(experiment, "runtime_avg", "<root>", p=16))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            wf.pretty("r", TITLES, ROWS).replace("|             800 |", "|"),
            "line [0-9]+: 4 cells, but the header has 5",
        ),
        (wf.pretty("r", TITLES, []), "the table has no rows"),
        (wf.pretty("r", [*TITLES[:-1], "tasks"], ROWS), "two columns have the title 'tasks'"),
        (wf.pretty("r", TITLES, ROWS).replace(" 6.0 ", " 6,0 "), "'6,0' is not a number"),
        ("nothing at all\n", "no table of results"),
        ("a | b\nc | d\n", "no table of results"),
        ('"tasks,t[s]\n1,2\n2,4\n', "no table of results"),
        ('tasks,t[s]\n1,"2\n2,4\n', "line 3: unexpected end of data"),
        ("|" * 100_000 + "\n", "no table of results"),
        ("r:\n| " + " | ".join(f"c{k}" for k in range(30_000)) + " |\n|---|\n", "has no rows"),
    ],
)
def test_damaged_tables_are_refused_with_the_reason(load, content, reason):
    with pytest.raises(InputError, match=reason):
        load("result.dat", content)


def test_control_characters_in_titles_reach_no_output(load):
    titles = [*TITLES[:-1], "rate\x1b[31m[MB/s]"]
    experiment = load("result.dat", wf.pretty("r\x07", titles, ROWS))
    assert all(name.isprintable() for name in experiment.columns)
