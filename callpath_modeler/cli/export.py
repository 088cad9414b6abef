"""`cpmodel export`: models, values, ranking or the call-path graph to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import (
    EXPERIMENT,
    fit_options,
    format_of,
    load_options,
    question_options,
)
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions, Question

GRAPHS = ("graphml", "dot")
_TABLES = ("csv", "tsv", "json", "jsonl", "markdown", "parquet")


@click.command("export")
@EXPERIMENT
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Default: standard output.",
)
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice([*_TABLES, *GRAPHS]),
    help="Default: by the ending of FILE.",
)
@click.option(
    "--what",
    type=click.Choice(["models", "values", "ranking"]),
    default="models",
    show_default=True,
    help="Rows of a table: a model per call path; a value per call path and run; the ranking.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@question_options
@load_options
@fit_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    output: Path | None,
    format_: str | None,
    what: str,
    force: bool,
    question: Question,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Write models, values, the ranking, or the call-path graph (graphml, dot)."""
    from callpath_modeler import pipeline
    from callpath_modeler.cli.render import render_table
    from callpath_modeler.report import export
    from callpath_modeler.report.ranking import ranking_table

    form = _form(format_, output)
    ranking, findings = pipeline.ranking_of(
        experiment,
        question,
        load_options=load,
        fit_options=fitting,
        progress=console.progress("read"),
        default_factor=4.0,
    )
    if form in GRAPHS:
        console.write(export.graph_text(ranking, form), output, overwrite=force)
    elif what == "ranking":
        table = ranking_table(ranking, findings=findings)
        render_table(console, table, form, output, force=force)
    elif what == "models":
        render_table(console, export.models_table(ranking.fitted), form, output, force=force)
    else:
        values = export.values_table(ranking.fitted, inclusive=question.inclusive)
        render_table(console, values, form, output, force=force)
    console.findings(findings)


def _form(format_: str | None, output: Path | None) -> str:
    if format_ is None and output is not None and output.suffix.removeprefix(".") in GRAPHS:
        return output.suffix.removeprefix(".")
    form = format_ if format_ in GRAPHS else format_of(format_, output)
    if form == "table":
        raise UsageError("no format", hint=f"-f with one of {', '.join((*_TABLES, *GRAPHS))}")
    return form
