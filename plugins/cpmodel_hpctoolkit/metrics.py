"""Metrics of a database: names, units and order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from callpath_modeler.profile.schema import DeclaredMetric, Metric, MetricStatus, base_unit
from callpath_modeler.readers.reductions import Fold
from callpath_modeler.readers.threads import fold_of

_NAME_AND_UNIT = re.compile(r"(.+) \(([^()]+)\)")
_PREFERRED = ("REALTIME", "CPUTIME", "GPUOP")
"""Metrics of the run time, best first. CPU time does not increase while a process waits."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric as the database stores it.

    Attributes
    ----------
    name : as in the database, with its unit
    number : number in the database
    has_data : whether any value is not zero
    on_gpu : whether it is the part from accelerator streams
    description : one line for users
    """

    name: str
    number: int
    has_data: bool
    on_gpu: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class StoredMetric:
    """A metric as users see it, with its position in the database.

    Attributes
    ----------
    declared : metric as users see it
    measure : metric as stored
    scale : factor from stored values to base units
    """

    declared: DeclaredMetric
    measure: Measure
    scale: float

    @property
    def fold(self) -> Fold:
        """Return the reduction from threads to a process."""
        return fold_of(self.declared)


def declare(measures: Iterable[Measure]) -> dict[str, StoredMetric]:
    """Return the metrics by name: the run time first, metrics that are zero last."""
    stored: dict[str, StoredMetric] = {}
    for measure in measures:
        name, unit, scale = _in_base_units(measure.name)
        metric = Metric(name, unit, measure.description)
        with_unit = replace(metric, name=measure.name)
        if measure.on_gpu:
            metric, with_unit = metric.on_gpu_streams(), with_unit.on_gpu_streams()
        if metric.name in stored:
            metric = with_unit
        status = MetricStatus.DATA if measure.has_data else MetricStatus.ABSENT
        note = "" if measure.has_data else "never non-zero"
        declared = DeclaredMetric(metric, status, note)
        stored.setdefault(metric.name, StoredMetric(declared, measure, scale))
    return dict(sorted(stored.items(), key=lambda item: _rank(item[1])))


def _rank(stored: StoredMetric) -> tuple[bool, int, bool, str]:
    # Databases list metrics in any order, but a series of them needs a common order.
    metric = stored.declared.metric
    place = _PREFERRED.index(metric.name) if metric.name in _PREFERRED else len(_PREFERRED)
    return not stored.measure.has_data, place, not metric.is_time, metric.name


def _in_base_units(name: str) -> tuple[str, str, float]:
    """Return ``"CPUTIME"``, ``"s"`` and 1e-6 for ``"CPUTIME (usec)"``."""
    found = _NAME_AND_UNIT.fullmatch(name)
    if found:
        unit, scale = base_unit(found[2])
        if unit in {"s", "B"}:
            return found[1], unit, scale
    return name, "1", 1.0
