"""`cpmodel trace check`: comparison of a specification with a trace."""

from __future__ import annotations

from pathlib import Path

import click

from callpath_modeler.cli import EXIT_NO
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import A_FILE
from cpmodel_commspec.commands.reading import TRACE, read_trace

_SHOWN = 10


@click.command("check", cls=Configured)
@click.argument("specification", type=A_FILE, metavar="SPEC.json")
@TRACE
@click.pass_context
def check(ctx: click.Context, /, *, specification: Path, trace: Path) -> None:
    """Compare a specification with a trace.

    cpmodel compares every operation, in the order of each rank, and the calls and bytes of every
    MPI function. The exit status is 1 if any differs. `cpmodel trace spec -o SPEC.json` writes
    SPEC.json, from this run or from another.
    """
    from callpath_modeler.units import counted
    from cpmodel_commspec.checking import differences, unequal, volumes
    from cpmodel_commspec.exchange import read_json
    from cpmodel_commspec.simulation.wildcards import marked_as, resolved

    console: Console = ctx.obj
    traced, findings = read_trace(console, trace)
    told = read_json(specification, known=sum(len(one.shapes) for one in traced.ranks))
    traced = resolved(marked_as(traced, told.shapes)).traced
    found = list(differences(told, traced))
    ours = volumes(
        told.shapes, told.communicators, [told.of_rank(rank) for rank in range(told.processes)]
    )
    theirs = volumes(traced.shapes, traced.communicators, traced.ranks)
    lines = found[:_SHOWN]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more ranks that differ")
    lines += unequal(ours, theirs)
    if not lines:
        operations, ranks = counted(told.operations, "operation"), counted(told.processes, "rank")
        lines = [f"the same: {operations} of {ranks}"]
        lines += [f"  {name}: {volume}" for name, volume in theirs.items()]
    console.lines(lines)
    console.findings(findings)
    if found:
        ctx.exit(EXIT_NO)
