"""Costs beyond expected ones between the base and a target: factors, shares and expected costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.bands import Total
from callpath_modeler.analysis.ensemble import repetitions_of_pair
from callpath_modeler.analysis.excess import is_summed, per_process
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.groups import Costs
from callpath_modeler.units import setting_text


@dataclass(frozen=True, slots=True)
class Loss:
    """Factors of excess work between the base and a target.

    Attributes
    ----------
    of_target : factor that converts a cost at the target to one process
    run_time : cost of the whole program at the target, per process; ``inf`` = only costs that grow
        without limit are lost
    """

    of_target: float
    run_time: float

    def lost(self, value: FloatArray, expected: FloatArray) -> FloatArray:
        """Return the cost per process at the target beyond the expected one."""
        if np.isinf(self.run_time):
            return np.where(np.isinf(value), np.inf, 0.0)
        return self.of_target * np.nan_to_num(value) - expected

    def excess(self, value: FloatArray, share: FloatArray, expected: FloatArray) -> FloatArray:
        """Return lost costs as fractions of the run time at the target."""
        if np.isinf(self.run_time):
            return np.nan_to_num(share)
        lost = self.lost(value, expected)
        return lost / self.run_time if self.run_time > 0 else np.zeros_like(lost)


def loss_at(fitted: Fitted, target: float, total: float) -> Loss | None:
    """Return the factors of excess work at `target`; None = excess work is not defined.

    `no_excess` states the reason.

    Parameters
    ----------
    total : sum of all costs at the target
    """
    if no_excess(fitted, target):
        return None
    if is_summed(fitted.experiment, fitted.parameter):
        return Loss(1 / target, total / target)
    return Loss(1.0, total)


def no_excess(fitted: Fitted, target: float) -> str:
    """Return why excess work is not defined at `target`; "" = it is defined."""
    ideal = ideal_of(fitted)
    if not fitted.metric.additive:
        return f"{fitted.metric.name} does not add up over call paths"
    if target < fitted.base:
        return f"the target is below {setting_text({fitted.parameter: fitted.base})}"
    if np.isinf(target) and is_summed(fitted.experiment, fitted.parameter):
        return "sums over processes grow with their number"
    if np.isinf(target) and ideal.scaling is None:
        return "no cost is expected at infinity"
    return ideal.gap(fitted.base, target) if np.isfinite(target) else ""


def expected_at(fitted: Fitted, target: float, *, predicted: bool) -> FloatArray:
    """Return the expected cost of each call path at `target`, exclusive, per process.

    It is [call paths], and zero where excess work is not defined.

    Parameters
    ----------
    predicted : whether the cost at the target is predicted; call paths without a model are then
        excluded
    """
    if no_excess(fitted, target):
        return np.zeros(len(fitted.experiment.tree))
    known = fitted.modelled if predicted else np.full(len(fitted.experiment.tree), True)
    before = np.nan_to_num(np.where(known, fitted.at_base(), 0.0))
    before = per_process(fitted.experiment, fitted.parameter, before, fitted.base)
    return np.where(known, ideal_of(fitted).cost(fitted.base, target, before), 0.0)


def expected_addends(fitted: Fitted, target: float) -> FloatArray | None:
    """Return additive numbers for bands of `expected_at`, [call paths, columns]; None = no band."""
    if no_excess(fitted, target) or np.isinf(target):
        return None
    addends = ideal_of(fitted).added(target)
    return None if addends is None else np.where(fitted.modelled[:, None], addends, 0.0)


def repetitions_compared(fitted: Fitted, target: float) -> tuple[Costs, Costs] | None:
    """Return the expected costs of the runs at the base, and the costs at the target.

    None = no run states the expected costs.
    """
    line, pair = fitted.line, (fitted.base, target)
    return repetitions_of_pair(line, fitted.metric.name, fitted.parameter, ideal_of(fitted), pair)


def cost_per_process(fitted: Fitted, total: Total, target: float) -> float:
    """Return the cost of the whole program at a target, per process if values are sums over them.

    Parameters
    ----------
    total : cost of the whole program at the target
    """
    whole = np.array([total[0]])
    return float(per_process(fitted.experiment, fitted.parameter, whole, target)[0])


def share_at_target(fitted: Fitted, value: FloatArray, total: float, target: float) -> FloatArray:
    """Return exclusive shares; at infinity, the fastest growth has all, by coefficients.

    Parameters
    ----------
    value : [call paths] at the target
    total : their sum
    """
    in_the_limit = np.isinf(target) and (total == 0 or np.isinf(total))
    if not fitted.metric.additive or (total == 0 and not in_the_limit):
        return np.full_like(value, np.nan)
    if not in_the_limit:
        return value / total
    modelled = fitted.modelled
    growth = np.where(modelled, fitted.models.growth_rank(), -1)
    lead = np.where(growth == growth.max(initial=-1), fitted.models.leading_coefficient(), 0.0)
    whole = lead[modelled].sum()
    return np.where(modelled & (whole > 0), lead / (whole or 1.0), np.nan)


def total_at_largest(fitted: Fitted) -> float:
    """Return the measured total at the largest scale; NaN = the metric is not additive."""
    return _total(fitted, fitted.measured[:, -1])


def unmodelled(fitted: Fitted) -> tuple[IntArray, float]:
    """Return the rows without a model, and their share of the total at the largest scale."""
    rows = np.flatnonzero(~fitted.modelled)
    rows = rows[~np.isnan(fitted.measured[rows]).all(axis=1)]
    lost, whole = float(np.nansum(fitted.measured[rows, -1])), total_at_largest(fitted)
    return rows, lost / whole if whole > 0 else 0.0


def _total(fitted: Fitted, exclusive: FloatArray) -> float:
    """Return the total of the program; NaN = the metric is not additive."""
    return float(np.nansum(exclusive)) if fitted.metric.additive else float("nan")
