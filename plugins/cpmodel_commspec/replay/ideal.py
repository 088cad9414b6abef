"""Serialisation and transfer: the factors of communication efficiency, from a replay of a trace.

On an ideal network, messages take no time, and no send waits for its receive unless it is
synchronous. A replay of the trace with the measured computation then takes the time T' instead of
T. What is left of waiting comes from dependences between ranks:

- serialisation efficiency: the longest computation of a rank over T'
- transfer efficiency: T' over T

Their product is the communication efficiency. (POP Centre of Excellence: Standard Metrics for
Performance Analysis.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from callpath_modeler.printable import printable
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.table_formats import Cell, Table
from callpath_modeler.units import percent
from cpmodel_commspec.operations import Traced
from cpmodel_commspec.replay.platform import Platform

IDEAL = Platform(
    "ideal", 0.0, 0.0, 0.0, 0.0, 2**62, source="no latency, overhead or gap; every message is eager"
)
_NOTICEABLE = 0.01
"""Relative excess of the ideal run time over the measured one that is worth a note."""
_FACTORS = (
    ("parallel_efficiency", "parallel efficiency", 0),
    ("load_balance", "load balance", 1),
    ("communication_efficiency", "communication efficiency", 1),
    ("serialisation_efficiency", "serialisation efficiency", 2),
    ("transfer_efficiency", "transfer efficiency", 2),
)
"""Column, label and depth of each factor."""


@dataclass(frozen=True, slots=True)
class TraceEfficiency:
    """The factors of one trace.

    Attributes
    ----------
    program : as it was called, or ""
    processes : number of ranks
    mean, longest : seconds outside of MPI, the mean and the largest of the ranks
    ideal : run time on the ideal network, at most `seconds`
    seconds : run time of the trace, from MPI_Init to MPI_Finalize
    replayed : run time on the ideal network as replayed
    """

    program: str
    processes: int
    mean: float
    longest: float
    ideal: float
    seconds: float
    replayed: float

    @classmethod
    def of(cls, traced: Traced, replayed: float) -> TraceEfficiency:
        """Return the factors of a trace.

        Parameters
        ----------
        traced : the operations of each rank with their computation
        replayed : run time of their replay on the ideal network
        """
        computing = np.array([float(one.computing.sum()) + one.last for one in traced.ranks])
        longest = float(computing.max(initial=0.0))
        seconds = max(traced.seconds, longest)
        # A rank of the replay takes at least as long as it computes.
        ideal = min(max(replayed, longest), seconds)
        return cls(
            traced.program, traced.processes, float(computing.mean()), longest, ideal, seconds,
            replayed,
        )  # fmt: skip

    @property
    def factors(self) -> dict[str, float]:
        """The factors by name, each from 0 to 1."""
        values = (
            self.mean / self.seconds,
            self.mean / self.longest,
            self.longest / self.seconds,
            self.longest / self.ideal,
            self.ideal / self.seconds,
        )
        return {name: value for (name, *_), value in zip(_FACTORS, values, strict=True)}


def trace_efficiency_text(found: Sequence[TraceEfficiency], style: TextStyle) -> list[Text]:
    """Return the factors of traces as text, with one column per trace."""
    last = found[-1]
    factors = last.factors
    leaves = ("load_balance", "serialisation_efficiency", "transfer_efficiency")
    least = min(leaves, key=lambda name: factors[name])
    label = next(label for name, label, _ in _FACTORS if name == least)
    program = printable(last.program.rpartition("/")[2]) or "communication"
    head = (
        f"{program}: parallel efficiency {percent(factors['parallel_efficiency'], 1)} at p = "
        f"{last.processes}; the lowest factor is {label}, {percent(factors[least], 1)}"
    )
    columns = [
        TextColumn(
            f"p={one.processes}",
            [percent(value, 1) for value in one.factors.values()],
            droppable=0 if one is last else 2,
        )
        for one in found
    ]
    nodes = [(depth, text) for _, text, depth in _FACTORS]
    body = style.tree_table(columns, nodes, title="factor")
    notes = style.lines(_notes(found, style), "dim", "  ")
    return [*style.lines([head], "bold"), Text(), *body, Text(), *notes]


def _notes(found: Sequence[TraceEfficiency], style: TextStyle) -> list[str]:
    last = found[-1]
    measured, ideal, longest = (
        style.amount(each, "s") for each in (last.seconds, last.ideal, last.longest)
    )
    lines = [f"at p = {last.processes}: run time {measured} between MPI_Init and MPI_Finalize"]
    lines[0] += f", {ideal} on an ideal network, at most {longest} outside of MPI"
    lines.append("serialisation: ranks wait for each other although messages take no time")
    lines[1] += "; transfer: the rest of the communication"
    for one in found:
        if one.replayed > one.seconds * (1 + _NOTICEABLE):
            more = percent(one.replayed / one.seconds - 1, 1)
            lines.append(
                f"p = {one.processes}: the replay takes {more} longer than the trace, so its "
                "transfer efficiency is 100 %; check the clocks of the trace"
            )
    return lines


def trace_efficiency_table(found: Sequence[TraceEfficiency]) -> Table:
    """Return one row per trace."""
    columns: dict[str, list[Cell]] = {
        "program": [printable(one.program) for one in found],
        "processes": [one.processes for one in found],
        **{name: [one.factors[name] for one in found] for name, *_ in _FACTORS},
        "computation_mean": [one.mean for one in found],
        "computation_longest": [one.longest for one in found],
        "ideal_run_time": [one.ideal for one in found],
        "run_time": [one.seconds for one in found],
    }
    units = dict.fromkeys(
        ("computation_mean", "computation_longest", "ideal_run_time", "run_time"), "s"
    )
    return Table(columns, units)
