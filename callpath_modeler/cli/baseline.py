"""`cpmodel baseline`: an expectation file from the models of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import NUMBER, WholeNumber, option, output_option
from callpath_modeler.cli.options import (
    EXPERIMENT,
    FORCE,
    output_file,
    question_options,
    study_options,
)
from callpath_modeler.cli.view_options import parse_share
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study


@click.command("baseline", cls=Configured, apart=("inclusive", "exclusive"))
@EXPERIMENT
@output_file(metavar="FILE.toml")
@FORCE
@option(
    "--cover SHARE",
    "Costliest call paths that have this share of the cost in total.",
    default="99%",
    written=NUMBER,
)
@output_option("-n, --top N", "Largest number of call paths.", type=WholeNumber(1))
@option(
    "--margin SHARE",
    "Margin above the bands, because machines differ from day to day.",
    default="10%",
    written=NUMBER,
)
@question_options
@study_options
@click.pass_obj
def command(
    console: Console,
    *,
    output: Path | None,
    force: bool,
    cover: str,
    top: int | None,
    margin: str,
    question: Question,
    study: Study,
) -> None:
    """Write limits for later runs, derived from today's runs, as an expectation file.

    The limits are on growth and value of the whole program and of its costliest call paths. Values
    are at the largest measured scale, or at --target; with several parameters, use
    --at p=128,n=1e6.
    """
    from callpath_modeler.analysis.expectations.growth_check import BaselineSettings
    from callpath_modeler.report.exports import to_toml
    from callpath_modeler.studies.question import slice_findings

    if question.inclusive:
        raise UsageError(
            "--inclusive: limits are on exclusive values of call paths, and on the whole program",
            hint="inclusive = true in the file",
        )
    covered, allowed = parse_share(cover, "--cover"), parse_share(margin, "--margin")
    settings = BaselineSettings(cover=covered, most=top, margin=allowed)
    found = study.baseline(question, settings)
    fitted = found.fitted
    console.write(to_toml(found), output, overwrite=force)
    if output is not None:
        console.note(f"{output}: cpmodel check RUNS {output}")
    held = slice_findings(fitted.held, fitted.assumed)
    console.findings((*fitted.experiment.findings, *fitted.findings, *held))
