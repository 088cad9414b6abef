"""`cpmodel plugins`: the installed plugins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli import group
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.table_options import OutputRequest, answer_writer, output_options
from callpath_modeler.errors import PluginError
from callpath_modeler.readers import registry
from callpath_modeler.readers.base import Reader
from callpath_modeler.report.layout import wrap
from callpath_modeler.support.program_path import EntryPoint
from callpath_modeler.units import counted

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.report.table_formats import Cell, Table


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin.

    Attributes
    ----------
    kind : ``"reader"`` or ``"command"``
    name : the name that users type
    package : distribution that contains it, or its file
    version : version of the distribution, or ""
    description : one line of text
    suffixes : file name endings that a reader accepts
    problem : the reason why it cannot be used, or ""
    remedy : the remedy for the problem
    """

    kind: str
    name: str
    package: str
    version: str
    description: str = ""
    suffixes: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""

    @property
    def origin(self) -> str:
        """Package and version."""
        return f"{self.package} {self.version}".strip()


def plugins_text(plugins: Sequence[Plugin], width: int | None = None) -> list[Text]:
    """Return the lines of `cpmodel plugins`: two per plugin, then unusable ones with the reason.

    Parameters
    ----------
    plugins : the plugins
    width : width in columns, longer lines are wrapped; None = unlimited
    """
    usable = [plugin for plugin in plugins if not plugin.problem]
    unusable = [plugin for plugin in plugins if plugin.problem]
    names = max((len(plugin.name) for plugin in usable), default=0)
    beside, below = f"{'':{names + 4}}", " " * 4
    lines: list[Text] = []
    for kind in ("reader", "command"):
        listed = [plugin for plugin in usable if plugin.kind == kind]
        lines += wrap(f"{kind}s", width) if listed else []
        for plugin in listed:
            facts = " · ".join(filter(None, (" ".join(plugin.suffixes), plugin.origin)))
            lines += wrap(f"  {plugin.name:{names}}  {plugin.description}", width, indent=beside)
            lines += wrap(beside + facts, width, indent=beside)
    if unusable:
        lines += wrap(f"{counted(len(unusable), 'plugin')} cannot be used:", width)
        for plugin in unusable:
            told = f"  {plugin.origin}: {plugin.problem} -> {plugin.remedy}"
            lines += wrap(told, width, indent=below)
    return lines


def plugins_table(plugins: Sequence[Plugin]) -> Table:
    """Return one row per plugin."""
    from callpath_modeler.report.table_formats import Table

    columns: dict[str, list[Cell]] = {
        "kind": [p.kind for p in plugins],
        "name": [p.name for p in plugins],
        "package": [p.package for p in plugins],
        "version": [p.version for p in plugins],
        "suffixes": [" ".join(p.suffixes) for p in plugins],
        "description": [p.description for p in plugins],
        "status": ["unusable" if p.problem else "ok" for p in plugins],
        "problem": [p.problem for p in plugins],
    }
    return Table(columns)


@click.command("plugins", cls=Configured)
@click.argument("files", nargs=-1, metavar="[FILE.py]...", type=click.Path(path_type=Path))
@output_options
@click.pass_obj
def command(
    console: Console,
    *,
    files: tuple[Path, ...],
    output: OutputRequest,
) -> None:
    """List readers and commands, their origins, and why any cannot be loaded.

    With FILE.py, list the readers in that file; use them with `--reader FILE.py`.
    """
    from callpath_modeler.readers.registry import readers_in

    if files:
        found = [_reader(each, str(file), "") for file in files for each in readers_in(file)]
    else:
        found = [*_readers(), *_commands()]
    write = answer_writer(output, console)
    write(lambda style: plugins_text(found, style.width), lambda: plugins_table(found))


def _readers() -> Iterator[Plugin]:
    used = registry.installed()
    for entry in registry.offered():
        if used[entry.name] != entry:
            package = used[entry.name].package
            yield _unusable("reader", entry, f"reader {entry.name!r} of {package} is used instead")
            continue
        try:
            yield _reader(registry.load_entry(entry), *_origin(entry))
        except PluginError as error:
            yield _unusable("reader", entry, error.message, error.hint or "")


def _commands() -> Iterator[Plugin]:
    used = group.added()
    for entry in group.offered():
        if entry.name not in used or used[entry.name] != entry:
            yield _unusable("command", entry, f"there is another command {entry.name!r}")
            continue
        try:
            loaded = group.load(entry)
        except PluginError as error:
            yield _unusable("command", entry, error.message, error.hint or "")
        else:
            yield Plugin("command", entry.name, *_origin(entry), loaded.get_short_help_str(100))


def _reader(reader: Reader, package: str, version: str) -> Plugin:
    return Plugin("reader", reader.name, package, version, reader.description, reader.suffixes)


def _unusable(kind: str, entry: EntryPoint, problem: str, remedy: str = "") -> Plugin:
    package, version = _origin(entry)
    remedy = remedy or f"remove one of the two packages, or rename the {kind}"
    return Plugin(kind, entry.name, package, version, problem=problem, remedy=remedy)


def _origin(entry: EntryPoint) -> tuple[str, str]:
    return entry.package, entry.version
