"""All commands state the same run time."""

from __future__ import annotations

import json
import re

import pytest

STATED = re.compile(r"lulesh2\.0 (?:will run|ran) ([\d. …]+ \w+) at p = (\d+)")


@pytest.fixture(scope="module")
def lulesh(samples):
    return samples / "lulesh"


@pytest.mark.parametrize("target", [125, 1000])
def test_ranking_views_and_one_call_path_state_one_run_time(run, lulesh, target):
    asked = ("--target", target)
    texts = [
        run("rank", lulesh, *asked).out,
        run("views", lulesh, *asked).out,
        run("show", lulesh, "main/MPI_Init", *asked).out,
    ]
    stated = [STATED.search(text) for text in texts]
    assert all(stated), texts
    assert len({found.groups() for found in stated}) == 1


def test_excess_work_states_the_run_time_of_the_slowest_process(run, lulesh):
    text = " ".join(run("excess", lulesh, "--pair", "8,125").out.split())
    ranked = STATED.search(run("rank", lulesh, "--target", 125).out)
    assert f"is lost: 21.4 s of {ranked[1]} (" in text
    found = json.loads(run("excess", lulesh, "--pair", "8,125", "-f", "json").out)
    (pair,), costs = found["pairs"], [row["cost_at_scale_exclusive"] for row in found["rows"]]
    assert pair["run_time_at_scale"] == pair["total_at_scale"] > 1.05 * sum(costs)


def test_counts_have_no_run_time(run, lulesh):
    assert "run time" not in run("excess", lulesh, "--pair", "8,125", "-m", "visits").out
    assert "will run" not in run("show", lulesh, "main/MPI_Init", "--target", 1000, "-m",
                                 "visits").out  # fmt: skip
