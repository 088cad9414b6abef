"""Masters that answer any source: partners take turns, or one line tells why they cannot."""

from __future__ import annotations

import heapq
import random
from dataclasses import replace

import numpy as np
import pytest
from test_programs import calls_of, counting, run_processes
from test_scalable_programs import compiled

from callpath_modeler.errors import DataError
from cells import cells
from communication import recorded, traced
from cpmodel_commspec.checking import differences
from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.generators.interface import Options, load
from cpmodel_commspec.replay.loggp import replay
from cpmodel_commspec.replay.platform import platform_of
from cpmodel_commspec.scalable.expansion import expanded, scale_at
from cpmodel_commspec.scalable.extrapolation import extrapolate
from cpmodel_commspec.scalable.text import scalable_text
from cpmodel_commspec.simulation.wildcards import marked, resolved

__all__ = ["counting"]

TASK, RESULT, STOP = 1, 2, 3


def arrivals(ranks, total, seed):
    """Return the sources of results in a run in which whoever is free gets the next task."""
    chance = random.Random(seed)
    free = [(chance.random(), rank) for rank in range(1, ranks)]
    heapq.heapify(free)
    found = []
    for _ in range(total):
        now, rank = heapq.heappop(free)
        found.append(rank)
        heapq.heappush(free, (now + 1 + chance.random(), rank))
    return found


def farm(tasks, seed, *, stop=STOP, is_asked=False, posted=None, size=lambda _: 64):
    """Return a program: a master hands tasks out, first to all, or as workers ask for them."""

    def program(rank):
        p, total = rank.ranks, tasks(rank.ranks)
        # The last results come from all, one each.
        rounds = total + p - 1 if is_asked else total
        order = arrivals(p, rounds - (p - 1), seed)
        order += random.Random(seed).sample(range(1, p), p - 1)
        own = range(1, p) if rank.rank == 0 else [0]
        if rank.rank == 0:
            for peer in own if not is_asked else ():
                rank.send(peer, 64, TASK)
            for k, peer in enumerate(order):
                is_last = k >= len(order) - (p - 1)
                rank.receive(peer, 16, RESULT, posted=posted)
                rank.send(peer, 64 if is_last else size(k), stop if is_last else TASK)
            return
        mine = [k for k, peer in enumerate(order) if peer == rank.rank]
        if not is_asked:
            rank.receive(0, 64, TASK)
        for k in mine:
            is_last = k == mine[-1]
            rank.send(0, 16, RESULT)
            rank.receive(0, 64 if is_last else size(k), stop if is_last else TASK)

    return program


def traces_of(folder, *programs, processes=(4, 8, 16, 32)):
    return [
        recorded(traced(folder / f"{k}.{p}", p, program))
        for k, program in enumerate(programs)
        for p in processes
    ]


@cells(
    ("tasks", "options", "rounds"),
    [
        (lambda _: 96, {}, "(95 + p - rank) / (p - 1)"),
        (lambda p: 4 * p, {}, "(5 * p - 1 - rank) / (p - 1)"),
        (lambda p: 4 * (p - 1), {}, "4"),
        (lambda _: 96, {"is_asked": True}, "(95 + p - rank) / (p - 1)"),
        (lambda _: 96, {"is_asked": True, "stop": TASK}, "(94 + 2 * p - rank) / (p - 1)"),
    ],
)
def test_partners_take_turns_at_any_number_of_processes(tasks, options, rounds, tmp_path):
    told = extrapolate(traces_of(tmp_path, farm(tasks, 1, **options))).told
    text = "\n".join(line.plain for line in scalable_text(told, None))
    assert f"rank >= 1: repeat {rounds} times" in text
    assert "receive 16 bytes from any source, here the other rank of number i % (p - 1)" in text
    assert "answer with 64 bytes, tag 1" in text
    # Another run, with another order and other numbers of tasks, is the same program.
    [there] = traces_of(tmp_path / "other", farm(tasks, 7, **options, posted="ANY"), processes=[12])
    made = expanded(told, scale_at(told, 12))
    assert list(differences(made, resolved(there).traced)) == []
    assert made.counts().tolist()[0] == there.counts().tolist()[0]


