"""Predictions against later runs, and the calibration of bands by them.

A score tells where in its band a measurement lies: 0 at the predicted value, 1 at the end of the
band. Distances are logarithms. Bands of level L are calibrated if L is the quantile of the scores
at 1.

Call paths of one run share its noise, and all predictions of one set of runs share the errors of
these runs. So the unit of evidence is not the call path. Predictions that share a run, directly or
through others, are one set. Sets are independent, and each has the weight 1. This is the
hierarchical form of conformal prediction (Lee, Barber and Willett, 2023).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.measured import sum_over, with_means_of_repetitions
from callpath_modeler.analysis.pairing import common_line, findings_of_constants, pair_up
from callpath_modeler.analysis.uncertain import Band, Total, deviation
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.modeling.distributions import normal_quantile, normal_share
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import inclusive_values
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


SIGNIFICANT = 0.05
"""Largest probability at which bands are said to hold too rarely."""

_HALVINGS = 50
_LEAST_FACTOR = 0.01
_MOST_SCORE = 1e6
_KEPT = 4
"""Number of sets of the prior. In simulations, it costs 1 to 6 % of width where bands keep their
promise. Of bands of half the width, 12 sets make 91 to 94 % hold instead of 67 %."""
_ROUNDED = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class BandCalibration:
    """How often bands held, and the factor that corrects later ones.

    Attributes
    ----------
    level : probability with which each band should hold
    predictions : number of bands that were held against measurements
    held : number of those that held
    sets : number of independent sets of predictions
    coverage : share of bands that held; each set has the same weight; NaN = there are none
    probability : bound of the probability of so few holding bands if each holds with `level`
    factor : factor of the widths of later bands, on a logarithmic scale
    """

    level: float
    predictions: int
    held: int
    sets: int
    coverage: float
    probability: float
    factor: float

    @property
    def is_too_narrow(self) -> bool:
        """Whether bands hold significantly more rarely than promised."""
        return self.probability <= SIGNIFICANT


def band_calibration(
    scores: FloatArray, holds: BoolArray, sets: IntArray, level: float
) -> BandCalibration:
    """Return the calibration of bands.

    Parameters
    ----------
    scores : [n] as `band_scores` returns; NaN = the band has no width to change
    holds : [n] whether the band held
    sets : [n] number of the independent set of each prediction
    level : probability with which each band should hold
    """
    members = [sets == each for each in np.unique(sets)]
    missed = np.array([float(np.mean(~holds[own])) for own in members])
    known = [scores[own & ~np.isnan(scores)] for own in members]
    return BandCalibration(
        level,
        len(holds),
        int(holds.sum()),
        len(members),
        1 - float(missed.mean()) if members else float("nan"),
        missed_probability(missed, level),
        band_factor([each for each in known if len(each)], level),
    )


def band_scores(
    value: FloatArray, low: FloatArray, high: FloatArray, measured: FloatArray
) -> FloatArray:
    """Return where in their bands measurements lie, [n]: 0 at the value, 1 at the end of the band.

    Distances are logarithms, up and down separately. NaN = the band has no width, or its value is
    zero, so that no factor changes it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.log(measured / value)
        reach = np.where(off > 0, np.log(high / value), np.log(value / low))
        score = np.abs(off) / reach
    score = np.minimum(np.where(np.isnan(score), 0.0, score), _MOST_SCORE)
    score = np.where(band_holds(measured, low, high), np.minimum(score, 1.0), score)
    return np.where((value > 0) & (reach > 0), score, np.nan)


def missed_probability(missed: FloatArray, level: float) -> float:
    """Return a bound of the probability of so many misses, if each band holds with `level`.

    For one prediction of each set, the likelihood ratio of a miss rate q is q over 1 - level for a
    miss, and (1 - q) over level for a hit. Its mean over the predictions of a set has an
    expectation of at most 1, however they are correlated. So has the product over sets, and the
    mean over several q. The bound is 1 over this mean (Markov's inequality).

    Parameters
    ----------
    missed : [sets] share of bands that did not hold
    level : probability with which each band should hold
    """
    rate = 1 - level
    rates = [rate * 2**k for k in range(1, 64) if rate * 2**k < 1] + [1.0]
    with np.errstate(divide="ignore"):
        products = [np.log(q / rate * missed + (1 - q) / level * (1 - missed)).sum() for q in rates]
    evidence = float(np.logaddexp.reduce(products)) - np.log(len(rates))
    return float(np.exp(-max(evidence, 0.0)))


def band_factor(scores: Sequence[FloatArray], level: float) -> float:
    """Return the factor of the widths of later bands.

    It is the quantile of the scores at `level`, in which each set has the weight 1. Further sets,
    `_KEPT`, whose bands keep their promise, are the prior. So a single set that misses widens bands
    less than it asks for. Bands become narrower only if the next set may lie anywhere, and
    narrower ones still hold. For a level of 95 %, this needs 19 sets.

    Parameters
    ----------
    scores : scores of each set
    level : probability with which each band should hold
    """
    if not scores:
        return 1.0
    rate, end = 1 - level, float(normal_quantile(0.5 + level / 2))

    joined = np.concatenate(list(scores))
    order = np.argsort(joined, kind="stable")
    ascending = joined[order]
    weight = np.repeat([1 / len(each) for each in scores], [len(each) for each in scores])
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)

    def beyond(factor: float) -> float:
        return float(above[np.searchsorted(ascending, factor, side="right")])

    def is_enough(factor: float) -> bool:
        promised = 2 * (1 - float(normal_share(np.array(factor * end))))
        return beyond(factor) + _KEPT * promised <= rate * (len(scores) + _KEPT) * _ROUNDED

    def is_enough_anyway(factor: float) -> bool:
        return beyond(factor) + 1 <= rate * (len(scores) + 1) * _ROUNDED

    if is_enough_anyway(1.0):
        least, most, test = _LEAST_FACTOR, 1.0, is_enough_anyway
    elif is_enough(1.0):
        return 1.0
    else:
        least, test = 1.0, is_enough
        most = max(float(each.max()) for each in scores)
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(least * most))
        if test(middle):
            most = middle
        else:
            least = middle
    return most


def independent_sets(runs: Sequence[Iterable[str]]) -> IntArray:
    """Return the number of the set of each group of runs; groups that share a run are one set.

    Parameters
    ----------
    runs : [n] names of the runs of each group
    """
    of_run: dict[str, int] = {}
    leader: list[int] = []

    def first(group: int) -> int:
        while leader[group] != group:
            group = leader[group]
        return group

    for number, names in enumerate(runs):
        leader.append(number)
        for name in names:
            other = of_run.setdefault(name, number)
            one, another = first(number), first(other)
            leader[max(one, another)] = min(one, another)
    return np.array([first(group) for group in range(len(leader))], np.intp)
