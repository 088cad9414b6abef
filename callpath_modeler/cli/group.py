"""The command group: the text of `cpmodel --help`, and the module of each command."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import LIST, DefaultGroup, call_option, option
from callpath_modeler.errors import PluginError, nearest_or_all
from callpath_modeler.support import front_ends
from callpath_modeler.support.program_path import OURS, EntryPoint, installed_entry_points


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
            if not command.context_settings.get("allow_interspersed_args", True):
                # The other words belong to the command line of a program.
                rest += words
                break
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


_COMMANDS = {
    "run": "Run a program at several scales, and keep each run for the other commands.",
    "info": "Describe the data: runs, parameters, metrics, call paths, data quality.",
    "fit": "Model every call path and store the result.",
    "merge": "Join the shards of `fit --shard`, model every call path and store the result.",
    "rank": "Rank call paths by cost at a target scale.",
    "show": "Show one call path: formula, chart, band, alternatives, excess work.",
    "why": "Say why the time of a call path grows: work, messages, waiting, imbalance.",
    "views": "Show costs at a target top-down, bottom-up or flat.",
    "diff": "Compare two experiments: what got better or worse, at which scale.",
    "browse": "Browse costs at any target on the terminal: views, charts.",
    "efficiency": "Show factors of parallel efficiency: load balance, communication, computation.",
    "excess": "Show the time lost between measured scales, and where: excess work.",
    "refine": "Propose a filter for Score-P, and call paths to instrument more finely.",
    "baseline": "Write limits derived from today's runs, for `check`.",
    "check": "Check models against expectations, in continuous integration.",
    "watch": "Keep a history of commits, and say which call path became worse at which commit.",
    "score": "Hold remembered predictions against later runs: errors, bands, calibration.",
    "report": "Write one page of HTML: ranking, charts, call tree, data quality.",
    "export": "Write models, values, ranking or the call-path graph to a file.",
    "explain": "Explain a finding, e.g. CPM115: what it means and what to do.",
    "trust": "Let the cpmodel.toml of a directory decide, e.g. exclude call paths.",
    "plugins": "List readers and commands, and why any cannot be loaded.",
    "completion": "Print a script that lets a shell complete commands and options.",
}


_OF_PLUGINS = {
    "guidelines": "Check MPI performance guidelines: which collectives are too slow.",
    "trace": "Show the communication in a trace, as loops or as a program in C.",
}
"""Descriptions of commands in our plugins, so that the help need not import them."""


class _Codes(click.types.StringParamType):
    """Codes of findings, separated by commas."""

    name = "codes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the codes in capitals; fail for an unknown code."""
        from callpath_modeler.diagnostics import KINDS

        codes = [code.strip().upper() for code in value.split(",")]
        for code in codes:
            if code not in KINDS:
                self.fail(
                    f"there is no finding {code!r}; {nearest_or_all(code, KINDS)}", param, ctx
                )
        return ",".join(codes)


PLUGINS = "callpath_modeler.commands"
"""Group of entry points for commands of other packages."""


class LazyGroup(click.Group):
    """A group that imports the module of a command when the command is run.

    Commands of plugins come after the built-in ones, and never replace one.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options of the group, which may follow the command as well."""
        words = args if ctx.resilient_parsing else with_global_options_first(ctx, args)
        return super().parse_args(ctx, words)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of the commands, in the order of a typical session."""
        return list(_described())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name in _COMMANDS:
            module = importlib.import_module(f"callpath_modeler.cli.{cmd_name}")
            own: click.Command = module.command
            return own
        entry = added().get(cmd_name)
        return None if entry is None else load(entry)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_described().items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return a command, or fail with the nearest name."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in _COMMANDS:
            known = _described()
            if name not in known:
                raise click.UsageError(f"no command {name!r}; {nearest_or_all(name, known)}", ctx)
        return super().resolve_command(ctx, args)


def _described() -> dict[str, str]:
    """Return the description of every command, built-in ones first."""
    found = dict(_COMMANDS)
    for name, entry in added().items():
        package = entry.package
        found[name] = _OF_PLUGINS.get(name, "") if package == OURS else f"(of {package})"
    return found


def offered() -> list[EntryPoint]:
    """Return all commands of installed packages, without importing them."""
    return sorted(installed_entry_points(PLUGINS))


def added() -> dict[str, EntryPoint]:
    """Return the commands of other packages by name; of two with one name, the first one."""
    by_name: dict[str, EntryPoint] = {}
    for entry in offered():
        if entry.name not in _COMMANDS:
            by_name.setdefault(entry.name, entry)
    return by_name


def load(entry: EntryPoint) -> click.Command:
    """Import a command.

    Raises
    ------
    PluginError
        If it does not load, or is not a command.
    """
    try:
        command = entry.load()
    except (Exception, SystemExit) as cause:
        from callpath_modeler.readers.registry import error_line

        raise PluginError(
            f"command {entry.name!r} of {entry.package} does not load: {error_line(cause)}",
            hint=f"reinstall or remove {entry.package}",
        ) from cause
    if not isinstance(command, click.Command):
        raise PluginError(
            f"{entry.value} is not a click command", hint=f"reinstall or remove {entry.package}"
        )
    return command


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
@option("-v, --verbose", "Show more messages, and the origin of a bug.")
@option("-q, --quiet", "Show only results and errors.")
@option(
    "--color",
    "Colour the output. Default: on a terminal.",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
)
@option("--ascii", "Use ASCII characters only.", "ascii_only", envvar="CPMODEL_ASCII")
@option("--no-progress", "Show no progress.")
@option(
    "--ignore-findings CODES",
    "Do not show these findings, e.g. CPM203,CPM204; -v does.",
    "ignored",
    type=_Codes(),
    written=LIST,
    example='["CPM203"]',
)
@call_option(
    "--config FILE",
    "Configuration. Default: the cpmodel.toml in or above the directory of the runs.",
    type=click.Path(path_type=Path, dir_okay=False),
)
@click.pass_context
def cpmodel(ctx: click.Context, /, **_options: object) -> None:
    """Find the call paths that will stop your code from scaling.

    \b
    cpmodel rank profiles/*.cubex --target 262144
    """  # noqa: D301 - \b is click's mark for lines that stay as they are
    ctx.obj = Console.asked(ctx.params)
    front_ends.listen(ctx.obj)
    if ctx.invoked_subcommand is None:
        ctx.obj.result(f"{ctx.get_help()}\n")
