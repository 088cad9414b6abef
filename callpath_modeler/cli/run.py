"""`cpmodel run`: a series of runs of a program, from a command line to profiles."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from callpath_modeler.cli import EXIT_NO
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import (
    OUTPUT,
    RUNS,
    DecimalNumber,
    WholeNumber,
    call_option,
    option,
)
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.printable import shell_word
from callpath_modeler.units import counted, quantity, significant

if TYPE_CHECKING:
    from callpath_modeler.campaign.launch import RunRecord, SeriesFolder
    from callpath_modeler.campaign.plan import Plan, PlannedRun

# The names of `campaign.profilers`, which the help need not import.
_PROFILERS = ("time", "timer", "scorep", "hpctoolkit", "caliper", "tau", "nsys", "kineto")
_HOPELESS = 3
"""Number of failed runs, with no success, after which a series ends."""
_DIRECTORY = Path("runs")


class _Runner(Protocol):
    """What executes runs: this machine or a scheduler."""

    def results(self, runs: Sequence[PlannedRun], limit: float = 0.0) -> Iterator[RunRecord]:
        """Yield the records of runs."""


@click.command("run", cls=Configured, context_settings={"allow_interspersed_args": False})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND...")
@call_option("--scales P,P,...", "Numbers of processes; {p} in the command.", group=RUNS)
@call_option(
    "--vary NAME=N,N,...", "Values of a further parameter; {NAME} in the command.", multiple=True,
    group=RUNS,
)  # fmt: skip
@option("--repeat N", "Runs of each setting. Default: 3.", type=WholeNumber(1, 1000), written=int,
        example="5", group=RUNS)  # fmt: skip
@option("--profiler", "What measures. Default: time.", type=click.Choice(_PROFILERS),
        group=RUNS)  # fmt: skip
@option("--time-limit TIME", "Longest time of a run, e.g. 10min.", example='"10min"', group=RUNS)
@option("--attempts N", "How often a run that fails is started.", type=WholeNumber(1, 100),
        default=2, written=int, example="1", group=RUNS)  # fmt: skip
@call_option("--seed N", "Seed of the order of runs. Default: a random one.",
             type=WholeNumber(0, 2**53), group=RUNS)  # fmt: skip
@call_option("--until GOAL", "Choose the runs, and end when the band is narrow enough, "
             "e.g. 'band 1.5 at 1024'.", group=RUNS)  # fmt: skip
@call_option("--budget COST", "Largest cost of all runs, e.g. '200 core-hours'.",
             group=RUNS)  # fmt: skip
@option("--profile-once", "Measure all functions in one run, and only those that tell much in the "
        "others (Score-P).", is_flag=True, written=bool, example="true", group=RUNS)  # fmt: skip
@option("--submit", "Submit each run as a job.", type=click.Choice(["slurm"]), group=RUNS)
@option("--sbatch OPTION", "Option of sbatch, e.g. --sbatch=--partition=short.", multiple=True,
        example='["--partition=short"]', written=list[str], group=RUNS)  # fmt: skip
@option("--poll SECONDS", "Time between two questions to the scheduler.",
        type=DecimalNumber(0.01, 86400), default=30.0, written=float, example="60",
        group=RUNS)  # fmt: skip
@call_option("--again DIR", "Go on with the series in this directory.",
             type=click.Path(path_type=Path, file_okay=False), group=RUNS)  # fmt: skip
@call_option("--dry-run", "Print the commands, or the job scripts, and run nothing.", group=OUTPUT)
@call_option("--timer-header", "Print the path of the C header of the region timer.", group=OUTPUT)
@call_option("-o, --output DIR", "Directory of the series. Default: runs.",
             type=click.Path(path_type=Path, file_okay=False), group=OUTPUT)  # fmt: skip
@click.pass_obj
def command(
    console: Console,
    *,
    words: tuple[str, ...],
    scales: str | None,
    vary: tuple[str, ...],
    repeat: int | None,
    profiler: str | None,
    time_limit: str | None,
    attempts: int,
    seed: int | None,
    until: str | None,
    budget: str | None,
    profile_once: bool,
    submit: str | None,
    sbatch: tuple[str, ...],
    poll: float,
    again: Path | None,
    dry_run: bool,
    timer_header: bool,
    output: Path | None,
) -> None:
    """Run a program at several scales, and keep each run where the other commands find it.

    \b
    cpmodel run --scales 2,4,8,16 -- mpirun -n {p} ./app
    cpmodel rank runs --target 1024

    The order is random. A run that has ended well is never repeated, so the same command goes on
    after an interruption. The program runs in the present directory; {dir} is that of the run.
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    from callpath_modeler.campaign import plan as plans
    from callpath_modeler.campaign.launch import SeriesFolder
    from callpath_modeler.campaign.profilers import timer_header as header

    if timer_header:
        console.result(f"{header()}\n")
        return
    series = SeriesFolder(again or output or _DIRECTORY)
    stored = plans.read_plan(series.path)
    if again is not None and stored is None:
        raise UsageError(
            f"{again}: no series of cpmodel run", hint="cpmodel run --scales 2,4,8 -- COMMAND"
        )
    if again is not None and stored is not None:
        plans.require_own(series.path, stored)
    plan = _plan(
        series.path, stored if again else None, words, scales, vary,
        repetitions=repeat, profiler=profiler, limit=time_limit, seed=seed,
        submit=submit, options=sbatch, until=until, budget=budget, profile_once=profile_once,
    )  # fmt: skip
    if stored is not None and (again or series.has_runs()):
        plan = plans.joined_plan(stored, plan)
    plans.check_command(plan)
    if dry_run:
        _print(console, series, plan)
        return
    with series.locked():
        series.remove_interrupted()
        plans.write_plan(series.path, plan)
        runner = _runner(series, plan, poll)
        try:
            _choose_filter(console, series, plan, poll)
            if plan.until or plan.budget:
                failed, ending = _steered(console, series, plan, runner, attempts)
            else:
                failed, ending = _measured(console, series, plan, runner, attempts), []
        except KeyboardInterrupt:
            jobs = "; submitted jobs go on" if plan.submit else ""
            console.note(
                f"interrupted: {_done(series, plan)} are kept{jobs}. "
                f"To go on: cpmodel run --again {shell_word(_relative(series.path))}"
            )
            raise
    _conclude(console, series, plan, failed, ending)


