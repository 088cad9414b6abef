"""`cpmodel trace spec`: the communication of a run as loops, or as a program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import A_FILE, FORCE, output_file
from callpath_modeler.errors import UsageError
from cpmodel_commspec.commands.reading import TRACE, read_trace

if TYPE_CHECKING:
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.specification import Specification
    from cpmodel_commspec.wildcards import Resolution

_ENDINGS = {"": "text", ".txt": "text", ".c": "c", ".json": "json"}
_NAMELESS = "trace"
"""The subject of findings about a trace whose name is not told."""


@click.command("spec", cls=Configured)
@TRACE
@output_file()
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(["text", "c", "json"]),
    help="Text, a program in C with MPI, or JSON for `check`. Default: by the ending of FILE.",
)
@click.option("--allow-unsafe", is_flag=True, help="Write a C program even if it can hang.")
@click.option(
    "--any-source",
    "any_source",
    multiple=True,
    metavar="PATTERN",
    help="Call paths whose receives take messages from any source.",
)
@click.option(
    "--another-run",
    "other_runs",
    multiple=True,
    type=A_FILE,
    metavar="TRACE",
    help="A trace of the same run. Receives with another order of sources are from any source.",
)
@click.option(
    "--anonymous",
    "is_anonymous",
    is_flag=True,
    help="Write numbers for the names of functions, communicators and the program.",
)
@click.option(
    "--max-lines",
    "most_lines",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Refuse to write more lines.",
)
@FORCE
@click.pass_obj
def spec(
    console: Console, *, trace: Path, output: Path | None, format_: str | None,
    allow_unsafe: bool, any_source: tuple[str, ...], other_runs: tuple[Path, ...],
    is_anonymous: bool, most_lines: int, force: bool,
) -> None:  # fmt: skip
    """Write all communication of a run in a few loops.

    cpmodel expands the loops and compares every operation with the trace. It also simulates the
    run, with eager and with rendezvous sends. A C program that can hang is refused.
    """
    from callpath_modeler.cli.render import render_lines
    from cpmodel_commspec.anonymity import anonymous
    from cpmodel_commspec.checking import differences
    from cpmodel_commspec.specify import specify
    from cpmodel_commspec.text import specification_text, summary
    from cpmodel_commspec.wildcards import inferred, marked, resolved

    form = _format(format_, output)
    traced, findings = read_trace(console, trace)
    if other_runs:
        traced = inferred(traced, [read_trace(console, other)[0] for other in other_runs])
    if any_source:
        traced = marked(traced, any_source)
    if is_anonymous:
        traced = anonymous(traced)
        findings = [replace(one, subject=_NAMELESS) for one in findings]
    subject = _NAMELESS if is_anonymous else str(trace)
    resolution = resolved(traced)
    # Operations of a long trace are most of the memory: none of them stay longer than needed.
    del traced
    told = specify(resolution.traced, most_lines)
    for what in differences(told, resolution.traced):
        raise AssertionError(f"the expanded specification differs from the trace: {what}")
    findings += _orders(told, subject, resolution)
    del resolution
    findings += _safety(told, subject, is_program=form == "c", allow_unsafe=allow_unsafe)
    if form == "text":
        width = None if output is not None else console.width
        render_lines(console, specification_text(told, width), output, force=force)
    else:
        console.write(_written(told, form), output, overwrite=force)
    if form != "text" or output is not None:
        for line in summary(told):
            console.note(line)
    console.findings(findings)


def _format(format_: str | None, output: Path | None) -> str:
    if format_ is not None:
        return format_
    ending = "" if output is None else output.suffix
    if ending not in _ENDINGS:
        raise UsageError(
            f"{output}: no format is known by the ending {ending!r}",
            hint="name one with -f: text, c, json",
        )
    return _ENDINGS[ending]


def _orders(told: Specification, subject: str, resolution: Resolution) -> list[Finding]:
    """Return findings about the order of messages."""
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.units import counted
    from cpmodel_commspec.deadlocks import explain
    from cpmodel_commspec.regularity import irregular_text

    findings = []
    if told.irregular:
        findings.append(Finding("CPM147", subject, irregular_text(told.irregular)))
    if resolution.deadlock is not None:
        found = explain(told, resolution.deadlock, resolution.sends, is_order=True)
        findings.append(Finding("CPM145", subject, str(found)))
    if resolution.answering:
        ranks = resolution.answering
        who = (
            f"rank {ranks[0]} answers"
            if len(ranks) == 1
            else f"{counted(len(ranks), 'rank')} answer"
        )
        findings.append(Finding("CPM146", subject, f"{who} the source of each message"))
    return findings


def _safety(
    told: Specification, subject: str, *, is_program: bool, allow_unsafe: bool
) -> list[Finding]:
    """Return a finding if the program can hang.

    Raises
    ------
    DataError
        If a program is to be written, and cannot run to the end.
    """
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.deadlocks import deadlock, require_safe
    from cpmodel_commspec.matching import mismatches

    if is_program:
        found = require_safe(told, allow_unsafe=allow_unsafe)
    else:
        found = None if any(mismatches(told)) else deadlock(told)
    return [] if found is None else [Finding("CPM144", subject, str(found))]


def _written(told: Specification, form: str) -> str:
    if form == "c":
        from cpmodel_commspec.generators.c import c_source

        return c_source(told)
    from cpmodel_commspec.exchange import to_json

    return to_json(told)
