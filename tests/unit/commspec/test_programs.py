"""Programs in C and Python: run, and counted by a library between the program and MPI."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler.errors import DataError
from communication import WORLD, Rank, recorded, traced
from cpmodel_commspec.collectives import booked
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.generators.c_program import c_source
from cpmodel_commspec.generators.python_program import PythonFunctions, python_source, table
from cpmodel_commspec.operations import COLLECTIVES, Half, Kind
from cpmodel_commspec.simulation.deadlocks import require_safe
from cpmodel_commspec.simulation.wildcards import resolved
from cpmodel_otf2.events import Message
from cpmodel_otf2.reader import opened
from trace_writer import Comm

COUNTING = Path(__file__).with_name("counting.c")
HANDLES = 17
AS_ANYBODY = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl": "self,vader",
    # Waiting ranks leave the processors to those that compute, and to other tests.
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


@pytest.fixture(scope="session")
def counting(tmp_path_factory):
    """The counting library, compiled for programs in C and as a library to load before MPI."""
    if shutil.which("mpicc") is None or shutil.which("mpirun") is None:
        pytest.skip("needs mpicc and mpirun, such as those of openmpi-bin and libopenmpi-dev")
    folder = tmp_path_factory.mktemp("counting")
    compile_c("-c", COUNTING, "-o", folder / "counting.o")
    compile_c("-shared", "-fPIC", COUNTING, "-o", folder / "counting.so")
    return folder


_LIBRARY = (
    "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; "
    "print(MPI.Get_library_version())"
)


@cache
def python_with_mpi():
    """Return a Python whose mpi4py is for Open MPI, or None."""
    for python in (sys.executable, "/usr/bin/python3", shutil.which("python3")):
        if python and Path(python).exists():
            done = subprocess.run(
                [python, "-c", _LIBRARY], capture_output=True, text=True, check=False
            )
            if done.returncode == 0 and "Open MPI" in done.stdout:
                return python
    return None


def compile_c(*arguments):
    strict = ("-std=c99", "-Wall", "-Wextra", "-Werror")
    done = subprocess.run(
        [shutil.which("mpicc"), *strict, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def c_command(program, counting, folder):
    source, binary = folder / "program.c", folder / "program"
    source.write_text(program)
    compile_c(source, counting / "counting.o", "-o", binary)
    return [binary]


def python_command(program, counting, folder):
    python = python_with_mpi()
    if python is None:
        pytest.skip("needs mpi4py for Open MPI, such as that of python3-mpi4py")
    source = folder / "program.py"
    source.write_text(program, encoding="utf-8")
    return ["-x", f"LD_PRELOAD={counting / 'counting.so'}", python, "-m", "mpi4py", source]


LANGUAGES = {"c": (c_source, c_command), "mpi4py": (python_source, python_command)}


@pytest.fixture(params=LANGUAGES)
def language(request):
    return request.param


def run_program(told, counting, folder, language):
    """Run the program of a specification, and return the totals and the calls of each rank."""
    write, command = LANGUAGES[language]
    return run_processes(command(write(told), counting, folder), folder, told.processes)


def run_processes(command, folder, ranks):
    done = subprocess.run(
        [shutil.which("mpirun"), "-n", str(ranks), *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        # Names of sockets have to be short.
        env={**os.environ, **AS_ANYBODY, "TMPDIR": "/tmp", "COUNTING": str(folder)},  # noqa: S108
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    totals = [
        list(map(int, (folder / f"{rank}.totals").read_text().split())) for rank in range(ranks)
    ]
    logs = [folder / f"{rank}.calls" for rank in range(ranks)]
    return totals, [log.read_text().splitlines() if log.exists() else [] for log in logs]


def totals_of(path):
    """Return the messages that each rank of a trace sends and receives, by rank."""
    counts = {}
    with opened(path) as source:
        for location in source.definitions.locations:
            total = np.zeros(7, np.int64)
            for batch in source.batches(location):
                messages, calls = batch.messages, batch.collectives
                is_sent = np.isin(messages.kind, (Message.SEND, Message.ISEND))
                is_data = calls.operation < HANDLES
                total += [
                    is_sent.sum(),
                    messages.bytes[is_sent].sum(),
                    (~is_sent).sum(),
                    messages.bytes[~is_sent].sum(),
                    is_data.sum(),
                    calls.sent[is_data].sum(),
                    calls.received[is_data].sum(),
                ]
            counts[source.definitions.ranks[location.reference]] = total.tolist()
    return [counts[rank] for rank in range(len(counts))]


def calls_of(found, rank):
    """Return the calls of a rank of a trace, as the counting library writes them."""
    lines = []
    one = found.ranks[rank]
    for number, values in zip(one.shapes.tolist(), one.values.tolist(), strict=True):
        shape = found.shapes[number]
        peer, tag, size, received, root, source, source_tag = values
        if shape.kind is Kind.EXCHANGE:
            lacks = {Half.SEND: "receive", Half.RECEIVE: "send"}.get(shape.name)
            lines.append(
                f"{shape.call} -1 -1 0" if lacks == "send" else f"{shape.call} {peer} {tag} {size}"
            )
            lines.append("-1 -1 0" if lacks == "receive" else f"{source} {source_tag} {received}")
        elif shape.ends:
            lines.append(f"{shape.call} {peer} {tag} {size}")
        elif shape.kind in COLLECTIVES:
            group = next(x for x in found.communicators[shape.comm].groups if rank in x)
            about = len(group), group.index(rank), root, size, received
            sent, got = booked(shape.name, shape.form, *about)
            lines.append(f"{shape.call} -1 {sent} {got}")
        else:
            lines.append(shape.call)
            if shape.grid:
                sizes = [f"{abs(size)} {int(size < 0)}" for size in shape.grid]
                lines.append(" ".join([str(len(sizes)), *sizes]))
    return lines


def check_program(path, counting, folder, *languages, allow_unsafe=False):
    """Check the calls and totals of the programs of a trace in some languages."""
    found = resolved(recorded(path)).traced
    told = specify(found)
    require_safe(told, allow_unsafe=allow_unsafe)
    expected = [calls_of(found, rank) for rank in range(told.processes)]
    for language in languages:
        place = folder / language
        place.mkdir()
        totals, calls = run_program(told, counting, place, language)
        assert totals == totals_of(path), language
        for rank in range(told.processes):
            assert calls[rank] == expected[rank], (language, rank)


def test_a_program_of_all_kinds_makes_the_calls_of_the_trace(
    all_kinds, counting, tmp_path, language
):
    # It waits for a send to one side before it receives from the other.
    check_program(all_kinds, counting, tmp_path, language, allow_unsafe=True)


def waits(rank):
    """Every function that completes operations, with MPI_PROC_NULL at the ends of a line."""
    me, n = rank.rank, rank.ranks
    for name in (
        "Wait",
        "Waitall",
        "Waitany",
        "Waitsome",
        "Test",
        "Testall",
        "Testany",
        "Testsome",
    ):
        call = f"MPI_{name}"
        several = call in {"MPI_Waitall", "MPI_Waitsome", "MPI_Testall", "MPI_Testsome"}
        requests = [rank.ireceive(me ^ 1, 40, tag=1), rank.isend(me ^ 1, 40, tag=1)]
        for done in [requests] if several else [[request] for request in requests[::-1]]:
            rank.wait(*done, call=call)
            # Waits in any order that follow each other are one.
            rank.collective("barrier", 0, 0)
    rank.wait()
    for call in ("MPI_Sendrecv", "MPI_Sendrecv_replace"):
        sent = [("mpi_send", me + 1, WORLD, 5, 24)] if me + 1 < n else []
        taken = [("mpi_recv", me - 1, WORLD, 5, 24)] if me else []
        rank.call(call, *sent, *taken)
    for _ in range(3):
        rank.send(me ^ 1, 100, tag=2, call="MPI_Bsend")
        rank.isend(me ^ 1, 50, tag=3, call="MPI_Ibsend")
    for _ in range(3):
        rank.receive(me ^ 1, 100, tag=2)
        rank.receive(me ^ 1, 50, tag=3)
    for call in (
        "MPI_Comm_dup",
        "MPI_Comm_split",
        "MPI_Comm_create",
        "MPI_Cart_create",
        "MPI_Cart_sub",
    ):
        rank.handle(call)
        rank.handle("MPI_Comm_free", 18)
    rank.collective("alltoallw", 4 * n, 4 * n)


def test_calls_keep_their_names(counting, tmp_path, language):
    path = traced(tmp_path / "trace", 6, waits, grids=[[(2, False), (3, True)]])
    check_program(path, counting, tmp_path, language)


def test_functions_that_programs_replace_are_named(recording):
    def program(rank):
        rank.send(rank.rank ^ 1, 8, call="MPI_Rsend")
        rank.receive(rank.rank ^ 1, 8)

    assert " * MPI_Rsend is MPI_Send here.\n" in c_source(specify(recording(2, program)))


TRACES = [
    *[f"traces/{name}" for name in ("fig4.3", "fig6.3", "stencil_long.2", "ft_long.2", "ft.16")],
    *[
        f"traces/{name}.{ranks}"
        for name in ("ring", "stencil", "cg", "lu", "subcomm", "master")
        for ranks in ((4, 8) if name in {"cg", "subcomm"} else (4,))
    ],
    "scorep/traces/npb_is.trace/p4",
    "scorep/traces/snap.trace/p4",
    "scorep/traces/lulesh.trace/p8",
    "third_party/otf2/stencil4d_p32",
    *[f"third_party/otf2/{name}_p2" for name in ("ping-pong", "ping-pong-papi")],
]


@pytest.mark.parametrize("trace", TRACES)
def test_programs_of_measured_traces_make_the_calls_of_these(
    trace, shared_data, counting, tmp_path
):
    check_program(shared_data / trace / "traces.otf2", counting, tmp_path, *LANGUAGES)


def test_a_program_says_how_many_processes_it_needs(all_kinds, counting, tmp_path, language):
    write, command = LANGUAGES[language]
    program = write(specify(recorded(all_kinds)))
    with pytest.raises(AssertionError, match="needs 4 processes, not 2"):
        run_processes(command(program, counting, tmp_path), tmp_path, 2)


def test_programs_in_python_compute_as_long_as_the_trace(recording):
    def program(rank: Rank) -> None:
        for step in range(40):
            rank.compute(1000 * (rank.rank + 1) + 977 * (step % 7) + 50_000 * (step == 0))
            rank.collective("barrier", 0, 0)
        rank.compute(12_345)

    told = specify(recording(3, program))
    [loop] = told.body
    [step] = loop.body
    assert step.computing.first
    part = PythonFunctions().text("computation").split("def compute(line")[0]
    for rank in range(3):
        names = {"rank": rank}
        exec(table(told) + part, names)  # noqa: S102
        drawn = [next(names["computation"][2, k == 0]) for k in range(40)]
        assert drawn == told.computing_of_rank(rank).tolist()
        assert next(names["computation"][3, False]) == told.ending_of_rank(rank)
    source = python_source(told)
    assert "compute(2, i == 0); barrier(0)" in source
    assert "\n    compute(3)\n" in source


def test_names_change_no_statement_of_a_program_in_python(tmp_path):
    def trees(name):
        def program(rank: Rank) -> None:
            with rank.region(name):
                rank.collective("barrier", 0, 0, comm=Comm(name))
                rank.handle(name)

        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        path = traced(folder, 2, program, {name: [0, 1]})
        module = ast.parse(python_source(specify(recorded(path))))
        assert ast.get_docstring(module)
        return [ast.dump(node) for node in module.body[1:]]

    hostile = ('f"""\nimport os\n"""', "f\\", "f\r\nimport os #", "f\x0cimport os", "f'''", 'f"')
    for name in hostile:
        assert trees(name) == trees("harmless"), name


def test_sizes_that_do_not_add_up_make_no_program(recording):
    def program(rank: Rank) -> None:
        rank.collective("alltoallv", 10, 11)

    with pytest.raises(DataError, match=r"alltoallv in .* does not receive what it sends"):
        c_source(specify(recording(3, program)))


def test_messages_beyond_what_mpi_counts_make_no_program(recording):
    def program(rank: Rank) -> None:
        peer = 1 - rank.rank
        rank.exchange(peer, peer, 2**31)

    with pytest.raises(DataError, match="more than 2 GiB"):
        c_source(specify(recording(2, program)))


def test_names_in_the_trace_cannot_end_a_comment(recording):
    def program(rank: Rank) -> None:
        with rank.region("f*/ int g; /*"):
            rank.collective("barrier", 0, 0)

    source = c_source(specify(recording(2, program)))
    assert "*/ int g" not in source
