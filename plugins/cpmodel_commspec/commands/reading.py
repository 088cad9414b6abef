"""The trace or the specification that a command reads, and options about its operations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import OUTPUT, RUNS, option
from callpath_modeler.cli.options import A_FILE
from callpath_modeler.errors import DataError, InputError, UsageError

if TYPE_CHECKING:
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.operations import Traced

TRACE = click.argument("trace", type=A_FILE, metavar="TRACE")
SOURCE = click.argument("source", type=A_FILE, metavar="TRACE|SPEC.json")
ANY_SOURCE = option(
    "--any-source PATTERN",
    "Call paths whose receives take messages from any source.",
    "any_source",
    multiple=True,
    group=RUNS,
)
ANONYMOUS = option(
    "--anonymous",
    "Write numbers for the names of functions, communicators and the program.",
    "is_anonymous",
    group=OUTPUT,
)


def is_specification(path: Path) -> bool:
    """Tell whether a file is a specification rather than the anchor of a trace."""
    if path.suffix == ".json" and not path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip().startswith(b"{")
    except OSError:
        return False


def read_trace(console: Console, trace: Path) -> tuple[Traced, list[Finding]]:
    """Return the operations of a trace, and what is to be known about it.

    Raises
    ------
    DataError
        If there are none.
    """
    from callpath_modeler.diagnostics import Notices
    from cpmodel_commspec.recording.recorder import record
    from cpmodel_otf2.event_source import opened

    path = _anchor(trace)
    with opened(path) as source:
        traced = record(source, console.progress("read"))
        notices = Notices(str(path))
        for what, count in traced.left_out.items():
            notices.note("CPM138", f"{count} {what}", count, what)
        findings = [*source.findings(), *notices.findings()]
    if not any(len(one.shapes) for one in traced.ranks):
        raise DataError(
            f"{path}: no rank communicates", hint="trace a run of several processes with MPI events"
        )
    return traced, findings


def _anchor(trace: Path) -> Path:
    """Return the anchor that a path means: the file itself, or the only one in a directory."""
    if not trace.is_dir():
        return trace
    found = sorted(trace.glob("*.otf2"))
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{trace}: holds {len(found)} traces", hint=f"give one: {found[0]}")
    raise InputError(f"{trace}: holds no .otf2", hint="give the directory that traces.otf2 is in")