def _runner(series: SeriesFolder, plan: Plan, poll: float) -> _Runner:
    from callpath_modeler.campaign.launch import LocalRunner
    from callpath_modeler.campaign.slurm import SlurmRunner

    return SlurmRunner(series, plan, poll) if plan.submit else LocalRunner(series, plan)


def _choose_filter(console: Console, series: SeriesFolder, plan: Plan, poll: float) -> None:
    """Let a first run choose the functions that the others do not measure, if it has not yet.

    Raises
    ------
    DataError
        If this run fails.
    """
    from callpath_modeler.analysis.refinement import refine
    from callpath_modeler.campaign.plan import write_plan
    from callpath_modeler.campaign.steer import first_of
    from callpath_modeler.cli.refine import VISIT_COST, cost_of_visits
    from callpath_modeler.report.refinement_text import filter_text
    from callpath_modeler.studies.study import Study
    from callpath_modeler.support.atomic import write_file

    if not plan.profile_once or series.filter.exists():
        return
    first, once = first_of(series, plan)
    (run,) = once.runs()
    with first.locked():
        write_plan(first.path, once)
        if not first.is_done(run):
            for record in _runner(first, once, poll).results([run]):
                if record.failure:
                    raise DataError(
                        f"the run that chooses the filter failed: {record.failure}",
                        hint=f"its output is in {_relative(first.path)}",
                    )
    study = Study(str(first.path / run.name)).reading(requirements=True)
    found = refine(study.ranking(), cost_of_visits(VISIT_COST))
    write_file(series.filter, filter_text(found).encode(), overwrite=True)
    excluded = counted(len(found.excluded), "function")
    console.note(f"{run.name} chose the filter: {excluded} will not be measured")


