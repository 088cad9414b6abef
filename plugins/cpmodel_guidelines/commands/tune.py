"""`cpmodel guidelines tune`: gains, rules that a library loads, and whether their gains came."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli import EXIT_NO
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import MODELS, call_option, option, output_option
from callpath_modeler.cli.options import A_FILE, EXPERIMENT, FORCE, output_file
from callpath_modeler.cli.render import refuse_incomplete
from callpath_modeler.cli.table_options import FORMATS, OutputRequest, answer_writer, table_options
from callpath_modeler.errors import UsageError
from cpmodel_guidelines.commands.judging import (
    ERROR_RATE,
    OUTLIERS,
    PROCESSES,
    RULE,
    TEST,
    TOLERANCE,
    TOP,
    fraction,
    method_of,
)

if TYPE_CHECKING:
    from cpmodel_guidelines.campaigns.campaign import Campaign
    from cpmodel_guidelines.tuning.choices import Rules

_TEXT, _JSON, _PROFILES = "openmpi", "openmpi6", "pgmpitunelib"
_RULES = (_TEXT, _JSON, _PROFILES)


def _has_profiles_only(path: Path) -> bool:
    """Return whether a folder contains nothing but profiles, so that it may be replaced."""
    return path.is_dir() and all(each.is_dir() or each.suffix == ".prf" for each in path.rglob("*"))


_OUTPUT = (
    output_option(
        "-f, --format",
        "A table, or rules: of Open MPI 4 and 5 (openmpi), of Open MPI 6 (openmpi6), or a folder "
        "of profiles (pgmpitunelib). Default: by the suffix of -o, else table.",
        "format_",
        type=click.Choice([*FORMATS, *_RULES]),
    ),
    output_file("Write to a file, or profiles to a folder.", replaces=_has_profiles_only),
    FORCE,
)


@click.command("tune", cls=Configured)
@EXPERIMENT
@RULE
@option(
    "--min-gain PERCENT",
    "Smallest gain that enters, as a share of the time of a call.",
    default="0%",
)
@TOLERANCE
@call_option(
    "--verify AFTER",
    "Hold the gains against the campaign AFTER, measured with the rules. Status 1 if one did "
    "not come, or something became slower.",
    "after",
    type=A_FILE,
)
@option(
    "--loaded",
    "Rules with which AFTER was measured.",
    type=click.Choice([_TEXT, _PROFILES]),
    default=_TEXT,
)
@option("--library NAME", "Measured library for which rules are. Default: the only one.")
@TEST
@option(
    "--control",
    "Error rate of all checks, as in 'guidelines check'. Default: permutation; with ks: holm.",
    type=click.Choice(["permutation", "holm", "bh"]),
    group=MODELS,
)
@ERROR_RATE
@OUTLIERS
@PROCESSES
@partial(table_options, output=_OUTPUT)
@click.pass_context
def tune(
    ctx: click.Context,
    *,
    experiment: tuple[str, ...],
    rules: tuple[str, ...],
    min_gain: str,
    tolerance: str,
    after: Path | None,
    loaded: str,
    library: str | None,
    test: str | None,
    control: str | None,
    error_rate: str,
    outliers: str,
    processes: int | None,
    table: OutputRequest,
) -> None:
    """Report what is gained by the faster way, and write rules that a library loads.

    EXP is the output of a benchmark, as for 'guidelines check'. LIBRARY:COLLECTIVE=N=PATH is a
    campaign in which Open MPI was told to use its algorithm N, e.g. 'ompi:allreduce=3=dir'.
    N/SEGMENT/FANOUT adds parameters of the algorithm.

    Only gains enter that are shown at the error rate and are not smaller than --tolerance and
    --min-gain. Where no gain was shown, the library decides as before.
    """
    from cpmodel_guidelines.suites.pgmpi import guidelines_of
    from cpmodel_guidelines.tuning.choices import Library, group_of
    from cpmodel_guidelines.tuning.gains import Question
    from cpmodel_guidelines.tuning.promises import hold
    from cpmodel_guidelines.tuning.report import (
        gains_table,
        gains_text,
        promises_table,
        promises_text,
    )
    from cpmodel_guidelines.tuning.rules_files import require_rules
    from cpmodel_guidelines.tuning.tuner import campaign_of_sources, tuned

    console: Console = ctx.obj
    form = table.form
    if after is not None and form in _RULES:
        raise UsageError(
            f"--verify and -f {form} exclude each other",
            hint="write the rules first, measure with them, then verify",
        )
    given = campaign_of_sources(experiment, processes)
    guidelines = guidelines_of(rules, given.catalogues)
    question = Question(
        fraction(tolerance, "--tolerance"),
        fraction(min_gain, "--min-gain"),
        method_of(test, control, error_rate),
        without_outliers=outliers == "tukey",
    )
    found = tuned(given, guidelines, question)
    if form in _RULES:
        group = group_of(found.gains, library)
        of = Library.PGMPITUNELIB if form == _PROFILES else Library.OPEN_MPI
        _write(console, found.rules[group, of], table)
    elif after is not None:
        promised = found.rules[group_of(found.gains, library), Library(loaded)]
        require_rules(promised, "there is nothing to verify")
        kept = hold(promised, given.campaign, _after(after, processes), guidelines, question)
        findings = (*found.found.findings, *kept.findings)
        answer_writer(table, console)(
            lambda style: promises_text(found, kept, style, table.top or TOP),
            lambda: promises_table(found, kept),
        )
        console.findings(findings)
        if kept.fails:
            ctx.exit(EXIT_NO)
        refuse_incomplete(findings)
        return
    else:
        answer_writer(table, console)(
            lambda style: gains_text(found, style, table.top or TOP),
            lambda: gains_table(found, table.top),
        )
    console.findings(found.found.findings)


def _after(path: Path, processes: int | None) -> Campaign:
    """Return the campaign that was measured with the rules."""
    from cpmodel_guidelines.suites.files import read_campaign, required_files

    hint = "--verify needs the same benchmark again, measured with the rules"
    return read_campaign(required_files([str(path)], processes, hint))


def _write(console: Console, rules: Rules, table: OutputRequest) -> None:
    """Write the rules; without a rule, nothing is written."""
    from callpath_modeler.support.atomic import new_directory
    from callpath_modeler.units import counted
    from cpmodel_guidelines.tuning.rules_files import (
        in_the_schema,
        open_mpi_json,
        open_mpi_text,
        profiles,
        require_rules,
    )

    rules = in_the_schema(rules) if table.form == _JSON else rules
    require_rules(rules)
    if rules.unwritten:
        places = counted(len(rules.unwritten), "gain")
        console.note(f"No rule for {places}: 'cpmodel guidelines tune' without -f says why.")
    if table.form != _PROFILES:
        made = open_mpi_text(rules) if table.form == _TEXT else open_mpi_json(rules)
        table.write(console, made)
        return
    if table.path is None:
        raise UsageError("profiles are several files", hint="give a folder: -o DIR")
    files = profiles(rules)
    is_other = table.path.exists() and not _has_profiles_only(table.path)
    with new_directory(table.path, in_the_way=is_other, overwrite=table.force) as folder:
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, "ascii")
