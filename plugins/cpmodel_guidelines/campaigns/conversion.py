"""Campaigns as experiments: medians of mpiruns as repetitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from callpath_modeler.errors import DataError
from callpath_modeler.input_limits import UNLIMITED
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.readers.assemble import ReadOptions, assemble_runs
from callpath_modeler.readers.paths import split_paths
from callpath_modeler.readers.records import Records, runs_of
from cpmodel_guidelines.campaigns.campaign import Campaign

METRIC, SIZE, PROCESSES = "latency", "size", "p"
"""Names of the metric and the parameters of the experiment of a campaign."""

_MOST_VALUES = 1 << 24
"""Largest number of combinations of function, setting and mpirun."""


def experiment_of(campaign: Campaign, *, without_outliers: bool = False) -> Experiment:
    """Return an experiment with one call path per function, and the mpiruns as repetitions.

    Values are medians in seconds. If no function has a message size, there is no such parameter.

    Parameters
    ----------
    without_outliers : remove the outliers of each mpirun before its median is computed

    Raises
    ------
    DataError
        If there are too many combinations of functions, sizes and mpiruns.
    """
    every = campaign.measurements
    names = dict.fromkeys((each.library, each.cell.function) for each in every)
    parts = split_paths([function for _, function in names])
    paths = [
        (library, *part) if library else part
        for (library, _), part in zip(names, parts, strict=True)
    ]
    order = {name: k for k, name in enumerate(names)}
    settings = {(each.processes, each.cell.size) for each in every}
    mpiruns = max(campaign.mpiruns().values())
    if len(paths) * len(settings) * mpiruns > _MOST_VALUES:
        raise DataError(
            f"{campaign.name}: {len(paths)} functions, {len(settings)} settings and {mpiruns} "
            "mpiruns have too many combinations",
            hint="check fewer files at once",
        )
    parameters = {PROCESSES: np.array([float(each.processes) for each in every])}
    sizes = np.array([each.cell.size for each in every])
    if sizes.any():
        parameters[SIZE] = sizes
    records = Records(
        subject=campaign.name,
        paths=paths,
        path=np.array([order[each.library, each.cell.function] for each in every], np.intp),
        parameters=parameters,
        repetition=np.array([each.mpirun for each in every], np.intp),
        titles=[METRIC],
        title=np.zeros(len(every), np.intp),
        values=campaign.medians(without_outliers=without_outliers),
        limits=UNLIMITED,
        units={METRIC: "s"},
    )
    made = assemble_runs(campaign.name, runs_of(records), ReadOptions(metrics=None))
    # Functions have different sizes, so they cannot occur in every run.
    kept = tuple(each for each in made.findings if each.code != "CPM113")
    return replace(made, findings=(*campaign.findings, *kept))
