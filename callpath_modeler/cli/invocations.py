"""Command lines of other commands on the same experiment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.options import STANDARD_INPUT, shared_names
from callpath_modeler.printable import shell_words

if TYPE_CHECKING:
    from callpath_modeler.report.invocation import Invocation

_FEW_SOURCES = 2


def invocation_of(
    ctx: click.Context,
    *,
    sources: Sequence[str] | None = None,
    without: Collection[str] = (),
    in_full: bool = False,
    of_files: bool = False,
    every: bool = False,
) -> Invocation:
    """Return the command lines of other commands with the options of this command.

    These are the options that every command knows, as far as the command line or an environment
    variable set them. Values from configuration files apply to other commands anyway.

    Parameters
    ----------
    ctx : context of the command
    sources : sources of the other command; None = those of this command
    without : long names of options to omit
    in_full : write all sources; else a long list, such as a shell makes from a glob, is ``EXP...``
    of_files : include values from files, because `sources` may have other files
    every : include options of this command that not every command knows
    """
    from callpath_modeler.loading import OF_PROFILES
    from callpath_modeler.report.invocation import Invocation
    from callpath_modeler.store import is_stored

    sources = ctx.params["experiment"] if sources is None else sources
    sources = ["-" if source == ctx.meta.get(STANDARD_INPUT) else source for source in sources]
    files = click.core.ParameterSource.DEFAULT_MAP
    untold = {None, click.core.ParameterSource.DEFAULT, *(() if of_files else (files,))}
    options = (each for each in ctx.command.params if isinstance(each, click.Option))
    known = {each.opts[-1] for each in options} if every else {*shared_names()}
    known -= {*without}
    if any(is_stored(Path(source)) for source in sources):
        known -= {*OF_PROFILES}
    words: list[str] = []
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        source = ctx.get_parameter_source(parameter.name or "")
        # A variable or a file may say of a flag that it is not set.
        if source in untold or value is False or parameter.opts[-1] not in known:
            continue
        for one in value if isinstance(value, tuple) else (value,):
            words += [parameter.opts[-1], *([] if one is True else [str(one)])]
    few = in_full or len(sources) <= _FEW_SOURCES
    config = ctx.find_root().params.get("config")
    before = "" if config is None else shell_words(["--config", str(config)])
    return Invocation(shell_words(sources) if few else "EXP...", shell_words(words), before)


def listing_of_findings(ctx: click.Context | None) -> str:
    """Return the command that lists all findings of a result.

    Commands that are not about one experiment have their own findings.
    """
    arguments = () if ctx is None else ctx.command.params[:1]
    if ctx is None or not any(each.metavar == "EXP..." for each in arguments):
        return "cpmodel -v ..."
    shared = ("--predicted", "--inclusive", "--exclusive")
    return invocation_of(ctx, without=shared).line("info", "--diagnostics")
