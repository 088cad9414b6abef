"""`cpmodel trace`: what processes said to each other, as a specification and as a program."""

from __future__ import annotations

import click

from callpath_modeler.errors import nearest_or_all
from cpmodel_commspec.commands.check import check
from cpmodel_commspec.commands.efficiency import efficiency
from cpmodel_commspec.commands.extrapolate import extrapolate
from cpmodel_commspec.commands.predict import predict
from cpmodel_commspec.commands.replay import replay
from cpmodel_commspec.commands.spec import spec


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
    """Show the communication of a run from its OTF2 trace, as loops or as a program.

    TRACE is the traces.otf2 of a run, or the directory that it is in.
    """
    if ctx.invoked_subcommand is None:
        ctx.obj.result(f"{ctx.get_help()}\n")


for _one in (spec, check, extrapolate, replay, predict, efficiency):
    command.add_command(_one)
