"""`cpmodel watch`: a history of commits, judged with one false-alarm rate."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli import EXIT_NO
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import (
    MODELS,
    DecimalNumber,
    F,
    WholeNumber,
    option,
    option_group,
    output_option,
)
from callpath_modeler.cli.options import (
    A_FILE,
    EXPERIMENT,
    FORCE_ALL,
    JUNIT,
    model_options,
    output_file,
)
from callpath_modeler.cli.preflight import CheckedCommand
from callpath_modeler.cli.render import refuse_incomplete
from callpath_modeler.cli.table_options import (
    FORMATS,
    HISTORY_TO_WRITE,
    LABELS,
    STORE,
    OutputRequest,
    answer_writer,
    format_of,
    labels_of,
    output_options,
)
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.units import counted, decimal_of

if TYPE_CHECKING:
    from callpath_modeler.history.commits import CommitHistory
    from callpath_modeler.report.history_text import HistoryEntry
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study

_PLACES = ("comment", "github", "gitlab", "html", "badge")
"""Formats for places where people look."""
_SUFFIXES = {".html": "html", ".svg": "badge"}
_LARGEST_LIST = 4_000_000
"""Largest size of a list of commits, in characters."""

_HISTORY = (
    LABELS,
    option("-m, --metric NAME", "Metric. Default: that of the newest."),
    option("--target P", "A further scale. Default: that of predictions."),
    option("--last N", "Judge the newest N records only.", type=WholeNumber(1)),
    option(
        "--false-alarms",
        "Probability of any false alarm in the whole history, for all commits and call paths.",
        type=DecimalNumber(0, 1, min_open=True, max_open=True),
        default=0.05,
    ),
    option(
        "--accept COMMIT",
        "Accept all changes up to this commit: they are listed, but nothing fails.",
    ),
    option(
        "--control PATTERN",
        "Call paths that did not change, without their callees, e.g. '**/kernel_*'. A change "
        "of all of them comes from the machine. Other call paths are compared relative to them.",
        multiple=True,
        group=MODELS,
    ),
)


def _make_judged(
    *,
    labels: tuple[str, ...],
    metric: str | None,
    target: str | None,
    last: int | None,
    false_alarms: float,
    accept: str | None,
    control: tuple[str, ...],
) -> Callable[[Path], CommitHistory]:
    """Return the function that judges a stored history as the options ask."""
    from callpath_modeler.profile.runs import target_of
    from callpath_modeler.studies.loading import parse_number

    scale = None if target is None else target_of(parse_number(target, "target"), target)
    if scale is not None and math.isinf(scale):
        raise UsageError("--target inf: a history has no value there", hint="a finite scale")
    wanted = labels_of(labels)

    def judged(store: Path) -> CommitHistory:
        from callpath_modeler.history import commits, history_store
        from callpath_modeler.history.alarms import AlarmRule
        from callpath_modeler.support.input_limits import InputLimits

        return commits.judged(
            history_store.read(store, last),
            AlarmRule(false_alarms=false_alarms),
            target=scale,
            metric=metric,
            labels=wanted,
            accepted=accept,
            control=control,
            limits=InputLimits.of(store),
        )

    return judged


def _history_options(command: F) -> F:
    return option_group(command, _HISTORY, "judged", _make_judged)


@click.group("watch")
def command() -> None:
    """Keep a history of commits, and say which call path became worse at which commit.

    \b
    cpmodel watch add history.db runs/ --commit "$(git rev-parse HEAD)"
    cpmodel watch status history.db
    """  # noqa: D301 - \b is click's mark for lines that stay as they are


@click.command("watch_add", cls=Configured)
@HISTORY_TO_WRITE
@EXPERIMENT
@option("--commit ID", "Name of the commit that was run.", required=True)
@option(
    "--time TIME",
    "Time that orders the history: seconds since 1970 or 2026-01-31T12:00. Default: now.",
    "when",
)
@LABELS
@partial(model_options, has_time=True)
@click.pass_obj
def add(
    console: Console,
    *,
    store: Path,
    commit: str,
    when: str | None,
    labels: tuple[str, ...],
    question: Question,
    study: Study,
) -> None:
    """Add the runs of one commit to a history.

    STORE is a file, which is made if there is none. The same runs of the same commit are added
    once. Runs of a commit that was added before are further evidence. With --target, the models'
    predictions at that scale are kept as well.
    """
    from callpath_modeler.history import history_store
    from callpath_modeler.history.predictions import remember
    from callpath_modeler.history.run_records import record_of

    if not commit.strip():
        raise UsageError("--commit: the name is empty", hint='--commit "$(git rev-parse HEAD)"')
    record, predictions, findings = record_of(
        study, commit.strip(), _time(when), question, labels_of(labels)
    )
    refuse_incomplete(findings)
    is_new = history_store.add(store, record)
    if predictions is not None:
        remember(store, predictions)
    console.findings(findings)
    what = counted(len(record.callpaths), "call path")
    said = "added" if is_new else "was in the history already"
    console.note(f"{store}: commit {record.commit}, {what}: {said}")


@click.command("status", cls=CheckedCommand)
@STORE
@_history_options
@JUNIT
@output_option(
    "-f, --format",
    "Default: by the suffix of -o, else table. comment: Markdown for a pull request; github: "
    "annotations; gitlab: a code quality report; html: a page; badge: SVG.",
    "format_",
    type=click.Choice([*FORMATS, *_PLACES]),
)
@output_file("Write to a file.")
@FORCE_ALL
@click.pass_context
def status(
    ctx: click.Context,
    /,
    *,
    store: Path,
    junit: Path | None,
    format_: str | None,
    output: Path | None,
    force: bool,
    judged: Callable[[Path], CommitHistory],
) -> None:
    """Judge the newest state of a history; exit with status 1 if a call path is worse.

    The rate of false alarms holds for the whole history, however often you look. A change of
    all call paths is removed and listed as common. With --control, a change of the control is
    removed instead, and a slower program fails as well.
    """
    from callpath_modeler.report.history_formats import to_history_junit
    from callpath_modeler.report.history_text import entries, history_table, history_text

    console: Console = ctx.obj
    by_suffix = None if output is None else _SUFFIXES.get(output.suffix)
    form = format_ or by_suffix or format_of(None, output)
    history = judged(store)
    found = entries(history)
    request = OutputRequest(form, output, force)
    if junit is not None:
        console.write(to_history_junit(history, found, store.name), junit, overwrite=force)
    if form in _PLACES:
        request.write(console, _written(form, history, found, store.name))
    else:
        answer_writer(request, console)(
            lambda style: history_text(history, found, style), lambda: history_table(history, found)
        )
    if any(each.failed for each in found):
        ctx.exit(EXIT_NO)


def _written(form: str, history: CommitHistory, found: Sequence[HistoryEntry], source: str) -> str:
    """Return a judged history in one of the forms of the places where people look."""
    from callpath_modeler.report import history_formats
    from callpath_modeler.report.page.history_page import history_page

    return {
        "comment": lambda: history_formats.to_comment(history, found),
        "github": lambda: history_formats.to_github(history, found),
        "gitlab": lambda: history_formats.to_gitlab(history, found, source),
        "badge": lambda: history_formats.to_badge(history, found),
        "html": lambda: history_page(history, found, source),
    }[form]()


@click.command("bisect", cls=CheckedCommand)
@STORE
@_history_options
@option(
    "--commits FILE",
    "Commits, the oldest first, one a line, e.g. of `git rev-list --reverse`; - reads them.",
    type=A_FILE,
)
@output_options
@click.pass_obj
def bisect(
    console: Console,
    /,
    *,
    store: Path,
    commits: Path | None,
    output: OutputRequest,
    judged: Callable[[Path], CommitHistory],
) -> None:
    """Propose the next commit to measure for each change, and the cheapest runs that decide.

    \b
    git rev-list --reverse GOOD..BAD | cpmodel watch bisect history.db --commits -
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    from callpath_modeler.report.history_formats import proposal_table, proposal_text, proposals

    write = answer_writer(output, console)
    found = proposals(judged(store), None if commits is None else _listed(commits))
    write(lambda style: proposal_text(found, store, style), lambda: proposal_table(found))


