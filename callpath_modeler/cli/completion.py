"""`cpmodel completion`: scripts that let a shell complete commands and options."""

from __future__ import annotations

import os
from pathlib import Path

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.errors import UsageError

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", required=False, type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str | None) -> None:
    """Print a script that lets a shell complete commands and options.

    \b
    eval "$(cpmodel completion bash)"     in ~/.bashrc
    eval "$(cpmodel completion zsh)"      in ~/.zshrc
    cpmodel completion fish | source      in ~/.config/fish/config.fish

    The default shell is the login shell.
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    from click.shell_completion import get_completion_class

    shell = shell or Path(os.environ.get("SHELL", "")).name
    found = get_completion_class(shell) if shell in _SHELLS else None
    if found is None:
        what = f"no completion for shell {shell!r}" if shell else "the variable SHELL is not set"
        raise UsageError(what, hint=f"name one of {', '.join(_SHELLS)}")
    program = ctx.find_root()
    console: Console = ctx.obj
    console.result(found(program.command, {}, "cpmodel", "_CPMODEL_COMPLETE").source())
