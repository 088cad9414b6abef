"""`cpmodel guidelines plan`: the files of a campaign that fits a budget."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import WholeNumber, option
from callpath_modeler.cli.options import FORCE, output_file
from callpath_modeler.errors import UsageError
from cpmodel_guidelines.commands.judging import ERROR_RATE, RULE, quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cpmodel_guidelines.planning.files import Programs
    from cpmodel_guidelines.planning.pilot import Pilot
    from cpmodel_guidelines.planning.plan import Plan, Scale
    from cpmodel_guidelines.rules import Guideline
    from cpmodel_guidelines.statistics.repetition_count import Criterion

_SIZES = "1,2,4,8,16,32,64,100,128,256,512,1024,1500,2048,4096,5000,8192,10000,16384,32768,102400"
"""Message sizes of PGMPI's paper."""
_YEAR = 366 * 86400.0
_BATCHES = (10, 1000, 5)
_DIRECTIVE = re.compile(r"--?[A-Za-z][\w-]*(?:[= ][^\s#\"'`$\\;&|<>()]+)?", re.ASCII)
_NUMBER = re.compile(r"\d+")


def _is_plan(folder: Path) -> bool:
    """Return whether a folder has a plan without any results, or is empty."""
    from cpmodel_guidelines.planning.files import DECISIONS, RESULTS

    if not folder.is_dir():
        return False
    is_ours = (folder / DECISIONS).is_file() or not any(folder.iterdir())
    return is_ours and not any(folder.glob(f"*/*/{RESULTS}/*"))


@click.command("plan", cls=Configured)
@output_file("Folder to write.", metavar="DIR", replaces=_is_plan)
@FORCE
@option("--budget TIME", "Time of all jobs together, e.g. 30min.")
@option("--nodes N,...", "Numbers of nodes, e.g. 1,2,4.")
@option("--processes-per-node P", "Processes on a node.", type=WholeNumber(1, 10**6))
@option(
    "--pilot EXP",
    "Measured campaign: its times, repetitions and noise replace assumptions.",
    "pilots",
    type=click.Path(readable=False),
    multiple=True,
)
@RULE
@option(
    "--sizes M,...",
    "Message sizes in bytes. Default: the 21 sizes of PGMPI's paper, 1 to 102400.",
    default=_SIZES,
)
@option("--find PERCENT", "Violation that the campaign should find at one size.", default="10%")
@ERROR_RATE
@option(
    "--nrep N|CRITERIA",
    "Repetitions in an mpirun, or criteria for the pilot, e.g. rse=0.025. Default: "
    "rse=0.025; 50 without a pilot.",
)
@option("--latency TIME", "Time of a short message.", default="2us")
@option("--bandwidth RATE", "Bytes per second of each process.", default="1GB/s")
@option("--startup TIME", "Time to start and end a parallel program.", default="10s")
@option("--noise PERCENT", "Scatter of medians over mpiruns, without a pilot.", default="5%")
@option("--launcher COMMAND", "Command that starts parallel programs.", default="srun")
@option("--reprompi PROGRAM", "Program of ReproMPI.", default="mpibenchmark")
@option("--osu DIR", "Folder of OSU's collectives. Default: PATH.", default="")
@option(
    "--slurm OPTION",
    "Further option for Slurm, e.g. --partition=test.",
    "directives",
    multiple=True,
)
@click.pass_context
def plan(
    ctx: click.Context,
    *,
    output: Path | None,
    force: bool,
    budget: str | None,
    nodes: str | None,
    processes_per_node: int | None,
    pilots: tuple[str, ...],
    rules: tuple[str, ...],
    sizes: str,
    find: str,
    error_rate: str,
    nrep: str | None,
    latency: str,
    bandwidth: str,
    startup: str,
    noise: str,
    launcher: str,
    reprompi: str,
    osu: str,
    directives: tuple[str, ...],
) -> None:
    """Write the input and the job scripts of a campaign that fits a budget.

    The folder has the input of ReproMPI, the commands of OSU, PGMPI's configuration, and one Slurm
    script for each number of nodes. The plan states its time, and which violation it will find.
    """
    from cpmodel_guidelines.planning.files import plan_files
    from cpmodel_guidelines.planning.plan import Wish, plan_lines, planned
    from cpmodel_guidelines.planning.workloads import Machine, SuiteToRun, workload
    from cpmodel_guidelines.suites.pgmpi import guidelines_of

    console: Console = ctx.obj
    if output is None:
        raise UsageError("a plan has several files", hint="give a folder with -o DIR")
    if budget is None or nodes is None or processes_per_node is None:
        raise UsageError(
            "a plan needs a budget and a machine",
            hint="e.g. --budget 30min --nodes 1,2,4 --processes-per-node 16",
        )

    def time(text: str, option: str, example: str) -> float:
        return _positive(quantity(text, option, "s", most=_YEAR, example=example), text, option)

    def share(text: str, option: str, most: float) -> float:
        found = quantity(text, option, "1", most=most, example="5%")
        return _positive(found, text, option)

    rate = quantity(bandwidth, "--bandwidth", "B/s", most=1e15, example="1GB/s")
    machine = Machine(
        time(latency, "--latency", "2us"),
        _positive(rate, bandwidth, "--bandwidth"),
        quantity(startup, "--startup", "s", most=_YEAR, example="10s"),
    )
    repetitions, criteria = _repetitions(nrep)
    guidelines = guidelines_of(rules)
    errors = share(error_rate, "--error-rate", 1.0)
    wish = Wish(
        _scales(nodes, processes_per_node),
        _sizes(sizes),
        machine,
        time(budget, "--budget", "30min"),
        share(noise, "--noise", 10.0),
        errors,
        share(find, "--find", 10.0),
        repetitions,
        _pilot(pilots, guidelines, errors, () if nrep and repetitions_given(nrep) else criteria),
    )
    programs = _programs(launcher, reprompi, osu, directives)
    plans, refused = [], []
    for suite in SuiteToRun:
        try:
            plans.append(planned(workload(suite, guidelines), wish))
        except UsageError as error:
            refused.append(error)
    if not plans:
        raise refused[0]
    lines = [*plan_lines(plans), *(f"Not planned: {error.message}." for error in refused)]
    _write(output, plan_files(plans, programs, criteria, _BATCHES, lines), force=force)
    console.lines([*lines, *_next_steps(output, plans[0], rules)])


