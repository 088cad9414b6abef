"""Options that configuration files and environment variables set, and their syntax in files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callpath_modeler import config
from callpath_modeler.cli.option_groups import DefaultGroup, WholeNumber, key_of

if TYPE_CHECKING:
    from callpath_modeler.config import ConfiguredValue
    from callpath_modeler.support.toml import Place, TomlFormat

PREFIX = "CPMODEL"
"""Prefix of the names of all environment variables."""

_SIMILAR = 0.75
"""Similarity, of at most 1, from which a variable is proposed as a correction."""


def place_of(option: click.Parameter) -> Place:
    """Return table and key of an option in a file; () = files do not set it."""
    key = getattr(option, "key", ()) if option.expose_value else None  # --help and --version
    return () if key is None else key or (config.DEFAULTS, key_of(option))


def settable(command: click.Command) -> Mapping[str, click.Option]:
    """Return the options of a command that files and variables can set, by key."""
    apart = getattr(command, "apart", ())
    options = ((key_of(each), each) for each in command.params if isinstance(each, click.Option))
    return {key: option for key, option in options if key and key not in apart and place_of(option)}


def describes(option: click.Parameter) -> bool:
    """Return whether an option describes the data; every other option decides."""
    return getattr(option, "describes", False)


def catalogue(root: click.Context) -> dict[str, click.Option]:
    """Return the options of all commands by key; those before the command come first."""
    found = dict(settable(root.command))
    for command in commands_of(root):
        for key, option in settable(command).items():
            found.setdefault(key, option)
    return found


def commands_of(root: click.Context) -> Iterator[click.Command]:
    """Yield all commands that load and follow configuration."""
    from callpath_modeler.errors import PluginError

    group = root.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(root):
        try:
            command = group.get_command(root, name)
        except PluginError:
            continue  # `cpmodel plugins` tells of it
        if isinstance(command, DefaultGroup):
            command = command.default
        if getattr(command, "heeds_configuration", False) and command is not None:
            yield command


def name_variables(command: click.Command) -> None:
    """Let environment variables set the options of a command.

    A variable for this command has priority over the one for all commands.
    """
    general = settable(command)
    for option in command.params:
        key = key_of(option)
        if isinstance(option, click.Option) and key:
            names = [f"{PREFIX}_{command.name}_{key}", f"{PREFIX}_{key}"]
            option.envvar = [name.upper() for name in names[: 1 + (key in general)]]


def variables_of(command: click.Command) -> set[str]:
    """Return all environment variables that set options of a command or of the group."""
    begin = PREFIX if isinstance(command, click.Group) else f"{PREFIX}_{command.name}"
    found: set[str] = set()
    for option in command.params:
        names = [option.envvar] if isinstance(option.envvar, str) else option.envvar or ()
        found |= {*names, f"{begin}_{option.name}".upper()}
    return found


def form_of(root: click.Context, options: Mapping[str, click.Option]) -> TomlFormat[Any]:
    """Return the allowed content of configuration files.

    Parameters
    ----------
    root : context of the program, whose commands are not tables
    options : options by key
    """
    import msgspec

    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else ()
    fields = [(key, _type_of(option), None) for key, option in options.items()
              if place_of(option)[0] == config.DEFAULTS]  # fmt: skip
    defaults = msgspec.defstruct("Defaults", fields, forbid_unknown_fields=True, frozen=True)
    of_one_run = [key_of(each) for command in (root.command, *commands_of(root))
                  for each in command.get_params(root) if not place_of(each)]  # fmt: skip
    homes = dict.fromkeys(commands, "options of all commands belong to [defaults]")
    homes |= dict.fromkeys(of_one_run, "it is an option of the command line only")
    homes |= {key: f"it belongs to [{place_of(option)[0]}]" for key, option in options.items()}
    examples = {key: f"{key} = {_example(option)}" for key, option in options.items()}
    return config.format_of(defaults, examples, homes)


def _type_of(option: click.Option) -> Any:
    """Return the type of values in a file."""
    if option.is_flag or option.multiple:
        return bool if option.is_flag else list[str]
    if isinstance(option.type, click.types.IntParamType):
        # Options without a plain range accept words as well as numbers.
        return int if type(option.type) is WholeNumber else int | str
    if isinstance(option.type, click.types.FloatParamType):
        return float
    return getattr(option, "written", str)


def _example(option: click.Option) -> str:
    if example := getattr(option, "example", ""):
        return str(example)
    if option.is_flag:
        return "true"
    if isinstance(option.type, click.Choice):
        return f'"{option.type.choices[0]}"'
    if isinstance(option.type, click.types.IntParamType):
        return "4"
    return "0.95" if isinstance(option.type, click.types.FloatParamType) else '"..."'


def setting_value(setting: ConfiguredValue, option: click.Option) -> Any:
    """Return the value of a setting in the syntax of the command line."""
    value = setting.value
    if option.is_flag or option.multiple:
        return value
    if isinstance(option.type, click.Path):
        return str(setting.folder / Path(value).expanduser())
    if isinstance(value, dict):
        return ",".join(f"{name}={_word(each)}" for name, each in value.items())
    return ",".join(map(_word, value)) if isinstance(value, list) else _word(value)


def _word(value: str | float) -> str:
    """Return text unchanged, and a number exactly, without unnecessary digits."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def variable_of(option: click.Parameter) -> str:
    """Return the environment variable that gave an option its value, or ""."""
    names = option.envvar or f"{PREFIX}_{key_of(option)}".upper()
    every = [names] if isinstance(names, str) else names
    return next((name for name in every if os.environ.get(name)), "")


def unknown_variables(root: click.Context) -> dict[str, str]:
    """Return environment variables that only look like options, each with the nearest option."""
    begin = f"{PREFIX}_"
    known = set[str]().union(*map(variables_of, (root.command, *commands_of(root))))
    keys = [name.removeprefix(begin) for name in known]
    of_this = f"{begin}{root.invoked_subcommand}".upper()

    def meant(name: str) -> str:
        key = name.removeprefix(begin)
        of_one = [one for one in known if one.endswith(f"_{key}")]
        if of_one:
            return f"for one command: {min(of_one, key=lambda one: (of_this not in one, one))}"
        close = get_close_matches(key, keys, n=1, cutoff=_SIMILAR)
        return f"did you mean {begin}{close[0]}?" if close else ""

    found = sorted(name for name in os.environ if name.startswith(begin) and name not in known)
    return {name: meant(name) for name in found}
