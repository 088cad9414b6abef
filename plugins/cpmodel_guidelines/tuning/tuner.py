"""From the sources of a user to gains and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from callpath_modeler.errors import UsageError
from cpmodel_guidelines.benchmark import benchmark_of
from cpmodel_guidelines.campaigns.campaign import Campaign
from cpmodel_guidelines.campaigns.conversion import experiment_of
from cpmodel_guidelines.rules import Guideline, others_in
from cpmodel_guidelines.suites.files import read_campaign, required_files
from cpmodel_guidelines.tuning.choices import Library, rules_of
from cpmodel_guidelines.tuning.gains import gains_of
from cpmodel_guidelines.tuning.open_mpi import Algorithm
from cpmodel_guidelines.tuning.question import Question
from cpmodel_guidelines.tuning.report import Tuning
from cpmodel_guidelines.tuning.sweeps import function_of, guideline_of, sweep_of, with_sweeps
from cpmodel_guidelines.verification import verify


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
