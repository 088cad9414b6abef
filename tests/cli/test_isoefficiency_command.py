"""`cpmodel efficiency --iso` on the command line: problem sizes that keep an efficiency."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from several_laws import write_runs


def shared(p, n):
    """Return the time of shared work with a reduction: E = .8 at n = 40 p log2(p)."""
    return 0.001 * n / p + 0.01 * np.log2(p)


P, N = (1, 2, 4, 8, 16, 32), (1000, 2000, 4000, 8000, 16000)


@pytest.fixture
def runs(tmp_path):
    return write_runs(tmp_path / "app.csv", {"main": shared}, 1, p=P, n=N, noise=0.0)


def test_the_answer_names_growth_law_and_definition(run, runs):
    told = run("efficiency", runs, "--iso", "0.8", "--target", "256")
    assert told.status == 0, told.err
    lines = told.out.splitlines()
    assert lines[0] == "app: n = O(p log p) keeps 80 % parallel efficiency"
    assert lines[1] == "n = 40 * p * log2(p) for p = 2 … 256"
    assert "parallel efficiency: p0 T(p0, n) / (p T(p, n))" in told.out
    row = next(line for line in lines if line.split()[:1] == ["256"])
    assert "8 × the largest" in row
    assert row.endswith("at least this")


def test_a_size_asks_for_its_largest_number_of_processes(run, runs):
    told = run("efficiency", runs, "--iso", "0.8", "--at", "n=4096")
    assert told.out.splitlines()[1] == "n = 4096 keeps 80 % up to p = 22 (22 … 22)"


def test_the_proposed_command_can_be_run(run, runs):
    told = run("efficiency", runs, "--iso", "0.8", "--target", "64")
    words = told.out.splitlines()[-1].split()
    assert words[:3] == ["next:", "cpmodel", "efficiency"]
    again = run(*words[2:])
    assert again.status == 0, again.err
    assert "n = 16000 keeps 80 % up to p = 66" in again.out


def test_machine_formats_have_a_row_for_each_solution(run, runs):
    asked = ("efficiency", runs, "--iso", "0.8", "--at", "p=64,n=2560")
    rows = list(csv.DictReader(io.StringIO(run(*asked, "-f", "csv").out)))
    assert [row["solved"] for row in rows] == ["n"] * 6 + ["p"]
    assert float(rows[-2]["size"]) == pytest.approx(40 * 64 * 6)
    assert float(rows[-1]["scale"]) == pytest.approx(16)
    document = json.loads(run(*asked, "-f", "json").out)
    assert document["parallel_efficiency"] == 0.8
    assert (document["parameter"], document["size_parameter"]) == ("p", "n")
    assert document["reference"] == 1
    assert document["definition"] == "p0 T(p0, n) / (p T(p, n))"
    assert document["law"]["growth"] == "O(p log p)"
    assert document["rows"][0]["bound"] == "at least"
    assert "n = 2560 keeps 80 % up to p = 16" in document["verdict"]
    markdown = run(*asked, "-f", "markdown").out
    assert "| p | n | 95 % band | runs | n that keeps 80 % |" in markdown


def test_a_bounded_efficiency_is_told_with_the_best_one(run, tmp_path):
    law = {"main": lambda p, n: n / p + 0.1 * n}
    bounded = write_runs(tmp_path / "app.csv", law, 1, p=P, n=N, noise=0.0)
    told = run("efficiency", bounded, "--iso", "0.8", "--scaling", "strong", "--at", "n=4000")
    assert told.out.splitlines()[0] == (
        "app: no n keeps 80 % parallel efficiency at p = 128; the efficiency is at most 8.0 %"
    )
    assert "n = 4000 keeps 80 % up to p = 3" in told.out
    assert "none: at most 26.2 %" in told.out


def test_a_band_may_be_open(run, tmp_path):
    law = {"main": lambda p, n: 0.001 * n / p + 0.02 * np.log2(p)}
    noisy = write_runs(tmp_path / "app.csv", law, 39, p=P, n=N, noise=0.1)
    told = run("efficiency", noisy, "--iso", "0.9", "--scaling", "strong")
    assert told.status == 0, told.err
    assert "20 700 … inf" in told.out


def test_a_plot_shows_the_sizes(run, runs, tmp_path):
    plot = tmp_path / "sizes.svg"
    assert run("efficiency", runs, "--iso", "0.8", "--plot", plot).status == 0
    assert "80 % efficiency" in plot.read_text()


def test_the_page_has_a_section(run, runs, tmp_path):
    page = tmp_path / "page.html"
    told = run("report", runs, "--iso", "0.8", "--at", "p=64,n=16000", "-o", page)
    assert told.status == 0, told.err
    text = page.read_text()
    assert "n = O(p log p) keeps 80 % parallel efficiency" in text
    assert "n that keeps 80 %" in text
    assert "--iso 0.8" in text.split('id="making"')[1]
    assert 'id="isoefficiency"' not in page_of(run, runs, tmp_path)


def page_of(run, runs, folder):
    run("report", runs, "-o", folder / "other.html")
    return (folder / "other.html").read_text()


def test_runs_along_p_alone_are_refused_with_a_hint(run, tmp_path):
    alone = write_runs(tmp_path / "app.csv", {"main": shared}, 1, p=P, n=(1000,), noise=0.0)
    run("efficiency", alone, "--iso", "0.8").fails(2, "vary p alone", "app.p8.n1000")


def test_options_of_factors_do_not_apply(run, runs):
    run("efficiency", runs, "--iso", "0.8", "--select", "main").fails(2, "--select does not apply")
    run("efficiency", runs, "--iso", "1.2").fails(2, "1.2")
