"""Types of options that are numbers."""

from __future__ import annotations

from typing import Any

import click

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
