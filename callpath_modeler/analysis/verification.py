"""Predictions against runs that the models have not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.bands import Band, Total, deviation
from callpath_modeler.analysis.measured import sum_over, with_means_of_repetitions
from callpath_modeler.analysis.pairing import common_line, findings_of_constants, pair_up
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.modeling.distributions import normal_quantile
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.metric_values import inclusive_values
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.reductions import statistic_of_present
from callpath_modeler.units import parameter_value, setting_text

FROM = 0.005
"""Share of the measured total from which call paths count."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Verification:
    """Predictions of a ranking, and measurements at its target.

    Columns are [call paths], in the order of the ranking's experiment.

    Attributes
    ----------
    runs : number of measured runs
    value : measured value, the mean of the runs; NaN = did not occur
    modelled : True if the call path has a prediction
    inside : True if the band contains the measurement, up to the scatter of so few runs
    counts : True if the measurement is at least `FROM` of the total
    total : measured run time, or the sum of the call paths if no run time was predicted
    predicted : the prediction of it, with its band
    unknown : measured total of the call paths that no run of the models has
    findings : constants that differ between the runs of the models and these runs
    """

    runs: int
    value: FloatArray
    modelled: BoolArray
    inside: BoolArray
    counts: BoolArray
    total: float
    predicted: Total
    unknown: float
    findings: tuple[Finding, ...] = ()

    @property
    def holds(self) -> bool:
        """True if the band of the total contains the measurement."""
        low, high = (np.array([end]) for end in self.predicted[1:])
        return bool(band_holds(np.array([self.total]), low, high)[0])

    @property
    def error(self) -> float:
        """Relative error of the predicted total."""
        return float(deviation(np.array([self.predicted[0]]), np.array([self.total]))[0])

    @property
    def judged(self) -> BoolArray:
        """True for call paths that count and have a prediction."""
        return self.counts & self.modelled


def verify(ranking: Ranking, experiment: Experiment) -> Verification:
    """Return the measurements of an experiment at the target of a ranking.

    Only runs at the target count, with the other parameters of the models.

    Raises
    ------
    UsageError
        If the target is infinite, or if the models have seen it.
    DataError
        If the experiment has no run at the target, or no call path of the ranking.
    """
    fitted, target = ranking.fitted, ranking.target
    parameter = fitted.parameter
    if np.isinf(target):
        raise UsageError("--verify needs a finite target", hint="give the scale of the runs")
    if (fitted.points == target).any() and fitted.held == fitted.measured_at:
        where = setting_text({parameter: target})
        raise UsageError(
            f"the models have seen runs at {where}, so these verify nothing",
            hint=f"make the models without them: --where '{parameter}<{parameter_value(target)}'",
        )
    there = _at_target(experiment, ranking)
    metric = fitted.metric.name
    line = common_line(fitted.experiment, there, parameter, fitted.held)
    pair = pair_up((fitted.experiment, fitted), (there, None), metric, line)
    runs = pair.new.values[:, pair.new.points == target][:, 0]
    sums = sum_over(with_means_of_repetitions(runs))
    centre = statistic_of_present(runs, Reduction.MEAN)
    exclusive = centre[pair.base.rows]
    if ranking.inclusive and fitted.metric.additive:
        value = inclusive_values(fitted.experiment.tree, exclusive)
    else:
        value = exclusive
    known = np.isin(np.arange(len(centre)), pair.base.rows)
    total, predicted = float(np.nanmean(sums)), ranking.total
    run_time = there.columns[metric].run_time
    if ranking.run_time is not None and run_time is not None:
        total, predicted = float(np.nanmean(run_time)), ranking.run_time.total
    number = int((~np.isnan(sums)).sum())
    band, level = Band(ranking.value, ranking.low, ranking.high), fitted.models.confidence
    judged = band_of_mean(band, noise_of_run(ranking), number, level)
    return Verification(
        runs=number,
        value=value,
        modelled=~np.isnan(ranking.low),
        inside=band_holds(value, judged.low, judged.high),
        counts=matters(value, float(np.nanmean(sums))),
        total=total,
        predicted=predicted,
        unknown=float(np.nansum(centre[~known])),
        findings=tuple(findings_of_constants(pair, "models and measured runs")),
    )


def noise_of_run(ranking: Ranking) -> FloatArray:
    """Return the relative noise of one run, [call paths]; 0 = not known, as with callees."""
    models = ranking.fitted.models
    return np.zeros(len(ranking.value)) if ranking.inclusive else np.nan_to_num(models.noise)


def band_of_mean(band: Band, noise: FloatArray, runs: int, level: float) -> Band:
    """Return bands for the mean of some runs, [n].

    A band is one of the mean of many runs. The mean of few runs scatters about it.

    Parameters
    ----------
    band : predictions, [n]
    noise : [n] relative noise of one run
    runs : number of runs
    level : confidence of the bands
    """
    scatter = normal_quantile(0.5 + level / 2) * noise / np.sqrt(runs)
    value, low, high = band.value, band.low, band.high
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below, above = np.log(value / low), np.log(high / value)
        ends = value * np.exp(-np.hypot(below, scatter)), value * np.exp(np.hypot(above, scatter))
    return Band(value, np.where(value > 0, ends[0], low), np.where(value > 0, ends[1], high))


def _at_target(experiment: Experiment, ranking: Ranking) -> Experiment:
    """Return the runs at the target, and at the fixed values of the other parameters."""
    fitted = ranking.fitted
    parameter = fitted.parameter
    asked = {**fitted.experiment.own_constants, **fitted.at(ranking.target)}
    there = runs_at(experiment, parameter, asked)
    if there is None:
        known = experiment.runs[0].parameters
        asked = {name: value for name, value in asked.items() if name in known}
        found = experiment.points(parameter) if parameter in known else np.array([])
        listed = ", ".join(map(parameter_value, found.tolist())) or "unknown"
        raise DataError(
            f"--verify has no run at {setting_text(asked)}, so nothing can be verified there",
            hint=f"its runs are at {parameter} = {listed}",
        )
    return there


def runs_at(
    experiment: Experiment, parameter: str, setting: Mapping[str, float]
) -> Experiment | None:
    """Return the runs at a setting; None = there is no such run.

    Parameters
    ----------
    parameter : the parameter that the runs must tell
    setting : values of parameters; those that no run tells are ignored
    """
    known = experiment.runs[0].parameters
    if parameter not in known:
        return None
    asked = {name: value for name, value in setting.items() if name in known}
    matches = (experiment.settings([*asked]) == [*asked.values()]).all(axis=1)
    return experiment.where(matches) if matches.any() else None


def matters(value: FloatArray, total: float) -> BoolArray:
    """Return whether measured values are at least `FROM` of the measured total."""
    return np.asarray(np.nan_to_num(value) >= FROM * total)


def band_holds(value: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
    """Return whether bands contain measured values, up to rounding."""
    slack = _ROUNDING * np.abs(value)
    return np.asarray((low <= value + slack) & (value - slack <= high))
