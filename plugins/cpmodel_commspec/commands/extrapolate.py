"""`cpmodel trace extrapolate`: the communication of a program at any number of processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import structs

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import RUNS, TABLE, WholeNumber, option
from callpath_modeler.cli.options import A_FILE, FORCE, output_file
from callpath_modeler.cli.table_options import OutputRequest
from callpath_modeler.errors import UsageError
from cpmodel_commspec.commands import writing
from cpmodel_commspec.commands.reading import ANONYMOUS, ANY_SOURCE, read_trace

if TYPE_CHECKING:
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.operations import Traced
    from cpmodel_commspec.scalable.extrapolation import Extrapolated

_SCALABLE = {"": "text", ".txt": "text", ".c": "c"}
"""Formats for any number of processes, by the ending of the file."""

_MOST_PROCESSES = 1_000_000


@click.command("extrapolate", cls=writing.WithFormats)
@click.argument("traces", type=A_FILE, nargs=-1, required=True, metavar="TRACE...")
@output_file()
@writing.FORMAT
@option(
    "--at P",
    "Write the specification of P processes, in any format. Default: for any number.",
    "processes",
    type=WholeNumber(2, _MOST_PROCESSES),
    written=TABLE,
    example="{ p = 4096 }",
)
@option(
    "--grid X,Y,Z",
    "Sizes of the grid of P processes. Default: as in the traces, the most even grid.",
    "grid",
)
@option(
    "--element BYTES",
    "Round sizes down to whole elements, where p does not divide them. Default: an error.",
    "element",
    type=WholeNumber(1, 1024),
)
@ANY_SOURCE
@option(
    "--named-sources",
    "Receives name their sources, also those of ranks that answer each message.",
    "is_named",
    group=RUNS,
)
@ANONYMOUS
@writing.TIMES
@writing.ALLOW_UNSAFE
@FORCE
@click.pass_context
def extrapolate(
    ctx: click.Context, /, *, traces: tuple[Path, ...], output: Path | None, format_: str | None,
    processes: int | None, grid: str | None, element: int | None, any_source: tuple[str, ...],
    is_named: bool, is_anonymous: bool, times: str, allow_unsafe: bool, force: bool,
) -> None:  # fmt: skip
    """Write one program for any number of processes.

    cpmodel needs traces of three or more numbers of processes.

    Partners, conditions, rounds and sizes become formulas of the number of processes p, and of the
    sizes x, y and z of the grid. The largest trace is kept back: a formula comes from the others,
    and has to be exact for all. A line without a formula is an error, with its values in the
    traces. Without --at, the formats are text and c.
    """
    from cpmodel_commspec.compression.specify import specify
    from cpmodel_commspec.generators.interface import load
    from cpmodel_commspec.scalable.building import UnexplainedError
    from cpmodel_commspec.scalable.expansion import expanded, roundings, scale_at
    from cpmodel_commspec.scalable.extrapolation import extrapolate as found
    from cpmodel_commspec.scalable.hold_out import hold_out, with_run_time
    from cpmodel_commspec.scalable.scales import other_grids
    from cpmodel_commspec.scalable.text import bands_text, growing, summary

    console: Console = ctx.obj
    sizes = _sizes(grid, processes)
    form = None if processes is not None else _form(format_, output)
    generator = writing.chosen(format_, output) if processes is not None else None
    writing.require_times(ctx, generator)
    read, findings = _read(console, traces, any_source, is_anonymous=is_anonymous)
    try:
        extrapolated = found(read, element or 0, is_named=is_named)
    except UnexplainedError as cause:
        for problem in cause.problems:
            console.note(str(problem), asked=True)
        raise
    told = extrapolated.told
    scale = scale_at(told, processes, sizes) if processes else told.scales[-1]
    # A program for any number of processes has to run to the end at that of the largest trace.
    there = specify(expanded(told, scale, extrapolated.times)) if form != "text" else None
    if there is not None:
        subject = f"p = {scale.processes}"
        findings += writing.safety(
            there, subject, generator or load("c"), allow_unsafe=allow_unsafe
        )
    if form is not None:
        _write_any(console, extrapolated, form, output, force=force)
    else:
        assert there is not None
        assert generator is not None
        held = hold_out(extrapolated)
        there, run_time = with_run_time(there, held, scale)
        writing.write(console, there, generator, output, times, force=force)
        order = None if sizes else told.order
        grids = other_grids(told.scales, told.dimensions, order, scale) if order else []
        about = (*grids, *roundings(told, scale), *bands_text(extrapolated, scale), *run_time)
        for line in about:
            console.note(line)
        findings += growing(extrapolated, scale)
    if output is not None or form is None:
        for line in summary(told):
            console.note(line)
    console.findings(findings)


def _sizes(grid: str | None, processes: int | None) -> tuple[int, ...]:
    """Return the sizes that an option gives."""
    if grid is None:
        return ()
    if processes is None:
        raise UsageError(
            "--grid needs --at", hint="programs for any number take the grid as an argument"
        )
    try:
        sizes = tuple(int(size) for size in grid.split(","))
    except ValueError:
        sizes = ()
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise UsageError(f"--grid {grid!r} is no grid", hint="give numbers such as 4,8")
    return sizes


def _form(format_: str | None, output: Path | None) -> str:
    form = format_ or _SCALABLE.get("" if output is None else output.suffix)
    if form not in {"text", "c"}:
        raise UsageError(
            f"the formats for any number of processes are text and c, not {format_ or str(output)}",
            hint="use --at P for other formats",
        )
    return form


def _read(
    console: Console, traces: tuple[Path, ...], any_source: tuple[str, ...], *, is_anonymous: bool
) -> tuple[list[Traced], list[Finding]]:
    from cpmodel_commspec.anonymity import anonymous_runs
    from cpmodel_commspec.simulation.wildcards import marked

    read: list[Traced] = []
    findings: list[Finding] = []
    for number, trace in enumerate(traces, 1):
        traced, own = read_trace(console, trace)
        read.append(marked(traced, any_source) if any_source else traced)
        findings += (
            [structs.replace(x, subject=f"trace {number}") for x in own] if is_anonymous else own
        )
    return anonymous_runs(read) if is_anonymous else read, findings


def _write_any(
    console: Console, extrapolated: Extrapolated, form: str, output: Path | None, *, force: bool
) -> None:
    to = OutputRequest(form, output, force)
    if form == "text":
        from cpmodel_commspec.scalable.text import scalable_text

        to.write_lines(console, scalable_text(extrapolated.told, to.style(console).width))
        return
    from cpmodel_commspec.scalable.source import scalable_source

    to.write(console, scalable_source(extrapolated.told, extrapolated.times))
