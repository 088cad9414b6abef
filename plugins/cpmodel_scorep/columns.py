"""Which stored columns count: those of the threads of processes."""

from __future__ import annotations

import numpy as np

from callpath_modeler.readers.reductions import Columns
from cpmodel_scorep.definitions import Locations, MalformedError


def columns_of(locations: Locations) -> Columns:
    """Return which columns hold what.

    Raises
    ------
    MalformedError
        If two locations share an id, or none of them is a thread of a process.
    """
    # Columns come in ascending order of the ids, whatever the order of the definitions.
    order = np.argsort(locations.ids, kind="stable")
    if np.any(np.diff(locations.ids[order]) == 0):
        raise MalformedError("two locations have one id")
    counts = locations.counts
    try:
        return Columns.of(np.where(counts, locations.groups, -1)[order])
    except ValueError as error:
        raise MalformedError(str(error)) from None
