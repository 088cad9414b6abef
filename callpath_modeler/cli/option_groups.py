"""Groups of options whose values reach a command as one object, and options that are numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from callpath_modeler.numerals import is_plain


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


class DescribingOption(click.Option):
    """An option that describes the data, so that a file beside the profiles may set it.

    Every other option decides: which data are used, how they are judged, what is shown, or what is
    run. A file beside profiles sets it only in a directory that the user trusts.
    """


class ConditionsOption(click.Option):
    """An option whose texts are conditions; all that are given must hold."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:  # noqa: ARG002
        """Let the parser keep every text that is given."""
        parser.add_option(self, self.opts, self.name, action="append")

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return all conditions in one text, with commas between them."""
        if isinstance(value, list):
            value = ",".join(filter(None, value))
        return super().type_cast_value(ctx, value)


def add_options(command: F, options: tuple[Callable[[F], F], ...]) -> F:
    """Add options to a command, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def option_group(
    command: F, options: tuple[Callable[[F], F], ...], name: str, make: Callable[..., object]
) -> F:
    """Add `options` to a command; their values arrive as one argument called `name`."""
    code = make.__code__
    taken = code.co_varnames[: code.co_kwonlyargcount]

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        kwargs[name] = make(**{key: kwargs.pop(key) for key in taken})
        return command(*args, **kwargs)

    wrapped: Any = wrapper
    made: F = add_options(wrapped, options)
    return made


def was_asked(ctx: click.Context, name: str) -> bool:
    """Return whether the command line or an environment variable set a parameter."""
    given = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    return ctx.get_parameter_source(name) in given
