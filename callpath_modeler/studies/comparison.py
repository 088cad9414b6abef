"""Comparison of two experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from callpath_modeler import modeling
from callpath_modeler.analysis.days import ScatterOfDays
from callpath_modeler.analysis.difference import Differences, ExperimentDifference
from callpath_modeler.analysis.measured_only import says_no_scale, with_unknown_scale
from callpath_modeler.analysis.pair_forecast import PairForecast
from callpath_modeler.analysis.pairing import common_line, pair_findings, pair_up
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import CONFIDENCE, UsageError, check_type
from callpath_modeler.fitted import UNKNOWN_SCALE, Fitted
from callpath_modeler.modeling import Centre
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.runs import ParameterLine, settings_of, target_of
from callpath_modeler.studies.pipeline import FitOptions, fit, fit_options_of
from callpath_modeler.studies.question import findings_at, slice_findings
from callpath_modeler.support.front_ends import HtmlReprMixin, PageMixin
from callpath_modeler.units import counted, parameter_value, setting_text

if TYPE_CHECKING:
    from concurrent.futures import Executor


@dataclass(frozen=True, slots=True)
class Compared(HtmlReprMixin, PageMixin):
    """A difference of two experiments, with findings about both.

    Attributes
    ----------
    difference : costs, ratios and significance of every call path
    base, new : findings about each experiment
    both : findings about the comparison
    """

    difference: ExperimentDifference
    base: tuple[Finding, ...]
    new: tuple[Finding, ...]
    both: tuple[Finding, ...]

    def __repr__(self) -> str:
        return f"{repr(self.difference)[:-1]}, {counted(len(self.findings), 'finding')}>"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings; each names its experiment."""
        sides = (("base", self.base), ("new", self.new))
        named = [
            structs.replace(f, subject=f"{side}, {f.subject}") for side, fs in sides for f in fs
        ]
        return (*self.both, *named)


def compare(
    base: Fitted | Experiment,
    new: Fitted | Experiment,
    target: float | None = None,
    *,
    metric: str | None = None,
    parameter: str | None = None,
    held: Mapping[str, float] | None = None,
    inclusive: bool = False,
    predicted: bool = False,
    confidence: float = CONFIDENCE,
    aggregate: Centre = "mean",
    jobs: int = 1,
    executor: Executor | None = None,
) -> Compared:
    """Return the difference of two experiments, from their models or from measured values.

    Parameters
    ----------
    base, new : experiments or models, before and after. Both sides use the centre of repetitions of
        `base`; models with another centre are made again
    target : scale of the comparison, which needs models of both
    metric, parameter : metric and parameter; None = those of the models, or the run time over p
    held : values of other parameters; by default those of the models, or the largest values that
        both measured
    inclusive : compare inclusive values
    predicted : use predictions even if both ran the target
    confidence : confidence of intervals; at most a fraction of 1 - confidence of the differences
        that are called significant is due to chance
    aggregate : centre of repetitions, if there are no models
    jobs : largest number of processes that make models; 0 = one for each processor
    executor : makes the models instead of processes of this machine

    Returns
    -------
    Compared
        Costs of both experiments in SI base units, ratios with confidence intervals, and their
        significance.

    Raises
    ------
    UsageError
        If a target is not positive, or if there is no such metric or parameter.
    DataError
        If the experiments have no scale or call path in common.

    References
    ----------
    Welch: The generalization of Student's problem when several different population variances are
    involved (1947). Benjamini and Hochberg: Controlling the false discovery rate (1995).
    """
    target = None if target is None else target_of(target)
    for name, side in (("base", base), ("new", new)):
        check_type(side, (Fitted, Experiment), name)
    options = FitOptions(
        parameter=parameter,
        aggregate=aggregate,
        confidence=confidence,
        jobs=jobs,
        executor=executor,
    )
    differences = differences_of(base, new, metric, held, options)
    return compared_at(differences, target, inclusive=inclusive, predicted=predicted)


def compared_at(
    differences: Differences,
    target: float | None,
    *,
    inclusive: bool = False,
    predicted: bool = False,
) -> Compared:
    """Return the difference of two experiments at a target, with findings, as `compare`."""
    return _with_findings(differences.at(target, inclusive=inclusive, predicted=predicted), target)