def _plan(
    place: Path,
    stored: Plan | None,
    words: Sequence[str],
    scales: str | None,
    vary: Sequence[str],
    *,
    repetitions: int | None,
    profiler: str | None,
    limit: str | None,
    seed: int | None,
    submit: str | None,
    options: Sequence[str],
    until: str | None,
    budget: str | None,
    profile_once: bool,
) -> Plan:
    """Return the plan that the options ask for, with the values of a stored one as defaults."""
    from callpath_modeler.campaign import plan as plans
    from callpath_modeler.campaign import steer

    if stored is None and not words:
        raise UsageError(
            "no command to run", hint="cpmodel run --scales 2,4,8 -- mpirun -n {p} ./app"
        )
    if stored is None and scales is None:
        raise UsageError("no scales", hint="add --scales 2,4,8: the numbers of processes")
    asked = plans.varied_parameters(vary)
    if until is not None:
        steer.goal_of(until)
    if budget is not None:
        steer.core_hours_of(budget)
    if options:
        plans.check_options(options)
        if not (submit or (stored and stored.submit)):
            raise UsageError("--sbatch needs --submit slurm", hint="add it, or leave --sbatch out")
    found = plans.Plan(
        schema=1,
        place=os.path.realpath(place),
        command=list(words),
        folder=str(Path.cwd()),
        scales=[] if scales is None else plans.whole_numbers(scales, "--scales"),
        varied=asked,
        repetitions=repetitions or (3 if stored is None else stored.repetitions),
        profiler=profiler or ("time" if stored is None else stored.profiler),
        seed=secrets.randbelow(10_000) if seed is None else seed,
        time_limit=_seconds(limit, 0.0 if stored is None else stored.time_limit),
        submit=submit or ("" if stored is None else stored.submit),
        scheduler_options=list(options) or ([] if stored is None else stored.scheduler_options),
        until=until or ("" if stored is None else stored.until),
        budget=budget or ("" if stored is None else stored.budget),
        profile_once=profile_once or (stored is not None and stored.profile_once),
    )
    if found.profile_once and found.profiler != "scorep":
        raise UsageError(
            f"--profile-once: a run with --profiler {found.profiler} cannot filter functions",
            hint="--profiler scorep",
        )
    if stored is None:
        return found
    from msgspec import structs

    return structs.replace(
        found,
        command=found.command or stored.command,
        folder=stored.folder,
        varied=found.varied or stored.varied,
    )


def _seconds(text: str | None, default: float) -> float:
    """Return the seconds of a time such as 10min.

    Raises
    ------
    UsageError
        If it is no time above zero.
    """
    from callpath_modeler.printable import shortened
    from callpath_modeler.units import base_and_factor, parse_quantity

    if text is None:
        return default
    try:
        number, unit = parse_quantity(text)
        base, factor = base_and_factor(unit or "s")
    except ValueError:
        number, base, factor = 0.0, "", 1.0
    if base != "s" or not 0 < number * factor < 1e9:
        raise UsageError(f"--time-limit {shortened(text)!r} is no time", hint="e.g. 90s or 10min")
    return number * factor


def _print(console: Console, series: SeriesFolder, plan: Plan) -> None:
    """Print the commands of all runs that are not done, or their job scripts."""
    from callpath_modeler.campaign.slurm import script

    for run in plan.runs():
        if series.is_done(run):
            continue
        if plan.submit:
            console.result(f"# {run.name}\n{script(series, plan, run, plan.time_limit)}\n")
        else:
            words = plan.full_words(run, series.running(run))
            console.result(f"{run.name}: {' '.join(map(shell_word, words))}\n")