def test_two_runs_are_equal_in_every_format(tmp_path):
    runs = traces_of(
        tmp_path, *(farm(lambda _: 60, seed, posted="ANY") for seed in (1, 2)), processes=[8]
    )
    counts = [one.counts().tolist() for one in runs]
    assert counts[0] != counts[1]
    nothing = np.empty(0)
    told = []
    for run in runs:
        found = resolved(run)
        assert (found.answering, found.no_turns) == ((0,), "")
        ranks = tuple(replace(x, computing=nothing, calling=nothing) for x in found.traced.ranks)
        told.append(specify(replace(found.traced, ranks=ranks)))
        platform = platform_of("infiniband")
        made = found.traced
        assert not replay(made.shapes, made.communicators, made.ranks, platform).outcome.blocked
    for name in ("text", "c", "mpi4py", "conceptual", "goal", "json"):
        first, second = (load(name).write(one, Options(None, True, "mean")) for one in told)
        assert first == second, name


def test_a_program_for_any_number_answers_the_sources_in_turn(counting, tmp_path):
    told = extrapolate(traces_of(tmp_path, farm(lambda _: 96, 3))).told
    _, calls = run_processes([compiled(told, counting, tmp_path)], tmp_path, 6)
    there = expanded(told, scale_at(told, 6))
    assert calls == [calls_of(there, rank) for rank in range(6)]
    with pytest.raises(DataError, match="rounds are -3"):
        expanded(told, scale_at(told, 100))


def own_numbers(rank):
    """A program gives each worker a number of its own, whoever is free."""
    numbers = [0, *(6 + 5 * worker % 7 for worker in range(1, rank.ranks))]
    order = [worker for worker, number in enumerate(numbers) for _ in range(number)]
    random.Random(3).shuffle(order)
    for peer in order if rank.rank == 0 else [0] * numbers[rank.rank]:
        if rank.rank:
            rank.send(0, 16)
        rank.receive(peer, 16 if rank.rank == 0 else 64, 0 if rank.rank == 0 else 1)
        if rank.rank == 0:
            rank.send(peer, 64, 1)


@cells(
    ("program", "reason"),
    [
        (
            own_numbers,
            "its 3 partners have 6 to 10 equal rounds, and the run does not show whether",
        ),
        (
            farm(lambda _: 96, 1, size=lambda k: 64 + 8 * (k % 5)),
            "some partners have no rounds of the tags and sizes that others have",
        ),
        (farm(lambda _: 40, 1), "some partners have no rounds"),
    ],
)
def test_one_line_tells_why_partners_cannot_take_turns(program, reason, tmp_path):
    with pytest.raises(DataError, match=f"rank 0 answers the source of each message: {reason}"):
        extrapolate(traces_of(tmp_path, program))


def test_a_fixed_order_is_named_or_of_any_source_as_the_user_says(tmp_path):
    def program(rank):
        for _ in range(5):
            for peer in range(1, rank.ranks) if rank.rank == 0 else [0]:
                if rank.rank:
                    rank.send(0, 16)
                rank.receive(peer, 16 if rank.rank == 0 else 64)
                if rank.rank == 0:
                    rank.send(peer, 64)

    traces = traces_of(tmp_path, program)
    with pytest.raises(DataError, match="in a fixed order, so the traces do not tell") as caught:
        extrapolate(traces)
    assert "--any-source 'main/MPI_Recv', else --named-sources" in caught.value.hint
    [there] = traces_of(tmp_path / "there", program, processes=[12])
    for told in (
        extrapolate(traces, is_named=True).told,
        extrapolate([marked(one, ["main/MPI_Recv"]) for one in traces]).told,
    ):
        assert list(differences(expanded(told, scale_at(told, 12)), there)) == []
