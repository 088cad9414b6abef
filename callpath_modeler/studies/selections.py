"""Selected runs and call paths of an experiment in memory, and its groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from callpath_modeler.errors import DataError, check_type
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.pruning import keep_matches
from callpath_modeler.profile.runs import Run
from callpath_modeler.studies.loading import LoadOptions, parts_of, selected


def matching(experiment: Experiment, pattern: str) -> Experiment:
    """Return the call paths that match, with their callers, as `Experiment.query`."""
    check_type(pattern, str, "pattern")
    return keep_matches(experiment, pattern)


def with_runs(experiment: Experiment, condition: str | Callable[[Run], bool]) -> Experiment:
    """Return the runs that fulfil a condition, as `Experiment.filter`."""
    if isinstance(condition, str):
        return selected(experiment, LoadOptions(where=condition))
    keep = np.array([bool(condition(run)) for run in experiment.runs])
    if not keep.any():
        raise DataError("no run fulfils the condition", hint="`experiment.runs` lists them")
    return experiment.where(keep)


def groups(experiment: Experiment, name: str | None) -> dict[str, Experiment]:
    """Return one experiment for each value, as `Experiment.groupby`."""
    if name is None:
        return {case: part for (_, case), part in parts_of(experiment).items()}
    if len(experiment.cases) > 1:
        experiment.refuse_several_cases()
    return {value: part for (value, _), part in parts_of(experiment, name).items()}