def _measured(
    console: Console, series: SeriesFolder, plan: Plan, runner: _Runner, attempts: int
) -> dict[str, RunRecord]:
    """Execute all runs that are not done, and return the records of those that failed."""
    failed: dict[str, RunRecord] = {}
    wanted = [run for run in plan.runs() if not series.is_done(run)]
    for attempt in range(attempts):
        missing = [run for run in wanted if not attempt or run.name in failed]
        for record in runner.results(missing):
            failed.pop(record.name, None)
            if record.failure:
                failed[record.name] = record
            _tell(console, series, plan, record)
            if len(failed) >= _HOPELESS and _count(series, plan) == 0:
                return failed
        if not failed:
            break
    return failed


def _steered(
    console: Console, series: SeriesFolder, plan: Plan, runner: _Runner, attempts: int
) -> tuple[dict[str, RunRecord], list[str]]:
    """Execute one run after the other until the goal or the end of the budget.

    Returns
    -------
    tuple
        Records of runs that failed, and lines about the answer and the end.
    """
    from callpath_modeler.campaign.steer import Steering

    steering = Steering(series, plan, attempts)
    failed: dict[str, RunRecord] = {}
    told = ""
    while True:
        choice = steering.choice()
        if choice.answer is not None and choice.answer.text != told:
            told = choice.answer.text
            console.note(f"{told}, after {_core_hours(steering.used)}")
        if not choice.runs or (len(failed) >= _HOPELESS and not _count(series, plan)):
            end = f"ended after {_core_hours(steering.used)}: {choice.reason}"
            return failed, [*filter(None, [told]), *([end] if choice.reason else [])]
        for record in runner.results(choice.runs, choice.limit):
            failed.pop(record.name, None)
            if record.failure:
                failed[record.name] = record
                steering.failed(record)
            _tell(console, series, plan, record)


def _core_hours(hours: float) -> str:
    """Return core-hours in words, with three digits."""
    return f"{significant(hours)} core-hours"


def _count(series: SeriesFolder, plan: Plan) -> int:
    return sum(map(series.is_done, plan.runs()))


def _done(series: SeriesFolder, plan: Plan) -> str:
    runs = plan.runs()
    most = "at most " if plan.until or plan.budget else ""
    return f"{sum(map(series.is_done, runs))} of {most}{counted(len(runs), 'run')}"


def _tell(console: Console, series: SeriesFolder, plan: Plan, record: RunRecord) -> None:
    """Report a run that has ended, with the estimated time of the others."""
    from callpath_modeler.campaign.steer import expected_seconds

    if record.failure:
        console.note(f"{record.name} failed: {record.failure}")
        return
    missing = [run for run in plan.runs() if not series.is_done(run)]
    told = f"{record.name}: {quantity(record.seconds, 's')}, {_done(series, plan)}"
    if missing and not (plan.submit or plan.until or plan.budget):
        records = series.records()
        seconds = sum(expected_seconds(records, run.processes) for run in missing)
        told += f", about {quantity(seconds, 's')} left" if seconds else ""
    console.note(told)


def _conclude(
    console: Console,
    series: SeriesFolder,
    plan: Plan,
    failed: dict[str, RunRecord],
    ending: Sequence[str],
) -> None:
    """Print what the series contains, and the next command."""
    from callpath_modeler.campaign.steer import goal_of

    where = _relative(series.path)
    console.result(f"done: {_done(series, plan)}, in {where} (seed {plan.seed})\n")
    for line in ending:
        console.result(f"{line}\n")
    if len(failed) >= _HOPELESS and not _count(series, plan):
        console.result(f"ended early: the first {len(failed)} runs failed\n")
    for name, record in sorted(failed.items()):
        console.result(f"left out: {name}: {record.failure}\n")
    if failed:
        console.result(
            f"outputs of failed runs: {shell_word(str(Path(where) / '.series/failed'))}\n"
        )
    if len(plan.scales) > 1 and _count(series, plan):
        target = goal_of(plan.until).target if plan.until else 4 * max(plan.scales)
        console.result(f"next: cpmodel rank {shell_word(where)} --target {target}\n")
    if failed:
        click.get_current_context().exit(EXIT_NO)


def _relative(path: Path) -> str:
    """Return a path relative to the present directory, if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
