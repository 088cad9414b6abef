"""`cpmodel trace extrapolate`: communication at numbers of processes that nobody traced."""

from __future__ import annotations

import json
import shutil

import pytest

from communication import head_to_head, traced
from patterns import butterfly, gather_by_messages, ring, stencil2, transposes
from trace_writer import Comm


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Return the traces of a program at numbers of processes."""
    folder, known = tmp_path_factory.mktemp("traces"), {}

    def traces(program, *processes):
        for p in processes:
            if (program, p) not in known:
                path = folder / f"{program.__name__}.p{p}"
                known[program, p] = traced(path, p, program)
        return [known[program, p] for p in processes]

    return traces


def test_formulas_are_lines(run, traces):
    done = run("trace", "extrapolate", *traces(ring, 16, 4, 8))
    assert done.out.splitlines() == [
        "app: 4 lines that fit any number of processes, exact for p = 4, 8, 16",
        "",
        "all: repeat 5 times",
        "  start to receive 1024 bytes from (rank - 1) % p, tag 0, in ring",
        "  start to send 1024 bytes to (rank + 1) % p, tag 0, in ring",
        "  wait for all, in ring",
    ]


def test_the_specification_of_another_number_is_that_of_its_trace(run, traces, tmp_path):
    for program, processes in ((stencil2, 12), (transposes, 32), (ring, 24)):
        path = tmp_path / f"{program.__name__}.json"
        done = run(
            "trace", "extrapolate", *traces(program, 4, 8, 16), "--at", processes, "-o", path
        )
        assert done.status == 0, done.err
        done = run("trace", "check", path, *traces(program, processes))
        assert done.out.startswith("the same: "), program


def test_a_grid_may_be_given(run, traces):
    given = traces(stencil2, 4, 8, 16)
    done = run("trace", "extrapolate", *given, "--at", 12, "--grid", "6,2")
    assert "rank % 6 >= 1: start to receive 192 bytes" in done.out
    run("trace", "extrapolate", *given, "--at", 12, "--grid", "5,2").fails(4, "5 x 2", "product")
    run("trace", "extrapolate", *given, "--at", 12, "--grid", "3,2,2").fails(4, "2 dimensions")
    run("trace", "extrapolate", *given, "--at", 12, "--grid", "x").fails(2, "'x' is no grid")
    run("trace", "extrapolate", *given, "--at", 12, "--grid", "-3,-4").fails(2, "is no grid")
    run("trace", "extrapolate", *given, "--grid", "4,3").fails(2, "--grid needs --at")


def test_sizes_that_are_rounded_are_named(run, traces, tmp_path):
    def odd(rank):
        rank.send((rank.rank + 1) % rank.ranks, 4096 // rank.ranks)
        rank.receive((rank.rank - 1) % rank.ranks, 4096 // rank.ranks)

    path = tmp_path / "odd.json"
    given = [*traces(odd, 4, 8, 16), "--at", 12, "-o", path]
    done = run("trace", "extrapolate", *given)
    done.fails(4, "p = 12: line 1 (main/MPI_Send): 4096 / p is no whole number", "--element")
    done = run("trace", "extrapolate", *given, "--element", 8)
    assert "line 1 (main/MPI_Send): bytes is 341.3, rounded down to 336, which is whole" in done.err
    # A trace decides as well.
    decided = [*traces(odd, 4, 8, 12, 16), "--at", 24, "-o", path, "--force"]
    assert run("trace", "extrapolate", *decided).status == 0
    assert "170" in path.read_text()


def test_a_line_without_a_formula_is_named_and_nothing_is_written(run, traces, tmp_path):
    def unlike(rank):
        with rank.region("halo"):
            size = {4: 100, 8: 37, 16: 1000}[rank.ranks]
            rank.send((rank.rank + 1) % rank.ranks, 8)
            rank.receive((rank.rank - 1) % rank.ranks, 8)
            rank.send((rank.rank + 1) % rank.ranks, size, tag=1)
            rank.receive((rank.rank - 1) % rank.ranks, size, tag=1)

    output = tmp_path / "app.c"
    done = run("trace", "extrapolate", *traces(unlike, 4, 8, 16), "-o", output)
    done.fails(4, "no formula: line 3 (main/halo/MPI_Send): bytes: 100 at p = 4", "1 more number")
    for line, call in ((3, "Send"), (4, "Recv")):
        words = (
            f"line {line} (main/halo/MPI_{call}): bytes: 100 at p = 4, 37 at p = 8, 1000 at p = 16"
        )
        assert words in done.err
    assert "line 1" not in done.err
    assert not output.exists()


def test_numbers_of_processes_that_do_not_fit_are_refused(run, traces, tmp_path):
    output = tmp_path / "app.json"
    given = traces(butterfly, 4, 8, 16)
    done = run("trace", "extrapolate", *given, "--at", 12, "-o", output)
    done.fails(4, "p = 12: line 2 (loop around main/dot/MPI_Irecv): log2(p) is no whole number")
    assert not output.exists()
    run("trace", "extrapolate", *given, "--at", 1).fails(2, "--at")


def unsafe(rank):
    head_to_head(rank)


def test_a_program_that_can_hang_is_refused(run, traces, tmp_path):
    given = traces(unsafe, 4, 8, 16)
    output = tmp_path / "app.c"
    run("trace", "extrapolate", *given, "--at", 32, "-o", output).fails(4, "can hang")
    run("trace", "extrapolate", *given, "-o", output).fails(4, "can hang")
    assert not output.exists()
    done = run("trace", "extrapolate", *given, "--allow-unsafe", "-o", output)
    assert done.status == 0, done.err


def test_traces_that_do_not_belong_together_are_refused(run, traces, tmp_path):
    given, output = traces(ring, 4, 8, 16), tmp_path / "app.c"

    def refused(*paths):
        return run("trace", "extrapolate", *paths, "-o", output)

    refused(given[0]).fails(4, "one trace is too few")
    refused(*given[:2]).fails(4, "2 traces are too few")
    refused(*given, given[1]).fails(4, "two traces have 8 processes")
    refused(*given[:2], *traces(transposes, 16)).fails(4, "p = 16 is of another program")
    refused(*given, *traces(gather_by_messages, 32)).fails(4, "p = 32 is of another program")
    refused(*given[:2], tmp_path / "missing").fails(3, "missing")
    damaged = tmp_path / "damaged"
    shutil.copytree(given[2].parent, damaged)
    (damaged / "traces" / "5.evt").write_bytes(b"\x00" * 40)
    refused(*given[:2], damaged).fails(3, "5.evt")
    refused(*given, "-f", "json").fails(2, "text and c")
    assert not output.exists()


def test_anonymous_output_has_no_name_of_the_application(run, tmp_path):
    def named(rank):
        row = Comm(f"secret {rank.rank // 2}")
        with rank.region("secret_function"):
            rank.collective("barrier", 0, 0, comm=row)
            rank.collective("barrier", 0, 0)

    folder = tmp_path / "runs"
    folder.mkdir()
    given = []
    for p in (4, 8, 16):
        rows = {f"secret {k}": [2 * k, 2 * k + 1] for k in range(p // 2)}
        given.append(traced(folder / str(p), p, named, rows))
    for name, options in (("a.txt", ()), ("a.c", ()), ("b.json", ("--at", 8))):
        output = tmp_path / name
        done = run("trace", "extrapolate", *given, *options, "--anonymous", "-o", output)
        assert done.status == 0, done.err
        assert "secret" not in output.read_text() + done.err
        assert "communicator_2" in output.read_text()


def test_an_extrapolated_program_has_a_run_time_with_a_band(run, traces, tmp_path):
    path = tmp_path / "plane.json"
    run("trace", "extrapolate", *traces(stencil2, 4, 8, 16), "--at", 32, "-o", path)
    row = json.loads(run("trace", "predict", path, "-f", "json").out)["rows"][0]
    assert row["seconds"] == pytest.approx(
        json.loads(path.read_text())["specification"]["run_time"]
    )
    assert 0.04 <= row["relative_band"] < 1
    assert "extrapolated from traces" in run("trace", "predict", path).out


def test_parts_of_elements_are_told_with_the_trace_that_decides(run, traces, tmp_path):
    def parts(rank):
        rank.send((rank.rank + 1) % rank.ranks, 1_200_000 // rank.ranks)
        rank.receive((rank.rank - 1) % rank.ranks, 1_200_000 // rank.ranks)

    path = tmp_path / "parts.json"
    done = run("trace", "extrapolate", *traces(parts, 4, 8, 16), "--at", 64, "-o", path)
    assert "1200000 / p is 18750 bytes, but if the program divides elements of 8" in done.err
    assert "a trace of p = 7 decides" in done.err


def test_grids_that_libraries_choose_otherwise_are_a_note(run, traces, tmp_path):
    given = [*traces(stencil2, 4, 8, 16), "--at", 72, "-o", tmp_path / "plane.json"]
    done = run("trace", "extrapolate", *given, "--element", 8)
    assert "Open MPI may choose p = 72 (6 x 12)" in done.err
    done = run("trace", "extrapolate", *given, "--element", 8, "--grid", "6,12", "--force")
    assert "may choose" not in done.err
