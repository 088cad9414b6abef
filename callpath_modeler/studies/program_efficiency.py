"""Parallel efficiency: its factors in profiles, and the problem sizes that keep it.

Factors are read, measured, and predicted at a target. Isoefficiency needs models in two parameters.

References
----------
Grama, Gupta, Kumar: Isoefficiency: measuring the scalability of parallel algorithms and
architectures (IEEE Parallel and Distributed Technology 1(3), 1993).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from msgspec import Struct

from callpath_modeler import modeling
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
    share_of_program,
    without_communication,
)
from callpath_modeler.analysis.predict import predict, with_callees
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError, check_probability
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models
from callpath_modeler.modeling.distributions import as_normal, normal_share, scores
from callpath_modeler.modeling.growth import Growth, raised
from callpath_modeler.modeling.lines import ratio_of_sums
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.balance import PARTS, Part
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.pattern import Patterns
from callpath_modeler.profile.pruning import Folding, recursive_calls, refuse_unnamed
from callpath_modeler.profile.runs import worker_parameter
from callpath_modeler.profile.schema import Metric, Reduction, Region
from callpath_modeler.readers.threads import BalanceRequest
from callpath_modeler.studies.loading import LoadOptions
from callpath_modeler.studies.pipeline import FitOptions, fit
from callpath_modeler.studies.question import (
    FURTHER,
    Question,
    Target,
    check_names,
    checked_target,
    findings_at,
    slice_findings,
)
from callpath_modeler.units import as_option, counted, setting_text

_DRAWS = 1000
"""Number of draws of the ingredients of a subtree, of which the band of a factor is made."""
_SEED = 20
_QUANTILES = 41
"""Number of quantiles of a prediction between which draws are interpolated."""
_OUTERMOST = 3.0
"""Normal score of the outermost quantile."""
_BEYOND, _BELOW = 40, 20
"""Doublings of the largest value, and halvings of sizes below 1, up to which roots are searched."""
_POWERS = (1, 2, 3)
"""Powers of a size that may have a law: a size may be the length of an area or of a volume."""
_FAR = 2.0 ** np.arange(20, 44, 4)
"""Factors of the smallest scale at which only the leading terms of models count."""
_CLOSE = 0.01
"""Largest relative deviation of sizes from a law that describes them."""
_SAME_LAW = 1e-6
"""Relative deviation of sizes from their law up to which no higher power is tried."""


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
        return _finite(target.value), {}
    chosen = parameter or ALONE
    if parameter is None and experiment.parameters:
        chosen = experiment.modelled_parameters()[0]
    held = {name: value for name, value in target.named.items() if name != chosen}
    return _finite(target.named.get(chosen)), held


def _finite(target: float | None) -> float | None:
    if target is not None and np.isinf(target):
        raise UsageError(
            "efficiency has no value at infinity", hint="give a scale, e.g. --target 65536"
        )
    return target


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
        _raise_to_call_paths(found, target, options, (value, draws), generator)
    estimate = _estimate(found, target, value, draws, options.confidence)
    return replace(found, estimates=(*found.estimates, estimate)), findings


def _raise_to_call_paths(
    found: Efficiency,
    target: float,
    options: FitOptions,
    predicted: tuple[FloatArray, FloatArray],
    generator: np.random.Generator,
) -> None:
    """Raise the communication where models of call paths predict a longer run time.

    A slow call path that grows fast is hardly visible in the parts of the whole program, but it has
    a model of its own. No process is slower than the slowest, so the run time of a subtree is at
    least the mean over processes, which is the sum of the predictions of its call paths.

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
    whole = with_callees(experiment.tree, own)
    rows = found.rows[1:]
    bounds = np.stack([
        np.concatenate([[total], column[rows]])
        for total, column in zip(own.total(), (whole.value, whole.low, whole.high), strict=True)
    ])  # fmt: skip
    at = scores(fitted.models.confidence)
    quantiles = as_normal(bounds[0], bounds[1], bounds[2], fitted.models.confidence)
    value, draws = predicted
    for ingredients, bound in (
        (value, np.nan_to_num(bounds[0])),
        (draws, _drawn(np.maximum.accumulate(quantiles, axis=1), at, generator)),
    ):
        lacking = np.maximum(bound - ingredients[..., :PARTS].sum(axis=-1), 0.0)
        ingredients[..., Part.COMMUNICATION] += lacking


def _models(
    found: Efficiency, lines: FloatArray, needed: BoolArray, unit: str, options: FitOptions
) -> Fitted:
    """Return models of ingredients, as if each were a call path."""
    places = np.flatnonzero(needed)
    of_run = found.experiment.settings([found.line.parameter])[:, 0]
    values = np.empty((len(places), len(of_run)))
    filled = np.zeros(len(found.scales), np.intp)
    for run, scale in enumerate(np.searchsorted(found.scales, of_run).tolist()):
        values[:, run] = lines[places, scale, filled[scale]]
        filled[scale] += 1
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


