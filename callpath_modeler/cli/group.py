"""The command group: what `cpmodel --help` says, and where each command lives."""

from __future__ import annotations

import importlib
from difflib import get_close_matches

import click

from callpath_modeler.cli.console import Console

_COMMANDS = {
    "info": "Say what was read: runs, parameters, metrics, call paths, data quality.",
    "fit": "Model every call path and keep the result.",
    "rank": "Rank call paths by predicted cost at a target scale.",
    "show": "Show one call path: formula, chart, band, alternatives, excess work.",
    "export": "Write models, values, ranking or the call-path graph to a file.",
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands, in the order of a session's work."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"callpath_modeler.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may be meant."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in _COMMANDS:
            close = get_close_matches(name, _COMMANDS, n=1)
            did = (
                f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(_COMMANDS)}"
            )
            raise click.UsageError(f"no command {name!r}{did}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={
        "auto_envvar_prefix": "CPMODEL",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
    },
)
@click.version_option(package_name="callpath-modeler", prog_name="cpmodel")
@click.option("-v", "--verbose", is_flag=True, help="Say more; show where a bug happened.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but results and errors.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour the output. Default: on a terminal.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Use no character beyond ASCII.")
@click.option("--no-progress", is_flag=True, help="Show no progress.")
@click.pass_context
def cpmodel(
    ctx: click.Context,
    verbose: bool,
    quiet: bool,
    color: str,
    ascii_only: bool,
    no_progress: bool,
) -> None:
    """Find the call paths that will stop your code from scaling.

    \b
    cpmodel rank profiles/*.cubex --target 262144
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    ctx.obj = Console(
        verbose=verbose, quiet=quiet, color=color, ascii_only=ascii_only, progress=not no_progress
    )
    if ctx.invoked_subcommand is None:
        ctx.obj.result(f"{ctx.get_help()}\n")
