"""Verification of guidelines: from a benchmark to its verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.studies.pipeline import FitOptions
from callpath_modeler.studies.question import findings_at
from cpmodel_guidelines.answer import (
    BETWEEN,
    COMPOSED,
    MEASURED,
    MOCK_UP,
    POOLED,
    PREDICTED,
    Judged,
    Method,
    PotentialSavings,
    Row,
    Verification,
    tallies,
)
from cpmodel_guidelines.benchmark import Benchmark, Estimates
from cpmodel_guidelines.checks import (
    Finder,
    FunctionAtSetting,
    Group,
    GuidelineCheck,
    MissingFunctions,
    Setting,
    places_of,
)
from cpmodel_guidelines.judge import (
    NO_TIME,
    GuidelineVerdict,
    added,
    interpolated,
    measured,
    predicted,
)
from cpmodel_guidelines.predicted_excess import Excess, pooled_excess
from cpmodel_guidelines.prediction import (
    MeasuredSides,
    MeasuredVerdicts,
    Predictor,
    judge_measured,
    predictor_of,
)
from cpmodel_guidelines.rules import Guideline, GuidelineKind, Size, require_measured


@dataclass(frozen=True, slots=True)
class Ask:
    """Target of a prediction.

    Attributes
    ----------
    processes : number of processes
    at : values of other parameters; without a size, all measured sizes
    predicted : use models even if the target was measured
    """

    processes: float
    at: Mapping[str, float] = field(default_factory=dict)
    predicted: bool = False


@dataclass(frozen=True, slots=True)
class _Limits:
    """Tolerance and confidence of verdicts."""

    tolerance: float
    confidence: float


def verify(
    benchmark: Benchmark,
    guidelines: Sequence[Guideline],
    *,
    ask: Ask | None = None,
    tolerance: float = 0.05,
    method: Method | None = None,
    options: FitOptions | None = None,
    stakes: PotentialSavings | None = None,
    with_singles: bool = True,
) -> Verification:
    """Return the verdicts on measured settings, and on a target.

    Parameters
    ----------
    guidelines : patterns, from `rules.patterns`
    ask : target; None = measured settings only
    tolerance : slowdown that is not a violation, as a fraction
    method : test and control of the error rate of measured checks
    options : options of the models, and the confidence
    stakes : time that a program spends in collectives; None = no program
    with_singles : whether to check guidelines about single functions as well

    Raises
    ------
    UsageError
        If the target is not possible.
    DataError
        If no guideline can be checked, or a target was given and nothing can be predicted.
    """
    options, method = options or FitOptions(), method or Method()
    require_measured(guidelines, [each.name for each in benchmark.functions])
    finder = Finder(benchmark, guidelines, with_singles)
    limits = _Limits(tolerance, options.confidence)
    predictor = None
    if ask is not None:
        _check_ask(benchmark, ask)
    if ask is not None or not benchmark.tells_noise:
        predictor = predictor_of(benchmark, options)
    checks, missing = finder.measured()
    if not checks:
        raise _nothing(benchmark, missing)
    known = _Known.of(finder, checks, predictor, options.confidence)
    every, told = _judged_here(finder, checks, known, limits, method)
    ahead = None
    if ask is not None:
        ahead = _judged_ahead(finder, every, predictor, ask, limits)
        if predictor is None and not benchmark.tells_noise:
            raise DataError(
                "nothing can be predicted from single runs at so few numbers of processes",
                hint="measure several mpiruns, at least five",
            )
    here, untold = _telling(every)
    return Verification(
        benchmark,
        here,
        ahead,
        _rows(here, ahead, finder, predictor),
        (*missing, *untold),
        None if ask is None else ask.processes,
        tolerance,
        options.confidence,
        method,
        told.power,
        stakes,
        _findings(benchmark, predictor, ask, ahead),
        told.sensitivity,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """Estimates of functions at settings, as one row.

    Attributes
    ----------
    estimates : [places + 1]; the last one is a time of zero
    repeated : [places + 1, R] times in each mpirun; between two sizes, times of the longer message
    measured, inside : position of each place: measured, or interpolated between two sizes
    """

    estimates: Estimates
    repeated: FloatArray
    measured: Mapping[FunctionAtSetting, int]
    inside: Mapping[FunctionAtSetting, int]

    @classmethod
    def of(
        cls,
        finder: Finder,
        checks: Sequence[GuidelineCheck],
        predictor: Predictor | None,
        confidence: float,
    ) -> _Known:
        """Return measured values, and interpolated ones at the other sizes that the checks need."""
        benchmark = finder.benchmark
        deviations = None if predictor is None else predictor.deviations(benchmark)
        of_runs = benchmark.estimates(confidence, deviations).ravelled()
        settings = [tuple(setting) for setting in benchmark.settings.tolist()]
        every = [
            FunctionAtSetting(row, s) for row in range(len(benchmark.functions)) for s in settings
        ]
        measured = {place: k for k, place in enumerate(every)}
        beside = [each for each in map(finder.composed, checks) if each is not None]
        needed = dict.fromkeys(place for check in (*checks, *beside) for place in check.right)
        found = {place: finder.sizes.between(place) for place in needed}
        inside = [each for each in found.values() if each is not None and each.weight > 0]
        places = [place for place, each in found.items() if each is not None and each.weight > 0]
        less, more = (
            of_runs.take(np.array([measured[getattr(each, end)] for each in inside], np.intp))
            for end in ("less", "more")
        )
        told = interpolated(less, more, np.array([each.weight for each in inside]), confidence)
        order = {place: len(measured) + k for k, place in enumerate(places)}
        whole = of_runs.followed_by(told).followed_by(NO_TIME)
        values = benchmark.values.reshape(len(every), -1)
        values = np.where(values > 0, values, np.nan)
        # A longer message is not faster, so its time is an upper bound.
        upper = [measured[each.more] for each in inside]
        repeated = np.concatenate([values, values[upper], np.zeros((1, values.shape[1]))])
        return cls(whole, repeated, measured, order)

    def where(self, place: FunctionAtSetting) -> int:
        """Return the position of a place."""
        found = self.inside.get(place)
        return self.measured[place] if found is None else found


def _measured_sides(
    benchmark: Benchmark, checks: Sequence[GuidelineCheck], known: _Known, confidence: float
) -> tuple[FloatArray, FloatArray, MeasuredSides]:
    """Return the values of both sides of checks, and their times in each mpirun."""
    rows, parts = places_of(checks, known.where)
    left = known.estimates.take(rows)
    times = np.array([check.times for check in checks])
    right = added([known.estimates.take(part) for part in parts], times)
    sides = MeasuredSides(
        checks,
        measured(left, right, confidence),
        known.repeated[rows],
        np.sum([known.repeated[part] for part in parts], axis=0) * times[:, None],
        benchmark.is_repeated and benchmark.bounds is None,
    )
    return left.value, right.value, sides


def _judged_here(
    finder: Finder,
    checks: Sequence[GuidelineCheck],
    known: _Known,
    limits: _Limits,
    method: Method,
) -> tuple[Judged, MeasuredVerdicts]:
    """Return the verdicts on measured settings, and the verdicts of all pairs of sizes."""
    left, right, sides = _measured_sides(finder.benchmark, checks, known, limits.confidence)
    found = judge_measured(sides, method, tolerance=limits.tolerance, confidence=limits.confidence)
    basis = tuple(_basis(check, known) for check in checks)
    composed = _composed(finder, checks, known)
    every = Judged(
        *(tuple(checks), left, right, found.verdicts, basis, composed),
        runs=(sides.left, sides.right),
        means=found.means,
    )
    return every.take(_deciding(every)), found


def _basis(check: GuidelineCheck, known: _Known) -> str:
    if check.guideline.kind is not GuidelineKind.PATTERN:
        return MEASURED
    if check.is_mock_up:
        return MOCK_UP
    return BETWEEN if known.inside.keys() & {*check.right} else COMPOSED


def _composed(finder: Finder, checks: Sequence[GuidelineCheck], known: _Known) -> FloatArray:
    """Return the composed times beside measured mock-ups, [C]."""
    found = np.full(len(checks), np.nan)
    for k, check in enumerate(checks):
        beside = finder.composed(check)
        if beside is not None:
            places = [known.where(place) for place in beside.right]
            found[k] = known.estimates.value[places].sum()
    return found


def _deciding(of: Judged) -> list[int]:
    """Return the rows without pairs of sizes that do not decide.

    The largest smaller size decides with which a message in pieces is shown to be faster. If there
    is none, the size decides with which it is fastest.
    """
    kept: dict[tuple[Guideline, Group, FunctionAtSetting], int] = {}
    rows = []
    factors, violated = np.nan_to_num(of.verdicts.factor), of.verdicts.violated
    for k, check in enumerate(of.checks):
        if check.guideline.kind is not GuidelineKind.SPLIT:
            rows.append(k)
            continue
        key = check.guideline, check.group, check.left
        before = kept.get(key)
        # Partners are in ascending order of their sizes.
        if before is None or violated[k] or (not violated[before] and factors[k] > factors[before]):
            kept[key] = k
    return sorted((*rows, *kept.values()))


def _telling(of: Judged) -> tuple[Judged, list[MissingFunctions]]:
    """Exclude checks that decide nothing because the message size is unknown.

    If the right side may use longer messages, a check can only show that the guideline holds. If it
    may use shorter ones, a check can only show a violation.
    """
    kept, missing = [], []
    for (guideline, group), tally in tallies(of).items():
        first = of.checks[tally.checks[0]]
        rows = [k for k in tally.checks if of.checks[k].can_hold or of.verdicts.violated[k]]
        if rows and (first.can_break or tally.verdict is GuidelineVerdict.HOLDS):
            kept += rows
        else:
            sized = tuple(str(term) for term in guideline.right if term.size is not Size.SAME)
            missing.append(MissingFunctions(guideline, group, sized))
    return of.take(sorted(kept)), missing


def _judged_ahead(
    finder: Finder, here: Judged, predictor: Predictor | None, ask: Ask, limits: _Limits
) -> Judged:
    """Return the verdicts on patterns at a target.

    Runs of the target are used if they give the uncertainty of their values. Else models of both
    sides predict it, or similar checks do: the sharper of the two.
    """
    if not ask.predicted and finder.benchmark.tells_noise_at(ask.processes):
        return _telling(here.take(_checks_at(finder.benchmark, here.checks, ask)))[0]
    checks = finder.predicted(_settings_at(finder.benchmark, ask))
    excess, noise = _pooled(finder.benchmark, here, checks, limits.confidence)
    left, right = np.full((2, len(checks)), np.nan)
    is_modelled = np.zeros(len(checks), bool)
    if predictor is not None:
        side, *parts = predictor.sides(checks)
        models = Excess.of_models(predicted(side, parts, limits.confidence), limits.confidence)
        excess, is_modelled = excess.with_models(models)
        left = np.where(is_modelled, side.value, np.nan)
        right = np.where(is_modelled, np.sum([part.value for part in parts], axis=0), np.nan)
    verdicts = excess.verdicts(
        noise,
        limits.tolerance,
        np.array([check.can_break for check in checks], bool),
        np.array([check.can_hold for check in checks], bool),
    )
    known = np.flatnonzero(~np.isnan(verdicts.factor)).tolist()
    basis = tuple(PREDICTED if each else POOLED for each in is_modelled.tolist())
    nothing = np.full(len(checks), np.nan)
    found = Judged(tuple(checks), left, right, verdicts, basis, nothing).take(known)
    return _telling(found)[0]


def _pooled(
    benchmark: Benchmark, here: Judged, checks: Sequence[GuidelineCheck], confidence: float
) -> tuple[Excess, FloatArray]:
    """Return the excess of patterns at a target and its noise, from that of measured ones."""
    p_axis = benchmark.axis(benchmark.processes)
    assert p_axis is not None, "a target is a number of processes"
    axes = p_axis, benchmark.axis(benchmark.size)
    rows = [k for k, c in enumerate(here.checks) if c.guideline.kind is GuidelineKind.PATTERN]
    return pooled_excess(
        [here.checks[k] for k in rows], here.verdicts.take(rows), checks, axes, confidence
    )


def _check_ask(benchmark: Benchmark, ask: Ask) -> None:
    if benchmark.processes is None:
        raise UsageError(
            "no parameter is the number of processes", hint="name it: --parameter NAME"
        )
    if not np.isfinite(ask.processes):
        raise UsageError(
            "--target inf is not possible: guidelines are compared at a number of processes",
            hint="give a finite target, e.g. --target 4096",
        )
    for name in ask.at:
        if name not in benchmark.names:
            raise UsageError(
                f"no parameter {name!r}", hint=f"parameters: {', '.join(benchmark.names)}"
            )


def _checks_at(benchmark: Benchmark, checks: Sequence[GuidelineCheck], ask: Ask) -> list[int]:
    """Return the checks of patterns at a target that was measured."""
    wanted = {str(benchmark.processes): ask.processes, **ask.at}
    axes = {benchmark.names.index(name): value for name, value in wanted.items()}
    return [
        k
        for k, check in enumerate(checks)
        if check.guideline.kind is GuidelineKind.PATTERN
        and all(check.left.setting[axis] == value for axis, value in axes.items())
    ]


def _settings_at(benchmark: Benchmark, ask: Ask) -> list[Setting]:
    """Return the settings of a target: all sizes, and the largest value of other parameters."""
    settings = benchmark.settings
    columns = {
        name: settings[:, axis].max(keepdims=True) for axis, name in enumerate(benchmark.names)
    }
    if benchmark.size is not None:
        columns[benchmark.size] = np.unique(settings[:, benchmark.names.index(benchmark.size)])
    said = {str(benchmark.processes): ask.processes, **ask.at}
    columns |= {name: np.array([value]) for name, value in said.items()}
    return [tuple(map(float, setting)) for setting in product(*columns.values())]


def _findings(
    benchmark: Benchmark, predictor: Predictor | None, ask: Ask | None, ahead: Judged | None
) -> tuple[Finding, ...]:
    """Return findings about the data and the target, and about models if they decide a check."""
    found = benchmark.findings()
    if predictor is None or ask is None:
        return (*benchmark.experiment.findings, *found)
    of_models = () if ahead and PREDICTED in ahead.basis else predictor.fitted.findings
    told = findings_at(predictor.fitted, ask.processes)
    return (*(each for each in told if each not in of_models), *found)


def _nothing(benchmark: Benchmark, missing: Sequence[MissingFunctions]) -> DataError:
    """Return the error for a benchmark without any check, with the missing functions."""
    found = ", ".join(dict.fromkeys(function.name for function in benchmark.functions))
    lacking = ""
    if missing:
        first = missing[0]
        where = f" in {'/'.join(first.group)}" if first.group else ""
        lacking = f": {first.guideline.text} needs {', '.join(first.lacking)}{where}"
    return DataError(
        f"no guideline can be checked with {found}{lacking}",
        hint="give a benchmark of collectives as EXP, and a program as --application",
    )


def _rows(
    here: Judged, ahead: Judged | None, finder: Finder, predictor: Predictor | None
) -> tuple[Row, ...]:
    """Return the guidelines with their checks, the worst first."""
    there = {} if ahead is None else tallies(ahead)
    found = []
    for (guideline, group), tally in tallies(here).items():
        later = there.pop((guideline, group), None)
        found.append(Row(guideline, group, tally, later))
    # If a message size was not measured, the guideline may have checks at the target only.
    found += [Row(*which, None, tally) for which, tally in there.items()]
    found = [_with_crossing(row, ahead, finder, predictor) for row in found]
    return tuple(sorted(found, key=lambda row: _urgency(row, here, ahead)))


def _with_crossing(
    row: Row, ahead: Judged | None, finder: Finder, predictor: Predictor | None
) -> Row:
    """Add the predicted start of the violation if the guideline holds as measured."""
    if ahead is None or predictor is None or row.ahead is None:
        return row
    worst = row.ahead.worst
    if ahead.basis[worst] != PREDICTED or not ahead.verdicts.factor[worst] > 1:
        return row
    check = ahead.checks[worst]
    found = predictor.crossing(
        lambda processes: finder.moved(check, processes), finder.benchmark.scales
    )
    return replace(row, crossing=found)


def _urgency(row: Row, here: Judged, ahead: Judged | None) -> tuple[int, bool, bool, float]:
    """Return the sort key of rows: violated, predicted to be violated, pattern, factor."""
    verdict = None if row.here is None else row.here.verdict
    is_ahead = row.ahead is not None and row.ahead.verdict is GuidelineVerdict.VIOLATED
    rank = 0 if verdict is GuidelineVerdict.VIOLATED else 1 if is_ahead else 2
    tally, of = (row.ahead, ahead) if rank == 1 or row.here is None else (row.here, here)
    factor = 0.0
    if tally is not None and of is not None:
        factor = float(np.nan_to_num(of.verdicts.factor[tally.worst]))
    is_pattern = row.guideline.kind is GuidelineKind.PATTERN
    return rank, not is_pattern, verdict is GuidelineVerdict.HOLDS, -factor
