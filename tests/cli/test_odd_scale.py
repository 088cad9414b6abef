"""A largest run under other conditions: all its values are 1.4 times as large."""

import csv

import numpy as np
import pytest

P = (8, 16, 32, 64, 128)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(5)
    lines = ["callpath,p,rep,time"]
    for k in range(30):
        for p in P:
            slower = 1.4 if p == P[-1] else 1.0
            value = 5 + k if k % 3 else (1 + k) * np.log2(p)
            lines += [
                f"main/f{k},{p},{rep},{value * slower * rng.uniform(0.97, 1.03)}"
                for rep in range(3)
            ]
    path = tmp_path / "elsewhere.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_scale_that_is_off_by_a_factor_is_reported_and_not_taken_for_growth(run, table):
    outcome = run("rank", table, "--target", "4096", "--top", "40", "-f", "csv")
    assert outcome.status == 0, outcome.err
    assert "CPM208" in outcome.err
    said = "at p = 128 nearly all call paths are 1.41 times what the other scales say"
    assert said in outcome.err
    rows = {row["callpath"]: row for row in csv.DictReader(outcome.out.splitlines())}
    constant = rows["main/f1"]
    assert constant["growth"] == "O(1)"
    # The prediction of the other scales, and the one if all large runs are slower.
    assert float(constant["low[s]"]) < 6
    assert float(constant["high[s]"]) > 8.4


def test_without_it_nothing_is_said(run, table):
    outcome = run("rank", table, "--target", "4096", "--where", "p!=128")
    assert outcome.status == 0, outcome.err
    assert "CPM208" not in outcome.err
