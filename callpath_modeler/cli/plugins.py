"""`cpmodel plugins`: the installed plugins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from callpath_modeler.cli import group
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.table_options import OutputRequest, answer_writer, output_options
from callpath_modeler.errors import PluginError
from callpath_modeler.program_path import EntryPoint
from callpath_modeler.readers import registry
from callpath_modeler.readers.base import Reader
from callpath_modeler.report.plugins import Plugin, plugins_table, plugins_text


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
