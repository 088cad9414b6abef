"""`cpmodel check`: evaluation of expectations, for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli import EXIT_NO
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import MODELS, option, output_option
from callpath_modeler.cli.options import (
    A_FILE,
    EXPERIMENT,
    FORCE_ALL,
    JUNIT,
    output_file,
    question_options,
    study_options,
)
from callpath_modeler.cli.render import refuse_incomplete
from callpath_modeler.cli.table_options import FORMATS, OutputRequest, answer_writer, format_of
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.analysis.expectations.judge import Procedure
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study

_GITHUB = "github"


@click.command("check", cls=Configured, apart=("target", "at", "metric", "inclusive", "exclusive"))
@EXPERIMENT
@click.argument("file", type=A_FILE, metavar="FILE.toml")
@JUNIT
@output_option(
    "-f, --format",
    "Default: by the ending of -o, else table; github: annotations of the file's lines.",
    "format_",
    type=click.Choice([*FORMATS, _GITHUB]),
)
@output_option("--all", "List the expectations that pass, too, in the table.", "complete")
@option(
    "--procedure",
    "How growth is compared: probabilities of all hypotheses, or the published choice of one.",
    type=click.Choice(["mixture", "published"]),
    default="mixture",
    show_default=True,
    group=MODELS,
)
@output_file("Write to a file.")
@FORCE_ALL
@question_options
@study_options
@click.pass_obj
def command(
    console: Console,
    *,
    file: Path,
    junit: Path | None,
    format_: str | None,
    complete: bool,
    procedure: Procedure,
    output: Path | None,
    force: bool,
    question: Question,
    study: Study,
) -> None:
    """Check models against the expectations of FILE.toml; exit with status 1 if one fails.

    The table lists the expectations that fail, that the data do not decide, or that match no call
    path. Its last line counts all. Other formats have all expectations. `cpmodel baseline` writes a
    file to start from.
    """
    from callpath_modeler.report.test_reports import (
        check_table,
        check_text,
        to_annotations,
        to_junit,
    )

    form = format_ if format_ == _GITHUB else format_of(format_, output)
    if question.inclusive:
        raise UsageError(
            "--inclusive: each expectation states whether it is inclusive",
            hint="inclusive = true in FILE.toml",
        )
    found = study.check(file, question, procedure=procedure)
    if junit is not None:
        console.write(to_junit(found), junit, overwrite=force)
    to = OutputRequest(form, output, force)
    if form == _GITHUB:
        to.write(console, to_annotations(found))
    else:
        answer_writer(to, console)(
            lambda style: check_text(found, style=style, complete=complete),
            lambda: check_table(found, found.findings),
        )
    console.findings(found.findings)
    if not found.passed:
        click.get_current_context().exit(EXIT_NO)
    refuse_incomplete(found.findings)
