"""`cpmodel trace predict`: the run time with faster communication or computation."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import option
from callpath_modeler.cli.table_options import OutputRequest, answer_writer
from callpath_modeler.errors import UsageError
from cpmodel_commspec.commands.reading import FACTOR, SOURCE, trace_output_options
from cpmodel_commspec.commands.replay import read_source


@click.command("predict", cls=Configured)
@SOURCE
@option(
    "--comm-speedup S",
    "How many times faster communication becomes.",
    "communication",
    type=FACTOR,
    default="1",
)
@option(
    "--comp-speedup S",
    "How many times faster computation becomes.",
    "computation",
    type=FACTOR,
    default="1",
)
@trace_output_options
@click.pass_obj
def predict(
    console: Console, *, source: Path, communication: Fraction, computation: Fraction,
    output: OutputRequest,
) -> None:  # fmt: skip
    """Estimate the run time with faster communication or computation.

    The estimate divides the measured times of the trace. `cpmodel trace replay` predicts from the
    program, and tells waiting from transfer.
    """
    from cpmodel_commspec.replay.run_time import estimate, estimate_table, estimate_text

    if not communication or not computation:
        raise UsageError("a speedup of 0 takes forever", hint="e.g. --comm-speedup 4")
    write = answer_writer(output, console)
    told, _, findings = read_source(console, source)
    found = estimate(told, float(communication), float(computation))
    write(lambda style: estimate_text(found, style), lambda: estimate_table(found))
    console.findings(findings)
