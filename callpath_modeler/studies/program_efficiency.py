"""Parallel efficiency: its factors in profiles, measured, and predicted at a target."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.efficiency_factors import (
    ALONE,
    INGREDIENTS,
    Efficiency,
    FactorsAtScale,
    PopFactor,
    Scheme,
    factors_of,
    measured_efficiency,
    memory_findings,
    places_of,
    share_of_program,
    without_communication,
)
from callpath_modeler.analysis.predict import Predicted, predict, with_callees
from callpath_modeler.analysis.run_time import predicted_run_time
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling.distributions import as_normal, end_score, normal_share, scores
from callpath_modeler.profile.balance import PARTS, Activity, Part, activities_of
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import MetricValues, inclusive_values
from callpath_modeler.profile.pattern import Patterns
from callpath_modeler.profile.pruning import Folding, recursive_calls, refuse_unnamed
from callpath_modeler.profile.schema import Metric, Reduction, Region
from callpath_modeler.readers.threads import BalanceRequest
from callpath_modeler.studies.loading import LoadOptions
from callpath_modeler.studies.pipeline import FitOptions, fit
from callpath_modeler.studies.question import (
    Question,
    Target,
    checked_target,
    findings_at,
    slice_findings,
    target_of_efficiency,
)
from callpath_modeler.units import counted

_DRAWS = 1000
"""Number of draws of the ingredients of a subtree, of which the band of a factor is made."""
_SEED = 20
_QUANTILES = 41
"""Number of quantiles of a prediction between which draws are interpolated."""
_OUTERMOST = 3.0
"""Normal score of the outermost quantile."""
_LEAST = 1e-6
"""Smallest ratio of the end of a band to its value that is drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class EfficiencyAnswer:
    """Factors of efficiency, with findings about the runs and the target.

    Attributes
    ----------
    efficiency : the factors at the measured scales, and at the target
    confidence : confidence of the bands at the target
    findings : data quality findings
    """

    efficiency: Efficiency
    confidence: float
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        return f"{repr(self.efficiency)[:-1]}, {counted(len(self.findings), 'finding')}>"


def reading_parts(options: LoadOptions, metric: str | None) -> LoadOptions:
    """Return the options to read the parts of the run time of all call paths."""
    request = BalanceRequest(metric, tuple(options.ignore))
    # The values of threads do not depend on the statistic over processes. A ratio has no run time.
    locations = options.read.locations
    if locations is Reduction.IMBALANCE:
        locations = None
    read = replace(options.read, balance=request, locations=locations)
    return replace(options, ignore=(), hide=(), fold=(), read=read)


def parts_of(experiment: Experiment, options: LoadOptions) -> Experiment:
    """Return the experiment of `reading_parts` without call paths that `options` hide."""
    named = tuple(
        () if option in options.preset else patterns
        for option, patterns in (("--ignore", options.ignore), ("--hide", options.hide))
    )
    if any(named):
        refuse_unnamed([experiment.tree], *named)
    folded = np.zeros(len(experiment.tree), bool)
    if options.hide:
        names = Patterns.of(experiment.tree)
        folded |= np.logical_or.reduce([names.match(pattern) for pattern in options.hide])
    if Folding.RECURSION in options.fold:
        folded |= recursive_calls(experiment.tree)
    return without_communication(_without_hidden(experiment, folded))


def efficiency_of(
    experiment: Experiment, question: Question, options: FitOptions, *, whole: bool
) -> EfficiencyAnswer:
    """Return the factors of efficiency at the measured scales, and at a target.

    Parameters
    ----------
    experiment : result of `parts_of`
    question : the time and the target; without a target, only measured scales are returned
    options : options of making models of the ingredients of the factors
    whole : whether the parts are those of all call paths

    Raises
    ------
    DataError
        If no run has values of single threads, or if the runs do not allow the models of a target.
    """
    parameter = options.parameter
    at, held = _asked(experiment, question.scale(parameter), parameter)
    name = experiment.metric(question.metric).name
    found = measured_efficiency(experiment, name, parameter, held=held, aggregate=options.aggregate)
    findings = [*experiment.findings, *memory_findings(found.experiment)]
    if at is not None and at not in found.scales:
        try:
            found, more = _predicted(found, at, options, whole=whole)
            findings += more
        except DataError:
            if question.is_target_required:
                raise
    findings += slice_findings(found.line.held, found.line.assumed)
    return EfficiencyAnswer(found, options.confidence, tuple(dict.fromkeys(findings)))


