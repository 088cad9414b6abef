"""Run time of a replayed program, also with faster communication or computation.

The run time is T = T_communication / S_communication + T_computation / S_computation (Wu, Mueller,
Pakin: TOPC 1(1), 2014, section 5.5.4). Computation is the mean over ranks outside MPI.
Communication is the rest of the run time, so it includes waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.table_formats import Table
from callpath_modeler.units import factor_text, percent, signed_percent
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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A run time with other speeds.

    Attributes
    ----------
    program : as it was called, or ""
    communication, computation : seconds, measured or extrapolated
    faster_communication, faster_computation : speedups
    band : half the width of the band of extrapolated seconds, relative to them; 0 for traces
    """

    program: str
    communication: float
    computation: float
    faster_communication: float
    faster_computation: float
    band: float

    @property
    def measured(self) -> float:
        """The run time without other speeds."""
        return self.communication + self.computation

    @property
    def seconds(self) -> float:
        """The run time with other speeds."""
        return (
            self.communication / self.faster_communication
            + self.computation / self.faster_computation
        )


def estimate(told: Specification, communication: float, computation: float) -> Estimate:
    """Return the run time of a program with other speeds.

    Parameters
    ----------
    communication, computation : speedups, above zero

    Raises
    ------
    DataError
        If the specification has no times.
    """
    seconds = told.seconds or told.run_time
    if not seconds:
        raise DataError(
            "the specification has no run time",
            hint="make it from a trace: cpmodel trace spec TRACE -o SPEC.json",
        )
    computed = min(mean_computation(told), seconds)
    speedups = communication, computation
    return Estimate(told.program, seconds - computed, computed, *speedups, told.run_time_band)


def estimate_text(found: Estimate, style: TextStyle) -> list[Text]:
    """Return the estimate, its origin and its limits."""
    share = found.computation / found.measured
    change = signed_percent(found.seconds / found.measured - 1)
    ends = found.seconds * max(0.0, 1 - found.band), found.seconds * (1 + found.band)
    band = f" ({style.interval(*ends, 's')})" * (found.band > 0)
    origin = "extrapolated from traces" if found.band else "measured in the trace"
    lines = [
        (
            f"{style.amount(found.seconds, 's')}{band} ({change}), with communication "
            f"{factor_text(found.faster_communication)} times and computation "
            f"{factor_text(found.faster_computation)} times as fast"
        ),
        (
            f"{origin}: {style.amount(found.measured, 's')}, of which computation is "
            f"{percent(share, 1)} and communication with waiting {percent(1 - share, 1)}"
        ),
    ]
    # Each says which way the estimate errs: waiting for slow ranks is not communication.
    if found.faster_communication > 1:
        lines.append(
            "This is a lower bound for faster communication: waiting for ranks that compute longer "
            "does not get shorter."
        )
    if found.faster_computation > 1:
        lines.append(
            "This is an upper bound for faster computation: waiting for ranks that compute longer "
            "gets shorter, too."
        )
    return style.lines(lines)


def estimate_table(found: Estimate) -> Table:
    """Return the estimate as one row."""
    row = {
        "measured": found.measured,
        "communication": found.communication,
        "computation": found.computation,
        "communication_speedup": found.faster_communication,
        "computation_speedup": found.faster_computation,
        "seconds": found.seconds,
        "relative_band": found.band,
    }
    units = dict.fromkeys(("measured", "communication", "computation", "seconds"), "s")
    return Table({name: [value] for name, value in row.items()}, units, {"program": found.program})
