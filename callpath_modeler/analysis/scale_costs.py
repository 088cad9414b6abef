"""Time, core-hours and energy of a program at a target, and the scales where they are least.

Core-hours are the run time on p processes, with one core for each. Energy is the sum over all
processes. Both come from the models of the run time and of the energy of all call paths, so they
agree with rankings by these metrics. The smallest of them is searched on a fine grid of scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.ideals import scaling_over
from callpath_modeler.analysis.predict import predict
from callpath_modeler.analysis.run_time import predicted_run_time, run_times
from callpath_modeler.analysis.scales import geometric_scales, plateau
from callpath_modeler.analysis.uncertain import Total
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.schema import Metric, Reduction

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Ranking
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.profile.experiment import Experiment

ENERGY = "energy"
"""Name of the metric with the energy of all components."""
_SECONDS_PER_HOUR = 3600.0
_SAME = 0.005
"""Relative differences below this one do not show in three digits."""


class CheapestScale(Struct, frozen=True):
    """The scale at which a cost is least, by the models.

    Attributes
    ----------
    at : the scale
    total : cost there, with its band
    first, last : ends of the range of scales around `at` whose cost is inside that band
    start, until : ends of the search: the smallest run, and the target or the largest run
    is_monotone : True if the cost only rises, or only falls, over the whole search
    """

    at: float
    total: Total
    first: float
    last: float
    start: float
    until: float
    is_monotone: bool

    @property
    def end(self) -> str:
        """The end of the search where the cost is least, ``"smallest"`` or ``"largest"``; or ""."""
        return {self.start: "smallest", self.until: "largest"}.get(self.at, "")

    @property
    def is_decided(self) -> bool:
        """False if every scale of the search may be as cheap."""
        return (self.first, self.last) != (self.start, self.until)


class ScaleCost(Struct, frozen=True):
    """A cost of the whole program.

    Attributes
    ----------
    at_target : cost at the target, with its band
    cheapest : the scale where it is least; None = not known, as under weak scaling
    """

    at_target: Total
    cheapest: CheapestScale | None


class ScaleCosts(Struct, frozen=True):
    """Costs of the whole program at a target.

    Attributes
    ----------
    metric : name of the metric of the energy
    time : run time
    core_hours, energy : of all processes; None = the number of processes is not known, or the
        profile has no mean over processes
    """

    metric: str
    time: Total
    core_hours: ScaleCost | None
    energy: ScaleCost | None


def energy_metric(experiment: Experiment) -> Metric | None:
    """Return the metric with the energy of an experiment; None = there is none.

    It is the metric `ENERGY` if this is in joules, else the only metric in joules. Counters of
    several components may contain each other, so cpmodel never adds them up by itself.
    """
    known = _in_joules(experiment)
    named = [metric for metric in known if metric.name == ENERGY]
    return (named or known)[0] if named or len(known) == 1 else None


def require_energy(experiment: Experiment) -> Metric:
    """Return the metric with the energy of an experiment.

    Raises
    ------
    UsageError
        If there is none, or if several metrics are in joules.
    """
    found = energy_metric(experiment)
    if found is not None:
        return found
    several = [metric.name for metric in _in_joules(experiment)]
    if not several:
        raise UsageError(
            "--by energy: no metric of these profiles is in joules",
            hint="`cpmodel info` lists the metrics with their units",
        )
    quoted = (name if name.isidentifier() else f"`{name}`" for name in several)
    option = shell_word(f"{ENERGY} = {' + '.join(quoted)}")
    raise UsageError(
        f"--by energy: several metrics are in joules: {', '.join(several)}",
        hint=f"if no counter contains another one, add them up: --define {option}",
    )


def _in_joules(experiment: Experiment) -> list[Metric]:
    metrics = (values.metric for values in experiment.columns.values())
    return [metric for metric in metrics if metric.is_energy]


def scale_costs(ranking: Ranking) -> ScaleCosts | None:
    """Return what a program costs at the target of a ranking by time.

    Returns
    -------
    ScaleCosts or None
        None if the ranking has no energy or no run time, and at infinity.
    """
    energy, run_time = ranking.energy, ranking.run_time
    if energy is None or run_time is None or np.isinf(ranking.target):
        return None
    fitted, p = ranking.fitted, _processes(ranking)
    if math.isnan(p):
        return ScaleCosts(energy.fitted.metric.name, run_time.total, None, None)
    hours = ScaleCost(
        _times(run_time.total, p / _SECONDS_PER_HOUR),
        _cheapest(ranking, lambda at: run_times(fitted, at) * at / _SECONDS_PER_HOUR,
                  lambda at: _times(predicted_run_time(fitted, at), at / _SECONDS_PER_HOUR)),
    )  # fmt: skip
    return ScaleCosts(energy.fitted.metric.name, run_time.total, hours, _energy(ranking, energy, p))


def _energy(ranking: Ranking, energy: Ranking, p: float) -> ScaleCost | None:
    """Return the energy of all processes; None = values are no means or sums over processes."""
    fitted = energy.fitted
    match fitted.experiment.reduction:
        case Reduction.MEAN:
            power = 1
        case Reduction.SUM:
            power = 0
        case _:
            return None
    at_target = _times(energy.total, p**power)

    def curve(scales: FloatArray) -> FloatArray:
        rows = np.flatnonzero(fitted.modelled)
        return fitted.models.sum_values(rows, scales) * scales**power

    def total(at: float) -> Total:
        return _times(predict(fitted, at).total(), at**power)

    return ScaleCost(at_target, _cheapest(ranking, curve, total))


def _cheapest(
    ranking: Ranking, curve: Callable[[FloatArray], FloatArray], total: Callable[[float], Total]
) -> CheapestScale | None:
    """Return the scale where a cost is least; None without models, and unless the work is constant.

    Parameters
    ----------
    curve : the cost at [m] scales
    total : the cost at one scale, with its band
    """
    fitted = ranking.fitted
    if fitted.is_measured_only or not searches_scales(fitted):
        return None
    start, largest = float(fitted.points[0]), float(fitted.points[-1])
    until = max(largest, ranking.target)
    scales = geometric_scales(start, until)
    costs = curve(scales)
    if not (np.isfinite(costs) & (costs > 0)).all():
        return None
    least = int(costs.argmin())
    at = {0: start, len(scales) - 1: until}.get(least, float(scales[least]))
    there = total(at)
    limit = np.nanmax([there[2], costs[least] * (1 + _SAME)])
    first, last = plateau(scales, costs, least, float(limit))
    first = start if first == scales[0] else first
    last = until if last == scales[-1] else last
    steps = np.diff(costs)
    is_monotone = bool((steps >= 0).all() or (steps <= 0).all())
    return CheapestScale(at, there, first, last, start, until, is_monotone)


def searches_scales(fitted: Fitted) -> bool:
    """Return whether the work is the same at every p, so that costs can be compared."""
    is_over_p = fitted.parameter == "p"
    return is_over_p and scaling_over(fitted.experiment, "p") is Scaling.STRONG


def _processes(ranking: Ranking) -> float:
    """Return the number of processes at the target; NaN = not known."""
    at, constants = ranking.fitted.at(ranking.target), ranking.fitted.experiment.constants
    return float(at.get("p", constants.get("p", math.nan)))


def _times(total: Total, factor: float) -> Total:
    value, low, high = (end * factor for end in total)
    return value, low, high
