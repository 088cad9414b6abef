"""Values and origins of all options, for `cpmodel info --config`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import click
from click.core import ParameterSource
from rich.cells import cell_len
from rich.text import Text

from callpath_modeler.cli.configured_command import INSTEAD, configuration_of, value_of
from callpath_modeler.cli.option_groups import key_of
from callpath_modeler.cli.settings import PREFIX, catalogue, commands_of, place_of
from callpath_modeler.config import DEFAULTS, NAME, PARAMETERS, ConfigFile, ConfigPaths
from callpath_modeler.report.layout import GAP, aligned, wrap
from callpath_modeler.report.table_formats import Cell, Table


@dataclass(frozen=True, slots=True)
class OptionValue:
    """An option that can be configured.

    Attributes
    ----------
    setting : its name in a file, with the table unless that is ``[defaults]``
    value : its value in the syntax of the command line; None = each command has its own default
    origin : file and line, environment variable, or command line; None = the default
    """

    setting: str
    value: str | None
    origin: str | None


def configuration_text(
    values: Sequence[OptionValue],
    places: ConfigPaths,
    strangers: Mapping[str, str] | None = None,
    refused: Sequence[OptionValue] = (),
    width: int | None = None,
) -> list[Text]:
    """Return the lines of `cpmodel info --config`: files, configured options, other options.

    Parameters
    ----------
    values : the options
    places : directories with configuration files
    strangers : environment variables that look like options, with the nearest option
    refused : values of a file that is not trusted with them
    width : width in columns, longer lines are wrapped; None = unlimited
    """
    given = [(one.setting, one.origin, one.value or "-") for one in values if one.origin]
    defaults = [(one.setting, one.value or "-") for one in values if one.origin is None]
    blocks = [
        _files(places),
        [("setting", "from", "value"), *given] if given else [("nothing is set",)],
        [("not set", "default"), *defaults],
    ]
    if refused:
        rows = ((one.setting, one.origin or "-", one.value or "-") for one in refused)
        blocks.insert(2, [("not used", "from", "value"), *rows])
    if strangers:
        listed = (f"{name}; {hint}" if hint else name for name, hint in strangers.items())
        blocks.insert(2, [("variables that set nothing",), *((line,) for line in listed)])
    lines: list[Text] = []
    for block in blocks:
        # The last column may be long, so it continues on the next lines.
        *first, _ = zip(*block, strict=True)
        indent = " " * sum(max(map(len, column)) + GAP for column in first)
        lines += [Text()] if lines else []
        for line in aligned(block):
            fits = width is None or cell_len(line) <= width
            # Lists contain no blank at which a line could break.
            lines += wrap(line if fits else line.replace(",", ", "), width, indent=indent)
    return lines


def _files(places: ConfigPaths) -> list[tuple[str, ...]]:
    """Return a line for each place of a configuration file; the first has priority."""
    there = {str(path) for path in places.files()}
    if places.named is not None:
        first = str(places.named)
    elif places.start is None:
        first = f"{NAME} above an experiment: none was given"
    else:
        first = str(places.found or f"{NAME} in or above {places.start}")
    files = [first, *(str(path) for path in (places.user, places.site) if path is not None)]
    marks = ["yes" if file in there else "no" for file in files]
    return [("read", "file"), *zip(marks, files, strict=True)]


def configuration_table(
    values: Sequence[OptionValue],
    files: Sequence[ConfigFile],
    refused: Sequence[OptionValue] = (),
) -> Table:
    """Return a table with one row per option."""
    columns: dict[str, list[Cell]] = {
        "setting": [one.setting for one in values],
        "value": [one.value for one in values],
        "from": [one.origin or "default" for one in values],
    }
    read = [{"path": file.fingerprint.path, "sha256": file.fingerprint.sha256} for file in files]
    others = [{"setting": one.setting, "value": one.value, "from": one.origin} for one in refused]
    return Table(columns, {}, {"files": read, "not_used": others})


_LINE = "command line"


def origins(ctx: click.Context) -> list[OptionValue]:
    """Return value and origin of all configurable options."""
    root = ctx.find_root()
    rows = (_of(ctx, key, option) for key, option in catalogue(root).items())
    told = [*chain.from_iterable(rows), *_of_one_command(root)]
    files = [file.fingerprint.path for file in configuration_of(ctx).files]
    for pair in INSTEAD:
        told = _settled(told, pair, files)
    return told


def refused_values(ctx: click.Context) -> list[OptionValue]:
    """Return the values of a file beside profiles that the user does not trust with them."""
    options = catalogue(ctx.find_root())
    found = []
    for each in configuration_of(ctx).refused:
        option = options.get(key := str(each.place[-1]))
        value = each.value if option is None else value_of(each, key, option)
        found.append(OptionValue(key, _text(value), each.origin))
    return found


def _settled(
    values: list[OptionValue], pair: tuple[str, str], files: Sequence[str]
) -> list[OptionValue]:
    """Mark which of two options with the same meaning has priority."""
    levels = {one.setting: _level(one.origin, files) for one in values
              if one.setting in pair and one.origin and one.value != "false"}  # fmt: skip
    if len({*levels.values()}) < len(pair):
        return values
    first, second = sorted(levels, key=lambda name: levels[name])
    return [
        replace(one, origin=f"{one.origin}; {first} has priority") if one.setting == second else one
        for one in values
    ]


def _level(origin: str, files: Sequence[str]) -> int:
    """Return the priority of an origin, 0 = highest."""
    if origin == _LINE:
        return 0
    return 2 + files.index(origin.rpartition(":")[0]) if ":" in origin else 1


def _of(ctx: click.Context, key: str, option: click.Option) -> Iterator[OptionValue]:
    if key == "param":
        yield from _parameters(ctx)
        return
    place = place_of(option)
    name = key if place[0] == DEFAULTS else ".".join(map(str, place))
    for at in (ctx, ctx.find_root()):
        for own in at.command.params:
            is_given = at.get_parameter_source(own.name or "") is ParameterSource.COMMANDLINE
            if is_given and key_of(own) == key:
                yield OptionValue(name, _text(at.params[own.name or ""]), _LINE)
                return
    variable, settings = _general(key, option), configuration_of(ctx).of(option)
    if os.environ.get(variable):
        yield OptionValue(name, os.environ[variable], variable)
    elif settings:
        yield OptionValue(name, _text(value_of(settings[0], key, option)), settings[0].origin)
    else:
        yield OptionValue(name, "false" if option.is_flag else _text(option.default), None)


def _parameters(ctx: click.Context) -> Iterator[OptionValue]:
    """Yield the sources of parameters, which may come from several places."""
    option = next(each for each in ctx.command.params if key_of(each) == "param")
    settings = {setting.place[1]: setting for setting in configuration_of(ctx).of(option)}
    is_given = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    for text in ctx.params[option.name or ""]:
        name, _, source = text.partition("=")
        setting = settings.get(name)
        origin = _LINE if is_given else f"{PREFIX}_PARAM"
        if setting is not None and setting.value == source:
            origin = setting.origin
        yield OptionValue(f"{PARAMETERS}.{name}", source, origin)


def _of_one_command(root: click.Context) -> Iterator[OptionValue]:
    """Yield the environment variables that set an option of one command."""
    for command in commands_of(root):
        for option in command.params:
            variable = option.envvar[0] if isinstance(option.envvar, list) else ""
            if os.environ.get(variable):
                yield OptionValue(
                    f"{key_of(option)} ({command.name})", os.environ[variable], variable
                )


def _general(key: str, option: click.Option) -> str:
    """Return the environment variable that sets an option of all commands."""
    names = option.envvar
    return names[-1] if isinstance(names, list) else f"{PREFIX}_{key}".upper()


def _text(value: object) -> str | None:
    """Return a value as text, or None if an option has no value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or None
    return str(value) if isinstance(value, str | int | float | os.PathLike) else None
