"""The command `cpmodel hottest EXP...`: print the call path with the largest time."""

from __future__ import annotations

import click


@click.command("hottest")
@click.argument("profiles", nargs=-1, required=True, metavar="EXP...")
@click.pass_obj
def hottest(console, profiles):
    """Print the call path with the largest exclusive time at the largest scale."""
    import numpy as np

    from callpath_modeler import load

    experiment = load(profiles)
    metric = next(iter(experiment.columns))
    row = int(np.nanargmax(experiment.values(metric)[:, -1]))
    console.lines([experiment.tree.path(row)])
