"""Commands with a chosen, a recognised and an unclear kind of scaling."""

from __future__ import annotations

import json

import pytest

from cells import cells
from command_line import clean, run  # noqa: F401

SCALES = (2, 4, 8, 16, 32, 64)


def write(path, cost, workers="p", name="runs.csv", **columns):
    """Write a table of main/solve at all scales; costs and further columns are functions of p."""
    lines = [",".join(["callpath", workers, "time[s]", *columns])]
    for p in SCALES:
        more = [f"{of(p):.6f}" for of in columns.values()]
        lines.append(",".join(["main", str(p), "0.01", *["1"] * len(more)]))
        lines.append(",".join(["main/solve", str(p), f"{cost(p):.6f}", *more]))
    (path / name).write_text("\n".join(lines) + "\n")
    return str(path / name)


@pytest.fixture
def unclear(tmp_path):
    return write(tmp_path, lambda p: 8 * p**-0.4)


def test_an_unclear_kind_is_said_with_the_option(run, unclear):  # noqa: F811
    done = run("rank", unclear, "--target", "256")
    told = "scaling unclear (computation per process goes as p^-0.40; choose --scaling weak or"
    assert told in " ".join(done.out.split())
    assert "no excess work: the kind of scaling is unclear" in done.out
    assert "(CPM156)" in done.err


@pytest.mark.parametrize(
    "words",
    [["excess"], ["excess", "--target", "256"], ["rank", "--target", "256", "--pair", "2,8"]],
)
def test_excess_work_of_an_unclear_kind_is_an_error(run, unclear, words):  # noqa: F811
    command, *options = words
    done = run(command, unclear, *options)
    assert done.status == 2
    assert "choose it with --scaling weak or --scaling strong" in done.err
    assert run(command, unclear, *options, "--scaling", "weak").status == 0


@pytest.mark.parametrize("limit", ['loss = "<= 1 s"', 'excess = "<= 10 %"'])
def test_limits_of_excess_work_need_a_kind(run, unclear, tmp_path, limit):  # noqa: F811
    file = tmp_path / "limits.toml"
    file.write_text(f'schema = 1\n[[expect]]\ncallpath = "main/solve"\n{limit}\n')
    words = ["check", unclear, str(file), "--target", "256"]
    assert run(*words).status == 2
    assert run(*words, "--scaling", "weak").status == 0


def test_two_scales_of_an_unclear_kind_are_not_compared(run, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr("test_kind_of_scaling.SCALES", (2, 8))
    done = run("rank", write(tmp_path, lambda p: 8 * p**-0.4))
    assert "scaling unclear" in done.out
    assert "is lost" not in done.out
    assert "excess" not in done.out


def test_counts_tell_the_kind_to_commands_that_do_not_read_them(run, tmp_path):  # noqa: F811
    path = write(tmp_path, lambda p: 8 * p**-0.4, flops=lambda p: 1e9 / p)
    for words in (["rank", path, "--target", "256"], ["excess", path], ["info", path]):
        assert "strong scaling (computation per process goes as p^-0.40, flops as" in " ".join(
            run(*words).out.split()
        )


@cells("workers", ["p", "cores", "Nodes", "GPUs", "x", "number of things"])
@cells("kind", ["weak", "strong"])
def test_every_number_obeys_the_option(run, tmp_path, workers, kind):  # noqa: F811
    path = write(tmp_path, lambda _: 8.0, workers)
    told = ["--scaling", kind]
    whole = {"weak": 0.0, "strong": 1 - 2 / 64}[kind]
    losses = json.loads(run("excess", path, *told, "--pair", "2,64", "-f", "json").out)
    assert losses["pairs"][0]["excess"] == pytest.approx(whole, abs=1e-6)
    ranked = json.loads(run("rank", path, "--target", "64", *told, "-f", "json").out)
    rows = {row["callpath"]: row for row in ranked["rows"]}
    assert rows["main/solve"]["excess_exclusive"] == pytest.approx(whole * 8 / 8.01, abs=1e-6)
    limits = tmp_path / "limits.toml"
    limits.write_text('schema = 1\n[[expect]]\ncallpath = "main/solve"\nexcess = "<= 50 %"\n')
    status = run("check", path, str(limits), "--target", "64", *told).status
    assert status == {"weak": 0, "strong": 1}[kind]
