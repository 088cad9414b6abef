"""`cpmodel trace spec`: the communication of a run as loops, as a program, or for a simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import OUTPUT, RUNS, WholeNumber, option, was_asked
from callpath_modeler.cli.options import A_FILE, FORCE, output_file
from callpath_modeler.errors import DataError, UsageError
from cpmodel_commspec.commands import writing
from cpmodel_commspec.commands.reading import (
    ANONYMOUS,
    ANY_SOURCE,
    SOURCE,
    change_options,
    is_specification,
    read_trace,
)

if TYPE_CHECKING:
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.commands.reading import Change
    from cpmodel_commspec.simulation.wildcards import Resolution
    from cpmodel_commspec.specification import Specification

_NAMELESS = "trace"
"""The subject of findings about a trace whose name is not told."""

_OF_TRACES = {"any_source": "--any-source", "other_runs": "--another-run"}
"""Options about the operations of a trace."""


@click.command("spec", cls=writing.WithFormats)
@SOURCE
@output_file("Default: standard output. Some formats need a directory.", replaces=Path.is_dir)
@writing.FORMAT
@writing.ALLOW_UNSAFE
@ANY_SOURCE
@option(
    "--another-run TRACE",
    "A trace of the same run. Receives with another order of sources are from any source.",
    "other_runs",
    multiple=True,
    type=A_FILE,
    group=RUNS,
)
@ANONYMOUS
@writing.TIMES
@change_options
@option(
    "--max-lines",
    "Refuse to write more lines.",
    "most_lines",
    type=WholeNumber(min=1),
    default=1000,
    group=OUTPUT,
)
@FORCE
@click.pass_context
def spec(
    ctx: click.Context, /, *, source: Path, output: Path | None, format_: str | None,
    allow_unsafe: bool, any_source: tuple[str, ...], other_runs: tuple[Path, ...],
    is_anonymous: bool, times: str, change: Change, most_lines: int, force: bool,
) -> None:  # fmt: skip
    """Write all communication of a run in a few loops.

    cpmodel expands the loops and compares every operation with the trace. It also simulates the
    run, with eager and with rendezvous sends. A program that can hang is refused. SPEC.json, which
    this command wrote, can be written in any other format.
    """
    from cpmodel_commspec.text import summary

    console: Console = ctx.obj
    generator = writing.chosen(format_, output)
    writing.require_times(ctx, generator)
    subject = _NAMELESS if is_anonymous else str(source)
    findings: list[Finding] = []
    if is_specification(source):
        for name, option in _OF_TRACES.items():
            if was_asked(ctx, name):
                raise UsageError(
                    f"{option} needs a trace, and {source} is a specification",
                    hint="give the trace from which it was made",
                )
        told = _read(source, most_lines, is_anonymous=is_anonymous)
    else:
        told, findings = _extracted(
            console, source, subject, any_source, other_runs, most_lines, is_anonymous=is_anonymous
        )
    told, changes = change(told)
    findings += writing.safety(told, subject, generator, allow_unsafe=allow_unsafe)
    writing.write(console, told, generator, output, times, force=force)
    if output is not None:
        for line in summary(told):
            console.note(line)
        if changes:
            console.note(f"changed: {' '.join(changes)}")
    console.findings(findings)


def _read(source: Path, most_lines: int, *, is_anonymous: bool) -> Specification:
    from cpmodel_commspec.anonymity import anonymous_specification
    from cpmodel_commspec.exchange import read_json

    told = read_json(source)
    if told.lines > most_lines:
        raise DataError(
            f"the specification has {told.lines} lines, more than {most_lines}",
            hint=f"use --max-lines {told.lines}",
        )
    return anonymous_specification(told) if is_anonymous else told


def _extracted(
    console: Console, trace: Path, subject: str, any_source: tuple[str, ...],
    other_runs: tuple[Path, ...], most_lines: int, *, is_anonymous: bool,
) -> tuple[Specification, list[Finding]]:  # fmt: skip
    """Return the specification of a trace, compared with the trace, and findings."""
    from cpmodel_commspec.anonymity import anonymous
    from cpmodel_commspec.checking import differences
    from cpmodel_commspec.compression.specify import specify
    from cpmodel_commspec.simulation.wildcards import inferred, marked, resolved

    traced, findings = read_trace(console, trace)
    if other_runs:
        traced = inferred(traced, [read_trace(console, other)[0] for other in other_runs])
    if any_source:
        traced = marked(traced, any_source)
    if is_anonymous:
        traced = anonymous(traced)
        findings = [structs.replace(one, subject=_NAMELESS) for one in findings]
    resolution = resolved(traced)
    # Operations of a long trace are most of the memory: none of them stay longer than needed.
    del traced
    told = specify(resolution.traced, most_lines)
    for what in differences(told, resolution.traced):
        raise AssertionError(f"the expanded specification differs from the trace: {what}")
    findings += _orders(told, subject, resolution)
    return told, findings


def _orders(told: Specification, subject: str, resolution: Resolution) -> list[Finding]:
    """Return findings about the order of messages."""
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.compression.merging import irregular_text
    from cpmodel_commspec.simulation.deadlocks import explain
    from cpmodel_commspec.simulation.wildcards import answering_text

    findings = []
    if told.irregular:
        findings.append(Finding("CPM147", subject, irregular_text(told.irregular)))
    if resolution.deadlock is not None:
        found = explain(told, resolution.deadlock, resolution.sends, is_order=True)
        findings.append(Finding("CPM145", subject, str(found)))
    if resolution.answering:
        reason = f": {resolution.no_turns}" * bool(resolution.no_turns)
        findings.append(Finding("CPM146", subject, answering_text(resolution.answering) + reason))
    return findings
