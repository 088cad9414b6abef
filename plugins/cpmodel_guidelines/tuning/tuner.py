"""From the sources of a user to gains and rules.

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
from cpmodel_guidelines.benchmark import benchmark_of
from cpmodel_guidelines.campaigns.campaign import Campaign, Measurement, experiment_of
from cpmodel_guidelines.functions import canonical
from cpmodel_guidelines.rules import Guideline, GuidelineKind, GuidelineTerm, others_in
from cpmodel_guidelines.suites.files import read_campaign, required_files
from cpmodel_guidelines.tuning.choices import Library, rules_of
from cpmodel_guidelines.tuning.gains import Question, gains_of
from cpmodel_guidelines.tuning.open_mpi import COLLECTIVES, FAN_OUT, Algorithm
from cpmodel_guidelines.tuning.report import Tuning
from cpmodel_guidelines.verification import verify

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


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """What the user measured.

    Attributes
    ----------
    campaign : times of functions, of mock-ups and of algorithms
    algorithms : the measured algorithms, by the names of their functions
    catalogues : PGMPI's lists of guidelines
    """

    campaign: Campaign
    algorithms: dict[str, Algorithm]
    catalogues: tuple[Path, ...]


def campaign_of_sources(sources: Sequence[str], processes: int | None) -> Given:
    """Return the campaign of files, folders and sweeps of algorithms.

    Parameters
    ----------
    sources : files and folders, ``LIBRARY=PATH``, or ``LIBRARY:COLLECTIVE=N=PATH``
    processes : number of processes of files that do not state it

    Raises
    ------
    UsageError
        If all sources are sweeps, or one names no algorithm.
    InputError
        If a source is not the output of a benchmark.
    """
    sweeps = {source: found for source in sources if (found := sweep_of(source)) is not None}
    others = [source for source in sources if source not in sweeps]
    if not others:
        raise UsageError(
            "only algorithms were measured, and not the library's own choice",
            hint="add the campaign without --mca coll_tuned_..., as LIBRARY=PATH",
        )
    files = required_files(
        others,
        processes,
        "give files of ReproMPI, PGMPI, PGChecker, OSU, IMB or SKaMPI, or a table with the columns "
        "call, p, size and repetition",
    )
    read = with_sweeps(read_campaign(files), [*sweeps.values()], processes)
    algorithms = {function_of(each.algorithm): each.algorithm for each in sweeps.values()}
    return Given(read, algorithms, files.catalogues)


def tuned(given: Given, guidelines: Sequence[Guideline], question: Question) -> Tuning:
    """Return the gains of a campaign, and the rules for each of its libraries.

    Parameters
    ----------
    guidelines : patterns, without those of algorithms

    Raises
    ------
    DataError
        If no guideline can be checked.
    """
    every = (*guidelines, *map(guideline_of, given.algorithms.values()))
    made = experiment_of(given.campaign, without_outliers=question.without_outliers)
    bench = benchmark_of(made, others=others_in(every))
    found = verify(bench, every, tolerance=question.tolerance, method=question.method)
    gains = gains_of(found, given.algorithms, question.least)
    groups = {group for group, _, _ in gains.measured}
    rules = {(g, library): rules_of(gains, library, g) for g in groups for library in Library}
    return Tuning(found, gains, rules)
