"""Times, repetitions and noise of a measured campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from callpath_modeler.errors import CallpathModelerError, UsageError
from cpmodel_guidelines.answer import Method
from cpmodel_guidelines.benchmark import benchmark_of
from cpmodel_guidelines.campaigns.campaign import Campaign, experiment_of
from cpmodel_guidelines.functions import canonical, mock_up, reprompi_mock_up
from cpmodel_guidelines.nrep import repetitions_of
from cpmodel_guidelines.rules import Guideline, others_in
from cpmodel_guidelines.statistics.power import Power
from cpmodel_guidelines.statistics.repetition_count import Criterion
from cpmodel_guidelines.verification import verify


@dataclass(frozen=True, slots=True)
class PilotCell:
    """A function at a size and a number of processes.

    Attributes
    ----------
    size, processes : message size in bytes, and number of processes
    seconds : mean time of a call
    repetitions : number of repetitions that an mpirun needs; 0 = not known
    """

    size: float
    processes: int
    seconds: float
    repetitions: int


@dataclass(frozen=True, slots=True)
class Pilot:
    """A measured campaign.

    Attributes
    ----------
    name : name for messages
    cells : measured cells of each function, by a name that all suites share
    power : noise and power of its checks; None = too few mpiruns to know
    unmet : number of cells with too few repetitions for the criteria
    """

    name: str
    cells: dict[str, list[PilotCell]]
    power: Power | None
    unmet: int = 0

    def nearest(self, function: str, size: float, processes: int) -> PilotCell | None:
        """Return the nearest measured cell of a function; None = it was not measured."""
        known = self.cells.get(shared_name(function), [])

        def distance(cell: PilotCell) -> tuple[float, float]:
            apart = abs(log(cell.processes / processes))
            return apart, abs(log((cell.size + 1) / (size + 1)))

        return min(known, key=distance, default=None)


def shared_name(name: str) -> str:
    """Return one name of a function for all suites.

    >>> shared_name("osu_bcast"), shared_name("MPI_Gather_with_MPI_Reduce")
    ('Bcast', 'GL_Gather_as_Reduce')
    """
    made = mock_up(name)
    return reprompi_mock_up(*made) if made is not None else canonical(name) or name


def pilot_of(
    campaign: Campaign,
    guidelines: Sequence[Guideline],
    method: Method,
    criteria: Sequence[Criterion],
    after: Sequence[int],
) -> Pilot:
    """Return what a campaign tells about times and noise.

    Parameters
    ----------
    guidelines : guidelines that will be checked
    method : test and control of the error rate
    criteria, after : criteria of the number of repetitions, and the batches; none = not asked
    """
    counts: dict[tuple[int, str, float], int] = {}
    unmet = 0
    if criteria:
        try:
            found = repetitions_of(campaign, criteria, after)
        except UsageError:  # the files have means or medians only
            found = []
        unmet = sum(not one.largest.is_met for one in found)
        for one in found:
            key = one.processes, one.cell.function, one.cell.size
            counts[key] = max(counts.get(key, 0), one.largest.count)
    times: dict[tuple[int, str, float], list[float]] = {}
    for each in campaign.measurements:
        key = each.processes, each.cell.function, each.cell.size
        times.setdefault(key, []).append(float(np.mean(each.times)))
    cells: dict[str, list[PilotCell]] = {}
    for (p, function, size), means in times.items():
        cell = PilotCell(size, p, float(np.mean(means)), counts.get((p, function, size), 0))
        cells.setdefault(shared_name(function), []).append(cell)
    return Pilot(campaign.name, cells, _power(campaign, guidelines, method), unmet)


def _power(campaign: Campaign, guidelines: Sequence[Guideline], method: Method) -> Power | None:
    """Return the power as the check computes it; None = not known."""
    try:
        bench = benchmark_of(experiment_of(campaign), others=others_in(guidelines))
        found = verify(bench, guidelines, method=method).sensitivity
    except CallpathModelerError:  # no guideline can be checked with these functions
        return None
    return found if found is not None and found.noise > 0 else None
