"""Options of commands that judge guidelines, and how they read and judge a source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from callpath_modeler.cli.option_groups import (
    MODELS,
    NUMBER,
    RUNS,
    F,
    WholeNumber,
    option,
    option_group,
    output_option,
)
from callpath_modeler.cli.options import RESULT
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.units import base_and_factor, parse_quantity

if TYPE_CHECKING:
    from pathlib import Path

    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.readers.profile_runs import Progress
    from callpath_modeler.studies.loading import LoadOptions
    from callpath_modeler.studies.pipeline import FitOptions
    from callpath_modeler.studies.question import Question
    from cpmodel_guidelines.answer import Method, PotentialSavings, Verification
    from cpmodel_guidelines.benchmark import Benchmark
    from cpmodel_guidelines.campaigns.campaign import Campaign
    from cpmodel_guidelines.rules import Guideline
    from cpmodel_guidelines.verification import Ask


TOP = 10
"""Number of rows of a table on a terminal."""
JUNIT = output_option(
    "--junit FILE",
    "Write JUnit XML as well, with one test case per guideline and library.",
    type=RESULT,
)
RULE = option(
    "--rule TEXT|FILE",
    "Add a guideline, e.g. 'Allgather <= Gather + Bcast(p*m)', or PGMPI's FILE.json.",
    "rules",
    type=click.Path(readable=False),
    multiple=True,
    example='["Allgather <= Gather + Bcast(p*m)"]',
)
TEST = option(
    "--test",
    "Test of one check: means of logarithms that ranks confirm, Wilcoxon, or Kolmogorov and "
    "Smirnov. Default: means; with --control none: rank-sum, as published.",
    type=click.Choice(["means", "rank-sum", "ks"]),
    group=MODELS,
)
ERROR_RATE = option(
    "--error-rate PERCENT",
    "Largest error rate of all measured checks together.",
    default="5%",
    group=MODELS,
)
OUTLIERS = option(
    "--outliers",
    "Outliers inside each mpirun, before its median: keep them, or apply Tukey's rule.",
    type=click.Choice(["keep", "tukey"]),
    default="keep",
    group=MODELS,
)
PROCESSES = option(
    "--processes P",
    "Number of processes of benchmarks that do not state it, e.g. OSU.",
    type=WholeNumber(1, 10**9),
    group=RUNS,
)
TOLERANCE = option(
    "--tolerance PERCENT", "Slowdown that is not a violation.", default="5%", written=NUMBER
)
_JUDGING: tuple[Callable[[F], F], ...] = (
    RULE,
    TEST,
    option(
        "--control",
        "Error rate of all checks: family-wise by permutations of mpiruns or by Holm, false "
        "discoveries (bh), or none. holm and bh need ten mpiruns. Default: permutation; with ks: "
        "holm.",
        type=click.Choice(["permutation", "holm", "bh", "none"]),
        group=MODELS,
    ),
    ERROR_RATE,
    OUTLIERS,
    PROCESSES,
    TOLERANCE,
    option(
        "--size NAME", "Parameter with the message size. Default: found by its name.", group=RUNS
    ),
    option(
        "--interval LOW,HIGH",
        "Two metrics: ends of the --confidence interval of values without repetitions.",
        group=RUNS,
    ),
    option(
        "--select PATTERN",
        "Check these call paths only, e.g. 'OpenMPI/**'.",
        example='"main/**/MPI_*"',
    ),
)


@dataclass(frozen=True, slots=True)
class Judging:
    """How sources are read and guidelines judged.

    Attributes
    ----------
    rules : guidelines of the user, and files with some
    method : test and control of the error rate
    without_outliers : remove outliers inside each mpirun
    processes : number of processes of files that do not state it; None = unknown
    tolerance : slowdown that is not a violation, as a fraction
    size : parameter with the message size; None = by its name
    interval : metrics with the ends of intervals; None = no intervals
    select : pattern of call paths; None = all
    """

    rules: tuple[str, ...]
    method: Method
    without_outliers: bool
    processes: int | None
    tolerance: float
    size: str | None
    interval: tuple[str, str] | None
    select: str | None

    def campaign(
        self, sources: Sequence[str], load: LoadOptions, question: Question
    ) -> tuple[Campaign | None, tuple[Path, ...]]:
        """Return the campaign and PGMPI's lists of guidelines; None = not a campaign."""
        from cpmodel_guidelines.suites.files import benchmark_files, read_campaign

        if self._is_for_tables(load, question):
            return None, ()
        files = benchmark_files(sources, self.processes)
        if files is None:
            return None, ()
        if load.read.processes is not None:
            raise UsageError(
                "--ranks and --split-ranks do not apply to benchmarks: they have no values of "
                "single processes",
                hint="omit them",
            )
        return read_campaign(files, strict=load.read.strict), files.catalogues

    def _is_for_tables(self, load: LoadOptions, question: Question) -> bool:
        """Return whether an option selects columns or parameters of a table, or a reader."""
        read = load.read
        names = (self.interval, question.metric, load.name_pattern, load.reader, read.locations)
        return any(each is not None for each in names) or bool(read.parameter_sources or read.units)

    def read(
        self,
        sources: Sequence[str],
        campaign: Campaign | None,
        load: LoadOptions,
        progress: Progress | None,
    ) -> Experiment:
        """Return the experiment of a campaign, or of other sources."""
        from callpath_modeler.readers.parameters import COLUMN
        from callpath_modeler.studies import loading
        from callpath_modeler.studies.study import Study
        from cpmodel_guidelines.benchmark import SIZES, with_processes
        from cpmodel_guidelines.campaigns.campaign import experiment_of

        if campaign is not None:
            made = experiment_of(campaign, without_outliers=self.without_outliers)
            return loading.selected(made, load)
        if self.without_outliers:
            raise UsageError(
                "--outliers tukey needs the observations of mpiruns, and this input has none",
                hint="give the output of a benchmark",
            )

        def found(load: LoadOptions) -> Experiment:
            return Study(sources, load, progress=progress).reading(metrics=None).experiment()

        if self.processes is None:
            return found(load)
        try:
            return with_processes(found(load), self.processes)
        except InputError as error:
            # Without p, the message size is the only scale of a table, and no title of a scale.
            for name in SIZES if self.size is None else (self.size,):
                named = {name: COLUMN + name, **load.read.parameter_sources}
                read = replace(load.read, parameter_sources=named)
                with suppress(InputError, UsageError):
                    return with_processes(found(replace(load, read=read)), self.processes)
            raise error from None

    def benchmark(
        self,
        read: Experiment,
        guidelines: Sequence[Guideline],
        question: Question,
        fitting: FitOptions,
    ) -> Benchmark:
        """Return the collectives of an experiment."""
        from cpmodel_guidelines.benchmark import benchmark_of
        from cpmodel_guidelines.rules import others_in

        return benchmark_of(
            read,
            question.metric,
            inclusive=question.inclusive,
            processes=fitting.parameter,
            size=self.size,
            interval=self.interval,
            select=self.select,
            others=others_in(guidelines),
        )

    def verification(
        self,
        bench: Benchmark,
        guidelines: Sequence[Guideline],
        fitting: FitOptions,
        ask: Ask | None = None,
        stakes: PotentialSavings | None = None,
    ) -> Verification:
        """Return the verdicts on the guidelines."""
        from cpmodel_guidelines.verification import verify

        return verify(
            bench,
            guidelines,
            ask=ask,
            tolerance=self.tolerance,
            method=self.method,
            options=fitting,
            stakes=stakes,
        )


