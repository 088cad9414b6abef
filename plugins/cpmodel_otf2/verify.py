"""Verification: comparison of every value with a replay through the package `otf2`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Agreement
from cpmodel_otf2.event_source import opened
from cpmodel_otf2.profile import TraceProfile


def verify(path: Path) -> list[Agreement]:
    """Return the comparison of the exclusive values of every call path, metric and thread."""
    from cpmodel_otf2.highlevel import HighLevelArchive

    with opened(path) as source:
        ours = TraceProfile(path, source)
    metrics = [
        declared.metric.name
        for declared in ours.metrics
        if declared.status.is_readable and not declared.metric.is_of_all_threads
    ]
    try:
        theirs = TraceProfile(path, HighLevelArchive(path))
    except InputError as error:
        return [Agreement(name, 0, 0, f"otf2 cannot read it: {error.message}") for name in metrics]
    return [_compare(name, _by_path(ours, name), _by_path(theirs, name)) for name in metrics]


def _by_path(profile: TraceProfile, metric: str) -> dict[str, FloatArray]:
    tree, values = profile.call_tree, profile.per_location(metric)
    return {tree.path(row): values[row] for row in range(len(tree))}


def _compare(
    name: str,
    ours: Mapping[str, FloatArray],
    theirs: Mapping[str, FloatArray],
) -> Agreement:
    compared = differing = 0
    for path in ours.keys() | theirs.keys():
        pair = [side[path] for side in (ours, theirs) if path in side]
        compared += len(pair[0])
        differing += len(pair[0]) if len(pair) == 1 else int(np.count_nonzero(pair[0] != pair[1]))
    return Agreement(name, compared, differing)