class IsoBound(StrEnum):
    """The values of a parameter that keep an efficiency, relative to the solved value."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    ANY = "any"
    NONE = "none"


class IsoPoint(Struct, frozen=True):
    """A scale and a problem size at which models predict a certain efficiency.

    Attributes
    ----------
    solved : name of the parameter that was solved for
    scale, size : the scale and the problem size; NaN = every value keeps the efficiency, or none
    low, high : band of the parameter that was solved for; inf = the efficiency may be out of reach;
        NaN = the band does not contain the efficiency either
    bound : the values that keep the efficiency
    until : size from which on the efficiency is lost again; NaN = larger sizes keep it
    best_efficiency : highest efficiency that the models predict
    times_largest : extrapolation factor, the larger one of scale and size
    is_extrapolated : whether the scale or the size is outside of the measured range
    """

    solved: str
    scale: float
    size: float
    low: float
    high: float
    bound: IsoBound
    until: float
    best_efficiency: float
    times_largest: float
    is_extrapolated: bool

    @property
    def has_value(self) -> bool:
        """Whether there is a smallest or a largest value that keeps the efficiency."""
        return self.bound in {IsoBound.AT_LEAST, IsoBound.AT_MOST}


class IsoLaw(Struct, frozen=True):
    """A model of the problem sizes that keep an efficiency.

    Attributes
    ----------
    growth : growth of the size with the scale
    formula : the size, or a power of it, as an equation
    deviation : largest relative deviation of the solved sizes from the law
    """

    growth: Growth
    formula: str
    deviation: float


@dataclass(frozen=True, slots=True, eq=False)
class Isoefficiency:
    """Problem sizes that keep a parallel efficiency, predicted from models of the run time.

    Attributes
    ----------
    fitted : models in the scale and in the problem size
    parameter, size : names of the scale and of the problem size
    held : values of further parameters
    efficiency : the efficiency to keep
    base : smallest measured scale p0. The efficiency is ``p0 T(p0, n) / (p T(p, n))``
    points : the solved size of each scale
    at_size : the largest scale of the size that the user stated; None = no size was stated
    law : law of the sizes; None = too few scales have one
    findings : data quality findings
    """

    fitted: Fitted
    parameter: str
    size: str
    held: Mapping[str, float]
    efficiency: float
    base: float
    points: tuple[IsoPoint, ...]
    at_size: IsoPoint | None
    law: IsoLaw | None
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        name = self.fitted.experiment.name
        return (
            f"<Isoefficiency {name}: {self.efficiency:g} at {counted(len(self.points), 'scale')}>"
        )


def isoefficiency_of(
    fitted: Fitted, efficiency: float, target: Target, parameter: str | None = None
) -> Isoefficiency:
    """Return the problem sizes that keep a parallel efficiency at each scale.

    Scales are the measured ones, powers of two beyond, and the target. The band of a size is where
    the band of the efficiency contains the efficiency to keep.

    Parameters
    ----------
    fitted : models in the scale and in the problem size
    efficiency : the efficiency to keep, between 0 and 1
    target : largest scale, by default 4 times the largest measured one, and values of further
        parameters. A value of the problem size asks for the largest scale of that size
    parameter : name of the scale; None = the parameter that counts workers

    Raises
    ------
    UsageError
        If the models have no scale or no problem size, or if the values are no run times.
    """
    check_probability(efficiency, "--iso")
    scale, size, held = _scale_and_size(fitted, target, parameter)
    _check_run_times(fitted, size)
    measured = np.unique(fitted.whole.points[:, fitted.parameters.index(scale)])
    base, last = float(measured[0]), float(measured[-1])
    most = _finite(target.named.get(scale, target.value)) or FURTHER * last
    powers = 2.0 ** np.arange(np.floor(np.log2(last)) + 1, np.log2(most) + 1)
    scales = np.unique([*measured, *powers, most])
    scales = scales[(scales > base) & (scales <= most)]
    if not len(scales):
        raise UsageError(
            f"{setting_text({scale: most})} is not above the smallest scale, {base:g}",
            hint=f"e.g. --target {FURTHER * last:g}",
        )
    search = _Search(fitted, scale, size, held, base, efficiency)
    points = tuple(map(search.size_at, scales.tolist()))
    at_size = search.scale_at(target.named[size]) if size in target.named else None
    law = _law(points, scale, size)
    if law is not None:
        # Where another term will dominate, the sizes do not have their final growth yet.
        far = [search.size_at(at, 3 * _BEYOND) for at in (base * _FAR).tolist()]
        end = _law(far, scale, size)
        if end is not None and end.deviation <= _CLOSE:
            law = IsoLaw(end.growth, law.formula, law.deviation)
    farthest = [point for point in (points[-1], at_size) if point and point.has_value]
    known = (*fitted.experiment.findings, *fitted.findings)
    further = (each for point in farthest for each in search.findings(point))
    findings = dict.fromkeys((*known, *further))
    return Isoefficiency(
        fitted, scale, size, held, efficiency, base, points, at_size, law, tuple(findings)
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """The search for sizes and scales that keep an efficiency; attributes as in `Isoefficiency`.

    The models in all parameters predict, so that all scales have one law.
    """

    fitted: Fitted
    scale: str
    size: str
    held: Mapping[str, float]
    base: float
    limit: float

    @cached_property
    def models(self) -> Models:
        """The models whose sum is the run time."""
        of = self.fitted.run_time
        of = self.fitted if of is None or not of.modelled[0] else of
        return of.whole.take(np.flatnonzero(of.modelled))

    def size_at(self, scale: float, beyond: int = _BEYOND) -> IsoPoint:
        """Return the size that keeps the efficiency at a scale.

        Parameters
        ----------
        beyond : doublings of the largest size up to which it is searched
        """
        smallest, largest = self.fitted.measured_range(self.size)
        first = 1.0 if smallest >= 1 else smallest / 2.0**_BELOW
        return self._solved(self.size, {self.scale: scale}, first, largest * 2.0**beyond)

    def scale_at(self, size: float) -> IsoPoint:
        """Return the largest scale at which a size keeps the efficiency."""
        largest = self.fitted.measured_range(self.scale)[1]
        return self._solved(self.scale, {self.size: size}, self.base, largest * 2.0**_BEYOND)

    def _solved(self, name: str, fixed: Mapping[str, float], first: float, last: float) -> IsoPoint:
        """Return the value of one parameter, between two ends, that keeps the efficiency."""
        grid = first * 2.0 ** np.arange(np.ceil(np.log2(last / first)) + 1)

        def beyond(values: FloatArray) -> FloatArray:
            return self._efficiencies({**fixed, name: values}) - self.limit

        def curve(k: int, at: float) -> float:
            return float(beyond(np.array([at]))[k, 0])

        curves = beyond(grid)
        value, low, high = (_crossings(partial(curve, k), grid, curves[k]) for k in range(3))
        # The last rise is the smallest size, and the first fall is the largest scale.
        if value.rising and name == self.size:
            bound, root = IsoBound.AT_LEAST, value.last_rise
        elif value.falling:
            bound, root = IsoBound.AT_MOST, value.first_fall
        else:
            bound, root = IsoBound.ANY if value.is_kept_first else IsoBound.NONE, np.nan
        if bound is IsoBound.AT_MOST or name == self.scale:
            ends = low.first_fall, high.first_fall
        else:
            ends = high.last_rise, low.last_rise
        if np.isnan(root) and ends[0] == ends[1]:
            ends = np.nan, np.nan
        at = {**fixed, name: root}
        ranges = [(each, *self.fitted.measured_range(key)) for key, each in at.items() if each > 0]
        return IsoPoint(
            solved=name,
            scale=at[self.scale],
            size=at[self.size],
            low=ends[0],
            high=ends[1],
            bound=bound,
            until=next((fall for fall in value.falling if root < fall), np.nan),
            best_efficiency=float(curves[0].max()) + self.limit,
            times_largest=max(each / most for each, _, most in ranges),
            is_extrapolated=any(not least <= each <= most for each, least, most in ranges),
        )

    def _efficiencies(self, at: Mapping[str, FloatArray | float]) -> FloatArray:
        """Return efficiencies with their bands, [3, m], at scales and sizes that broadcast."""
        names = self.fitted.parameters
        columns = {**self.held, **at}
        there = np.stack(np.broadcast_arrays(*(columns[name] for name in names)), axis=1)
        here = there.astype(np.float64)
        here[:, names.index(self.scale)] = self.base
        ratio = ratio_of_sums(self.models, names.index(self.size), here, there)
        # A run time that is too large for a number keeps no efficiency.
        each = np.stack([ratio.value, ratio.low, ratio.high])
        return np.nan_to_num(each * self.base / columns[self.scale])

    def findings(self, point: IsoPoint) -> tuple[Finding, ...]:
        """Return the findings about runs, models and a solution."""
        held = {**self.held, self.scale: point.scale}
        return findings_at(self.fitted.holding(held, self.size), float(f"{point.size:.3g}"))


def _scale_and_size(
    fitted: Fitted, target: Target, parameter: str | None
) -> tuple[str, str, dict[str, float]]:
    """Return the names of scale and problem size, and the values of further parameters."""
    check_names(fitted, target.named)
    names = fitted.parameters
    scale = parameter or worker_parameter(names)
    if len(names) == 1:
        raise UsageError(
            f"--iso: the runs vary {names[0]} alone, so no problem size can be solved for",
            hint="measure at least 3 sizes at each scale, in files such as app.p8.n1000",
        )
    if scale is None:
        raise UsageError(
            f"--iso: none of {', '.join(names)} counts workers",
            hint=f"name the scale, e.g. --parameter {shell_word(names[0])}",
        )
    others = [name for name in names if name != scale]
    free = [name for name in others if name not in target.named] or others[:1]
    if len(free) > 1:
        fixed = {name: fitted.measured_range(name)[1] for name in free[1:]}
        raise UsageError(
            f"--iso: each of {', '.join(free)} may be the problem size",
            hint=f"give all but one a value, e.g. --at {shell_word(as_option(fixed))}",
        )
    held = {name: at for name, at in target.named.items() if name not in {scale, free[0]}}
    return scale, free[0], held


def _check_run_times(fitted: Fitted, size: str) -> None:
    """Raise `UsageError` unless values are run times of programs of the same total size."""
    experiment = fitted.experiment
    is_other = experiment.reduction in {Reduction.SUM, Reduction.IMBALANCE}
    if is_other or not fitted.metric.can_be_run_time:
        raise UsageError(
            f"--iso: {fitted.metric.name} is no run time" + " of one process" * is_other,
            hint="choose the run time with -m, and --locations mean",
        )
    if experiment.scaling is Scaling.WEAK:
        raise UsageError(
            f"--iso: the runs scale weakly ({experiment.scaling_reason}), so {size} is the size "
            "of one process, and runs of the same total size cannot be compared",
            hint=f"--scaling strong if {size} is the size of the whole program",
        )


class _Crossings(Struct, frozen=True):
    """Values of a parameter at which the efficiency rises above a limit, or falls below it."""

    rising: list[float]
    falling: list[float]
    first: float
    is_kept_first: bool

    @property
    def last_rise(self) -> float:
        """The value from which the efficiency is kept; inf = none."""
        return (self.rising or [self.first if self.is_kept_first else np.inf])[-1]

    @property
    def first_fall(self) -> float:
        """The value up to which the efficiency is kept; inf = it never falls."""
        return (self.falling or [np.inf if self.is_kept_first else self.first])[0]


def _crossings(of: Callable[[float], float], grid: FloatArray, values: FloatArray) -> _Crossings:
    """Return where a function with these values on a grid changes its sign."""
    # Few commands solve equations.
    from scipy.optimize import brentq

    keeps = values >= 0
    roots: dict[bool, list[float]] = {True: [], False: []}
    for place in np.flatnonzero(keeps[1:] != keeps[:-1]).tolist():
        left, right = grid[place : place + 2].tolist()
        # The last digit of a root at the grid itself depends on the number of values.
        has_root = (of(left) < 0) != (of(right) < 0)
        root = brentq(of, left, right, xtol=1e-12 * left, rtol=1e-12) if has_root else right
        roots[bool(keeps[place + 1])].append(float(root))
    return _Crossings(roots[True], roots[False], float(grid[0]), bool(keeps[0]))


def _law(points: Sequence[IsoPoint], scale: str, size: str) -> IsoLaw | None:
    """Return the law of the solved sizes; None = too few.

    A power of the size may have a simpler law than the size: ``n^2`` goes as ``p log2(p)``.
    """
    kept = [point for point in points if point.bound is IsoBound.AT_LEAST]
    kept = kept or [point for point in points if point.bound is IsoBound.AT_MOST]
    if len(kept) < modeling.MIN_POINTS["mixture"]:
        return None
    scales, sizes = (
        np.array(column) for column in zip(*((each.scale, each.size) for each in kept), strict=True)
    )
    powers = np.array(_POWERS)
    models = modeling.fit(scales, (sizes ** powers[:, None])[..., None])
    with np.errstate(divide="ignore"):
        deviations = np.abs(np.log(models.values(scales)) / powers[:, None] - np.log(sizes)).max(
            axis=1
        )
    best = int(np.argmax(deviations <= max(_SAME_LAW, float(deviations.min()))))
    power = _POWERS[best]
    formula = f"{raised(size, power, pretty=False)} = {models.formula(best, scale)}"
    growth = models.growth(best) ** Fraction(1, power)
    return IsoLaw(growth, formula, float(np.expm1(deviations[best])))
