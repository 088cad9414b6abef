"""`cpmodel trace`: communication as loops, as a program, and compared."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import subprocess
import sys

import pytest

from communication import exchange, head_to_head, traced
from trace_writer import Comm


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("line") / "app.p6", 6, exchange)


def test_ranks_that_do_the_same_are_said_to(run, tmp_path):
    path = traced(tmp_path / "trace", 3, lambda rank: rank.collective("barrier", 0, 0))
    assert "24 events in the trace; every rank does the same\n" in run("trace", "spec", path).out


def test_the_format_is_that_of_the_ending(run, line, tmp_path):
    for ending, begin in ((".txt", "app: "), (".c", "/*"), (".json", '{"schema":3')):
        path = tmp_path / f"spec{ending}"
        done = run("trace", "spec", line, "-o", path)
        assert (done.status, done.out) == (0, "")
        assert done.err.startswith("app: 544 operations of 6 ranks in 8 lines\n")
        assert path.read_text().startswith(begin)
    run("trace", "spec", line, "-o", tmp_path / "spec.f90").fails(2, ".f90", "-f: c, ")
    run("trace", "spec", line, "-o", tmp_path / "spec.c").fails(6, "exists")
    assert run("trace", "spec", line, "-o", tmp_path / "spec.c", "--force").status == 0


def test_a_directory_stands_for_the_trace_in_it(run, line):
    assert run("trace", "spec", line.parent).out == run("trace", "spec", line).out


def test_a_trace_is_checked_against_a_specification(run, line, tmp_path):
    told = tmp_path / "spec.json"
    run("trace", "spec", line, "-o", told)
    done = run("trace", "check", told, line)
    assert done.status == 0
    assert done.out.splitlines() == [
        "the same: 544 operations of 6 ranks",
        "  MPI_Allreduce: 24 calls, 1152 bytes sent, 1152 received",
        "  MPI_Irecv: 200 calls, 0 bytes sent, 819200 received",
        "  MPI_Isend: 200 calls, 819200 bytes sent, 0 received",
        "  MPI_Waitall: 120 calls",
    ]

    def longer(rank):
        exchange(rank)
        if rank.rank == 2:
            rank.send(3, 1)
        if rank.rank == 3:
            rank.receive(2, 1)

    done = run("trace", "check", told, traced(tmp_path / "longer", 6, longer))
    assert done.status == 1
    assert done.out.splitlines() == [
        "rank 2: 104 operations in the specification, 105 in the trace",
        "rank 3: 104 operations in the specification, 105 in the trace",
        "MPI_Recv: 0 calls in the specification; 1 call, 0 bytes sent, 1 received in the trace",
        "MPI_Send: 0 calls in the specification; 1 call, 1 bytes sent, 0 received in the trace",
    ]


def test_the_first_operation_that_differs_is_named(run, line, tmp_path):
    told = tmp_path / "spec.json"
    run("trace", "spec", line, "-o", told)
    document = json.loads(told.read_text())
    loop = document["specification"]["body"][0]["body"][0]
    loop["body"][0]["numbers"]["tag"] = {"base": 7}
    told.write_text(json.dumps(document))
    done = run("trace", "check", told, line)
    assert done.status == 1
    assert done.out.splitlines()[0] == (
        "rank 1, operation 1 of 104: MPI_Irecv peer 0 tag 7 bytes 4096 on WORLD in the "
        "specification, MPI_Irecv peer 0 tag 0 bytes 4096 on WORLD in the trace"
    )


def test_what_is_left_out_is_said_and_counted(run, tmp_path):
    def program(rank):
        rank.collective("barrier", 0, 0)
        rank.call("MPI_Put")
        rank.call("MPI_File_open")

    path = traced(tmp_path / "trace", 2, program)
    done = run("trace", "spec", path)
    assert done.status == 0
    assert "left out: 2 one-sided calls\n" in done.out
    assert "left out: 2 calls of file I/O\n" in done.out
    assert "(CPM138 x4)" in done.err
    program_in_c = run("trace", "spec", path, "-f", "c").out
    assert " *     2 one-sided calls\n" in program_in_c


def test_a_run_that_does_not_communicate_says_so(run, tmp_path):
    path = traced(tmp_path / "trace", 2, lambda _: None)
    run("trace", "spec", path).fails(4, "no rank communicates", "several processes")


def test_bad_input_is_one_line(run, line, tmp_path):
    run("trace", "spec", tmp_path / "nowhere").fails(3, "nowhere")
    run("trace", "spec", tmp_path).fails(3, "holds no .otf2", "traces.otf2")
    run("trace", "spec", __file__).fails(3, "not the anchor")
    run("trace", "check", line, line).fails(3, "no specification")
    run("trace", "check", tmp_path / "a.json", line).fails(3, "a.json")
    run("trace", "spce", line).fails(2, "did you mean 'spec'?")
    cut = tmp_path / "cut"
    shutil.copytree(line.parent, cut)
    events = cut / "traces" / "3.evt"
    events.write_bytes(events.read_bytes()[:40])
    run("trace", "spec", cut).fails(3, "3.evt", "copy the trace again")


def test_messages_that_nobody_receives_are_told_but_make_no_program(run, tmp_path):
    path = traced(tmp_path / "trace", 2, lambda rank: rank.send(1 - rank.rank, 8))
    assert run("trace", "spec", path).status == 0
    output = tmp_path / "program.c"
    run("trace", "spec", path, "-o", output).fails(4, "2 messages are sent and 0 received")
    assert not output.exists()


def test_a_program_that_can_hang_needs_permission(run, tmp_path):
    path, output = traced(tmp_path / "trace", 2, head_to_head), tmp_path / "program.c"
    words = (
        "rank 0 in line 1 (send of 2048 bytes to rank 1 of main/exchange) waits for rank 1",
        "rank 1 in line 1 (send of 2048 bytes to rank 0 of main/exchange) waits for rank 0",
    )
    run("trace", "spec", path, "-o", output).fails(4, "can hang", *words, "--allow-unsafe")
    assert not output.exists()
    done = run("trace", "spec", path, "-o", output, "--allow-unsafe")
    assert done.status == 0
    assert output.read_text().startswith("/*")
    assert "(CPM144)" in done.err
    text = run("trace", "spec", path)
    assert text.status == 0
    assert "(CPM144)" in text.err


def collect(order, posted=None):
    def program(rank):
        with rank.region("collect"):
            if rank.rank:
                rank.send(0, 8)
            for peer in order if rank.rank == 0 else ():
                rank.receive(peer, 8, posted=posted)

    return program


def test_receives_from_any_source_are_marked_in_three_ways(run, tmp_path):
    marked = traced(tmp_path / "marked", 4, collect([2, 3, 1], "ANY"))
    one, two = (
        traced(tmp_path / f"{k}", 4, collect(o)) for k, o in enumerate(([2, 3, 1], [3, 1, 2]))
    )
    told = run("trace", "spec", marked).out.splitlines()[1:]
    assert "3 receives from any source; the sources here are one possible order of messages" in told
    assert any("from any source, here" in line for line in told)
    program = run("trace", "spec", marked, "-f", "c").out
    assert "/* any source, collect */" in program
    assert "name one possible source each" in program
    for words in ((one, "--any-source", "collect"), (two, "--another-run", one)):
        done = run("trace", "spec", *words)
        assert done.status == 0, done.err
        assert done.out.splitlines()[2:] == told[1:]
    for form in ("text", "c"):
        assert "any source" not in run("trace", "spec", one, "-f", form).out
    run("trace", "spec", one, "--any-source", "colect").fails(2, "did you mean 'collect'?")
    run("trace", "spec", one, "--another-run", tmp_path / "no").fails(3, "no")


def test_a_specification_with_wildcards_fits_every_run(run, tmp_path):
    one, two = (
        traced(tmp_path / f"{k}", 4, collect(o)) for k, o in enumerate(([2, 3, 1], [3, 1, 2]))
    )
    told = tmp_path / "told.json"
    run("trace", "spec", one, "-o", told, "--any-source", "collect")
    assert run("trace", "check", told, two).status == 0
    run("trace", "spec", one, "-o", told, "--force")
    assert run("trace", "check", told, two).status == 1


def test_a_deadlock_in_another_order_is_a_finding(run, tmp_path):
    def program(rank):
        if rank.rank == 1:
            rank.receive(2, 8, posted="ANY")
            rank.receive(0, 8)
        else:
            rank.send(1, 8)

    done = run("trace", "spec", traced(tmp_path / "trace", 3, program), "-f", "c")
    assert done.status == 0
    assert "(CPM145)" in done.err
    assert "rank 1 in line 2 (receive from rank 0 of main) waits for rank 0" in done.err
    assert "one order only" in done.err


def test_functions_with_other_names_are_a_difference(run, tmp_path):
    def program(call):
        def program(rank):
            rank.wait(rank.isend(1 - rank.rank, 8), call=call)
            rank.receive(1 - rank.rank, 8)

        return program

    one, two = (traced(tmp_path / x, 2, program(x)) for x in ("MPI_Wait", "MPI_Waitall"))
    told = tmp_path / "told.json"
    run("trace", "spec", one, "-o", told)
    done = run("trace", "check", told, two)
    assert done.status == 1
    assert done.out.splitlines()[2:] == [
        "MPI_Wait: 2 calls in the specification; 0 calls in the trace",
        "MPI_Waitall: 0 calls in the specification; 2 calls in the trace",
    ]


@pytest.mark.parametrize("form", ["text", "c", "json"])
def test_anonymous_output_has_no_name_of_the_application(run, tmp_path, form):
    def program(rank):
        with rank.region("secret_solver"):
            rank.collective("barrier", 0, 0, comm=Comm("secret_comm"))
            rank.call("MPI_Put")
            rank.exchange(1 - rank.rank, 1 - rank.rank, 8)
            head_to_head(rank)

    path = traced(tmp_path / "secret_trace", 2, program, {"secret_comm": [0, 1]})
    words = ("trace", "spec", path, "-f", form, "--allow-unsafe")
    done = run(*words, "--anonymous")
    assert done.status == 0, done.err
    for name in ("secret", "main", "exchange_", "app"):
        assert name not in (done.out + done.err).replace("main(int argc", ""), name
    assert "(CPM138" in done.err
    assert "(CPM144)" in done.err
    assert "f2" in done.out
    named = run(*words)
    assert "secret" in named.out
    assert named.out.count("\n") == done.out.count("\n")


def irregular(rank):
    order = random.Random(3)
    for _ in range(400):
        with rank.region(f"f{order.randrange(5)}"):
            rank.collective("barrier", 0, 0)


def test_irregular_communication_is_refused_before_it_is_written(run, tmp_path):
    path, output = traced(tmp_path / "trace", 2, irregular), tmp_path / "told.txt"
    done = run("trace", "spec", path, "-o", output, "--max-lines", "20")
    done.fails(4, "more than 20", "/MPI_Barrier of rank 0 and 1 other", "--max-lines")
    assert not output.exists()
    done = run("trace", "spec", path, "-o", output, "--max-lines", "1000")
    assert done.status == 0
    assert "(CPM147)" in done.err
    assert "of rank 0 and 1 other" in done.err


def test_the_command_is_among_the_others(run):
    assert "trace" in run("--help").out
    assert "trace             Show the communication" in run("plugins").out
    for words in (("trace",), ("trace", "--help")):
        done = run(*words)
        assert done.status == 0
        assert "spec " in done.out
        assert "check " in done.out


def test_a_reader_that_is_gone_ends_it(line):
    words = [sys.executable, "-m", "callpath_modeler", "trace", "spec", str(line)]
    command = f"{shlex.join(words)} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        [shutil.which("bash"), "-c", command], capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 141}
    assert not done.stderr
