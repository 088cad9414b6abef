"""Other programs of a specification: computation, sizes, and messages in place of collectives."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from callpath_modeler.errors import DataError, UsageError
from cells import cells
from communication import HALVES, everything, recorded, traced
from cpmodel_commspec.collective_messages import ALGORITHMS
from cpmodel_commspec.collectives import NAMES, Form
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.exchange import read_json, to_json
from cpmodel_commspec.expressions import Expression
from cpmodel_commspec.generators.c_program import c_source
from cpmodel_commspec.operations import FIELDS, Communicator, Kind, Shape
from cpmodel_commspec.replay.loggp import replay
from cpmodel_commspec.replay.platform import PRESETS, Platform
from cpmodel_commspec.replay.run_time import program_of, run_time
from cpmodel_commspec.simulation.deadlocks import deadlock, mismatches
from cpmodel_commspec.specification import Specification, Step, walk
from cpmodel_commspec.text import specification_text
from cpmodel_commspec.what_if import lowered, lowered_names, with_bytes, with_computation
from trace_writer import Comm

NETWORK = Platform("by hand", latency=5, overhead=1, gap=2, gap_per_byte=0.1, eager=100)
EQUAL = ("bcast", "reduce", "gather", "scatter", "allgather", "alltoall", "allreduce", "barrier",
         "reduce_scatter_block", "scan")  # fmt: skip
CASES = [(name, algorithm) for name in EQUAL for algorithm in ALGORITHMS[name]]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return specify(
        recorded(traced(tmp_path_factory.mktemp("all") / "trace", 4, everything, HALVES))
    )


def calls(name, n, me, root, size):
    """Return bytes sent and received as they are measured."""
    if name in {"bcast", "scatter"}:
        return n * size if me == root else 0, size
    if name in {"gather", "reduce"}:
        return size, n * size if me == root else 0
    if name == "scan":
        return (n - me) * size, (me + 1) * size
    return (0, 0) if name == "barrier" else (n * size, n * size)


def of_collective(folder, name, n, size, root=0):
    """Return the specification of a program with computation and one collective in a loop."""

    def program(rank):
        for step in range(3):
            rank.compute(1000 * (1 + (rank.rank * 7 + step) % 5))
            sent, received = calls(name, n, rank.rank, root, size)
            rooted = {"root": root} if name in {"bcast", "scatter", "gather", "reduce"} else {}
            rank.collective(name, sent, received, **rooted)

    return specify(recorded(traced(folder, n, program)))


def seconds(told, platform=NETWORK):
    found = replay(told.shapes, told.communicators, program_of(told), platform)
    assert found.outcome.blocked == ()
    return found.ends


def is_sound(told):
    assert list(mismatches(told)) == []
    assert deadlock(told) is None


def sent(told):
    """Return messages and bytes that each rank sends."""
    counts, sizes = Counter(), Counter()
    for rank in range(told.processes):
        one = told.of_rank(rank)
        for shape, values in zip(one.shapes.tolist(), one.values.tolist(), strict=True):
            for end in told.shapes[shape].ends:
                if end.is_sent:
                    counts[rank] += 1
                    sizes[rank] += values[FIELDS.index(end.bytes)]
    return counts, sizes


@cells("n", [2, 4, 5])
@pytest.mark.parametrize(("name", "algorithm"), CASES)
def test_messages_take_as_long_as_the_collective_with_their_algorithm(tmp_path, name, algorithm, n):
    size = 0 if name == "barrier" else 60
    root = n // 2 if name in {"bcast", "scatter", "gather", "reduce"} else 0
    told = of_collective(tmp_path / "trace", name, n, size, root)
    found = lowered(told, {name: algorithm})
    is_sound(found)
    assert not any(found.shapes[node.shape].name == name for node, _ in walk(found.body)
                   if isinstance(node, Step))  # fmt: skip
    platform = replace(NETWORK, algorithms={name: algorithm})
    assert seconds(found) == pytest.approx(seconds(told, platform))


def test_all_to_all_becomes_a_message_to_each_other_rank(tmp_path):
    n = 6
    told = of_collective(tmp_path / "trace", "alltoall", n, 100)
    found = lowered(told, {"alltoall": "p2p"})
    counts, sizes = sent(found)
    assert sum(counts.values()) == 3 * n * (n - 1)
    assert sizes == dict.fromkeys(range(n), 3 * (n - 1) * 100)
    lines = [str(line) for line in specification_text(found, None)]
    assert any("start to receive 100 bytes from (rank - k - 1)" in line or "% 6" in line
               for line in lines), lines  # fmt: skip
    assert found.operations == int(found.counts().sum()) == n * 3 * (2 * (n - 1) + 2)


def test_a_program_with_messages_is_written_and_read_back(tmp_path):
    told = lowered(of_collective(tmp_path / "trace", "alltoall", 4, 100), {"alltoall": "p2p"})
    path = tmp_path / "spec.json"
    path.write_text(to_json(told))
    assert read_json(path) == told
    assert "start_to_receive" in c_source(told)


def test_messages_of_a_collective_match_no_others(told):
    found = lowered(told, {"scan": "line", "scatter": "p2p", "allgather": "ring"})
    assert list(mismatches(found)) == []
    names = [one.name for one in found.communicators]
    assert len(set(names)) == len(names)
    assert len(names) > len(told.communicators)


def test_each_group_of_a_split_has_messages_of_its_own(tmp_path):
    def program(rank):
        half = Comm("low" if rank.rank < 2 else "high")
        rank.collective("bcast", 2 * 40 if rank.rank in {0, 3} else 0, 40, root=0, comm=half)

    told = specify(recorded(traced(tmp_path / "trace", 4, program, HALVES)))
    found = lowered(told, {"bcast": "binomial"})
    is_sound(found)
    peers = [
        (rank, int(values[FIELDS.index("peer")]))
        for rank in range(4)
        for shape, values in zip(
            found.of_rank(rank).shapes, found.of_rank(rank).values, strict=True
        )
        if found.shapes[shape].kind is Kind.SEND
    ]
    assert peers == [(0, 1), (3, 2)]


def test_collectives_whose_root_moves_are_refused(tmp_path):
    def program(rank):
        for step in range(8):
            rank.collective("bcast", 4 * 8 if rank.rank == step % 4 else 0, 8, root=step % 4)

    told = specify(recorded(traced(tmp_path / "trace", 4, program)))
    with pytest.raises(DataError, match="root"):
        lowered(told, {"bcast": "binomial"})


def test_collectives_that_do_not_block_are_refused(told):
    with pytest.raises(DataError, match="blocking"):
        lowered(told, {"barrier": "dissemination"})


UNEQUAL = ("alltoallv", "gatherv", "scatterv", "allgatherv", "reduce_scatter")


@cells(
    ("name", "algorithm"), [(name, algorithm) for name in UNEQUAL for algorithm in ALGORITHMS[name]]
)
def test_unequal_collectives_keep_their_sums(tmp_path, name, algorithm):
    def program(rank):
        sizes = [10 + 3 * k for k in range(4)]
        total = sum(sizes)
        me = sizes[rank.rank]
        moved = {
            "alltoallv": (me, sizes[(rank.rank + 1) % 4]),
            "gatherv": (me, total if rank.rank == 0 else 0),
            "scatterv": (total if rank.rank == 0 else 0, me),
            "allgatherv": (4 * me, total),
            "reduce_scatter": (total, 4 * me),
        }[name]
        rank.collective(
            name, *moved, **({"root": 0} if "scat" in name or name == "gatherv" else {})
        )

    told = specify(recorded(traced(tmp_path / "trace", 4, program)))
    found = lowered(told, {name: algorithm})
    is_sound(found)
    if name != "alltoallv":
        platform = replace(NETWORK, algorithms={name: algorithm})
        assert seconds(found) == pytest.approx(seconds(told, platform))
    else:
        _, sizes = sent(found)
        assert sum(sizes.values()) <= sum(10 + 3 * k for k in range(4))
    for factor in ("0.1", "1.37", "3"):
        scaled = with_bytes(told, Fraction(factor))
        step = next(node for node, _ in walk(scaled.body) if isinstance(node, Step))
        values = [step.numbers[key].values(step.ranks, ()) for key in ("bytes", "received")]
        assert scaled.shapes[step.shape].form is Form.TOTAL
        if name == "alltoallv":
            assert values[0].sum() == values[1].sum()
        assert c_source(scaled)  # which refuses inconsistent sums


@cells("factor", ["0.1", "1", "2", "256", "0.3333"])
def test_sizes_are_scaled_and_rounded_up(told, factor):
    exact = Fraction(factor)
    found = with_bytes(told, exact)
    assert list(mismatches(found)) == list(mismatches(told)) == []
    for rank in range(told.processes):
        old, new = told.of_rank(rank), found.of_rank(rank)
        for k, shape in enumerate(old.shapes.tolist()):
            about = told.shapes[shape]
            if about.form is Form.TOTAL:
                continue
            for field in {"bytes", "received"} & set(about.fields):
                column = FIELDS.index(field)
                scaled = -(-int(old.values[k, column]) * exact.numerator // exact.denominator)
                assert new.values[k, column] == scaled
    if exact == 1:
        assert all((told.of_rank(r).values == found.of_rank(r).values).all() for r in range(4))


def test_sizes_beyond_all_limits_are_refused(told):
    with pytest.raises(DataError, match="2\\^48"):
        with_bytes(told, Fraction(10**15))


def test_too_many_messages_are_refused_before_they_are_made():
    ranks = tuple(range(5000))
    shape = Shape(Kind.COLLECTIVE, "alltoall", 0)
    step = Step(0, ranks, {"bytes": Expression(8)})
    told = Specification(
        "", 5000, 0, 5000, 1, (shape,), (Communicator("WORLD", (ranks,)),), (step,), {}
    )
    with pytest.raises(DataError, match="too many"):
        lowered(told, {"alltoall": "p2p"})
    assert lowered(told, {"alltoall": "bruck"}).operations == 5000 * 13


def test_computation_is_scaled(tmp_path):
    told = of_collective(tmp_path / "trace", "allreduce", 4, 8)
    for factor in (0.0, 0.5, 3.0):
        found = with_computation(told, factor)
        for rank in range(4):
            expected = factor * told.computing_of_rank(rank)
            assert found.computing_of_rank(rank) == pytest.approx(expected, abs=1e-15)
            assert found.ending_of_rank(rank) == pytest.approx(factor * told.ending_of_rank(rank))
    nothing = with_computation(told, 0.0)
    assert seconds(nothing).max() < seconds(told).max()


def test_computation_stays_before_the_messages(tmp_path):
    told = of_collective(tmp_path / "trace", "bcast", 4, 8)
    found = lowered(told, {"bcast": "binomial"})
    for rank in range(4):
        assert found.computing_of_rank(rank).sum() == told.computing_of_rank(rank).sum()


def test_implementations_are_those_that_exist():
    assert lowered_names(["alltoall=p2p", "bcast=binomial"]) == {
        "alltoall": "p2p", "bcast": "binomial",
    }  # fmt: skip
    for text in ("alltoall", "altoall=p2p", "alltoall=magic", "=", "bcast=ring\x1b[31m"):
        with pytest.raises(UsageError) as error:
            lowered_names([text])
        assert error.value.hint
        assert error.value.message.isprintable()


def test_every_collective_has_an_algorithm():
    assert set(ALGORITHMS) == set(NAMES)


def test_times_of_lines_add_up_to_the_run_time(told):
    program = program_of(told)
    lines = [told.lines_of_rank(rank) for rank in range(told.processes)]
    found = replay(told.shapes, told.communicators, program, PRESETS["infiniband"])
    time = run_time(told, lines, found)
    assert time.computing + time.transfer + time.waiting + time.idle == pytest.approx(time.seconds)
    of_lines = sum(one.calling for one in time.lines)
    assert of_lines == pytest.approx(time.transfer + time.waiting)
    assert sum(one.operations for one in time.lines) == told.operations
    assert [one.line for one in time.lines] == sorted(one.line for one in time.lines)
    assert all(one.slowest >= one.calling for one in time.lines)
    assert np.isfinite(time.seconds)
