"""The command group `cpmodel guidelines`."""

from __future__ import annotations

import click

from callpath_modeler.cli.option_groups import DefaultGroup
from cpmodel_guidelines.commands.check import check
from cpmodel_guidelines.commands.diff import diff
from cpmodel_guidelines.commands.plan import plan
from cpmodel_guidelines.commands.tune import tune


@click.group("guidelines", cls=DefaultGroup, default="check", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Check MPI performance guidelines: no collective is slower than others that do its work.

    `cpmodel guidelines EXP` is short for `cpmodel guidelines check EXP`.
    """
    if ctx.invoked_subcommand is None:
        ctx.obj.result(f"{ctx.get_help()}\n")


command.add_command(check, "check")
command.add_command(tune, "tune")
command.add_command(plan, "plan")
command.add_command(diff, "diff")
