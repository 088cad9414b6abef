"""Groups of options whose values reach a command as one object, and options that are numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from callpath_modeler.units import is_plain


class WholeNumber(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        _refuse(self, value, param, ctx)
        return super().convert(value, param, ctx)


class DecimalNumber(click.FloatRange):
    """A number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        _refuse(self, value, param, ctx)
        return super().convert(value, param, ctx)


def _refuse(
    kind: click.ParamType[Any], value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> None:
    if isinstance(value, str) and not is_plain(value):
        kind.fail(f"{value[:40]!r} is not a number.", param, ctx)


BESIDE = "callpath_modeler.beside"
"""Key of the context for the path of an untrusted file and what it states, by option."""

ASKED = "callpath_modeler.asked_parameters"
"""Key of the context for the parameters whose sources the user states."""

F = TypeVar("F", bound=Callable[..., Any])


QUESTION, RUNS, MODELS, OUTPUT = "What to ask", "Which runs", "Models", "Output"
"""Headings of options in the help of a command."""
_COMMON = ("target", "metric", "inclusive", "where", "ignore", "param", "name", "top", "format",
           "output")  # fmt: skip
"""Keys of the options that people use first, in the order of the help."""
_FEW = 12
"""Number of options up to which the help has no headings."""
_WIDE = 50
"""Number of letters of choices from which on they are in the text of the help."""

NUMBER = str | int | float
LIST = str | list[str | int | float]
TABLE = str | dict[str, int | float]
"""Types in configuration files of options that are text on the command line."""


class Option(click.Option):
    """An option of the command line, of environment variables and of configuration files.

    Parameters
    ----------
    group : heading in the help
    key : table and key in configuration files; () = its long name in ``[defaults]``; None = it only
        makes sense for one call of a command
    written : type of its value in these files
    example : a value in these files
    describes : True = it describes the data, so that a file beside the profiles may set it. Every
        other option decides: which data are used, how they are judged, what is shown, or what is
        run. A file beside profiles sets it only in a directory that the user trusts.
    """

    def __init__(
        self,
        *args: Any,
        group: str = QUESTION,
        key: tuple[str, ...] | None = (),
        written: Any = str,
        example: str = "",
        describes: bool = False,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.group = group
        self.key = key
        self.written = written
        self.example = example
        self.describes = describes


class ConditionsOption(Option):
    """An option whose texts are conditions; all that are given must hold."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:  # noqa: ARG002
        """Let the parser keep every text that is given."""
        parser.add_option(self, self.opts, self.name, action="append")

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return all conditions in one text, with commas between them."""
        if isinstance(value, list):
            value = ",".join(filter(None, value))
        return super().type_cast_value(ctx, value)


def option(spelling: str, about: str, field: str = "", **attributes: Any) -> Callable[[F], F]:
    """Return the decorator that adds an option to a command.

    Parameters
    ----------
    spelling : names and value as in the help, e.g. ``"-n, --top N"``; without a value or a type, it
        is a flag
    about : help
    field : name of the argument; "" = the long name
    **attributes
        Arguments of `Option` and of `click.Option`.
    """
    *others, last = spelling.split(", ")
    last, _, value = last.partition(" ")
    words = getattr(attributes.get("type"), "choices", ())
    if not value and sum(map(len, words)) > _WIDE:
        value, about = last.strip("-").upper(), f"{', '.join(words)}. {about}"
    given: dict[str, Any] = {"cls": Option, "metavar": value or None, **attributes}
    if not value and "type" not in attributes:
        given["is_flag"] = True
    if attributes.get("default") and "Default" not in about:
        given["show_default"] = True
    return click.option(*others, last, *filter(None, [field]), help=about, **given)


call_option = functools.partial(option, key=None)
"""`option` for one call of a command, which no configuration sets."""
output_option = functools.partial(call_option, group=OUTPUT)
"""`call_option` about the form or the file of the output."""


def key_of(parameter: click.Parameter) -> str:
    """Return the name of an option in a file, or "" if it has no long name."""
    names = [name for name in parameter.opts if name.startswith("--")]
    return names[-1].removeprefix("--").replace("-", "_") if names else ""


def option_sections(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return spelling and help of the options of a command, by heading.

    A command with many options has the most frequent ones first, then groups.
    """
    shown = [each for each in command.get_params(ctx)
             if isinstance(each, click.Option) and each.get_help_record(ctx)]  # fmt: skip
    options = {key_of(each): each for each in shown}
    first = [key for key in _COMMON if key in options]
    sections: dict[str, list[str]] = {"Common options": first}
    for heading in (QUESTION, RUNS, MODELS, OUTPUT):
        sections[heading] = [key for key, each in options.items() if key not in first
                             and getattr(each, "group", OUTPUT) == heading]  # fmt: skip
    if len(options) <= _FEW:
        sections = {"Options": [*options]}
    return {heading: [record for key in keys if (record := options[key].get_help_record(ctx))]
            for heading, keys in sections.items() if keys}  # fmt: skip


def add_options(command: F, options: Iterable[Callable[[F], F]]) -> F:
    """Add options to a command, in this order."""
    for each in reversed([*options]):
        command = each(command)
    return command


def option_group(
    command: F, options: Sequence[Callable[[F], F]], name: str, make: Callable[..., object]
) -> F:
    """Add `options` to a command; what `make` returns for their values arrives as `name`."""
    fields = [str(parameter_of(each).name) for each in options]

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        kwargs[name] = make(**{field: kwargs.pop(field) for field in fields})
        return command(*args, **kwargs)

    wrapped: Any = wrapper
    made: F = add_options(wrapped, options)
    return made


def parameter_of(option: Callable[..., Any]) -> click.Parameter:
    """Return the parameter that an option decorator adds."""

    def bare() -> None: ...

    parameter: click.Parameter = option(bare).__click_params__[0]
    return parameter


def was_asked(ctx: click.Context, name: str) -> bool:
    """Return whether the command line or an environment variable set a parameter."""
    given = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    return ctx.get_parameter_source(name) in given


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
