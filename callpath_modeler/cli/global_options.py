"""Global options after the command, as in `cpmodel rank RUNS -q`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from callpath_modeler.cli.default_group import DefaultGroup


def with_global_options_first(ctx: click.Context, args: Sequence[str]) -> list[str]:
    """Return a command line with the options of the group before the command.

    An option that the command has as well stays with the command.

    Parameters
    ----------
    ctx : context of the group
    args : words of the command line

    Raises
    ------
    click.BadOptionUsage
        If the value of such an option is missing.
    """
    of_group = _options(ctx.command)
    if not any(_may_be(word, of_group) for word in args):
        return [*args]
    command = ctx.command
    own: dict[str, click.Option] = {}
    first: list[str] = []
    rest: list[str] = []
    words = [*args]
    while words:
        word = words.pop(0)
        if word == "--":
            rest += [word, *words]
            break
        if len(word) == 1 or not word.startswith("-"):
            rest.append(word)
            command, own = _below(ctx, command, word, own)
            continue
        known = {**of_group, **own}
        for spelling, value in _parts(word, known):
            option = known.get(spelling)
            part = [f"{spelling}{value}"]
            if option is not None and _takes_value(option) and not value:
                if not words and spelling not in own:
                    raise click.BadOptionUsage(
                        spelling, f"Option {spelling!r} requires an argument.", ctx
                    )
                part += [words.pop(0)] if words else []
            (first if option is not None and spelling not in own else rest).extend(part)
    return [*first, *rest]


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command by spelling, without ``--help``."""
    options = (each for each in command.params if isinstance(each, click.Option))
    return {name: each for each in options for name in (*each.opts, *each.secondary_opts)}


def _takes_value(option: click.Option) -> bool:
    return not (option.is_flag or option.count)


def _may_be(word: str, options: Mapping[str, click.Option]) -> bool:
    """Return whether a word contains the spelling of an option."""
    name = word.partition("=")[0]
    is_short = word.startswith("-") and not word.startswith("--")
    return name in options or (is_short and any(f"-{sign}" in options for sign in word[1:]))


def _below(
    ctx: click.Context, command: click.Command, word: str, own: dict[str, click.Option]
) -> tuple[click.Command, dict[str, click.Option]]:
    """Return the command that the next word belongs to, and its options."""
    if not isinstance(command, click.Group):
        return command, own
    found = command.get_command(ctx, word)
    if found is None:
        return click.Command(None), own
    return found, _options(found.default if isinstance(found, DefaultGroup) else found)


def _parts(word: str, options: Mapping[str, click.Option]) -> list[tuple[str, str]]:
    """Return spelling and value of each option in a word, e.g. of ``-qn5`` as -q and -n5."""
    if word.startswith("--"):
        name, sign, value = word.partition("=")
        return [(name, f"{sign}{value}")]
    parts: list[tuple[str, str]] = []
    for number, sign in enumerate(word[1:], start=2):
        option = options.get(f"-{sign}")
        if option is None or _takes_value(option):
            return [*parts, (f"-{sign}", word[number:])]
        parts.append((f"-{sign}", ""))
    return parts
