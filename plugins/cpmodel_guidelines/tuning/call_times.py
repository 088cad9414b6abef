"""Measured times of calls, and of the faster ways of violated guidelines, for a replay.

`tuned` judges the guidelines. Between two measured sizes, a way has to be faster at both of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, sqrt

import numpy as np

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.modeling.distributions import student_quantile
from cpmodel_guidelines.answer import Method
from cpmodel_guidelines.benchmark import Benchmark, Estimates, benchmark_of
from cpmodel_guidelines.campaigns.campaign import experiment_of
from cpmodel_guidelines.checks import Between, Finder, FunctionAtSetting, Setting
from cpmodel_guidelines.functions import COLLECTIVES, canonical
from cpmodel_guidelines.judge import interpolated
from cpmodel_guidelines.rules import GuidelineKind, Size
from cpmodel_guidelines.suites.pgmpi import guidelines_of
from cpmodel_guidelines.tuning.gains import Gain, Question, scale_of
from cpmodel_guidelines.tuning.tuner import campaign_of_sources, tuned

CONFIDENCE = 0.95
"""Level of all intervals."""
_TOLERANCE = 0.05
"""Slowdown that is not a violation: the default of `cpmodel guidelines`."""
_LONGEST = 3600.0
"""Longest time of a call in seconds, as for times of platforms."""
_LARGEST_REACH = 20.0
"""Largest half-width of an interval of logarithms, so that its ends are finite."""
_LOCAL = "Reduce_local"

Ends = tuple[float, float, float]
"""Lower end, value and upper end."""


@dataclass(frozen=True, slots=True)
class CallTime:
    """The time from when all processes begin a call until the last one leaves it.

    Attributes
    ----------
    parts : functions that are executed one after the other, with their sizes in bytes
    seconds : of a measured call, with the interval of one more run; of a faster way, these divided
        by the lower end of its gain, by the gain, and by its upper end
    instead : the fastest way around a violated guideline; None = no guideline is violated
    guideline : text of this guideline; "" for a measured call
    is_judged : whether a violation of a guideline about the call could have been shown
    """

    parts: tuple[tuple[str, int], ...]
    seconds: Ends
    instead: CallTime | None = None
    guideline: str = ""
    is_judged: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CallTimes:
    """The times of the calls of one MPI library.

    Attributes
    ----------
    mpiruns : largest number of mpiruns
    power : what the campaign can show, as a sentence; "" = not known
    findings : data quality findings
    """

    mpiruns: int
    power: str
    findings: tuple[Finding, ...]
    _finder: Finder
    _estimates: Estimates
    _order: Mapping[Setting, int]
    _gains: Mapping[FunctionAtSetting, Mapping[str, Gain]]
    _judged: frozenset[FunctionAtSetting]

    def at(self, function: str, processes: int, size: int) -> CallTime | str:
        """Return the time of a call, or where the function was measured if not there.

        Between two measured sizes, the interval encloses those of both.

        Parameters
        ----------
        function : name of the collective
        processes : number of processes that take part
        size : message size in bytes, in the convention of `cpmodel_guidelines.rules`
        """
        bench, name = self._finder.benchmark, canonical(function)
        rows = [k for k, one in enumerate(bench.functions) if one.name == name and not one.mock_up]
        if not rows:
            return "not measured"
        known = {
            line.setting[0]: sizes
            for line, sizes in self._finder.sizes.known.items()
            if line.row == rows[0]
        }
        if processes not in known:
            return f"measured at p = {', '.join(f'{p:.0f}' for p in sorted(known)[:8])} only"
        least, most = known[processes][0], known[processes][-1]
        if not least <= size <= most:
            return f"measured with {least:.0f} to {most:.0f} bytes only"
        at = {bench.processes: float(processes), bench.size: float(size)}
        place = FunctionAtSetting(rows[0], tuple(at[each] for each in bench.names))
        found = self._finder.sizes.between(place)
        assert found is not None, "the size is between measured ones"
        ends = self._ends(found)
        if not 0 < ends[1] <= _LONGEST:
            return "measured as more than an hour"
        call = CallTime(((function, size),), ends)
        is_judged = {found.less, found.more} <= self._judged
        return replace(call, instead=self._way(call, found, processes), is_judged=is_judged)

    def _ends(self, found: Between) -> Ends:
        """Return the measured time, with the interval of one more run."""
        less, more = (
            self._estimates.take(np.array([one.row]), np.array([self._order[one.setting]]))
            for one in (found.less, found.more)
        )
        told = interpolated(less, more, np.array([found.weight]), CONFIDENCE)
        reach = 0.0
        if told.variance[0] > 0:
            score = float(student_quantile(told.dof, 0.5 + CONFIDENCE / 2)[0])
            reach = min(score * sqrt(told.variance[0]), _LARGEST_REACH)
        value = float(told.value[0])
        return value * exp(-reach), value, value * exp(reach)

    def _way(self, call: CallTime, found: Between, processes: int) -> CallTime | None:
        """Return the way whose gain has the largest lower end; None = none is faster."""
        less, more = (self._gains.get(one, {}) for one in (found.less, found.more))
        ways = []
        for text in sorted(less.keys() & more.keys()):
            one, other = less[text], more[text]
            factor = one.factor * (other.factor / one.factor) ** found.weight
            factors = min(one.low, other.low), factor, max(one.high, other.high)
            low, value, high = (time / f for time, f in zip(call.seconds, factors, strict=True))
            way = CallTime(_parts(one, *call.parts[0], processes), (low, value, high), None, text)
            ways.append((factors[0], way))
        return max(ways, key=lambda pair: pair[0], default=(0.0, None))[1]


def call_times(sources: Sequence[str]) -> CallTimes:
    """Return the times of calls in the output of a benchmark.

    Parameters
    ----------
    sources : as of `cpmodel guidelines tune`

    Raises
    ------
    UsageError
        If several libraries were measured.
    InputError, DataError
        If a source is not the output of a benchmark, or has too many combinations.
    """
    given = campaign_of_sources(sources, None)
    guidelines = guidelines_of((), given.catalogues)
    gains: tuple[Gain, ...] = ()
    judged = frozenset[FunctionAtSetting]()
    try:
        tuning = tuned(given, guidelines, Question(_TOLERANCE, 0.0, Method()))
        found = tuning.found
        bench, gains, power = found.benchmark, tuning.gains.every, found.power
        findings = found.findings
        if found.sensitivity is not None and found.sensitivity.can_show:
            judged = frozenset(check.left for check in found.here.checks)
        power = power or "The mpiruns do not tell the noise: measure at least 4."
    except DataError as error:
        # Without a check, the times of calls are known all the same.
        bench, power = benchmark_of(experiment_of(given.campaign)), f"{error.message}."
        findings = (*bench.experiment.findings, *bench.findings())
    groups = sorted({function.group for function in bench.functions})
    if len(groups) > 1:
        names = ", ".join("/".join(group) or "without a name" for group in groups[:8])
        raise UsageError(
            f"{len(groups)} libraries were measured, and a program uses one",
            hint=f"give the files of one: {names}",
        )
    settings = [tuple(setting) for setting in bench.settings.tolist()]
    return CallTimes(
        int((~np.isnan(bench.values)).sum(axis=2).max()),
        power,
        findings,
        Finder(bench, ()),
        _of_one_run(bench.estimates(CONFIDENCE)),
        {setting: k for k, setting in enumerate(settings)},
        _by_place(bench, settings, gains),
        judged,
    )


def _of_one_run(of: Estimates) -> Estimates:
    """Return estimates with the variance of one more run about the mean of the mpiruns.

    Of n mpiruns, it is n + 1 times that of their mean. A cell with one mpirun has the largest one.
    """
    variance = of.variance * (of.dof + 2)
    if not np.isnan(variance).all():
        variance = np.where(np.isnan(variance), np.nanmax(variance), variance)
    return Estimates(of.value, variance, of.dof)


def _by_place(
    bench: Benchmark, settings: Sequence[Setting], gains: Sequence[Gain]
) -> dict[FunctionAtSetting, dict[str, Gain]]:
    """Return the gains at each place by the texts of their guidelines.

    A program cannot call a function on more processes at once.
    """
    scales = {scale_of(bench, setting): setting for setting in settings}
    rows = {one.name: row for row, one in enumerate(bench.functions) if not one.mock_up}
    found: dict[FunctionAtSetting, dict[str, Gain]] = {}
    for gain in gains:
        if gain.guideline.kind is not GuidelineKind.PROCESSES:
            setting = scales[gain.place.processes, gain.place.size]
            place = FunctionAtSetting(rows[gain.place.function], setting)
            found.setdefault(place, {})[gain.guideline.text] = gain
    return found


def _parts(gain: Gain, function: str, size: int, processes: int) -> tuple[tuple[str, int], ...]:
    """Return the functions that a way executes; the function itself for pieces and algorithms."""
    terms = gain.guideline.right
    if not terms or not {term.function for term in terms} <= {*COLLECTIVES}:
        return ((function, size),)
    sizes = {
        Size.SAME: size,
        Size.ALL: size * processes,
        Size.PART: ceil(size / processes),
        Size.LEAST: 0,
    }
    return tuple((t.function.lower(), sizes[t.size]) for t in terms if t.function != _LOCAL)