def _positive(number: float, text: str, option: str) -> float:
    if number <= 0:
        raise UsageError(f"{option} {text!r} is not above zero", hint="give a positive number")
    return number


def _whole_numbers(text: str, option: str, most: int, hint: str) -> tuple[int, ...]:
    """Return distinct whole numbers in ascending order."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 12 for part in parts):
        raise UsageError(f"{option} {text!r} is not a list of numbers", hint=hint)
    found = sorted({int(part) for part in parts})
    if not 1 <= found[0] <= found[-1] <= most or len(found) > 100:
        raise UsageError(f"{option} {text!r} is out of range", hint=hint)
    return tuple(found)


def _scales(nodes: str, each: int) -> tuple[Scale, ...]:
    from cpmodel_guidelines.planning.plan import Scale

    return tuple(Scale(n, each) for n in _whole_numbers(nodes, "--nodes", 10**6, "e.g. 1,2,4"))


def _sizes(text: str) -> tuple[int, ...]:
    return _whole_numbers(text, "--sizes", 2**31 - 1, "e.g. --sizes 8,1024,65536")


def repetitions_given(nrep: str) -> bool:
    """Return whether an option is a number of repetitions instead of criteria."""
    return nrep.isascii() and nrep.isdigit()


def _repetitions(nrep: str | None) -> tuple[int, tuple[Criterion, ...]]:
    """Return the number of repetitions without a pilot, and the criteria."""
    from cpmodel_guidelines.nrep import parse_criteria

    if nrep is not None and repetitions_given(nrep):
        if not 1 <= int(nrep[:9]) <= 10**6 or len(nrep) > 7:
            raise UsageError(f"--nrep {nrep[:20]!r} is out of range", hint="e.g. --nrep 50")
        return int(nrep), parse_criteria("rse=0.025")
    return 50, parse_criteria("rse=0.025" if nrep is None else nrep)


def _pilot(
    sources: Sequence[str],
    guidelines: Sequence[Guideline],
    rate: float,
    criteria: Sequence[Criterion],
) -> Pilot | None:
    """Return the measured campaign; None = not given."""
    from cpmodel_guidelines.answer import Method
    from cpmodel_guidelines.planning.pilot import pilot_of
    from cpmodel_guidelines.statistics.repetition_count import batches
    from cpmodel_guidelines.suites.files import benchmark_files, read_campaign

    if not sources:
        return None
    files = benchmark_files(sources)
    if files is None:
        raise UsageError(
            f"--pilot {sources[0]}: not the output of a benchmark",
            hint="give files of ReproMPI, PGMPI, PGChecker, OSU, IMB or SKaMPI",
        )
    campaign = read_campaign(files)
    return pilot_of(campaign, guidelines, Method(rate=rate), criteria, batches(*_BATCHES))


def _programs(launcher: str, reprompi: str, osu: str, directives: Iterable[str]) -> Programs:
    from cpmodel_guidelines.planning.files import Programs

    for name, text in (("--launcher", launcher), ("--reprompi", reprompi), ("--osu", osu)):
        if not text.isprintable():
            raise UsageError(f"{name} has control characters", hint="give a plain name")
    for each in directives:
        if _DIRECTIVE.fullmatch(each) is None:
            raise UsageError(
                f"--slurm {each!r} is not an option of Slurm", hint="e.g. --slurm --partition=test"
            )
    try:
        words = shlex.split(launcher)
    except ValueError as cause:
        raise UsageError(f"--launcher: {cause}", hint="e.g. --launcher 'mpirun -n 16'") from None
    if not words or not reprompi:
        raise UsageError("--launcher and --reprompi need a name", hint="e.g. --launcher srun")
    return Programs(tuple(words), reprompi, osu, tuple(directives))


def _write(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    """Write the files into a folder, all of them or none."""
    from callpath_modeler.support.atomic import new_directory

    in_the_way = folder.exists() and not _is_plan(folder)
    with new_directory(folder, in_the_way=in_the_way, overwrite=force) as new:
        for name, content in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            if path.suffix == ".sh":
                path.chmod(path.stat().st_mode | 0o111)


def _next_steps(folder: Path, first: Plan, rules: Sequence[str]) -> list[str]:
    """Return the commands that measure and check."""
    from callpath_modeler.printable import shell_word, shell_words
    from cpmodel_guidelines.planning.files import home_of

    home = folder / home_of(first, 0)
    words = [word for rule in rules for word in ("--rule", rule)]
    check = ["cpmodel", "guidelines", str(home), *words]
    return [
        "",
        f"Measure: cd {shell_word(str(home))} && sbatch job.sh",
        f"Check:   {shell_words(check)}",
    ]
