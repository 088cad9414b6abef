"""Units of metrics that the user states because the profiles do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import DeclaredMetric, Extent, Reduction, base_unit
from callpath_modeler.readers.base import Reduced

_UNKNOWN = frozenset({"1", "", "ticks"})
"""Units that profiles without a unit get; ticks are those of a clock of unknown rate."""


@dataclass(frozen=True, slots=True)
class DeclaredUnits:
    """The metrics of a profile in the units that the user states.

    Attributes
    ----------
    declared : the metrics of the profile, with these units
    factors : from the values that the reader returns to base units, by metric
    """

    declared: tuple[DeclaredMetric, ...]
    factors: Mapping[str, float]

    def converted(self, metric: str, found: Reduced, reduction: Reduction) -> Reduced:
        """Return the values of a metric in base units."""
        factor = self.factors.get(metric, 1.0)
        # The imbalance is a ratio.
        if factor == 1.0 or reduction is Reduction.IMBALANCE:
            return found
        return replace(
            found,
            exclusive=found.exclusive * factor,
            total=found.total * factor,
            run_time=found.run_time * factor,
        )

    def findings(self, subject: str, metrics: Iterable[str], reduction: Reduction) -> list[Finding]:
        """Return a finding for each of the `metrics` that is taken to be in seconds.

        A table states its units in its titles, and a column `time` of a table is in seconds by
        the documentation of the format: tables have no finding.
        """
        if reduction is Reduction.GIVEN:
            return []
        assumed = {d.metric.name for d in self.declared if d.unit_is_assumed}
        message = "the profile states no unit, so its values are taken as seconds"
        return [
            Finding("CPM160", subject, f"{name}: {message}") for name in metrics if name in assumed
        ]


def in_given_units(
    declared: Sequence[DeclaredMetric], units: Mapping[str, str], extent: Extent
) -> DeclaredUnits:
    """Return the metrics of a profile in the units that the user states.

    Parameters
    ----------
    units : unit by metric
    extent : of the run

    Raises
    ------
    UsageError
        If the profile states another unit, or has added the durations of threads.
    """
    found, factors = [], {}
    for each in declared:
        metric = each.metric
        if metric.name not in units:
            found.append(each)
            continue
        unit, factor = base_unit(units[metric.name])
        if not each.unit_is_assumed and metric.unit not in _UNKNOWN:
            raise UsageError(
                f"--unit {metric.name}={units[metric.name]}: the profile states the unit "
                f"of {metric.name}, and values are converted to {metric.unit}",
                hint="leave the option out",
            )
        if unit == "s" and not metric.is_time and metric.unit != "ticks" and extent.threads > 1:
            raise UsageError(
                f"--unit {metric.name}={units[metric.name]}: values of {metric.name} are sums "
                "over the threads of a process, and durations of threads do not add up",
                hint="model the metric as a number, without --unit",
            )
        factors[metric.name] = factor
        found.append(replace(each, metric=replace(metric, unit=unit), unit_is_assumed=False))
    return DeclaredUnits(tuple(found), factors)
