"""`cpmodel merge`: the shards of an experiment become one store with models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.fit import store_models
from callpath_modeler.cli.option_groups import option
from callpath_modeler.cli.options import FORCE, fit_options, load_options, store_file
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.studies.loading import LoadOptions
    from callpath_modeler.studies.pipeline import FitOptions


@click.command("merge", cls=Configured, apart=("metric",))
@click.argument("experiment", nargs=-1, required=True, metavar="SHARD...")
@option("-m, --metric NAME", "Default: all read.", "metrics", multiple=True, example='"time"')
@store_file()
@FORCE
@load_options
@fit_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    metrics: tuple[str, ...],
    output: Path | None,
    force: bool,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Join all shards of `cpmodel fit --shard`, model every call path, and store the result.

    The result is the same as that of one `cpmodel fit` with the same options. Options of reading
    single profiles belong to `fit --shard`.
    """
    from callpath_modeler.studies import loading

    if "-" in experiment:
        raise UsageError(
            "-: a shard is a file, not standard input", hint="cpmodel merge FILE... -o NAME.cpm"
        )
    read, asked = loading.load_shards(experiment, load)
    store_models(console, read, metrics or asked or (), fitting, output, force=force)
