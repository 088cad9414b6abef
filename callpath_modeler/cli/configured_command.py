"""Commands whose options have values in configuration files and environment variables."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec import Struct

from callpath_modeler import config
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import ASKED, BESIDE, key_of
from callpath_modeler.cli.preflight import CONFIGURATION_FILES, CheckedCommand
from callpath_modeler.cli.settings import (
    PREFIX,
    catalogue,
    describes,
    form_of,
    name_variables,
    place_of,
    settable,
    setting_value,
    unknown_variables,
    variable_of,
    variables_of,
)
from callpath_modeler.config import (
    ConfigFile,
    ConfigPaths,
    ConfiguredValue,
    resolved,
    trusted_directories,
)
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.printable import shell_word, shortened
from callpath_modeler.profile.omissions import Omission, OmissionKind
from callpath_modeler.support.toml import Place

if TYPE_CHECKING:
    from callpath_modeler.diagnostics import Finding


_LONGEST = 200
"""Largest number of characters of keys or values in a verdict; names of files may be longer."""


def untrusted_file(places: ConfigPaths, files: Sequence[ConfigFile]) -> ConfigFile | None:
    """Return the file above the experiment if the user does not trust it; None = there is none."""
    if places.found is None:
        return None
    beside, *own = files
    return None if resolved(places.found.parent) in trusted_directories(own) else beside


def refused_values(
    file: ConfigFile, options: Mapping[str, click.Option]
) -> tuple[ConfiguredValue, ...]:
    """Return the values of an untrusted file that decide."""
    known = ((each, options.get(str(each.place[1]))) for each in file.settings()
             if each.place[0] != config.PARAMETERS)  # fmt: skip
    decided = (each for each, option in known if option is not None and not describes(option))
    return (*decided, *filter(None, [file.trust()]))


def listed_keys(refused: Sequence[ConfiguredValue]) -> str:
    """Return the names of refused keys, separated by commas."""
    return ", ".join(str(each.place[-1]) for each in refused)


def from_file(kind: OmissionKind, what: str, path: str) -> Omission:
    """Return what a verdict says about keys of an untrusted file."""
    said = f"{shortened(what, _LONGEST)} from {shortened(path, 5 * _LONGEST)}"
    return Omission(kind, condition=said)


def refusal(refused: Sequence[ConfiguredValue]) -> list[Finding]:
    """Return the finding about values that are not used; none if there are no such values."""
    from callpath_modeler.diagnostics import Finding

    if not refused:
        return []
    return [Finding("CPM181", refused[0].written.path, listed_keys(refused), len(refused))]


def _hidden(places: ConfigPaths, files: Sequence[ConfigFile]) -> Path | None:
    """Return the nearest trusted file above an untrusted one, which replaces it; None = none."""
    if places.found is None or untrusted_file(places, files) is None:
        return None
    trusted = trusted_directories(files[1:])
    above = Path(os.path.abspath(places.found.parent)).parents  # noqa: PTH100 - as in the search
    files_above = (folder / config.NAME for folder in above if resolved(folder) in trusted)
    return next((each for each in files_above if os.path.isfile(each)), None)  # noqa: PTH113


def note_untrusted(
    console: Console,
    places: ConfigPaths,
    files: Sequence[ConfigFile],
    refused: Sequence[ConfiguredValue],
) -> None:
    """Print which values of an untrusted file are not used, and which trusted file it replaces.

    Parameters
    ----------
    console : the console
    places : places of configuration files
    files : the files that were read
    refused : values of the untrusted file that decide
    """
    from callpath_modeler.diagnostics import summarise

    hidden = _hidden(places, files)
    if hidden is not None:
        console.note(
            f"{hidden} is not used, although you trust it: {places.found} is nearer to the "
            f"profiles. To use it: cpmodel --config {shell_word(str(hidden))}"
        )
    heard = console.heard(refusal(refused))
    for line in summarise(heard):
        console.note(line)
    if heard:
        of_trust = [each for each in refused if each.place[0] == config.TRUST]
        if of_trust:
            console.note(
                f"{of_trust[0].origin}: [trust] counts in your own configuration file only"
            )
        if len(of_trust) < len(refused):
            folder = shell_word(resolved(refused[0].folder))
            console.note(f"after you have read the file: cpmodel trust {folder}")


INSTEAD = (("target", "at"), ("inclusive", "exclusive"))
"""Options with the same meaning: the one with higher priority replaces the other."""

_APART = {"excess": [("target", "at")]}
"""Options that differ in meaning in one command: there, --at only holds other parameters."""

_META = "callpath_modeler.configuration"


class Configuration(Struct, frozen=True):
    """The configuration of one run of a command.

    Attributes
    ----------
    places : places of configuration files
    files : files that were read, in order of priority
    settings : values by table and key
    untrusted : the file beside profiles if the user does not trust its directory
    refused : values of this file that decide
    """

    places: ConfigPaths
    files: tuple[ConfigFile, ...]
    settings: Mapping[Place, ConfiguredValue]
    untrusted: ConfigFile | None = None
    refused: tuple[ConfiguredValue, ...] = ()

    def of(self, option: click.Parameter) -> list[ConfiguredValue]:
        """Return the values of an option: none, one, or one for each parameter."""
        home = place_of(option)
        return [each for place, each in self.settings.items() if home == place[: len(home)] != ()]


def configuration_of(ctx: click.Context) -> Configuration:
    """Return the configuration of the command that runs."""
    found: Configuration = ctx.meta[_META]
    return found


def refused_findings() -> list[Finding]:
    """Return the finding about keys that the command that runs does not use; it is printed."""
    return refusal(configuration_of(click.get_current_context()).refused)


_UNSET = {"by": ("--by", "value"), "select": ("--select", "**"), "top": ("--top", "all")}


def unset(ctx: click.Context, *keys: str) -> Sequence[str]:
    """Return the options that make another command ignore the configured values."""
    found = configuration_of(ctx)
    return [word for key in keys
            if (config.DEFAULTS, key) in found.settings or os.environ.get(f"{PREFIX}_{key}".upper())
            for word in _UNSET[key]]  # fmt: skip


class Configured(CheckedCommand):
    """A command that follows the configuration around its experiment.

    The command line has priority over environment variables, these over files, and these over the
    defaults.

    Parameters
    ----------
    apart : keys of options that mean something else in this command, where files do not set them
    """

    heeds_configuration = True

    def __init__(self, *args: Any, apart: Collection[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.apart = apart
        name_variables(self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read configuration files, then the command line."""
        given: Mapping[str, Any] = {}
        if not ctx.resilient_parsing:
            given = self._words(ctx, args)
            asks_for_help = self.get_help_option(ctx)
            if asks_for_help is None or asks_for_help.name not in given:
                _configure(ctx, given.get("experiment"))
        try:
            rest = super().parse_args(ctx, args)
        except click.MissingParameter as error:
            last = [each for each in self.params if isinstance(each, click.Argument)][-1:]
            # With too few words, click fills the last argument and misses the earlier ones.
            if last and isinstance(given.get(last[0].name or ""), str):
                error.param = last[0]
            raise
        except click.BadParameter as error:
            origin = _origin(ctx, error.param)
            if not origin:
                raise
            message = f"{origin}: {error.format_message()}"
            raise UsageError(message, hint=f"{ctx.command_path} --help") from error
        for pair in INSTEAD:
            if pair not in _APART.get(self.name or "", ()):
                _settle(ctx, [each for each in self.params if key_of(each) in pair])
        return rest

    def _words(self, ctx: click.Context, args: Sequence[str]) -> Mapping[str, Any]:
        """Return the text of each parameter on the command line."""
        try:
            words: Mapping[str, Any] = self.make_parser(ctx).parse_args(list(args))[0]
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise
        return words

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about a value from a file names file and line."""
        untrusted = configuration_of(ctx).untrusted
        if untrusted is not None:
            ctx.meta[BESIDE] = untrusted.written.path, _stated_beside(ctx, untrusted.written.path)
        try:
            return super().invoke(ctx)
        except (UsageError, DataError) as error:
            origins = [origin for key, value, origin in _from_files(ctx)
                       if _mentions(f"{error.message}", key, value)]  # fmt: skip
            if not origins:
                raise
            message = f"{', '.join(dict.fromkeys(origins))}: {error.message}"
            raise type(error)(message, hint=error.hint) from error


def _configure(ctx: click.Context, sources: Sequence[str] | None) -> None:
    """Read the files and use their values as defaults, also for options before the command."""
    root = ctx.find_root()
    places = config.config_paths(_start(sources), root.params.get("config"))
    found = ctx.meta[_META] = _read(root, places)
    ctx.meta[CONFIGURATION_FILES] = [file.fingerprint.path for file in found.files]
    ctx.default_map = {}
    for key, option in settable(ctx.command).items():
        values = [value_of(each, key, option) for each in found.of(option)]
        if values:
            ctx.default_map[option.name or ""] = values if key == "param" else values[0]
    if isinstance(root.obj, Console) and root is not ctx:
        _dress(root, found)
        ctx.obj = root.obj
        _note_strangers(root.obj, ctx)
        note_untrusted(root.obj, places, found.files, found.refused)
        if found.files and root.obj.verbose:
            listed = ", ".join(file.fingerprint.path for file in found.files)
            root.obj.note(f"configuration: {listed}")


def _note_strangers(console: Console, ctx: click.Context) -> None:
    """Print the environment variables that look like options but set nothing."""
    root = ctx.find_root()
    mine = variables_of(ctx.command) | variables_of(root.command)
    # Variables of other commands are valid as well, but knowing them requires imports.
    if any(name.startswith(f"{PREFIX}_") and name not in mine for name in os.environ):
        for name, hint in unknown_variables(root).items():
            if hint:  # others may belong to an installer: CPMODEL_HOME
                console.note(f"{name} sets nothing; {hint}")


def _dress(root: click.Context, found: Configuration) -> None:
    """Apply files to the options before the command, which were parsed before."""
    for key, option in settable(root.command).items():
        if _source(root, option) is ParameterSource.DEFAULT:
            for each in found.of(option):
                value = option.type_cast_value(root, value_of(each, key, option))
                root.params[option.name or ""] = value
                root.set_parameter_source(option.name or "", ParameterSource.DEFAULT_MAP)
    root.obj = Console.asked(root.params)


def _start(sources: Sequence[str] | None) -> Path | None:
    """Return the directory of an experiment; for a pattern, the part before the first wildcard."""
    if not isinstance(sources, tuple) or not sources:
        return None
    path = sources[0]
    # Unlike pathlib, these functions never fail for strange names.
    while glob.has_magic(path) and not os.path.exists(path):  # noqa: PTH110
        path = os.path.dirname(path)  # noqa: PTH120
    return Path(path if os.path.isdir(path) else os.path.dirname(path))  # noqa: PTH112, PTH120


def note_other(ctx: click.Context, source: str) -> None:
    """Print that the configuration of a further experiment is ignored, if it differs."""
    places = configuration_of(ctx).places
    start = _start((source,))
    other = None if start is None else config.find_upwards(start)
    if places.named is None and other is not None and not _same(other, places.found):
        first = f"{places.found} applies" if places.found else "it has no configuration file"
        ctx.obj.note(f"{other}: ignored, because the first experiment decides: {first}")


def _same(one: Path, other: Path | None) -> bool:
    return other is not None and one.samefile(other)


def read_files(root: click.Context, paths: Sequence[Path]) -> tuple[ConfigFile, ...]:
    """Return the contents of configuration files for the commands of a program."""
    return config.read(paths, form_of(root, catalogue(root))) if paths else ()


def _read(root: click.Context, places: ConfigPaths) -> Configuration:
    files = read_files(root, places.files())
    if not files:
        return Configuration(places, (), {})
    options = catalogue(root)
    values = [each for file in files for each in file.settings()]
    untrusted = untrusted_file(places, files)
    refused = () if untrusted is None else refused_values(untrusted, options)
    used = [each for each in values if each not in refused]
    for setting in used:
        _check(root, setting, options)
    return Configuration(places, files, config.merge_settings(used), untrusted, refused)


def _check(
    root: click.Context, setting: ConfiguredValue, options: Mapping[str, click.Option]
) -> None:
    """Raise an error for a value that the command line would refuse."""
    from callpath_modeler.readers.parameters import check_source
    from callpath_modeler.studies.question import parse_target

    table, key = str(setting.place[0]), str(setting.place[1])
    if table == config.PARAMETERS:
        with _naming(setting):
            check_source(key, setting.value)
        return
    option = options.get(key)
    if option is None:
        return  # a command without a group has no names of runs
    if key == "reader" and setting.value.endswith(".py"):
        setting.written.refuse(
            setting.place,
            f"reader {setting.value!r}: a file with code must be named on the command line",
            "--reader FILE.py",
        )
    value = value_of(setting, key, option)
    if key in {"target", "at"}:
        with _naming(setting):
            parse_target(*((value, None) if key == "target" else (None, value)))
    try:
        option.type_cast_value(root, value)
    except click.BadParameter as cause:
        said = click.BadParameter(cause.message, root, option).format_message()
        setting.written.refuse(setting.place, said, f"{root.command_path} COMMAND --help")


@contextmanager
def _naming(setting: ConfiguredValue) -> Iterator[None]:
    """Add file and line of the value to an error."""
    try:
        yield
    except UsageError as error:
        setting.written.refuse(setting.place, error.message, error.hint or "")


def value_of(setting: ConfiguredValue, key: str, option: click.Option) -> Any:
    """Return the value of an option in the syntax of the command line."""
    return (
        f"{setting.place[1]}={setting.value}" if key == "param" else setting_value(setting, option)
    )


def _from_files(ctx: click.Context) -> Iterator[tuple[str, str, str]]:
    """Yield key, value as text, and origin of the options that a file set."""
    for key, option in settable(ctx.command).items():
        is_set = _source(ctx, option) is ParameterSource.DEFAULT_MAP
        for setting in configuration_of(ctx).of(option):
            found = value_of(setting, key, option)
            value = ",".join(found) if isinstance(found, list) else str(found)
            if value in ctx.params[option.name or ""] if key == "param" else is_set:
                yield key, value, setting.origin


def _stated_beside(ctx: click.Context, path: str) -> dict[str, Omission]:
    """Return what an untrusted file beside the profiles states, by option, for verdicts."""
    refused, options = configuration_of(ctx).refused, settable(ctx.command)
    stated = {}
    for key, value, origin in _from_files(ctx):
        if origin.rpartition(":")[0] == path and describes(options[key]):
            name, _, source = value.partition("=") if key == "param" else (key, "", value)
            option = f"--param {name}" if key == "param" else f"--{key.replace('_', '-')}"
            if key == "param" and name in ctx.meta.get(ASKED, ()):
                continue
            stated[option] = from_file(OmissionKind.CONFIGURED, f'{name} "{source}"', path)
    if refused:
        keys = f"the {'key' if len(refused) == 1 else 'keys'} {listed_keys(refused)}"
        stated[""] = from_file(OmissionKind.NOT_CONFIGURED, keys, path)
    return stated


def _mentions(message: str, key: str, value: str) -> bool:
    """Return whether a message is about an option or its value."""
    # Unquoted words and numbers may occur for other reasons.
    parts = [each for each in (value, *value.split(",")) if _says_more(each)]
    about = (f"--{key.replace('_', '-')}", f"{key} {value}", *parts)
    quoted = re.findall(r"'([^']+)'", message)
    return any(_has(message, each) for each in about) or any(_has(value, text) for text in quoted)


def _says_more(text: str) -> bool:
    """Return whether a text contains a letter, followed by a character that is not a letter."""
    first = re.search(r"[A-Za-z_]", text)
    return first is not None and re.search(r"\W", text[first.end() :]) is not None


def _has(text: str, words: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(words)}(?![\w-])", text) is not None


def _source(ctx: click.Context, option: click.Parameter) -> ParameterSource | None:
    return ctx.get_parameter_source(option.name or "")


def _origin(ctx: click.Context, option: click.Parameter | None) -> str:
    """Return the origin of an option's value; "" = the command line or the default."""
    source = None if option is None else _source(ctx, option)
    if option is not None and source is ParameterSource.ENVIRONMENT:
        return variable_of(option)
    if option is not None and source is ParameterSource.DEFAULT_MAP:
        return configuration_of(ctx).of(option)[0].origin
    return ""


def _settle(ctx: click.Context, options: Sequence[click.Parameter]) -> None:
    """Among options with the same meaning, unset those with lower priority."""
    levels = {option.name or "": _level(ctx, option) for option in options}
    first = min((level for level in levels.values() if level is not None), default=None)
    for name, level in levels.items():
        if level is not None and level != first:
            ctx.params[name] = False if isinstance(ctx.params[name], bool) else None
            ctx.set_parameter_source(name, ParameterSource.DEFAULT)


def _level(ctx: click.Context, option: click.Parameter) -> tuple[int, int] | None:
    """Return the priority of the value of an option, 0 = highest; None = no value."""
    source = _source(ctx, option)
    if not ctx.params.get(option.name or "") or source is None:
        return None
    if source is ParameterSource.ENVIRONMENT:
        names = option.envvar or ()
        return 1, list(names).index(variable_of(option)) if not isinstance(names, str) else 0
    if source is ParameterSource.DEFAULT_MAP:
        return 2, configuration_of(ctx).of(option)[0].rank
    return 0, 0
