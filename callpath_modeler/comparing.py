"""Two experiments -> what is different between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.diff import Difference, difference
from callpath_modeler.analysis.pairing import common_parameter, odd_constants, pair_up
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.loading import LoadOptions, load
from callpath_modeler.pipeline import (
    FitOptions,
    Question,
    checked_target,
    findings_at,
    fit,
    models_of_loaded,
    parse_target,
)
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.readers.assemble import Progress


@dataclass(frozen=True, slots=True)
class Compared:
    """A difference, and what a user should know of either side.

    Attributes
    ----------
    difference : the answer
    base, new : findings about each
    both : findings about the comparison
    """

    difference: Difference
    base: tuple[Finding, ...]
    new: tuple[Finding, ...]
    both: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All of them; each names its side."""
        sides = (("base", self.base), ("new", self.new))
        named = [replace(f, subject=f"{side}, {f.subject}") for side, fs in sides for f in fs]
        return (*self.both, *named)


def difference_of(
    base: Sequence[str | Path],
    new: Sequence[str | Path],
    question: Question,
    *,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
) -> Compared:
    """Load and fit two experiments and compare them.

    Without a target, an experiment of too few scales for models is compared as it was measured.

    Parameters
    ----------
    base, new : sources, as for `load`
    question : what is asked, in the words of the command line

    Raises
    ------
    UsageError, InputError, DataError
        As `load`, `fit` and `difference` do.
    """
    name, target = parse_target(question.target, question.at).alone()
    if target is not None and np.isinf(target):
        raise UsageError(
            "--target inf: there is no difference to tell at infinity",
            hint="give a finite target; growth before and after is always compared",
        )
    load_options, fit_options = load_options or LoadOptions(), fit_options or FitOptions()
    load_options = load_options.of_metric(question.metric)
    wanted = name or fit_options.parameter
    before, after = (load(sources, load_options, progress) for sources in (base, new))
    parameter = common_parameter(before, after, wanted)
    fit_options = replace(fit_options, parameter=wanted)

    def models(experiment: Experiment, sources: Sequence[str | Path]) -> Fitted | None:
        if target is None and not _enough_points(experiment, question.metric, fit_options):
            return None
        found = models_of_loaded(experiment, sources, question.metric, load_options, fit_options)
        if target is not None:
            checked_target(found, target)
        return found

    old, young = models(before, base), models(after, new)
    if old and young and old.models.aggregate != young.models.aggregate:
        # A minimum of repetitions against a mean of others would differ by their kind alone.
        young = fit(after, question.metric, replace(fit_options, aggregate=old.models.aggregate))
    pair = pair_up((before, old), (after, young), question.metric, parameter)
    found = difference(
        pair, target, inclusive=question.inclusive, confidence=fit_options.confidence
    )
    return Compared(
        found,
        _findings(before, old, target),
        _findings(after, young, target),
        tuple(odd_constants(pair)),
    )


def _findings(
    experiment: Experiment, fitted: Fitted | None, target: float | None
) -> tuple[Finding, ...]:
    if fitted is None:
        return experiment.findings
    return findings_at(fitted, float(fitted.points[-1]) if target is None else target)


def _enough_points(experiment: Experiment, metric: str | None, options: FitOptions) -> bool:
    """Tell whether there are enough scales for models."""
    if not experiment.parameters:
        return False
    name = experiment.modelled_parameter(options.parameter)
    _, cube = experiment.by_point(experiment.metric(metric).name, name)
    measured = ~np.isnan(cube).all(axis=(0, 2))
    return int(measured.sum()) >= modeling.MIN_POINTS[options.method]
