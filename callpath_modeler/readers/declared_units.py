"""Units that the user gives for metrics without a unit in the profiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct, structs

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import DeclaredMetric, Extent, Reduction, base_unit
from callpath_modeler.readers.base import Reduced

_UNKNOWN = frozenset({"1", "", "ticks"})
"""Units that stand for an unknown unit; a tick belongs to a clock of unknown rate."""


class DeclaredUnits(Struct, frozen=True):
    """The metrics of a profile, with the units that the user gave.

    Attributes
    ----------
    declared : metrics of the profile, with these units
    factors : conversion factor from the reader's values to SI base units, by metric
    """

    declared: tuple[DeclaredMetric, ...]
    factors: Mapping[str, float]

    def converted(self, metric: str, found: Reduced, reduction: Reduction) -> Reduced:
        """Return the values of a metric in SI base units."""
        factor = self.factors.get(metric, 1.0)
        # The imbalance is a ratio without a unit.
        if factor == 1.0 or reduction is Reduction.IMBALANCE:
            return found
        return replace(
            found,
            exclusive=found.exclusive * factor,
            total=found.total * factor,
            run_time=found.run_time * factor,
        )

    def findings(self, subject: str, metrics: Iterable[str], reduction: Reduction) -> list[Finding]:
        """Return a finding for each metric whose unit is assumed to be seconds.

        Tables get no finding: their titles state units, and their format defines seconds as the
        unit of a column `time`.
        """
        if reduction is Reduction.GIVEN:
            return []
        assumed = {d.metric.name for d in self.declared if d.unit_is_assumed}
        message = "the profile states no unit, so seconds are assumed"
        return [
            Finding("CPM160", subject, f"{name}: {message}") for name in metrics if name in assumed
        ]


def in_given_units(
    declared: Sequence[DeclaredMetric], units: Mapping[str, str], extent: Extent
) -> DeclaredUnits:
    """Return the metrics of a profile, with the units that the user gave.

    Parameters
    ----------
    declared : metrics of the profile
    units : unit by metric name
    extent : number of processes and threads of the run

    Raises
    ------
    UsageError
        If the profile states the unit of the metric, or if a duration would be a sum over threads.
    """
    found, factors = [], {}
    for each in declared:
        metric = each.metric
        # Values on GPU streams have the unit of those on threads.
        stated = metric.name if metric.name in units else metric.of_threads
        if stated not in units:
            found.append(each)
            continue
        unit, factor = base_unit(units[stated])
        if not each.unit_is_assumed and metric.unit not in _UNKNOWN:
            raise UsageError(
                f"--unit {stated}={units[stated]}: the profile states the unit "
                f"of {metric.name}, and values are converted to {metric.unit}",
                hint="omit the option",
            )
        if unit == "s" and not metric.is_time and metric.unit != "ticks" and extent.threads > 1:
            raise UsageError(
                f"--unit {stated}={units[stated]}: values of {metric.name} are sums "
                "over the threads of a process, and durations of threads do not add up",
                hint="model the metric as a number, without --unit",
            )
        factors[metric.name] = factor
        told = replace(metric, unit=unit)
        found.append(structs.replace(each, metric=told, unit_is_assumed=False))
    return DeclaredUnits(tuple(found), factors)
