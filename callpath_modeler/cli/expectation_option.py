"""The option for expectations: expected costs of excess work, and verdicts of a file."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from callpath_modeler.cli.option_groups import option, was_asked
from callpath_modeler.printable import shell_words

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Ranking
    from callpath_modeler.analysis.expectations.check_result import Check
    from callpath_modeler.analysis.expectations.clauses import ExcessExpectation
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.report.layout import Invocation

_SUFFIX = ".toml"
_COSTS = (
    "Expected costs instead of weak or strong scaling, for excess work: a growth such as "
    "'O(log p)', a file of expectations, or another experiment."
)

EXPECT_VERDICTS = option(
    "--expect FILE.toml",
    "Add the verdicts of the expectations in this file, as `cpmodel check` gives them.",
    type=click.Path(readable=False, path_type=Path),
)
"""The option of a command that has verdicts, but no excess work."""

# The text of a growth is no path, so it keeps its form.
EXPECT_COSTS, EXPECT = (
    option("--expect GROWTH|FILE.toml|EXP", text, type=click.Path(readable=False), key=key)
    for text, key in (
        (_COSTS, None),
        (f"{_COSTS} A file adds its verdicts, as `cpmodel check` gives them.", ()),
    )
)
"""The options of commands that have excess work, without and with verdicts."""


def expected_costs_of(ctx: click.Context) -> ExcessExpectation | None:
    """Return the expected costs of excess work that the user asked for.

    Configuration for all commands names files whose verdicts are wanted. The limits of such a file
    change no excess work unless the user says so on the command line.
    """
    text: str | None = ctx.params.get("expect")
    if text is None or _is_configured(ctx):
        return None
    from callpath_modeler.analysis.expectations.clauses import parse_expectation

    return parse_expectation(text)


def verdict_file(ctx: click.Context) -> Path | None:
    """Return the file of expectations whose verdicts are shown, or None."""
    text: str | None = ctx.params["expect"]
    if text is None:
        return None
    return Path(text) if text.endswith(_SUFFIX) or _is_configured(ctx) else None


def _is_configured(ctx: click.Context) -> bool:
    """Return whether a file or a variable for all commands set the option."""
    from callpath_modeler.cli.settings import settable

    source = ctx.get_parameter_source("expect")
    return source is not ParameterSource.COMMANDLINE and "expect" in settable(ctx.command)


def with_expectation(ctx: click.Context, invocation: Invocation, fitted: Fitted) -> Invocation:
    """Return command lines with the expected costs of some models, if the user chose any."""
    if fitted.ideal is None:
        return invocation
    return replace(invocation, expected=shell_words(["--expect", ctx.params["expect"]]))


def check_ranking(ranking: Ranking, path: Path | None) -> Check | None:
    """Return the results of expectations, at their own targets unless the user chose one.

    A target from a configuration file does not apply, as in `cpmodel check`. At infinity, only
    growth has a verdict, so the targets of the file apply there.
    """
    if path is None:
        return None
    from callpath_modeler.analysis.expectations.clauses import read
    from callpath_modeler.studies.expectation_check import check

    ctx = click.get_current_context()
    asked = any(was_asked(ctx, name) for name in ("target", "at"))
    named = read(path).parameter is None or (asked and math.isfinite(ranking.target))
    return check(ranking.fitted, path, target=ranking.fitted.at(ranking.target) if named else None)
