"""Run time of a replayed program: the total, and the times of the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.operations import Recorded, Shape
from cpmodel_commspec.replay.loggp import Replayed
from cpmodel_commspec.specification import Specification, Step, walk


@dataclass(frozen=True, slots=True)
class LineTime:
    """The time of a line; means are over all ranks of the program.

    Attributes
    ----------
    line : its number, from 1, as `walk` yields lines
    shape : of its operation
    ranks, operations : how many ranks and operations of all ranks it has
    computing : mean seconds of computation before its operations
    calling : mean seconds in its calls
    waiting : mean seconds of `calling` before the partner was ready
    slowest : seconds in its calls of the rank that needs most
    slowest_rank : that rank
    """

    line: int
    shape: Shape
    ranks: int
    operations: int
    computing: float
    calling: float
    waiting: float
    slowest: float
    slowest_rank: int


@dataclass(frozen=True, slots=True)
class RunTime:
    """The run time of a program, and its parts: means over ranks that add up to it.

    Attributes
    ----------
    seconds : of the rank that ends last
    computing : computation
    transfer : in calls, without `waiting`
    waiting : in calls before the partner is ready
    idle : after the end of a rank, until the last one ends
    lines : of all operations, in order
    """

    seconds: float
    computing: float
    transfer: float
    waiting: float
    idle: float
    lines: tuple[LineTime, ...]


def program_of(told: Specification) -> list[Recorded]:
    """Return the operations of each rank, with the computation of the program."""
    ranks = []
    for rank in range(told.processes):
        one = told.of_rank(rank)
        ranks.append(
            Recorded(
                one.shapes,
                one.values,
                told.computing_of_rank(rank),
                last=told.ending_of_rank(rank),
            )
        )
    return ranks


def mean_computation(told: Specification) -> float:
    """Return the seconds that a rank computes in all, the mean of all ranks."""
    found = [
        float(told.computing_of_rank(rank).sum()) + told.ending_of_rank(rank)
        for rank in range(told.processes)
    ]
    return sum(found) / max(len(found), 1)


def run_time(told: Specification, lines: Sequence[Int64Array], found: Replayed) -> RunTime:
    """Return the run time of a replay that reached the end.

    Parameters
    ----------
    told : the specification of the operations
    lines : line of each operation of each rank
    found : the times of the operations
    """
    ranks = len(lines)
    size = 1 + told.lines
    computing, calling, waiting = np.zeros(size), np.zeros(size), np.zeros(size)
    slowest, slowest_rank = np.full(size, -1.0), np.zeros(size, np.int64)
    operations, taking_part = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for rank, here in enumerate(lines):
        own, counts = np.bincount(here, found.calling[rank], size), np.bincount(here, None, size)
        computing += np.bincount(here, found.computing[rank], size)
        waiting += np.bincount(here, found.waiting[rank], size)
        calling += own
        operations += counts
        taking_part += counts > 0
        is_slower = (own > slowest) & (counts > 0)
        slowest[is_slower], slowest_rank[is_slower] = own[is_slower], rank
    parts = []
    for number, (node, _) in enumerate(walk(told.body), start=1):
        if isinstance(node, Step):
            parts.append(
                LineTime(
                    number,
                    told.shapes[node.shape],
                    int(taking_part[number]),
                    int(operations[number]),
                    float(computing[number]) / ranks,
                    float(calling[number]) / ranks,
                    float(waiting[number]) / ranks,
                    float(slowest[number]),
                    int(slowest_rank[number]),
                )
            )
    seconds = found.seconds
    computed = (float(computing.sum()) + float(found.last.sum())) / ranks
    waited = float(waiting.sum()) / ranks
    return RunTime(
        seconds,
        computed,
        float(calling.sum()) / ranks - waited,
        waited,
        seconds - float(found.ends.mean()),
        tuple(parts),
    )
