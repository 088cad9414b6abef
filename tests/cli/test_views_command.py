"""`cpmodel views` on the command line."""

from __future__ import annotations

import csv
import io
import json

import pytest


def test_views_show_what_the_ranking_says(run, stored):
    ranked = run("rank", stored, "--target", "1000", "-f", "csv")
    shown = run("views", stored, "--target", "1000", "-f", "csv")
    ranks = {row["id"]: row for row in csv.DictReader(io.StringIO(ranked.out))}
    table = list(csv.DictReader(io.StringIO(shown.out)))
    assert len(table) == len(ranks)
    for row in table:
        of_rank = ranks[row["id"]]
        assert row["path"] == of_rank["callpath"]
        for column in ("value_at_target", "low", "high"):
            ours, theirs = row[f"{column}_exclusive[s]"], of_rank[f"{column}[s]"]
            assert ours == theirs or float(ours) == pytest.approx(float(theirs), rel=1e-9)


def test_values_by_themselves_or_with_callees_can_lead_in_every_view(run, stored):
    asked = ("views", stored, "--target", "1000", "--view", "flat", "-n", "1", "-f", "json")
    of_itself = json.loads(run(*asked).out)["rows"][0]["path"]
    with_callees = json.loads(run(*asked, "-i").out)["rows"][0]["path"]
    assert (of_itself, with_callees) == ("MPI_Init", "<program>")
    top_down = json.loads(run("views", stored, "-e", "--depth", "1", "-f", "json").out)
    assert top_down["target"] == 500  # four times the largest run


def test_what_does_not_add_up_is_refused(run, lulesh):
    run("views", lulesh, "-m", "max_time").fails(2, "does not add up")
