"""A command: `cpmodel hottest EXP...` names the call path that takes longest."""

from __future__ import annotations

import click


@click.command("hottest")
@click.argument("profiles", nargs=-1, required=True, metavar="EXP...")
@click.pass_obj
def hottest(console, profiles):
    """Name the call path that takes longest at the largest scale."""
    import numpy as np

    from callpath_modeler import load

    experiment = load(profiles)
    metric = next(iter(experiment.columns))
    row = int(np.nanargmax(experiment.values(metric)[:, -1]))
    console.lines([experiment.tree.path(row)])
