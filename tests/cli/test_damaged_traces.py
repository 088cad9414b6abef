"""`cpmodel trace spec` with damaged and unfitting traces: one line, and nothing is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cells import cells
from communication import exchange, head_to_head, traced
from trace_writer import Comm, Thread, Trace, write_trace

PROGRAM = [("program_begin", 1, "app", ())]


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("line") / "app.p4", 4, exchange)


def cut(name, size):
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[:size])

    return damage


def overwrite(name, content, at=0):
    def damage(folder: Path) -> None:
        path = folder / name
        data = bytearray(path.read_bytes())
        data[at : at + len(content)] = content
        path.write_bytes(data)

    return damage


def remove(*names):
    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return damage


def swap(one, other):
    def damage(folder: Path) -> None:
        (folder / one).write_bytes((folder / other).read_bytes())

    return damage


DAMAGES = {
    "empty anchor": cut("traces.otf2", 0),
    "anchor without an end": cut("traces.otf2", 30),
    "anchor of zeros": overwrite("traces.otf2", bytes(60)),
    "anchor of text": overwrite("traces.otf2", b"#!/bin/sh\necho\n"),
    "anchor with huge blocks": overwrite("traces.otf2", b"\xff" * 24, 8),
    "no definitions": remove("traces.def"),
    "empty definitions": cut("traces.def", 0),
    "definitions cut in a record": cut("traces.def", 200),
    "definitions of zeros": overwrite("traces.def", bytes(200), 20),
    "definitions of ones": overwrite("traces.def", b"\xff" * 300, 20),
    "definitions of events": swap("traces.def", "traces/0.evt"),
    "no events of a rank": remove("traces/2.evt"),
    "empty events": cut("traces/1.evt", 0),
    "events cut in a record": cut("traces/1.evt", 100),
    "events of zeros": overwrite("traces/1.evt", bytes(300), 20),
    "events of ones": overwrite("traces/1.evt", b"\xff" * 300, 20),
    "events of definitions": swap("traces/1.evt", "traces.def"),
    "no local definitions": remove("traces/3.def"),
    "local definitions cut": cut("traces/0.def", 10),
    "no folder of events": lambda folder: shutil.rmtree(folder / "traces"),
}


@cells("damage", DAMAGES.values())
def test_a_damaged_trace_ends_in_one_line(run, line, tmp_path, damage):
    folder, output = tmp_path / "copy", tmp_path / "app.c"
    shutil.copytree(line.parent, folder)
    damage(folder)
    done = run("trace", "spec", folder / "traces.otf2", "-o", output)
    done.fails(done.status)
    assert done.status in {3, 4}
    assert not output.exists()


def events(*events):
    return Thread([*PROGRAM, *events, ("program_end", 999, 0)])


def in_call(name, *inner):
    return [("enter", 2, name), *inner, ("leave", 9, name)]


WORLD = Comm("WORLD")
UNFITTING = {
    "no communication": ([events(), events()], 4),
    "a message without a receive": (
        [events(*in_call("MPI_Send", ("mpi_send", 3, 1, WORLD, 0, 8))), events()],
        4,
    ),
    "a message of another size": (
        [
            events(*in_call("MPI_Send", ("mpi_send", 3, 1, WORLD, 0, 8))),
            events(*in_call("MPI_Recv", ("mpi_recv", 3, 0, WORLD, 0, 16))),
        ],
        4,
    ),
    "a message of another tag": (
        [
            events(*in_call("MPI_Send", ("mpi_send", 3, 1, WORLD, 1, 8))),
            events(*in_call("MPI_Recv", ("mpi_recv", 3, 0, WORLD, 2, 8))),
        ],
        4,
    ),
    "a message to the rank itself": (
        [events(*in_call("MPI_Send", ("mpi_send", 3, 0, WORLD, 0, 8))), events()],
        4,
    ),
    "a barrier of one": (
        [
            events(
                *in_call(
                    "MPI_Barrier",
                    ("mpi_collective_begin", 3),
                    ("mpi_collective_end", 4, 0, WORLD, 2**32 - 1, 0, 0),
                )
            ),
            events(),
        ],
        4,
    ),
    "a message beyond 2 GiB": (
        [
            events(*in_call("MPI_Send", ("mpi_send", 3, 1, WORLD, 0, 2**40))),
            events(*in_call("MPI_Recv", ("mpi_recv", 3, 0, WORLD, 0, 2**40))),
        ],
        4,
    ),
    "sums that do not fit": (
        [
            events(
                *in_call(
                    "MPI_Alltoallv",
                    ("mpi_collective_begin", 3),
                    ("mpi_collective_end", 4, 9, WORLD, 2**32 - 1, 10, 11),
                )
            )
        ]
        * 2,
        4,
    ),
    "buffered sends beyond 2 GiB": (
        [
            events(*in_call("MPI_Bsend", *[("mpi_send", 3, 1, WORLD, 0, 2**30)] * 3)),
            events(*in_call("MPI_Recv", *[("mpi_recv", 3, 0, WORLD, 0, 2**30)] * 3)),
        ],
        4,
    ),
}


@cells(("threads", "status"), UNFITTING.values())
def test_an_unfitting_trace_ends_in_one_line(run, tmp_path, threads, status):
    path = write_trace(tmp_path / "trace", Trace([[thread] for thread in threads]))
    output = tmp_path / "app.c"
    run("trace", "spec", path, "-o", output).fails(status)
    assert not output.exists()


def test_a_program_that_can_hang_ends_in_one_line(run, tmp_path):
    path, output = traced(tmp_path / "trace", 2, head_to_head), tmp_path / "app.c"
    run("trace", "spec", path, "-o", output).fails(4)
    assert not output.exists()


def test_names_of_calls_cannot_leave_their_place(run, tmp_path):
    name = "MPI_Send*/ int x; /*\x1b[31m\n#include <a>"
    threads = [
        events(*in_call(name, ("mpi_send", 3, 1, WORLD, 0, 8))),
        events(*in_call("MPI_Recv", ("mpi_recv", 3, 0, WORLD, 0, 8))),
    ]
    path = write_trace(tmp_path / "trace", Trace([[thread] for thread in threads]))
    told = tmp_path / "told.json"
    assert run("trace", "spec", path, "-o", told).status == 0
    for words in (("spec", path), ("spec", path, "-f", "c"), ("check", told, path)):
        done = run("trace", *words)
        assert done.status == 0, done.err
        assert "\x1b" not in done.out
        assert "*/ int x" not in done.out or words[-1] != "c"
        assert "\n#include <a>" not in done.out