def judging_options(command: F) -> F:
    """Add the options of reading and judging; they arrive as a `Judging`, ``judging``."""
    return option_group(command, _JUDGING, "judging", _make)


def _make(
    *,
    test: str | None,
    control: str | None,
    error_rate: str,
    outliers: str,
    tolerance: str,
    interval: str | None,
    **same: Any,
) -> Judging:
    return Judging(
        method=method_of(test, control, error_rate),
        without_outliers=outliers == "tukey",
        tolerance=fraction(tolerance, "--tolerance"),
        interval=_ends(interval),
        **same,
    )


def method_of(test: str | None, control: str | None, error_rate: str) -> Method:
    """Return the test and the control of the error rate."""
    from cpmodel_guidelines.answer import Method, Test
    from cpmodel_guidelines.statistics.permutations import Control

    rate = fraction(error_rate, "--error-rate")
    if not 0 < rate < 1:
        raise UsageError(f"--error-rate {error_rate!r} is not between 0 and 100 %", hint="e.g. 5%")
    control = control or ("holm" if test == "ks" else "permutation")
    test = test or ("rank-sum" if control == "none" else "means")
    if test == "ks" and control == "permutation":
        raise UsageError(
            "--control permutation does not apply to --test ks", hint="use --control holm"
        )
    return Method(Test(test), Control(control), rate)


def fraction(text: str, option: str) -> float:
    """Return a percentage or a plain number as a fraction."""
    return quantity(text, option, "1", most=10, example="10%")


def _ends(interval: str | None) -> tuple[str, str] | None:
    if interval is None:
        return None
    low, comma, high = interval.partition(",")
    if not (low and comma and high):
        raise UsageError(
            f"--interval {interval!r} does not name two metrics",
            hint="separate them by a comma: --interval ci_low,ci_high",
        )
    return low, high


def quantity(text: str, option: str, base: str, *, most: float, example: str) -> float:
    """Return the number of an option in its base unit.

    Parameters
    ----------
    text : number with its unit
    option : name of the option, for messages
    base : unit without prefix: ``s``, ``B/s``, or ``1`` for percentages and plain numbers
    most : the number has to be below it, and zero or more
    example : a correct value

    Raises
    ------
    UsageError
        If the text is malformed, has another unit, or is out of range.
    """
    hint = f"e.g. {option} {example}"
    try:
        number, unit = parse_quantity(text)
    except ValueError as cause:
        raise UsageError(f"{option}: {cause}", hint=hint) from None
    found, factor = base_and_factor(unit.removesuffix("/s") if base.endswith("/s") else unit)
    is_unit = found == base.removesuffix("/s") and unit.endswith("/s") == base.endswith("/s")
    if not is_unit or not 0 <= number * factor < most:
        what = {"s": "a time", "B/s": "a bandwidth", "1": "a percentage"}[base]
        limit = f"{most * 100:.0f} %" if base == "1" else f"{most:g} {base}"
        raise UsageError(f"{option} {text!r} is not {what} below {limit}", hint=hint)
    return number * factor
