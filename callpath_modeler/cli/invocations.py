"""How other commands are asked for the same as this one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.options import shared_names
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
    """Return what asks other commands for the same.

    That is the options that every command knows, where the command line or a variable gave them.
    What configuration files gave is found again, as they are.

    Parameters
    ----------
    sources : to be asked about; None = those of the command
    without : long names of options to leave out
    in_full : write all sources; else many, as a shell makes them of a glob, are ``EXP...``
    of_files : tell, too, what files gave: other files may be found around `sources`
    every : tell options that the command has of its own, too: the other command has them
    """
    from callpath_modeler.loading import OF_PROFILES
    from callpath_modeler.report.invocation import Invocation
    from callpath_modeler.store import is_stored

    sources = ctx.params["experiment"] if sources is None else sources
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
    """Return the command that lists all findings of what a command answers.

    Commands that are not about one experiment have findings of their own.
    """
    arguments = () if ctx is None else ctx.command.params[:1]
    if ctx is None or not any(each.metavar == "EXP..." for each in arguments):
        return "cpmodel -v ..."
    shared = ("--predicted", "--inclusive", "--exclusive")
    return invocation_of(ctx, without=shared).line("info", "--diagnostics")
