"""`cpmodel fit`: models of every call path in a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import EXPERIMENT, fit_options, load_options, output_file

if TYPE_CHECKING:
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions


@click.command("fit", cls=Configured)
@EXPERIMENT
@click.option("-m", "--metric", "metrics", metavar="NAME", multiple=True, help="Default: all.")
@output_file("File of the result. Default: the program's name.", "NAME.cpm")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
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
    """Read the runs, model every call path, and store experiment and models as NAME.cpm."""
    from collections import Counter
    from dataclasses import replace

    from callpath_modeler import loading, pipeline, store
    from callpath_modeler.units import counted

    wanted = replace(load, read=replace(load.read, metrics=metrics or None))
    # Requirements say why times grow, so a store answers as its profiles do.
    read = loading.load(experiment, wanted.with_requirements(), console.progress("read"))
    path = output or Path(Path(read.name).name + store.SUFFIX)
    fits = [pipeline.fit(read, name, fitting) for name in metrics or read.columns]
    store.write(fits, path, overwrite=force)
    console.result(
        f"{path}: {counted(len(read.tree), 'call path')}, {counted(len(fits), 'metric')}\n"
    )
    for fitted in fits:
        count = Counter(fitted.statuses(range(len(read.tree))))
        listed = ", ".join(
            f"{name.replace('_', ' ')} {number}" for name, number in count.most_common()
        )
        console.result(f"  {fitted.metric.name}: {listed}\n")
    console.findings(read.findings)
