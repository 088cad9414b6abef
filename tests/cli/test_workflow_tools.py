"""Results of workflow tools on the command line: the right value in a ranking."""

from __future__ import annotations

import csv
import io

import pytest

import workflow_files as wf
from cells import cells

ROWS = [(p, wf.solve_time(p), 100 * p) for p in wf.SCALES]
TITLES = ["tasks", "solve_time[s]", "bw[MB/s]"]
MORE = [(f"{p},{t},{b}") for p, t, b in ROWS]
FILES = {
    "result.dat": (wf.pretty("result", TITLES, ROWS), "<root>", "bw"),
    "old.dat": (wf.pretty("result", TITLES, ROWS, old=True), "<root>", "bw"),
    "aligned.dat": (wf.aligned(TITLES, ROWS), "<root>", "bw"),
    "plain.out": ("\n".join([",".join(TITLES), *MORE]) + "\n", "<root>", "bw"),
    "StreamTest.log": (wf.perflog([wf.log_line(p, p) for p in wf.SCALES]), "StreamTest",
                       wf.TRIAD),
    "run-report.json": (wf.report([wf.case_of(p) for p in wf.SCALES]), "StreamTest", wf.TRIAD),
    "results.latest.json": (wf.results([wf.experiment(p) for p in wf.SCALES]), "lulesh", "FOM"),
    "results.latest.txt": (wf.results_text([wf.experiment(p) for p in wf.SCALES]), "lulesh",
                           "FOM"),
    "thicket.json": (wf.thicket(), "main/solve", None),
}  # fmt: skip


@cells("name", FILES)
def test_a_ranking_has_the_value_at_the_target(run, tmp_path, name):
    content, callpath, rate = FILES[name]
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / name).write_text(content)
    for given in (folder / name, folder):
        outcome = run("rank", given, "--target", 64, "-f", "csv")
        rows = {row["callpath"]: row for row in csv.DictReader(io.StringIO(outcome.out))}
        assert outcome.status == 0, outcome.err
        assert float(rows[callpath]["value_at_target[s]"]) == pytest.approx(34, rel=0.02)
        assert rows[callpath]["growth"] == "O(p)"
    if rate:
        outcome = run("rank", folder, "--target", 64, "-m", rate)
        assert outcome.status == 0, outcome.err
        assert "total" not in outcome.out


def test_a_report_of_two_tests_has_a_line_for_each(run, tmp_path):
    cases = [wf.case_of(p, name=name) for name in ("Stream", "Solver") for p in wf.SCALES]
    (tmp_path / "run-report.json").write_text(wf.report(cases))
    out = run("rank", tmp_path, "--target", 64).out
    assert "of 2 cases" in out
    assert {"Stream", "Solver"} <= {line.split(" ")[0] for line in out.splitlines()}
    run("views", tmp_path, "--target", 64).fails(2, "Stream, Solver", "--case")


@cells(
    ("name", "content"),
    [
        ("frame.pkl", b"\x80\x04N."),
        ("a.yaml", b"experiments:\n- RAMBLE_STATUS: SUCCESS\n"),
        ("slurm.out", b"hello\n"),
        ("a.log", b"\xff\xfe\x00"),
        ("a.dat", b"a\0b" * 1000),
        ("a.dat", b"-" * 200_000 + b"x\n"),
        ("a.yaml", b"\n" * 200_000),
        ("a.dat", b"|" * 200_000),
        ("a.json", b'{"graph": [{' + b'"a": [' * 50_000 + b'"children"'),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(run, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    run("rank", tmp_path / name, "--target", 64).fails(3, name)
