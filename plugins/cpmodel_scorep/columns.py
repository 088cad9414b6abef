"""Selection of the stored columns that belong to CPU threads of processes."""

from __future__ import annotations

import numpy as np

from callpath_modeler.readers.reductions import Columns
from cpmodel_scorep.definitions import Locations, MalformedError


def columns_of(locations: Locations) -> Columns:
    """Return the stored columns of CPU threads, with their processes.

    Raises
    ------
    MalformedError
        If two locations have the same id, or no location is a thread of a process.
    """
    # Columns are stored in ascending order of location ids, for any order of definitions.
    order = np.argsort(locations.ids, kind="stable")
    if np.any(np.diff(locations.ids[order]) == 0):
        raise MalformedError("two locations have the same id")
    counts = locations.counts
    try:
        return Columns.of(np.where(counts, locations.groups, -1)[order])
    except ValueError as error:
        raise MalformedError(str(error)) from None
