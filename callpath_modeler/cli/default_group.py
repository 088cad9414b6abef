"""A command group with a default command."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem


class DefaultGroup(click.Group):
    """A group that runs its default command if the first word is not the name of a command.

    Configuration files and environment variables set the options of the default command under the
    name of the group.

    Parameters
    ----------
    default : name of the default command
    """

    def __init__(self, *args: Any, default: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._default = default

    @property
    def default(self) -> click.Command:
        """Return the default command."""
        return self.commands[self._default]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the name of the default command where no command is named."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands, and completions of the arguments of the default command."""
        default = self.default
        with default.make_context(
            self._default, [], parent=ctx, resilient_parsing=True
        ) as of_default:
            found = [
                each
                for argument in default.params
                if isinstance(argument, click.Argument)
                for each in argument.shell_complete(of_default, incomplete)
            ]
        return [*super().shell_complete(ctx, incomplete), *found]
