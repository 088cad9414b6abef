"""`cpmodel trace efficiency`: serialisation and transfer efficiency of a run."""

from __future__ import annotations

from pathlib import Path

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import A_FILE
from callpath_modeler.cli.table_options import OutputRequest, answer_writer
from callpath_modeler.errors import DataError, UsageError
from cpmodel_commspec.commands.reading import is_specification, trace_output_options
from cpmodel_commspec.commands.replay import ideal_run_time, read_source


@click.command("efficiency", cls=Configured)
@click.argument("traces", nargs=-1, required=True, type=A_FILE, metavar="TRACE...")
@trace_output_options
@click.pass_obj
def efficiency(console: Console, *, traces: tuple[Path, ...], output: OutputRequest) -> None:
    """Divide the communication efficiency of runs into serialisation and transfer.

    Each trace is replayed on an ideal network, where messages take no time. Waiting that is left is
    serialisation. `cpmodel efficiency` has the other factors, also from traces.
    """
    from cpmodel_commspec.replay.ideal import (
        TraceEfficiency,
        trace_efficiency_table,
        trace_efficiency_text,
    )

    write = answer_writer(output, console)
    found, findings = [], []
    for path in traces:
        if is_specification(path):
            raise UsageError(
                f"{path}: a specification has no measured communication", hint="give the trace"
            )
        told, traced, noticed = read_source(console, path)
        findings += noticed
        if traced is None or not traced.seconds or not any(len(r.computing) for r in traced.ranks):
            raise DataError(
                f"{path}: the trace has no times between MPI_Init and MPI_Finalize",
                hint="trace all ranks from MPI_Init to MPI_Finalize",
            )
        found.append(TraceEfficiency.of(traced, ideal_run_time(told, traced)))
    found.sort(key=lambda one: one.processes)
    write(lambda style: trace_efficiency_text(found, style), lambda: trace_efficiency_table(found))
    console.findings(findings)