def compared_in(forecast: PairForecast, *, inclusive: bool) -> Compared:
    """Return the difference that a view of two experiments shows, with findings."""
    found = forecast.found[1 if inclusive else 0]
    return _with_findings(found, None if found.at_target is None else found.at_target.scale)


def _with_findings(found: ExperimentDifference, target: float | None) -> Compared:
    pair = found.pair
    base, new = (_findings(side.experiment, side.fitted, target) for side in pair.sides)
    line = pair.line
    both = (*pair_findings(pair), *slice_findings(line.held, line.assumed, "the largest of both"))
    return Compared(found, base, new, both)


def differences_of(
    base: Fitted | Experiment,
    new: Fitted | Experiment,
    metric: str | None = None,
    held: Mapping[str, float] | None = None,
    options: FitOptions | None = None,
    days: ScatterOfDays | None = None,
) -> Differences:
    """Return the differences of two experiments at any target.

    Parameters
    ----------
    base, new, metric, held : as for `compare`
    options : parameter, centre of repetitions, confidence and workers, as for `compare`
    days : scatter from day to day that both experiments have; None = not known

    Raises
    ------
    UsageError, DataError
        As `compare` does.
    """
    options = options or FitOptions()
    parameter = options.parameter
    old, young = (side if isinstance(side, Fitted) else None for side in (base, new))
    before, after = (side.experiment if isinstance(side, Fitted) else side for side in (base, new))
    known = old or young
    if known:
        metric, parameter = metric or known.metric.name, parameter or known.parameter
    if old and young and old.models.aggregate != young.models.aggregate:
        # The minimum of some repetitions and the mean of others would always differ.
        how = replace(fit_options_of(young, options), aggregate=old.models.aggregate)
        young = fit(after, young.metric.name, how)
    held = settings_of(held or {}, "held")
    held = _said([side for side in (old, young) if side], parameter, held)
    before, after, parameter = at_scales(before, after, parameter)
    line = common_line(before, after, parameter, held)
    old, young = _along(old, line), _along(young, line)
    pair = pair_up((before, old), (after, young), metric, line, options.aggregate)
    return Differences(pair, options.confidence, days)


def at_scales(
    base: Experiment, new: Experiment, parameter: str | None
) -> tuple[Experiment, Experiment, str | None]:
    """Return two experiments and the parameter; two of unknown scale are taken as of one scale."""
    if parameter in {None, UNKNOWN_SCALE} and says_no_scale(base) and says_no_scale(new):
        return with_unknown_scale(base), with_unknown_scale(new), UNKNOWN_SCALE
    return base, new, parameter


def _said(
    sides: Sequence[Fitted], parameter: str | None, held: Mapping[str, float]
) -> dict[str, float]:
    """Return the held values that the user chose, now or for the models."""
    said = dict(held)
    for side in sides:
        for name, value in side.said.items():
            if name not in held and name != parameter and said.setdefault(name, value) != value:
                raise UsageError(
                    f"models of base are held at {setting_text({name: said[name]})},"
                    f" of new at {parameter_value(value)}",
                    hint=f"choose a value: held={{{name!r}: {parameter_value(value)}}}",
                )
    return said


def _along(fitted: Fitted | None, line: ParameterLine) -> Fitted | None:
    """Return the models along a line."""
    if fitted is None or fitted.surface is None:
        return fitted
    mine = {name: line.held[name] for name in fitted.surface.parameters if name in line.held}
    return fitted.holding(mine, line.parameter)


def _findings(
    experiment: Experiment, fitted: Fitted | None, target: float | None
) -> tuple[Finding, ...]:
    if fitted is None:
        return experiment.findings
    return findings_at(fitted, float(fitted.points[-1]) if target is None else target)


def has_enough_points(
    experiment: Experiment, metric: str | None, line: ParameterLine, options: FitOptions
) -> bool:
    """Return whether there are enough scales for models along a line."""
    if not experiment.parameters:
        return False
    names = experiment.modelled_parameters(line.parameter)
    settings, cube = experiment.by_setting(experiment.metric(metric).name, names)
    measured = settings[~np.isnan(cube).all(axis=(0, 2))]
    least = modeling.MIN_POINTS[options.method]
    return all(len(np.unique(column)) >= least for column in measured.T)
