"""The commands of `cpmodel` and their help texts, for man pages and for the site."""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
VERBATIM = "\b"
"""Mark of click for a paragraph that keeps its line breaks."""


@dataclass(frozen=True, slots=True)
class CommandText:
    """The help texts of one command.

    Attributes
    ----------
    words : words of the command, e.g. ``("cpmodel", "trace", "spec")``
    summary : first sentence of the help, without a full stop
    usage : arguments as in the usage line, e.g. ``"[OPTIONS] EXP..."``
    paragraphs : paragraphs of the help; verbatim ones contain line breaks
    options : spelling and help of each option, by heading
    subcommands : words and summary of each subcommand
    """

    words: tuple[str, ...]
    summary: str
    usage: str
    paragraphs: tuple[str, ...]
    options: dict[str, list[tuple[str, str]]]
    subcommands: tuple[tuple[tuple[str, ...], str], ...]

    @property
    def name(self) -> str:
        """The words, joined as in the name of a man page."""
        return "-".join(self.words)


def command_texts() -> list[CommandText]:
    """Return the texts of `cpmodel` and of all commands of this project, parents first."""
    from callpath_modeler.cli.group import cpmodel

    return list(_texts(cpmodel, ("cpmodel",), None))


def _texts(
    command: click.Command, words: tuple[str, ...], parent: click.Context | None
) -> Iterator[CommandText]:
    from callpath_modeler.cli.option_groups import option_sections

    context = click.Context(command, info_name=words[-1], parent=parent, **command.context_settings)
    children = _subcommands(command, context) if isinstance(command, click.Group) else {}
    yield CommandText(
        words=words,
        summary=_summary(command),
        usage=" ".join(command.collect_usage_pieces(context)),
        paragraphs=_paragraphs(command.help or ""),
        options=option_sections(command, context),
        subcommands=tuple(((*words, name), _summary(child)) for name, child in children.items()),
    )
    for name, child in children.items():
        yield from _texts(child, (*words, name), context)


def _subcommands(group: click.Group, context: click.Context) -> dict[str, click.Command]:
    """Return the subcommands of this project, installed or not."""
    found = {}
    if context.parent is None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        for name, target in project["entry-points"]["callpath_modeler.commands"].items():
            module, _, attribute = target.partition(":")
            found[name] = getattr(importlib.import_module(module), attribute)
    for name in group.list_commands(context):
        # These pages do not contain commands of other packages.
        command = found.get(name) or group.get_command(context, name)
        if command and not command.hidden and _is_ours(command):
            found[name] = command
    return found


def _is_ours(command: click.Command) -> bool:
    package = getattr(command.callback, "__module__", "").partition(".")[0]
    return (ROOT / package).is_dir() or (ROOT / "plugins" / package).is_dir()


def _summary(command: click.Command) -> str:
    return command.get_short_help_str(limit=1000).rstrip(".")


def _paragraphs(text: str) -> tuple[str, ...]:
    parts = inspect.cleandoc(text).split("\n\n")
    return tuple(
        part.removeprefix(VERBATIM).strip("\n")
        if part.startswith(VERBATIM)
        else " ".join(part.split())
        for part in parts
        if part
    )
