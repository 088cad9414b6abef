"""`cpmodel score`: remembered predictions against what was measured later."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import option
from callpath_modeler.cli.options import load_options, with_standard_input
from callpath_modeler.cli.render import ROWS, refuse_incomplete
from callpath_modeler.cli.table_options import (
    HTML,
    LABELS,
    STORE,
    OutputRequest,
    answer_writer,
    labels_of,
    table_or_page_options,
)
from callpath_modeler.errors import DataError

if TYPE_CHECKING:
    from callpath_modeler.studies.loading import LoadOptions


@click.command("score", cls=Configured)
@STORE
@click.argument("experiment", nargs=-1, metavar="[RUNS]...", callback=with_standard_input)
@option(
    "-m, --metric NAME",
    "Metric. Default: that of the newest one.",
    describes=True,
    example='"time"',
)
@LABELS
@load_options
@table_or_page_options
@click.pass_obj
def command(
    console: Console,
    *,
    store: Path,
    experiment: tuple[str, ...],
    metric: str | None,
    labels: tuple[str, ...],
    table: OutputRequest,
    load: LoadOptions,
) -> None:
    """Hold remembered predictions against runs at their targets.

    STORE is a history with predictions of `rank --remember` or `watch add --target`. RUNS are runs
    at the scales of these targets; their values are kept as well. Without RUNS, the scores so far
    are shown.

    The output states the error of each prediction, whether its band holds, and how often bands
    hold by marks of trust. `rank --calibrated STORE` corrects later bands by these scores.
    """
    from callpath_modeler.history.predictions import chosen, outcomes, predictions, remember, scored
    from callpath_modeler.history.run_records import outcomes_of
    from callpath_modeler.report.scores import scores_table, scores_text, scores_text_tables
    from callpath_modeler.studies.loading import load as load_experiment

    form, told = table.form, labels_of(labels)
    remembered = predictions(store)
    if not remembered:
        raise DataError(
            f"{store} has no prediction",
            hint=f"cpmodel rank EXP --target P --remember {store}",
        )
    if experiment:
        mine = chosen(remembered, metric, told)
        if not mine:
            raise DataError("no remembered prediction has these labels", hint="omit --label")
        options = load.of_metric(mine[-1].metric)
        runs = load_experiment(experiment, options, console.progress("read"))
        refuse_incomplete(runs.findings)
        for each in outcomes_of(runs, mine, time.time(), told):
            remember(store, each)
        console.findings(runs.findings)
    found = scored(remembered, outcomes(store), metric, told)
    if form == HTML:
        from callpath_modeler.report.page.history_page import scores_page

        table.write(console, scores_page(found, store))
    else:
        answer_writer(table, console)(
            lambda style: scores_text(found, store, table.top or ROWS, style),
            lambda: scores_table(found, table.top),
            lambda style: scores_text_tables(found, table.top, style),
        )
