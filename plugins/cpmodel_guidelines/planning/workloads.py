"""The functions that a suite has to measure for guidelines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log2

from cpmodel_guidelines.functions import reprompi_mock_up
from cpmodel_guidelines.published import PATTERNS
from cpmodel_guidelines.rules import Guideline, GuidelineTerm, Size


class SuiteToRun(StrEnum):
    """Benchmark suite for which files are written."""

    REPROMPI = "ReproMPI"
    OSU = "OSU"


_OF_REPROMPI = frozenset(
    {"Allgather", "Allreduce", "Alltoall", "Barrier", "Bcast", "Exscan", "Gather", "Reduce",
     "Reduce_scatter", "Reduce_scatter_block", "Scan", "Scatter"}
)  # fmt: skip
_PAIRS_OF_REPROMPI = frozenset({"Send_Recv", "Sendrecv", "Isend_Recv", "Isend_Irecv", "Send_Irecv"})
"""Functions of ReproMPI between two processes, which have no prefix."""
_MOCK_UPS_OF_REPROMPI = frozenset(
    {*PATTERNS, ("Allreduce", ("Reduce_scatter", "Allgatherv")),
     ("Reduce", ("Reduce_scatter", "Gatherv"))}
)  # fmt: skip
_OF_OSU = frozenset(
    {"Allgather", "Allgatherv", "Allreduce", "Alltoall", "Alltoallv", "Barrier", "Bcast", "Gather",
     "Gatherv", "Reduce", "Reduce_scatter", "Scatter", "Scatterv"}
)  # fmt: skip
SIZELESS = frozenset({"Barrier"})

MOCK_UP, SUM = "mock-up", "sum"
"""What stands on the right side of a planned guideline."""


@dataclass(frozen=True, slots=True)
class MeasuredFunction:
    """A function to measure.

    Attributes
    ----------
    name : name in the input of the suite
    terms : collectives that one call executes
    is_mock_up : whether it replaces another function
    """

    name: str
    terms: tuple[GuidelineTerm, ...]
    is_mock_up: bool = False

    @property
    def has_sizes(self) -> bool:
        """Return whether the function has messages."""
        return self.is_mock_up or self.terms[0].function not in SIZELESS


@dataclass(frozen=True, slots=True)
class PlannedGuideline:
    """A guideline with its right side: `MOCK_UP` or `SUM`."""

    guideline: Guideline
    basis: str

    @property
    def mock_up(self) -> str:
        """Return ReproMPI's name of the mock-up; "" = a sum."""
        guideline = self.guideline
        if self.basis != MOCK_UP:
            return ""
        return reprompi_mock_up(guideline.left.function, guideline.parts)

    @property
    def is_known(self) -> bool:
        """Return whether ReproMPI has the mock-up; lists of users may name others."""
        return (self.guideline.left.function, self.guideline.parts) in _MOCK_UPS_OF_REPROMPI


@dataclass(frozen=True, slots=True)
class Workload:
    """What a suite measures.

    Attributes
    ----------
    suite : the suite
    functions : functions in the order of measurement
    guidelines : guidelines that they check
    left_out : guidelines that they cannot check, with the functions that the suite lacks
    """

    suite: SuiteToRun
    functions: tuple[MeasuredFunction, ...]
    guidelines: tuple[PlannedGuideline, ...]
    left_out: tuple[tuple[Guideline, tuple[str, ...]], ...]

    @property
    def launches(self) -> int:
        """Return the number of programs that one mpirun starts."""
        return len(self.functions) if self.suite is SuiteToRun.OSU else 1

    def checks(self, sizes: int, scales: int) -> int:
        """Return the number of checks: patterns, longer messages, pieces, and more processes."""
        alone = sum(not each.is_mock_up and each.has_sizes for each in self.functions)
        pairs = sizes * (sizes - 1) // 2
        each = len(self.guidelines) * sizes + alone * (max(sizes - 1, 0) + pairs)
        return each * scales + alone * sizes * (scales - 1)


