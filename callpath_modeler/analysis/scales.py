"""Realistic scales, the scale with the shortest run time, and pairs of measured scales.

The cost per process of shared work falls with the number of processes, and other costs rise. The
sum falls, reaches a minimum, and rises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real

import numpy as np
from msgspec import Struct, structs

from callpath_modeler.analysis.excess_work import is_summed
from callpath_modeler.analysis.ideals import ideal_of, scaling_over
from callpath_modeler.analysis.run_time import predicted_run_time, run_times
from callpath_modeler.analysis.uncertain import Total
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted, Ideal
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.runs import ParameterLine, nearest_line, targets_of
from callpath_modeler.profile.schema import Metric
from callpath_modeler.units import as_option, parameter_value, setting_text

_DIGITS = 2


def power_of(points: FloatArray) -> int | None:
    """Return 3 if all points are cubes, 2 if squares, 1 if whole numbers, else None."""
    return next((power for power in (3, 2, 1) if _are_powers(points, power)), None)


def _are_powers(points: FloatArray, power: int) -> bool:
    return bool(np.isclose(np.round(points ** (1 / power)) ** power, points, rtol=1e-12).all())


def scale_to_run(points: FloatArray, least: float) -> float:
    """Return a realistic scale slightly above `least`.

    Parameters
    ----------
    points : [K] measured scales, ascending
    least : a scale above all of them
    """
    doublings = math.log2(least / points[-1])
    if math.isclose(doublings, round(doublings), abs_tol=1e-9):
        return least
    power = power_of(points)
    if power in {2, 3}:
        # Roots round: what is a cube is not to become the next one.
        return float(math.ceil(least ** (1 / power) * (1 - 1e-12)) ** power)
    place = math.floor(math.log10(least)) + 1 - _DIGITS
    step = 10.0 ** (place if power is None else max(place, 0))
    return float(f"{math.ceil(least / step * (1 - 1e-12)) * step:.12g}")


_PER_DOUBLING = 128
"""Scales that are evaluated per doubling; neighbours differ by half a percent."""

_FURTHEST = 1024.0
"""Largest extrapolation factor of the search if the target is infinite."""

_RISES = 0.005
"""Relative differences below this one do not show in three digits."""


class ScalingOptimum(Struct, frozen=True):
    """Scale with the shortest predicted run time.

    Attributes
    ----------
    at : the scale, which may be the smallest measured one
    total : predicted total there, with its band
    first, last : ends of the range of scales around `at` whose total is inside that band
    until : end of the search: the target, unless it is infinite
    is_slower : True if the whole band of the total at `until` is above the band at `at`
    """

    at: float
    total: Total
    first: float
    last: float
    until: float
    is_slower: bool


def scaling_optimum(fitted: Fitted, target: float, total: Total) -> ScalingOptimum | None:
    """Return the scale before a target from which on more processes make a program slower.

    The total is the run time, or the sum of all call paths if the run time has no model.

    Parameters
    ----------
    fitted : the models
    target : a scale beyond the largest one; it may be infinite
    total : predicted total at the target, with its band; not used at infinity

    Returns
    -------
    ScalingOptimum or None
        None if nothing is faster than the target. None also under weak scaling, inside the data,
        for sums over processes, and for metrics that are not times or not additive.
    """
    if target <= fitted.points[-1] or not _has_run_time(fitted):
        return None
    until = target if np.isfinite(target) else _FURTHEST * float(fitted.points[-1])
    points = geometric_scales(float(fitted.points[0]), until)
    totals = run_times(fitted, points)
    least = int(totals.argmin())
    if not totals[-1] > totals[least] * (1 + _RISES):
        return None
    at = float(points[least])
    there = predicted_run_time(fitted, at)
    end = total if np.isfinite(target) else predicted_run_time(fitted, until)
    if not end[0] > there[0] * (1 + _RISES):
        return None
    first, last = plateau(points, totals, least, there[2])
    return ScalingOptimum(at, there, first, last, until, end[1] > there[2])


def _has_run_time(fitted: Fitted) -> bool:
    """Return True if the total is a time that more processes should shorten."""
    experiment, parameter, metric = fitted.experiment, fitted.parameter, fitted.metric
    is_time = metric.can_be_run_time and not is_summed(experiment, parameter)
    return is_time and scaling_over(experiment, parameter) is Scaling.STRONG


def geometric_scales(start: float, end: float) -> FloatArray:
    """Return scales from start to end, equally spaced in logarithms."""
    return np.geomspace(start, end, 1 + int(np.ceil(_PER_DOUBLING * np.log2(end / start))))


def plateau(
    points: FloatArray, totals: FloatArray, least: int, limit: float
) -> tuple[float, float]:
    """Return the ends of the contiguous range around the minimum with totals up to a limit.

    Parameters
    ----------
    points, totals : [m] scales, ascending, and totals there
    least : index of the smallest total
    limit : largest total; the minimum is always inside
    """
    is_above = totals > max(limit, totals[least])
    before, after = np.flatnonzero(is_above[:least]), np.flatnonzero(is_above[least:])
    first = before[-1] + 1 if len(before) else 0
    last = least + after[0] - 1 if len(after) else len(points) - 1
    return float(points[first]), float(points[last])


Pair = tuple[float, float]


def choose_pairs(
    points: FloatArray,
    line: ParameterLine,
    pair: Pair | Sequence[Pair] | None = None,
    base: float | None = None,
) -> tuple[Pair, ...]:
    """Return the pairs to compare: those of `pair`, or each larger scale with `base`.

    Parameters
    ----------
    points : scales measured on a line, ascending
    pair : two scales, or several pairs of them
    base : the smaller scale of all pairs; None = the smallest scale

    Raises
    ------
    UsageError
        If a scale was not measured, or if none is larger than the base.
    """
    listed, chosen = _listed(points), pairs_of(pair)
    for wanted in [scale for one in chosen for scale in one] or ([] if base is None else [base]):
        if wanted not in points:
            at = line.at(wanted)
            raise UsageError(
                f"no run at {setting_text(at)}",
                hint=f"measured: {listed}; "
                f"predictions are `cpmodel rank --at {shell_word(as_option(at))}`",
            )
    for one in chosen:
        if one[0] == one[1]:
            raise UsageError("--pair names one scale twice", hint=f"two of {listed}")
    if chosen:
        return tuple(dict.fromkeys((min(one), max(one)) for one in chosen))
    first = float(points[0]) if base is None else base
    pairs = tuple((first, float(point)) for point in points if point > first)
    if not pairs:
        raise UsageError(
            f"no scale is larger than the base, {setting_text({line.parameter: first})}",
            hint=f"--base with one of {listed}, but the last",
        )
    return pairs


def expected_pairs(
    points: FloatArray, line: ParameterLine, pair: Sequence[Pair], base: float | None, ideal: Ideal
) -> tuple[Pair, ...]:
    """Return the pairs to compare for which a cost is expected.

    Without `pair` and `base`, the base is the smallest scale from which a cost is expected.

    Raises
    ------
    UsageError
        As `choose_pairs`, or if there is no such pair, or not for a pair of `pair`.
    """
    found = choose_pairs(points, line, pair, base)
    gaps = [gap for one in found if (gap := ideal.gap(*one))]
    if not gaps:
        return found
    left = () if pair else tuple(one for one in found if not ideal.gap(*one))
    bases = [] if pair or base is not None else points[1:-1].tolist()
    for first in bases:
        if left:
            break
        later = choose_pairs(points, line, base=first)
        left = tuple(one for one in later if not ideal.gap(*one))
    if not left:
        raise UsageError(
            f"no excess work: {gaps[0]}",
            hint=ideal.remedy
            or f"--base or --pair with others of {_listed(points)}, or another --expect",
        )
    return left


def with_pairs(fitted: Fitted, pairs: Sequence[Pair]) -> Fitted:
    """Return models that show the excess work between pairs of measured scales as well.

    Raises
    ------
    UsageError
        If a scale was not measured, no cost is expected for a pair, or the metric does not add up
        over call paths.
    """
    if not fitted.metric.additive:
        raise no_excess_work(fitted.metric)
    line = ParameterLine(fitted.parameter, fitted.held, fitted.measured_at, fitted.assumed)
    found = expected_pairs(fitted.points, line, pairs_of(pairs), None, ideal_of(fitted))
    return replace(fitted, pairs=found)


def no_excess_work(metric: Metric) -> UsageError:
    """Return the error about a metric that does not add up over call paths."""
    return UsageError(
        f"no excess work: {metric.name} does not add up over call paths",
        hint="choose a time or a count with --metric, and not --locations imbalance",
    )


def pairs_of(pair: Pair | Sequence[Pair] | None) -> tuple[Pair, ...]:
    """Return one pair of scales, or several, as a tuple of pairs.

    Raises
    ------
    UsageError
        If a pair is not two positive numbers.
    """
    if pair is None:
        return ()
    is_one = any(isinstance(each, Real | str) for each in pair)
    return tuple(_pair(one) for one in ([pair] if is_one else pair))  # type: ignore[arg-type]


def _pair(scales: Pair) -> Pair:
    """Return two scales as a pair."""
    found = targets_of(scales).tolist()
    if len(found) != 2:
        raise UsageError(f"a pair is of two scales, not {len(found)}", hint="e.g. pair=(8, 128)")
    return found[0], found[1]


def measured_line(
    experiment: Experiment, parameter: str | None, held: Mapping[str, float]
) -> ParameterLine:
    """Return a line with at least two measured scales.

    Parameters
    ----------
    experiment : the measured runs
    parameter : name of the parameter; None = p if it varies
    held : measured values of other parameters; by default the largest ones

    Raises
    ------
    DataError
        If there are no two scales.
    UsageError
        If there is no such parameter or value.
    """
    if not experiment.parameters:
        raise DataError(
            "all runs are at one scale: nothing to compare",
            hint="give profiles of two scales or more, e.g. p = 8 and 128",
        )
    names = experiment.modelled_parameters(parameter)
    chosen = parameter or names[0]
    names = (chosen, *(name for name in names if name != chosen))
    for name in held:
        if name == chosen:
            raise UsageError(
                f"--at {as_option({name: held[name]})}: excess work is between scales of {name}",
                hint="--pair or --base choose scales; --parameter another parameter",
            )
        if name not in names:
            raise UsageError(
                f"no parameter {name!r} varies independently of {chosen}",
                hint=f"parameters: {', '.join(names)}",
            )
    settings = np.unique(experiment.settings(names), axis=0)
    _, of_line, scales = np.unique(settings[:, 1:], axis=0, return_inverse=True, return_counts=True)
    settings = settings[scales[of_line.ravel()] > 1]
    if not len(settings):
        raise DataError(
            f"no two scales of {chosen} were measured where others are the same",
            hint="measure such, or compare --parameter another",
        )
    axes = [names.index(name) for name in held]
    there = settings[(settings[:, axes] == [*held.values()]).all(axis=1)]
    if not len(there):
        listed = (f"{name} = {_listed(settings[:, names.index(name)])}" for name in names[1:])
        raise UsageError(
            f"no two scales of {chosen} were measured at {setting_text(held)}",
            hint=f"there are at {'; '.join(listed)}",
        )
    line = nearest_line(names, there, held)
    return structs.replace(line, held=line.measured_at)


def _listed(values: FloatArray) -> str:
    return ", ".join(map(parameter_value, np.unique(values)))
