"""Call sites of sampled Caliper profiles in commands."""

from __future__ import annotations

import pytest

from caliper_samples import COSTS, Samples, run_of


@pytest.fixture
def series(tmp_path):
    for processes in COSTS:
        (tmp_path / f"app.p{processes}.cali").write_text(run_of(processes))
    return tmp_path


def test_folded_calls_are_one_call_path(series, run):
    done = run("rank", series, "-m", "count", "--fold", "call-sites", "-f", "csv")
    assert done.status == 0, done.err
    assert "exchange:31" not in done.out
    assert done.out.count("main/exchange") == 1
    told = run("rank", series, "-m", "count", "--scaling", "weak")
    assert "main/exchange:31" in told.out


def test_control_characters_in_a_place_stay_out_of_the_output(tmp_path, run):
    for processes in (2, 4):
        writer = Samples()
        for rank in range(processes):
            frames = [("main", "/a\x1b[31m.c:3"), ("solve", "/b\x07.c:4")]
            writer.sample(frames, processes, rank=rank)
        writer.globals({"mpi.world.size": processes})
        (tmp_path / f"app.p{processes}.cali").write_text(writer.text())
    for command in (("rank",), ("show", "main/solve"), ("views",)):
        name, *more = command
        done = run(name, tmp_path, *more, "-m", "count")
        assert done.status == 0, done.err
        assert not {"\x1b", "\x07"} & {*done.out}