def workload(suite: SuiteToRun, guidelines: Sequence[Guideline]) -> Workload:
    """Return what a suite measures for guidelines.

    A mock-up is measured where the suite has one. Otherwise, the functions of the right side are
    measured on their own, and their times are added.
    """
    functions: dict[str, MeasuredFunction] = {}
    planned, left_out = [], []
    for guideline in guidelines:
        told = _planned(suite, guideline)
        needed = [guideline.left, *(() if told is None or told.mock_up else guideline.right)]
        lacking = tuple(
            dict.fromkeys(term.function for term in needed if not _has(suite, term.function))
        )
        if told is None or lacking:
            left_out.append((guideline, lacking or guideline.parts))
            continue
        planned.append(told)
        for term in needed:
            name = _name(suite, term.function)
            functions.setdefault(name, MeasuredFunction(name, (GuidelineTerm(term.function),)))
        if told.mock_up:
            made = MeasuredFunction(told.mock_up, guideline.right, True)
            functions.setdefault(made.name, made)
    return Workload(suite, tuple(_ordered(functions.values())), tuple(planned), tuple(left_out))


def _planned(suite: SuiteToRun, guideline: Guideline) -> PlannedGuideline | None:
    """Return a guideline with its right side; None = the suite has none."""
    if suite is SuiteToRun.REPROMPI:
        found = PlannedGuideline(guideline, MOCK_UP)
        # Lists of PGMPI name mock-ups that their users have.
        if found.is_known or not guideline.is_composable:
            return found
    return PlannedGuideline(guideline, SUM) if guideline.is_composable else None


def _has(suite: SuiteToRun, function: str) -> bool:
    if suite is SuiteToRun.OSU:
        return function in _OF_OSU
    return function in _OF_REPROMPI | _PAIRS_OF_REPROMPI


def _name(suite: SuiteToRun, function: str) -> str:
    if suite is SuiteToRun.OSU:
        return f"osu_{function.lower()}"
    return function if function in _PAIRS_OF_REPROMPI else f"MPI_{function}"


def _ordered(functions: Iterable[MeasuredFunction]) -> list[MeasuredFunction]:
    return sorted(functions, key=lambda each: (each.is_mock_up, each.name))


_ONCE = frozenset({"Bcast", "Reduce", "Scan", "Exscan"})
_GATHERING = frozenset({"Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv"})
_EXCHANGING = frozenset({"Alltoall", "Alltoallv", "Alltoallw"})
_SCATTERING = frozenset({"Reduce_scatter", "Reduce_scatter_block"})


@dataclass(frozen=True, slots=True)
class Machine:
    """Assumptions about a machine.

    Attributes
    ----------
    latency : time of a short message in seconds
    bandwidth : bytes per second of one process
    startup : time in seconds from the start of a program to its first call, and to end it
    """

    latency: float
    bandwidth: float
    startup: float

    def call(self, terms: Sequence[GuidelineTerm], size: float, processes: int) -> float:
        """Return the time in seconds of calls that are executed one after the other.

        Parameters
        ----------
        terms : functions, with their message sizes
        size : message size m in bytes
        processes : number of processes
        """
        return sum(self._one(term, size, processes) for term in terms)

    def barrier(self, processes: int) -> float:
        """Return the time in seconds in which all processes meet before a call."""
        return self.latency * max(_steps(processes), 1)

    def _one(self, term: GuidelineTerm, size: float, processes: int) -> float:
        name, p = term.function, processes
        m = {Size.SAME: size, Size.ALL: size * p, Size.PART: size / p, Size.LEAST: 1.0}[term.size]
        steps, per_byte = _steps(p), 1 / self.bandwidth
        if name == "Barrier":
            return self.barrier(p)
        if name == "Reduce_local":
            return m * per_byte
        if name in _ONCE:
            found = steps * (self.latency + m * per_byte)
        elif name == "Allreduce":
            found = 2 * steps * (self.latency + m * per_byte)
        elif name in _GATHERING:
            found = steps * self.latency + (p - 1) * m * per_byte
        elif name in _EXCHANGING:
            found = (p - 1) * (self.latency + m * per_byte)
        elif name in _SCATTERING:
            found = 2 * steps * self.latency + 2 * p * m * per_byte
        else:
            found = self.latency + m * per_byte
        return max(found, self.latency)


def _steps(processes: int) -> int:
    """Return the number of steps of a tree."""
    return ceil(log2(processes)) if processes > 1 else 0
