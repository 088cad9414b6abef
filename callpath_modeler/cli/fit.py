"""`cpmodel fit`: models of every call path in a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import call_option
from callpath_modeler.cli.options import EXPERIMENT, FORCE, fit_options, load_options, store_file
from callpath_modeler.cli.preflight import check_default_output
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.studies.loading import LoadOptions
    from callpath_modeler.studies.pipeline import FitOptions


_MOST_SHARDS = 10**6


def _shard(
    _ctx: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, int] | None:
    """Return number and count of a shard."""
    if text is None:
        return None
    number, _, count = text.partition("/")
    if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= _MOST_SHARDS:
        return int(number), int(count)
    raise UsageError(f"--shard {text!r} is not K/N", hint="e.g. 3/64: the third of 64 shards")


@click.command("fit", cls=Configured)
@EXPERIMENT
@call_option("-m, --metric NAME", "Default: all.", "metrics", multiple=True)
@store_file()
@FORCE
@call_option(
    "--shard K/N",
    "Only read every N-th profile, from the K-th on, for `cpmodel merge`.",
    callback=_shard,
)
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
    shard: tuple[int, int] | None,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Read the runs, model every call path, and store experiment and models as NAME.cpm."""
    from dataclasses import replace

    from callpath_modeler import shards
    from callpath_modeler.studies import loading
    from callpath_modeler.units import counted

    wanted = replace(load, read=replace(load.read, metrics=metrics or None))
    # Requirements say why times grow, so a store answers as its profiles do.
    wanted, told = wanted.with_requirements(), console.progress("read")
    if shard is None:
        read = loading.load(experiment, wanted, told)
        store_models(console, read, metrics, fitting, output, force=force)
        return
    if output is None:
        raise UsageError("--shard needs a name for its file", hint="e.g. -o part3.cpm")
    part = loading.load_shard(experiment, wanted, *shard, told)
    shards.write(part, output, overwrite=force)
    console.result(
        f"{output}: shard {part.number} of {part.count}, {counted(len(part.outcomes), 'profile')}\n"
    )
    console.findings(part.findings)


def store_models(
    console: Console,
    read: Experiment,
    metrics: Sequence[str],
    fitting: FitOptions,
    output: Path | None,
    *,
    force: bool,
) -> None:
    """Make models of some metrics, or of all, store them, and print what is stored."""
    from callpath_modeler import store
    from callpath_modeler.studies import pipeline
    from callpath_modeler.support.front_ends import stage
    from callpath_modeler.units import counted

    path = output or Path(Path(read.name).name + store.SUFFIX)
    check_default_output(click.get_current_context(), path)
    fits = [pipeline.fit(read, name, fitting) for name in metrics or read.columns]
    with stage("write"):
        store.write(fits, path, overwrite=force)
    console.result(
        f"{path}: {counted(len(read.tree), 'call path')}, {counted(len(fits), 'metric')}\n"
    )
    for fitted in fits:
        counts = fitted.status_counts().most_common()
        listed = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in counts)
        console.result(f"  {fitted.metric.name}: {listed}\n")
    console.findings(read.findings)
