"""The scale at which a program is fastest, on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

P = (8, 16, 32, 64, 128)


@pytest.fixture
def table(tmp_path):
    """Write a long table of a program that is fastest at p = 316, with three repetitions."""
    random = np.random.default_rng(2)
    lines = ["callpath,p,rep,time"]
    for p in P:
        for rep in range(1, 4):
            for name, value in (("main/work", 1000 / p), ("main/wait", 0.01 * p)):
                lines.append(f"{name},{p},{rep},{value * random.uniform(0.99, 1.01)}")
    path = tmp_path / "app.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_fastest_scale_is_told_in_text_in_json_and_on_the_page(run, table):
    outcome = run("rank", table, "--target", "2048")
    assert outcome.status == 0, outcome.err
    second = outcome.out.splitlines()[1]
    assert second.startswith("Fastest at about p = 3")
    assert second.endswith("more processes make it slower.")
    page = run("report", table, "--target", "2048").out
    assert f"<p>{second}</p>" in page.replace("\N{NO-BREAK SPACE}", " ")
    found = json.loads(run("rank", table, "--target", "2048", "-f", "json").out)["fastest"]
    assert found["at"] == pytest.approx(316, rel=0.1)
    assert found["is_slower"] is True


@pytest.mark.parametrize(
    "asked",
    [
        ("--target", "128"),
        ("--target", "64", "--predicted"),
        ("--target", "200"),
        ("--target", "2048", "--scaling", "weak"),
    ],
)
def test_where_there_is_no_such_scale_nothing_is_told(run, table, asked):
    outcome = run("rank", table, *asked, "-f", "json")
    assert outcome.status == 0, outcome.err
    assert json.loads(outcome.out)["fastest"] is None
    assert "astest" not in run("rank", table, *asked).out
