"""The stored columns of the threads of processes, and of their GPU streams."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.readers.reductions import Columns
from cpmodel_scorep.definitions import Locations, MalformedError


def columns_of(locations: Locations) -> Columns:
    """Return the stored columns of the threads of processes.

    Raises
    ------
    MalformedError
        If two locations have the same id, or no location is a thread of a process.
    """
    order = _order(locations)
    if np.any(np.diff(locations.ids[order]) == 0):
        raise MalformedError("two locations have the same id")
    try:
        return Columns.of(locations.process_of_threads[order])
    except ValueError as error:
        raise MalformedError(str(error)) from None


def columns_of_streams(locations: Locations) -> Columns | None:
    """Return the stored columns of the GPU streams of processes; None = there are none."""
    process = locations.process_of_streams
    return Columns.of(process[_order(locations)]) if (process >= 0).any() else None


def _order(locations: Locations) -> Int64Array:
    # Columns are stored in ascending order of location ids, for any order of definitions.
    return np.argsort(locations.ids, kind="stable")
