"""Runs with more threads: the loss is relative to 1/threads."""

from __future__ import annotations

import json


def test_the_loss_of_shared_work_is_relative_to_more_threads(run, tmp_path):
    table = tmp_path / "app.csv"
    rows = [f"{n},{name},{cost}" for n in (1, 2, 4, 8) for name, cost in (("a", 8 / n), ("b", 2))]
    table.write_text("threads,region,time\n" + "\n".join(rows) + "\n")
    told = json.loads(run("excess", table, "-f", "json").out)
    [last] = [pair for pair in told["pairs"] if pair["scale"] == 8]
    assert round(last["excess"], 4) == round((8 * 3 - 10) / (8 * 3), 4)
    assert "1/threads since threads = 1" in run("rank", table, "--target", "32").out
