"""`cpmodel trace`: what processes said to each other, as a specification and as a program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.exit_status import EXIT_NO
from callpath_modeler.cli.options import A_FILE, FORCE, output_file
from callpath_modeler.errors import DataError, InputError, UsageError, nearest_or_all

if TYPE_CHECKING:
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.operations import Traced
    from cpmodel_commspec.specification import Specification

_ENDINGS = {"": "text", ".txt": "text", ".c": "c", ".json": "json"}
_SHOWN = 10
_TRACE = click.argument("trace", type=A_FILE, metavar="TRACE")


class _Group(click.Group):
    """A group that knows which command was meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may be meant."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            meant = nearest_or_all(args[0], self.commands)
            raise click.UsageError(f"no command {args[0]!r}; {meant}", ctx)
        return super().resolve_command(ctx, args)


@click.group("trace", cls=_Group, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Tell the communication of a run from its OTF2 trace, as loops or as a program.

    TRACE is the traces.otf2 of a run, or the directory that it is in.
    """
    if ctx.invoked_subcommand is None:
        ctx.obj.result(f"{ctx.get_help()}\n")


@command.command("spec", cls=Configured)
@_TRACE
@output_file()
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice(["text", "c", "json"]),
    help="Text, a program in C with MPI, or JSON for `check`. Default: by the ending of FILE.",
)
@FORCE
@click.pass_obj
def spec(
    console: Console, *, trace: Path, output: Path | None, format_: str | None, force: bool
) -> None:
    """Write all communication of a run in a few loops.

    What is written was unrolled and compared with the trace, operation by operation.
    """
    from callpath_modeler.cli.render import render_lines
    from cpmodel_commspec.checking import differences
    from cpmodel_commspec.specify import specify
    from cpmodel_commspec.text import specification_text, summary

    form = _format(format_, output)
    traced, findings = _read(console, trace)
    told = specify(traced)
    for what in differences(told, traced):
        raise AssertionError(f"unrolled, the specification is not the trace: {what}")
    if form == "text":
        width = None if output is not None else console.width
        render_lines(console, specification_text(told, width), output, force=force)
    else:
        console.write(_written(told, form), output, overwrite=force)
    if form != "text" or output is not None:
        for line in summary(told):
            console.note(line)
    console.findings(findings)


@command.command("check", cls=Configured)
@click.argument("specification", type=A_FILE, metavar="SPEC.json")
@_TRACE
@click.pass_context
def check(ctx: click.Context, /, *, specification: Path, trace: Path) -> None:
    """Compare a specification with a trace.

    Every operation is compared; the exit status is 1 if any differs. SPEC.json was written by
    `cpmodel trace spec -o SPEC.json`, of this run or of another.
    """
    from callpath_modeler.units import counted
    from cpmodel_commspec.checking import differences
    from cpmodel_commspec.exchange import read_json

    console: Console = ctx.obj
    told = read_json(specification)
    traced, findings = _read(console, trace)
    found = list(differences(told, traced))
    for line in found[:_SHOWN]:
        console.result(f"{line}\n")
    if len(found) > _SHOWN:
        console.result(f"and {len(found) - _SHOWN} more ranks that differ\n")
    console.findings(findings)
    if found:
        ctx.exit(EXIT_NO)
    console.result(
        f"the same: {counted(told.operations, 'operation')} of {counted(told.processes, 'rank')}\n"
    )


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


def _written(told: Specification, form: str) -> str:
    if form == "c":
        from cpmodel_commspec.c_source import c_source

        return c_source(told)
    from cpmodel_commspec.exchange import to_json

    return to_json(told)


def _read(console: Console, trace: Path) -> tuple[Traced, list[Finding]]:
    """Return the operations of a trace, and what is to be known about it.

    Raises
    ------
    DataError
        If there are none.
    """
    from callpath_modeler.diagnostics import Notices
    from cpmodel_commspec.recording import record
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
