"""Findings about models: call paths without a model, and gaps in the choice of runs."""

from __future__ import annotations

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.wrapped_counters import wrapped_from
from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.modeling import FitStatus, Models
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.parameter_line import worker_parameter
from callpath_modeler.profile.schema import Metric
from callpath_modeler.units import counted, percent, setting_text, significant

RECOMMENDED_POINTS = 5
"""Recommended number of points of a model."""


def findings_of_parameters(experiment: Experiment, parameters: tuple[str, ...]) -> list[Finding]:
    """Return findings about parameters that change together with the modelled ones."""
    others = [other for other in experiment.parameters if other.name not in parameters]
    main = parameters[0]
    return [
        Finding(
            "CPM116",
            other.name,
            f"{len(other.values)} values over those of {main}; targets are values of {main}, "
            f"and of {other.name} with --parameter {shell_word(other.name)}",
        )
        for other in others
    ]


def findings_of_models(
    models: Models,
    points: FloatArray,
    parameters: tuple[str, ...],
    centres: FloatArray,
) -> list[Finding]:
    """Return findings about call paths without a model, and about the choice of runs.

    Parameters
    ----------
    models : n models
    points : [K, D] settings, of parameters in this order
    parameters : [D] names
    centres : [n, K] measured centres
    """
    total, since = np.nansum(centres), modeling.changes_since(models)
    found = []
    for code, status, words in (
        ("CPM201", FitStatus.TOO_FEW_POINTS, "measured at too few points"),
        ("CPM202", FitStatus.OUTSIDE, "off every model by more than noise explains"),
        ("CPM203", FitStatus.NOISY, "with repetitions further apart than points"),
    ):
        # A call path without own values, such as the root of parts of a total, needs no model.
        rows = (models.status == status) & ~np.isnan(centres).all(axis=1)
        if status is FitStatus.OUTSIDE:
            rows &= since == 0
        if rows.any():
            share = percent(np.nansum(centres[rows]) / total if total > 0 else 0.0)
            count = int(rows.sum())
            message = f"{counted(count, 'call path')}, {share} of the cost of all scales, {words}"
            found.append(Finding(code, "models", message, count))
    # Work that doubles with each further process does not exist: another cause bends the curve.
    if worker_parameter(parameters) is None:
        found += _exponentials(models, parameters[0], centres)
    if since.any():
        found.append(_change_points(since, parameters[0], np.nan_to_num(centres)))
    for parameter, column in zip(parameters, points.T, strict=True):
        if (count := len(np.unique(column))) < RECOMMENDED_POINTS:
            found.append(Finding("CPM204", "models", f"{counted(count, 'point')} of {parameter}"))
    if len(parameters) > 1 and _vary_one_at_a_time(points):
        largest = setting_text(dict(zip(parameters, points.max(axis=0).tolist(), strict=True)))
        message = f"whether they add up or multiply is assumed; a run at {largest} would tell"
        found.append(Finding("CPM207", "models", message))
    if models.odd_scale is not None:
        odd, factor = models.odd_scale
        held = {name: at for name, at in zip(parameters, odd, strict=True) if at is not None}
        where, times = setting_text(held), significant(factor)
        message = f"at {where} nearly all call paths are {times} times what the other scales say"
        found.append(Finding("CPM208", "models", message))
    return found


def findings_of_counters(
    metric: Metric, points: FloatArray, parameters: tuple[str, ...], centres: FloatArray
) -> list[Finding]:
    """Return a finding about counters that are wrapped; arguments as in `findings_of_models`."""
    if len(parameters) > 1 or not metric.is_requirement:
        return []
    since = wrapped_from(points[:, 0], centres)
    if (since < 0).all():
        return []
    count, first = int((since >= 0).sum()), int(since[since >= 0].min())
    where = setting_text({parameters[0]: float(points[first, 0])})
    message = f"{counted(count, 'call path')} of {metric.name}, from {where} on"
    return [Finding("CPM215", "models", message, count)]


def _exponentials(models: Models, parameter: str, centres: FloatArray) -> list[Finding]:
    """Return a finding about the most expensive call path that an exponential fits far better."""
    better = modeling.better_exponentials(models, centres)
    if better is None:
        return []
    cost = np.nan_to_num(centres).sum(axis=1)
    worst = int(np.argmax(cost[better.rows]))
    share = percent(cost[better.rows].sum() / cost.sum() if cost.sum() > 0 else 0.0)
    term = better.terms[worst].text(parameter)
    off = percent(better.error[worst], 1)
    off_model = better.error_of_model[worst]
    of_model = percent(off_model, 1) if off_model <= 1 else "more than 100 %"
    count = len(better.rows)
    message = (
        f"{counted(count, 'call path')}, {share} of the cost of all scales; {term} is off by "
        f"{off}, the model by {of_model}"
    )
    return [Finding("CPM210", "models", message, count)]


def _change_points(since: FloatArray, parameter: str, centres: FloatArray) -> Finding:
    """Return a finding about the change point with most of the cost, with the scales beyond it.

    `since` [call paths] is 0 for call paths without one; `centres` is [call paths, K].
    """
    rows = since > 0
    cost = centres.sum(axis=1)
    places = np.unique(since[rows])
    at = places[np.argmax([cost[since == place].sum() for place in places])]
    share = percent(cost[rows].sum() / cost.sum() if cost.sum() > 0 else 0.0)
    where = shell_word(f"{parameter}>={at:.17g}")
    most = "most of it " * (len(places) > 1)
    message = (
        f"{counted(int(rows.sum()), 'call path')}, {share} of the cost of all scales, {most}from "
        f"{setting_text({parameter: float(at)})} on; select these scales with --where {where}"
    )
    return Finding("CPM209", "models", message, int(rows.sum()))


def _vary_one_at_a_time(points: FloatArray) -> bool:
    """Return True if no point of [K, D] has two parameters at unusual values."""
    apart = np.zeros(len(points), dtype=np.intp)
    for column in points.T:
        values, which, count = np.unique(column, return_inverse=True, return_counts=True)
        if len(values) > 1:
            apart += which.ravel() != count.argmax()
    return bool((apart <= 1).all())
