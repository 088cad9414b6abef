"""Isoefficiency: the problem sizes that keep a parallel efficiency, from models of the run time.

It needs models in two parameters.

References
----------
Grama, Gupta, Kumar: Isoefficiency: measuring the scalability of parallel algorithms and
architectures (IEEE Parallel and Distributed Technology 1(3), 1993).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property, partial

import numpy as np
from msgspec import Struct

from callpath_modeler import modeling
from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError, check_probability
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models
from callpath_modeler.modeling.growth import Growth, raised
from callpath_modeler.modeling.lines import ratio_of_sums
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.runs import worker_parameter
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.studies.question import (
    FURTHER,
    Target,
    check_names,
    findings_at,
    target_of_efficiency,
)
from callpath_modeler.units import as_option, counted, setting_text

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
        """Whether a smallest or a largest value keeps the efficiency."""
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
    most = target_of_efficiency(target.named.get(scale, target.value)) or FURTHER * last
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
        # The sizes do not have their final growth if another term dominates later.
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

    All scales follow one law, because models in all parameters predict.
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
