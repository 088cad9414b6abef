"""The call path that an argument selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.profile.experiment import Experiment


def row_of(experiment: Experiment, callpath: str) -> int:
    """Return the row of a call path; an error mentions options that may have excluded it."""
    from callpath_modeler.profile.pattern import find_one
    from callpath_modeler.profile.pruning import excluded_call_paths

    try:
        return find_one(experiment.tree, callpath)
    except UsageError as error:
        message = error.message + excluded_call_paths(experiment)
        raise UsageError(message, hint=error.hint) from None
