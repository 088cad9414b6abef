"""`cpmodel rank`: ranking of call paths at a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console, Notes
from callpath_modeler.cli.expectation_option import (
    EXPECT,
    check_ranking,
    verdict_file,
    with_expectation,
)
from callpath_modeler.cli.option_groups import RUNS, call_option, option, output_option
from callpath_modeler.cli.options import (
    A_FILE,
    EXPERIMENT,
    one_with_standard_input,
    study_options,
    target_options,
)
from callpath_modeler.cli.render import ROWS, fit_to_screen
from callpath_modeler.cli.table_options import (
    PLOT,
    BandCorrection,
    HistoryRequest,
    OutputRequest,
    history_options,
    table_options,
    write_plot,
)
from callpath_modeler.cli.view_options import invocation_of
from callpath_modeler.errors import CallpathModelerError, UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.analysis.answer import Ranking
    from callpath_modeler.analysis.what_if import Change, WhatIf
    from callpath_modeler.arrays import IntArray
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.report.table_formats import Table
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study

_TRUST = """\
The marks of trust state the width of the band:
●●●● four marks: within 10 % of the value
●●●○ within 25 %
●●○○ within a factor of 2
●○○○ within a factor of 5
○○○○ wider
The band holds the value with 95 % probability (--confidence). With four
marks, the prediction is accurate to 10 % in 95 of 100 cases. For measured
values, the confidence interval replaces the band.
A prediction has at most two marks outside the model class, and from 16 times
the largest run on. It has at most three marks if no run was repeated.
"""


def _changes(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> Sequence[Change]:
    """Return the changes of a command line; a wrong one is refused before reading."""
    if not texts:
        return ()
    from callpath_modeler.analysis.what_if import parse_change

    return [parse_change(text) for text in texts]


@click.command("rank", cls=Configured)
@EXPERIMENT
@option(
    "--by",
    "Order: value at the target, growth, cost beyond the ideal, growth of the share, or energy at "
    "the target. Default: value, or loss between two scales.",
    type=click.Choice(["value", "growth", "loss", "share", "energy"]),
)
@option(
    "--select PATTERN",
    "Show call paths that match, e.g. 'main/**/MPI_*'.",
    example='"main/**/MPI_*"',
)
@option(
    "--group-by NAME",
    "Rank the runs separately for each value of a metadata key or parameter.",
    group=RUNS,
)
@table_options
@PLOT
@output_option("--explain-trust", "Explain the marks of trust.")
@EXPECT
@call_option(
    "--verify RUNS",
    "Compare the predictions with these runs at the target, which the models have not seen.",
    type=A_FILE,
    callback=one_with_standard_input,
)
@call_option(
    "--what-if CHANGE",
    "Change a cause, e.g. 'main/solve time * 0.5', 'main/solve imbalance = 1', 'latency / 2' or "
    "'bandwidth * 2', and show what the run takes at the target. May be given several times.",
    field="changes",
    multiple=True,
    callback=_changes,
    example='"main/solve imbalance = 1"',
)
@output_option("--gain", "Show what the run gains without each call path, waiting for it included.")
@history_options
@target_options
@study_options
@click.pass_obj
def command(
    console: Console,
    *,
    by: str | None,
    select: str | None,
    group_by: str | None,
    plot: Path | None,
    table: OutputRequest,
    explain_trust: bool,
    verify: Path | None,
    changes: Sequence[Change],
    gain: bool,
    history: HistoryRequest,
    question: Question,
    study: Study,
) -> None:
    """Rank call paths by cost at a target scale.

    Costs are measured if the target was run, else predicted. One or two scales allow
    no models: then all costs are measured, and two scales are compared by excess work. Verdicts of
    --expect FILE.toml do not change the exit status; use `cpmodel check` for that.

    EXP is a profile, a directory of runs, a glob, a manifest, or a stored NAME.cpm.
    """
    from callpath_modeler.report.ranking_table import ranking_table
    from callpath_modeler.report.ranking_text import ShownRanking
    from callpath_modeler.studies.question import FURTHER, findings_of

    if explain_trust:
        console.note(_TRUST.rstrip(), asked=True)
    _refuse_with_groups(group_by, {"--plot": plot, "--verify": verify, **history.stores})
    question = replace(
        question, by=by, has_verdicts=True, further=FURTHER if verify is None else None
    )
    verdicts = verdict_file(click.get_current_context())
    question.scale(study.fit_options.parameter)  # an invalid target is refused before reading
    study = study.for_expectations(verdicts, question.metric).reading(requirements=True)
    parts = study.parts(group_by, question.metric)
    if any(case for _, case in parts):
        for_one = {"--plot": plot, "--verify": verify, "--expect": verdicts, **history.stores}
        _rank_cases(console, parts, question, group_by, select, table, for_one)
        return
    rankings = {value: _ranking(of, question, group_by, value) for (value, _), of in parts.items()}
    groups = {value: (each, findings_of(each)) for value, each in rankings.items()}
    correction = BandCorrection() if group_by else history.applied(console, rankings[""])
    if correction.ranking is not None:
        groups = {"": (correction.ranking, groups[""][1])}
    verified = {
        value: None if verify is None else study.verification(ranking, verify)
        for value, (ranking, _) in groups.items()
    }
    changed = {value: _changed(ranking, changes) for value, (ranking, _) in groups.items()}
    checks = {value: check_ranking(ranking, verdicts) for value, (ranking, _) in groups.items()}
    chosen = {value: _chosen(ranking, select) for value, (ranking, _) in groups.items()}
    findings, notes = _findings(group_by, groups), Notes.FULL
    findings += [each for one in verified.values() if one for each in one.findings]
    if plot is not None:
        _plot(console, groups[""][0], chosen[""], table, plot)
    # Ranked call paths come first.
    shown = {
        value: ShownRanking(
            ranking,
            chosen[value][: int(ranking.is_ranked[chosen[value]].sum())],
            checks[value],
            verified[value],
            correction.sentence,
            changed[value],
            gain,
        )
        for value, (ranking, _) in groups.items()
    }
    if table.form == "table":
        without, where = ("--where",) if group_by else (), study.load_options.where
        again = invocation_of(click.get_current_context(), without=without)

        def lay(count: int, complete: bool) -> list[Text | str]:
            lines: list[Text | str] = []
            for value, (ranking, _) in groups.items():
                if group_by:
                    from callpath_modeler.report.case_table import heading, of_group

                    lines += heading(group_by, value, ranking, is_first=not lines)
                own = of_group(again, where, group_by, value) if group_by else again
                some = replace(shown[value], rows=shown[value].rows[:count])
                lines += some.text(
                    table.style(console),
                    with_expectation(click.get_current_context(), own, ranking.fitted),
                    complete=complete,
                )
            return lines

        if table.is_open and not group_by:
            lines, notes = fit_to_screen(console, lay, len(shown[""].rows), findings)
        else:
            lines = lay(table.top or ROWS, complete=True)
        table.write_lines(console, lines)
    else:
        tables = {
            value: replace(shown[value], rows=shown[value].rows[: table.top]).text_table(
                table.people_style
            )
            if table.is_for_people
            else ranking_table(
                *(ranking, chosen[value][: table.top], own, checks[value], verified[value]),
                calibration=correction.calibration,
                changed=changed[value],
                gains=gain,
            )
            for value, (ranking, own) in groups.items()
        }
        content = _joined(tables, group_by)
        table.write_table(console, content)
    console.findings(findings, notes)


def _rank_cases(
    console: Console,
    parts: Mapping[tuple[str, str], Study],
    question: Question,
    group_by: str | None,
    select: str | None,
    table: OutputRequest,
    for_one: Mapping[str, Path | None],
) -> None:
    """Write one line for each case, which are different programs."""
    from callpath_modeler.cli.case_tables import ranked_cases, refuse_for_cases, write_ranked_cases

    refuse_for_cases(parts, for_one)
    chosen = None if select is None else partial(_chosen, select=select)
    write_ranked_cases(console, ranked_cases(parts, question, chosen), group_by, table)


def _ranking(study: Study, question: Question, group_by: str | None, value: str) -> Ranking:
    """Return the ranking of a group; an error names the group."""
    try:
        return study.ranking(question)
    except CallpathModelerError as error:
        if group_by is None:
            raise
        raise type(error)(f"{group_by}={value}: {error.message}", hint=error.hint) from error


def _changed(ranking: Ranking, changes: Sequence[Change]) -> WhatIf | None:
    """Return the run after changes; None = no changes."""
    if not changes:
        return None
    from callpath_modeler.analysis.what_if import what_if

    return what_if(ranking, changes)


def _refuse_with_groups(group_by: str | None, given: Mapping[str, Path | None]) -> None:
    for what, path in given.items():
        if path is not None and group_by is not None:
            raise UsageError(
                f"{what} and --group-by exclude each other: {what} is for one ranking",
                hint="--where NAME=VALUE chooses a group",
            )


def _plot(
    console: Console, ranking: Ranking, chosen: IntArray, table: OutputRequest, path: Path
) -> None:
    """Write the plot of the chosen call paths that are ranked."""
    import numpy as np

    from callpath_modeler.report.plot import TOP, ranking_drawing

    is_chosen = np.zeros(len(ranking.value), bool)
    is_chosen[chosen] = True
    rows = ranking.order[is_chosen[ranking.order]]
    drawing = ranking_drawing(ranking, rows[: table.top or TOP])
    write_plot(console, drawing, path, force=table.force)


def _findings(
    group_by: str | None, groups: Mapping[str, tuple[Ranking, Sequence[Finding]]]
) -> list[Finding]:
    """Return the findings of one ranking, or of the rankings of all groups."""
    if not group_by:
        return [*dict.fromkeys(groups[""][1])]
    from callpath_modeler.report.case_table import of_groups

    return of_groups(group_by, groups)


def _joined(tables: Mapping[str, Table], group_by: str | None) -> Table:
    """Return one table of the tables of all groups."""
    if not group_by:
        return tables[""]
    from callpath_modeler.report.case_table import joined

    return joined(tables, group_by)


def _chosen(ranking: Ranking, select: str | None) -> IntArray:
    from callpath_modeler.profile.pattern import match, unmatched
    from callpath_modeler.report.ranking_table import all_rows

    rows = all_rows(ranking)
    if select is None:
        return rows
    tree = ranking.fitted.experiment.tree
    chosen = rows[match(tree, select)[rows]]
    if not len(chosen):
        raise unmatched(tree, select)
    return chosen