def _without_hidden(experiment: Experiment, hidden: BoolArray) -> Experiment:
    """Return the experiment without the parts of subtrees whose roots are `hidden`."""
    if not hidden.any():
        return experiment
    balances = tuple(
        None
        if each is None
        else each.take(np.array([row == ROOT or not hidden[row] for row in each.rows.tolist()]))
        for each in experiment.balances
    )
    return replace(experiment, balances=balances)


def _asked(
    experiment: Experiment, target: Target, parameter: str | None
) -> tuple[float | None, dict[str, float]]:
    """Return the target along the parameter of the scales, and the values of other parameters.

    Values of other parameters need no target: they choose the runs, as for excess work.
    """
    if not target.named:
        return target_of_efficiency(target.value), {}
    chosen = parameter or ALONE
    if parameter is None and experiment.parameters:
        chosen = experiment.modelled_parameters()[0]
    held = {name: value for name, value in target.named.items() if name != chosen}
    return target_of_efficiency(target.named.get(chosen)), held


def _predicted(
    found: Efficiency, target: float, options: FitOptions, *, whole: bool
) -> tuple[Efficiency, list[Finding]]:
    """Return the factors with an estimate at a target.

    Parameters
    ----------
    whole : whether the parts are those of all call paths
    """
    subtrees = len(found.rows)
    value = np.zeros((subtrees, INGREDIENTS))
    draws = np.zeros((_DRAWS, subtrees, INGREDIENTS))
    generator = np.random.default_rng(_SEED)
    findings: list[Finding] = []
    for columns, unit in ((np.arange(PARTS), "s"), (np.arange(PARTS, INGREDIENTS), "1")):
        lines = found.ingredients[..., columns]
        lines = np.moveaxis(lines, 3, 1).reshape(-1, *found.ingredients.shape[1:3])
        # A part that is always zero stays zero, and needs no model.
        needed = np.asarray((np.nan_to_num(lines) > 0).any(axis=(1, 2)))
        of_lines = np.where(np.isnan(lines[:, -1]).all(axis=1), np.nan, 0.0)
        drawn = np.repeat(of_lines[None, :], _DRAWS, axis=0)
        if needed.any():
            fitted = _models(found, lines, needed, unit, options)
            of_models, of_draws = _draw(fitted, checked_target(fitted, target), generator)
            of_lines[needed], drawn[:, needed] = of_models, of_draws
            findings += [each for each in findings_at(fitted, target) if each.subject == "target"]
        value[:, columns] = of_lines.reshape(subtrees, len(columns))
        draws[:, :, columns] = drawn.reshape(_DRAWS, subtrees, len(columns))
    if whole:
        _agree_with_call_paths(found, target, options, (value, draws), generator)
    estimate = _estimate(found, target, value, draws, options.confidence)
    return replace(found, estimates=(*found.estimates, estimate)), findings


