"""`cpmodel why`: the cause of the growth of one call path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import EXPERIMENT, study_options, target_options
from callpath_modeler.cli.table_options import OutputRequest, answer_writer, output_options
from callpath_modeler.cli.view_options import row_of
from callpath_modeler.errors import DataError

if TYPE_CHECKING:
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study


@click.command("why", cls=Configured, apart=("metric", "inclusive", "exclusive"))
@EXPERIMENT
@click.argument("callpath", metavar="CALLPATH")
@target_options
@study_options
@output_options
@click.pass_obj
def command(
    console: Console,
    *,
    callpath: str,
    question: Question,
    study: Study,
    output: OutputRequest,
) -> None:
    """Say why the time of a call path grows.

    The profiles count calls, bytes and operations. If these explain the time, they are the cause:
    more work, more or longer messages, or a collective operation over more processes. If they do
    not, the call path waits or slows down. The answer has the laws with their coefficients, and
    the explained share of the time at the target.

    CALLPATH is a pattern that matches one call path, e.g. 'main/**/MPI_Waitall', or its @id. The
    default target is 4 times the largest scale.
    """
    from callpath_modeler.report.cause_text import why_table, why_text, wrapped_text
    from callpath_modeler.studies.pipeline import explain
    from callpath_modeler.studies.question import findings_of

    write = answer_writer(output, console)
    ranking = study.reading(requirements=True).ranking(question)
    findings = findings_of(ranking)
    cause = explain(ranking, row_of(ranking.fitted.experiment, callpath))
    if cause is None and ranking.fitted.is_measured_only:
        raise DataError(
            "no cause is known: causes of growth need three scales or more",
            hint="give profiles of several scales, e.g. p = 8, 16, 32, 64, 128",
        )
    if cause is None:
        raise DataError(
            "no cause is known: causes are of exclusive times",
            hint="-m time --exclusive, and a call path with a time at several scales",
        )
    counter = wrapped_text(cause)
    if counter:
        raise DataError(
            f"no cause is known: {counter}", hint="count with 64 bits, or give smaller scales alone"
        )
    write(
        lambda style: why_text(ranking, cause, style=style),
        lambda: why_table(ranking, cause, findings),
    )
    console.findings(findings)
