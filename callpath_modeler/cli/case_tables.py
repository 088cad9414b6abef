"""The table over cases, which `rank` and `info` print if no case is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.data_quality import repetition_findings
from callpath_modeler.analysis.measured_only import measured_scale
from callpath_modeler.cli.console import Notes
from callpath_modeler.cli.table_options import OutputRequest, answer_writer
from callpath_modeler.cli.view_options import invocation_of
from callpath_modeler.errors import CallpathModelerError, UsageError
from callpath_modeler.printable import shell_word
from callpath_modeler.report.case_table import (
    CaseAnswer,
    ShownCases,
    answer_of,
    findings_of,
    in_order,
)
from callpath_modeler.studies.question import Question, findings_at

if TYPE_CHECKING:
    from callpath_modeler.arrays import IntArray
    from callpath_modeler.cli.console import Console
    from callpath_modeler.studies.study import Study

Parts = Mapping[tuple[str, str], "Study"]


def refuse_for_cases(parts: Parts, given: Mapping[str, object]) -> None:
    """Raise `UsageError` for options that are for one case."""
    for option, value in given.items():
        if value is not None:
            name = shell_word(next(case for _, case in parts if case))
            raise UsageError(
                f"{option} is for one case, and the runs are of {len(parts)} cases",
                hint=f"choose one, e.g. --case {name}",
            )


def ranked_cases(
    parts: Parts, question: Question, chosen: Callable[[Ranking], IntArray] | None
) -> list[CaseAnswer]:
    """Return the ranking of each case at the target, or the error in its place.

    Parameters
    ----------
    parts : studies by group and case
    question : the question to each of them
    chosen : selects and orders call paths of a ranking; None = all

    Raises
    ------
    CallpathModelerError
        If no case has an answer: the reason for the first one.
    """
    found = []
    for (group, case), study in parts.items():
        experiment = study.experiment(question.metric)
        try:
            ranking = study.ranking(question)
            rows = None if chosen is None else _ranked(ranking, chosen(ranking))
        except CallpathModelerError as error:
            found.append(answer_of(group, case, experiment, error))
        else:
            findings = findings_at(ranking.fitted, ranking.target)
            found.append(answer_of(group, case, experiment, ranking, rows, findings))
    _raise_if_all_failed(found)
    return in_order(found)


def _ranked(ranking: Ranking, rows: IntArray) -> list[int]:
    return [int(row) for row in rows[ranking.is_ranked[rows]]]


def measured_cases(parts: Parts) -> list[CaseAnswer]:
    """Return the measured values of each case at its largest scale, without models."""
    found = []
    for (group, case), study in parts.items():
        experiment = study.experiment()
        findings = (*experiment.findings, *repetition_findings(experiment))
        try:
            fitted = study.measured()
            ranking = study.ranked(fitted, measured_scale(fitted, None), Question())
        except CallpathModelerError as error:
            found.append(answer_of(group, case, experiment, error, None, findings))
        else:
            found.append(answer_of(group, case, experiment, ranking, None, findings))
    return in_order(found)


def _raise_if_all_failed(found: list[CaseAnswer]) -> None:
    errors = [each.found for each in found if isinstance(each.found, CallpathModelerError)]
    if len(errors) == len(found):
        first, name = errors[0], "/".join(filter(None, (found[0].group, found[0].name)))
        same = len({error.message for error in errors}) == 1
        raise type(first)(first.message if same else f"{name}: {first.message}", hint=first.hint)


def write_ranked_cases(
    console: Console, answers: list[CaseAnswer], group_by: str | None, request: OutputRequest
) -> None:
    """Write the table over cases of `rank`."""
    again = invocation_of(click.get_current_context())
    shown = ShownCases(answers, group_by, request.top)
    answer_writer(request, console)(
        lambda style: shown.text(style, again), shown.table, shown.text_tables
    )
    console.findings(findings_of(answers), Notes.SHORT)


def write_measured_cases(
    console: Console, answers: list[CaseAnswer], output: OutputRequest, more: list[str]
) -> None:
    """Write the table over cases of `info`; `more` are lines below it."""
    again = invocation_of(click.get_current_context())
    lines = ShownCases(answers).text(output.style(console), again, "info")
    output.write_lines(console, [*lines, *more])
    console.findings(findings_of(answers), Notes.SHORT)