def _agree_with_call_paths(
    found: Efficiency,
    target: float,
    options: FitOptions,
    predicted: tuple[FloatArray, FloatArray],
    generator: np.random.Generator,
) -> None:
    """Make the parts of the run time add up to the predictions of the ranking.

    The run time and the computation are those of the ranking. Models of the parts only divide the
    rest of the run time into imbalance and communication. A subtree takes the sum of its call paths
    times the ratio of the slowest process to the mean, and at most as long as the program.

    Parameters
    ----------
    predicted : ingredients, [subtrees, ingredients], and draws of them, [draws, subtrees,
        ingredients]; changed in place
    """
    experiment = replace(found.experiment, balances=())
    if experiment.reduction is not Reduction.MEAN:
        return
    fitted = fit(experiment, found.metric, replace(options, parameter=found.line.parameter))
    own = predict(fitted, target)
    confidence = fitted.models.confidence
    at = scores(confidence)

    def drawn(band: FloatArray) -> FloatArray:
        # Times are above zero, so their bands are normal on a logarithmic scale.
        value = band[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.nan_to_num(band[1:] / value, nan=1.0)  # a value without a band is exact
        ends = np.log(np.clip(ratios, _LEAST, 1 / _LEAST))
        reach = at / end_score(confidence)
        low, high = (end[:, None] * np.abs(reach) for end in ends)
        return _drawn(value[:, None] * np.exp(np.where(reach < 0, low, high)), at, generator)

    value, draws = predicted
    # A model of a process with several threads does not tell their parts.
    if not found.is_hybrid:
        computes = activities_of(experiment.tree) == Activity.COMPUTATION
        useful = _of_subtrees(found, _only(own, computes))
        value[:, Part.USEFUL], draws[..., Part.USEFUL] = useful[0], drawn(useful)
    run_time = np.array(predicted_run_time(fitted, target, own.total()))
    whole = drawn(run_time[:, None])[:, 0]
    # Communication is the least certain part, so a run with much of it is a long run.
    its_share = draws[:, 0, Part.COMMUNICATION] / draws[:, 0, :PARTS].sum(axis=1)
    whole[np.argsort(its_share, kind="stable")] = np.sort(whole)
    sums = _of_subtrees(found, own)
    ratios = _over_the_mean(found, target, options, generator)
    for parts, mean, ratio, most in zip(
        (value[:, :PARTS], draws[..., :PARTS]),
        (sums[0], drawn(sums)),
        ratios,
        (run_time[0], whole[:, None]),
        strict=True,
    ):
        wanted = np.minimum(mean * np.maximum(ratio, 1.0), most)
        wanted = np.where(np.isnan(wanted), parts.sum(axis=-1), wanted)
        wanted[..., :1] = most
        _add_up(parts, wanted)


def _over_the_mean(
    found: Efficiency, target: float, options: FitOptions, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return run times of subtrees over their mean over processes at a target, and draws of them.

    Returns
    -------
    [subtrees], [draws, subtrees]
        NaN where it is not known.
    """
    tree, name = found.experiment.tree, found.experiment.metric(found.metric).name
    means = inclusive_values(tree, found.experiment.columns[name].exclusive)[found.rows[1:]]
    longest = found.ingredients[1:, :, :, :PARTS].sum(axis=3)
    lines = np.full((len(found.rows), *longest.shape[1:]), np.nan)
    for run, (scale, repetition) in enumerate(_places(found)):
        with np.errstate(divide="ignore", invalid="ignore"):
            lines[1:, scale, repetition] = longest[:, scale, repetition] / means[:, run]
    value, draws = np.full(len(lines), np.nan), np.full((_DRAWS, len(lines)), np.nan)
    needed = np.asarray(np.isfinite(lines[:, -1]).any(axis=1))
    if needed.any():
        fitted = _models(found, np.where(np.isfinite(lines), lines, np.nan), needed, "1", options)
        of_models, of_draws = _draw(fitted, checked_target(fitted, target), generator)
        value[needed], draws[:, needed] = of_models, of_draws
    return value, draws


def _only(own: Predicted, chosen: BoolArray) -> Predicted:
    """Return predictions without those of other call paths."""
    value, low, high = (np.where(chosen, end, 0.0) for end in (own.value, own.low, own.high))
    added = np.where(chosen[:, None], own.added, 0.0)
    return structs.replace(own, value=value, low=low, high=high, added=added)


def _of_subtrees(found: Efficiency, own: Predicted) -> FloatArray:
    """Return sums of call paths with their bands: value, low and high, [3, subtrees]."""
    whole, rows = with_callees(found.experiment.tree, own), found.rows[1:]
    columns = zip(own.total(), (whole.value, whole.low, whole.high), strict=True)
    return np.stack([np.concatenate([[total], column[rows]]) for total, column in columns])


def _add_up(parts: FloatArray, whole: FloatArray) -> None:
    """Change imbalance and communication, so that parts [..., parts] add up to times [...].

    If the other parts take longer than that, these become shorter, and there is no rest.
    """
    others, rest = parts[..., : Part.IMBALANCE], parts[..., Part.IMBALANCE :]
    outside, inside = others.sum(axis=-1), rest.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        others *= np.where(outside > whole, whole / outside, 1.0)[..., None]
        share = np.where(inside > 0, rest[..., 0] / inside, 0.0)
    left = np.maximum(whole - outside, 0.0)
    rest[..., 0], rest[..., 1] = share * left, (1 - share) * left


def _models(
    found: Efficiency, lines: FloatArray, needed: BoolArray, unit: str, options: FitOptions
) -> Fitted:
    """Return models of ingredients, as if each were a call path."""
    places = np.flatnonzero(needed)
    at = _places(found)
    values = np.empty((len(places), len(at)))
    for run, (scale, repetition) in enumerate(at):
        values[:, run] = lines[places, scale, repetition]
    tree = CallTree.from_parents(
        np.full(len(places), ROOT), np.zeros(len(places), int), [Region("ingredient")]
    )
    metric = Metric(found.metric, unit)
    columns = {metric.name: MetricValues(metric, values, np.nansum(values, axis=0))}
    experiment = replace(
        found.experiment, tree=tree, columns=columns, reduction=Reduction.MEAN, findings=(),
        balances=(),
    )  # fmt: skip
    return fit(experiment, metric.name, replace(options, parameter=found.line.parameter))


def _places(found: Efficiency) -> list[tuple[int, int]]:
    """Return the scale and the repetition of each run, as places in the ingredients."""
    of_run = found.experiment.settings([found.line.parameter])[:, 0]
    return list(places_of(np.searchsorted(found.scales, of_run)))


def _draw(
    fitted: Fitted, target: float, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return predictions of all rows, [n], and independent draws of each, [draws, n]."""
    models, where = fitted.models, np.array([target])
    band = models.predict(where)
    value, low, high = (column[:, 0] for column in (band.value, band.low, band.high))
    if models.method == "classic":
        at = scores(models.confidence)
        quantiles = as_normal(value, low, high, models.confidence)
        quantiles = np.maximum.accumulate(quantiles, axis=1)
    else:
        at = np.linspace(-_OUTERMOST, _OUTERMOST, _QUANTILES)
        mixture = models.mixture(where)
        quantiles = mixture.quantiles(normal_share(at))[..., 0].T
    drawn = _drawn(quantiles, at, generator)
    known = fitted.modelled
    return np.where(known, value, np.nan), np.where(known, drawn, np.nan)


def _drawn(quantiles: FloatArray, at: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Return independent draws of rows, [draws, n], from quantiles [n, k] at normal scores [k]."""
    # The middle of each of as many equal shares as there are draws, in random order.
    probability = (np.arange(_DRAWS) + 0.5) / _DRAWS
    grid = np.interp(probability, normal_share(at), np.arange(len(at)))
    below = np.minimum(grid.astype(np.intp), len(at) - 2)
    share = (grid - below)[:, None]
    drawn = (1 - share) * quantiles[:, below].T + share * quantiles[:, below + 1].T
    return generator.permuted(drawn, axis=0)


def _estimate(
    found: Efficiency, target: float, value: FloatArray, draws: FloatArray, confidence: float
) -> FactorsAtScale:
    """Return the factors at a target from predicted ingredients, [subtrees, ...], and draws."""
    threads = np.array(found.threads_at(target))
    ends = (1 - confidence) / 2, (1 + confidence) / 2
    of_value: dict[tuple[Scheme, PopFactor], FloatArray] = {}
    low, high = dict(of_value), dict(of_value)
    for scheme in Scheme:
        centre = factors_of(value, threads, found.reference, scheme)
        drawn = factors_of(np.moveaxis(draws, 0, 1), threads, found.reference, scheme)
        for factor in PopFactor:
            with np.errstate(invalid="ignore"):
                edges = np.quantile(drawn[factor], ends, axis=1)
            of_value[scheme, factor] = centre[factor]
            low[scheme, factor] = np.fmin(edges[0], centre[factor])
            high[scheme, factor] = np.fmax(edges[1], centre[factor])
    return FactorsAtScale(target, 0, of_value, low, high, share_of_program(value))
