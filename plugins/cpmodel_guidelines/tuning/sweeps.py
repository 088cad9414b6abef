"""Sweeps: campaigns in which the library was told to use one algorithm of a collective.

``Open MPI:allreduce=3=dir`` names the campaign in ``dir``. It was measured with
``--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 3``. The times of that
collective become a function such as ``Allreduce_algorithm_3_0_4``, and a guideline states that the
library's own choice is not slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from callpath_modeler.errors import DataError, UsageError, nearest_or_all
from callpath_modeler.printable import shortened
from cpmodel_guidelines.campaigns.campaign import Campaign, Measurement
from cpmodel_guidelines.functions import canonical
from cpmodel_guidelines.rules import Guideline, GuidelineKind, GuidelineTerm
from cpmodel_guidelines.suites.files import read_campaign, required_files
from cpmodel_guidelines.tuning.open_mpi import COLLECTIVES, FAN_OUT, Algorithm

_SWEEP = re.compile(
    r"(?:(?P<library>[A-Za-z][\w .+-]{0,60}):)?(?P<function>[A-Za-z_]{1,40})=(?P<number>[0-9]{1,3})"
    r"(?:/(?P<segment>[0-9]{1,9}))?(?:/(?P<fan_out>[0-9]{1,3}))?=(?P<path>.+)",
    re.ASCII,
)
SOURCE = "measured algorithm"
"""Source of the guidelines about algorithms."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A campaign with one algorithm.

    Attributes
    ----------
    library : name of the library; "" = not stated
    algorithm : the algorithm that was selected
    path : file or folder of the campaign
    """

    library: str
    algorithm: Algorithm
    path: Path


def sweep_of(source: str) -> Sweep | None:
    """Return the sweep that a source of the user names; None = another source.

    Raises
    ------
    UsageError
        If no rule can select an algorithm of the function, or the number is 0.
    """
    found = _SWEEP.fullmatch(source)
    if found is None or Path(source).exists():
        return None
    name = canonical(found["function"])
    if name is None or name not in COLLECTIVES:
        raise UsageError(
            f"{shortened(source)!r}: Open MPI has no rules for {shortened(found['function'])!r}",
            hint=nearest_or_all(found["function"], [each.lower() for each in COLLECTIVES]),
        )
    number = int(found["number"])
    if not number:
        raise UsageError(
            f"{shortened(source)!r}: algorithm 0 is the library's own choice",
            hint="give those files without a number: LIBRARY=PATH",
        )
    algorithm = Algorithm(
        name, number, int(found["segment"] or 0), int(found["fan_out"] or FAN_OUT)
    )
    return Sweep(found["library"] or "", algorithm, Path(found["path"]))


def function_of(algorithm: Algorithm) -> str:
    """Return the name of the function that stands for an algorithm.

    >>> function_of(Algorithm("Allreduce", 3))
    'Allreduce_algorithm_3_0_4'
    """
    parts = (algorithm.number, algorithm.segment, algorithm.fan_out)
    return "_".join((algorithm.function, "algorithm", *map(str, parts)))


def guideline_of(algorithm: Algorithm) -> Guideline:
    """Return the guideline that the library's own choice is not slower than an algorithm."""
    name = function_of(algorithm)
    left, right = GuidelineTerm(algorithm.function), GuidelineTerm(name)
    return Guideline(GuidelineKind.PATTERN, f"{left} <= {name}", left, (right,), SOURCE)


def with_sweeps(
    campaign: Campaign, sweeps: Sequence[Sweep], processes: int | None, *, strict: bool = False
) -> Campaign:
    """Return a campaign with the times of algorithms as further functions.

    Parameters
    ----------
    processes : number of processes of files that do not state it
    strict : raise an error for the first file that cannot be used

    Raises
    ------
    InputError
        If a path is not the output of a benchmark.
    DataError
        If the function of a sweep was not measured, with and without the algorithm.
    """
    measurements, findings = list(campaign.measurements), list(campaign.findings)
    known = {(each.library, canonical(each.cell.function)) for each in measurements}
    for sweep in sweeps:
        where = f"{sweep.library}:" * bool(sweep.library) + sweep.algorithm.function
        if (sweep.library, sweep.algorithm.function) not in known:
            raise DataError(
                f"{where}: only algorithm {sweep.algorithm.number} was measured, and not the "
                "library's own choice",
                hint="give the campaign without --mca coll_tuned_..., as "
                f"{sweep.library or 'LIBRARY'}=PATH",
            )
        hint = "give files of ReproMPI, OSU, IMB or SKaMPI"
        files = required_files([str(sweep.path)], processes, hint)
        read = read_campaign(files, strict=strict)
        added = [*_renamed(read, sweep)]
        if not added:
            raise DataError(
                f"{sweep.path}: {sweep.algorithm.function} was not measured",
                hint=f"measure it with algorithm {sweep.algorithm.number}",
            )
        measurements += added
        findings += read.findings
    return Campaign(campaign.name, tuple(measurements), tuple(findings))


def _renamed(read: Campaign, sweep: Sweep) -> Iterator[Measurement]:
    """Yield the times of the function of a sweep, under the name of its algorithm."""
    name = function_of(sweep.algorithm)
    for each in read.measurements:
        if canonical(each.cell.function) == sweep.algorithm.function:
            yield replace(each, library=sweep.library, cell=replace(each.cell, function=name))