def _time(text: str | None) -> float:
    """Return seconds since 1970."""
    if text is None:
        return time.time()
    try:
        found = decimal_of(text)
    except ValueError:
        try:
            found = datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError, OSError):
            found = math.nan
    if not math.isfinite(found):
        raise UsageError(
            f"--time {text[:60]!r} is no time", hint='--time "$(git show -s --format=%ct COMMIT)"'
        )
    return found


def _listed(path: Path) -> list[str]:
    """Return the names of commits in a file."""
    from callpath_modeler.printable import printable

    try:
        if path == Path("-"):
            text = sys.stdin.read(_LARGEST_LIST + 1)
        else:
            with path.open(encoding="utf-8") as file:
                text = file.read(_LARGEST_LIST + 1)
    except (OSError, UnicodeDecodeError) as cause:
        reason = getattr(cause, "strerror", None) or "it is no text"
        raise InputError(
            f"{path}: cannot be read: {reason}", hint="git rev-list --reverse A..B"
        ) from cause
    if len(text) > _LARGEST_LIST:
        raise InputError(f"{path}: too many commits", hint="git rev-list --reverse A..B")
    return [printable(line.split()[0]) for line in text.splitlines() if line.strip()]


command.add_command(add, "add")
command.add_command(status, "status")
command.add_command(bisect, "bisect")
