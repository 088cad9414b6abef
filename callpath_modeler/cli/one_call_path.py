"""The call paths that an argument selects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.arrays import IntArray
    from callpath_modeler.profile.experiment import Experiment


def row_of(experiment: Experiment, callpath: str) -> int:
    """Return the row of a call path; an error mentions options that may have excluded it."""
    from callpath_modeler.profile.pattern import find_one

    with _naming_options(experiment):
        return find_one(experiment.tree, callpath)


def rows_of(experiment: Experiment, pattern: str) -> IntArray:
    """Return the rows of all call paths that match, at least one; errors are as of `row_of`."""
    import numpy as np

    from callpath_modeler.profile.pattern import match, unmatched

    with _naming_options(experiment):
        rows = np.flatnonzero(match(experiment.tree, pattern))
        if not len(rows):
            raise unmatched(experiment.tree, pattern)
        return rows


@contextmanager
def _naming_options(experiment: Experiment) -> Iterator[None]:
    """Add options that may have excluded a call path to an error."""
    from callpath_modeler.profile.pruning import excluded_call_paths

    try:
        yield
    except UsageError as error:
        message = error.message + excluded_call_paths(experiment)
        raise UsageError(message, hint=error.hint) from None
