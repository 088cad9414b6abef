"""Programs in C: compiled, run, and counted by a library between them and MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler.errors import DataError
from communication import Rank
from cpmodel_commspec.c_source import c_source
from cpmodel_commspec.recording import record
from cpmodel_commspec.specify import specify
from cpmodel_otf2.event_source import opened
from cpmodel_otf2.events import Message

COUNTING = Path(__file__).with_name("counting.c")
HANDLES = 17
AS_ANYBODY = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_btl": "self,vader",
}


@pytest.fixture(scope="session")
def counting(tmp_path_factory):
    """The counting library, compiled."""
    if shutil.which("mpicc") is None or shutil.which("mpirun") is None:
        pytest.skip("needs mpicc and mpirun, such as those of openmpi-bin and libopenmpi-dev")
    compiled = tmp_path_factory.mktemp("counting") / "counting.o"
    compile_c("-c", COUNTING, "-o", compiled)
    return compiled


def compile_c(*arguments):
    strict = ("-std=c99", "-Wall", "-Wextra", "-Werror")
    done = subprocess.run(
        [shutil.which("mpicc"), *strict, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def counted(program, counting, folder, ranks):
    """Return what each rank of a program sends and receives, by rank."""
    source, binary = folder / "program.c", folder / "program"
    source.write_text(program)
    compile_c(source, counting, "-o", binary)
    done = subprocess.run(
        [shutil.which("mpirun"), "-n", str(ranks), str(binary)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **AS_ANYBODY, "TMPDIR": "/tmp"},  # noqa: S108 - names of sockets are short
    )
    assert done.returncode == 0, done.stderr
    rows = [list(map(int, line.split())) for line in done.stdout.splitlines()]
    return {row[0]: row[1:] for row in rows}


def counts_of(path):
    """Return what each rank of a trace sends and receives, by rank."""
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
        return counts, c_source(specify(record(source, lambda *_: None)))


def test_a_program_of_all_kinds_moves_what_the_trace_says(all_kinds, counting, tmp_path):
    expected, program = counts_of(all_kinds)
    assert counted(program, counting, tmp_path, 4) == expected


@pytest.mark.parametrize(
    ("trace", "ranks"),
    [
        ("scorep/traces/snap.trace/p4", 4),
        ("scorep/traces/lulesh.trace/p8", 8),
        ("scorep/traces/npb_is.trace/p8", 8),
        ("third_party/otf2/stencil4d_p32", 32),
    ],
)
def test_programs_of_measured_traces_move_what_these_say(
    trace, ranks, shared_data, counting, tmp_path
):
    expected, program = counts_of(shared_data / trace / "traces.otf2")
    assert counted(program, counting, tmp_path, ranks) == expected


def test_a_program_says_how_many_processes_it_needs(all_kinds, counting, tmp_path):
    _, program = counts_of(all_kinds)
    with pytest.raises(AssertionError, match="needs 4 processes, not 2"):
        counted(program, counting, tmp_path, 2)


def test_messages_that_nobody_receives_make_no_program(recording):
    def program(rank: Rank) -> None:
        rank.send((rank.rank + 1) % rank.ranks, 8)

    told = specify(recording(4, program))
    with pytest.raises(DataError, match="4 messages are sent and 0 received"):
        c_source(told)


def test_collectives_that_not_all_take_part_in_make_no_program(recording):
    def program(rank: Rank) -> None:
        if rank.rank:
            rank.collective("barrier", 0, 0)

    with pytest.raises(DataError, match="do not all make the same collective calls"):
        c_source(specify(recording(3, program)))


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
