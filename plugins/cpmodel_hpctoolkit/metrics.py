"""What can be had of each metric of a database, under which name and in which unit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from callpath_modeler.profile.schema import DeclaredMetric, Metric, MetricStatus, base_unit
from callpath_modeler.readers.reductions import Fold

_NAME_AND_UNIT = re.compile(r"(.+) \(([^()]+)\)")
_PREFERRED = ("REALTIME", "CPUTIME", "GPUOP")
"""The run time, best first: the processor's clock stands still while a process waits."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric as it lies in a database.

    Attributes
    ----------
    name : as in the database, with its unit
    number : its place there
    has_data : whether any value is not zero
    on_gpu : True for the part that was measured on streams of accelerators
    description : one line for people
    """

    name: str
    number: int
    has_data: bool
    on_gpu: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class StoredMetric:
    """A metric as it is handed out.

    Attributes
    ----------
    declared : what users of the profile see
    measure : what it is in the database
    scale : what to multiply stored values with to get base units
    """

    declared: DeclaredMetric
    measure: Measure
    scale: float

    @property
    def fold(self) -> Fold:
        """How threads become a process."""
        return Fold.MAX if self.declared.metric.is_time else Fold.SUM


def declare(measures: Iterable[Measure]) -> dict[str, StoredMetric]:
    """Return the metrics by name: the run time first, those that are zero last."""
    stored: dict[str, StoredMetric] = {}
    for measure in measures:
        name, unit, scale = _in_base_units(measure.name)
        if measure.on_gpu:
            name = f"{name} on GPU streams"
        if name in stored:
            name = measure.name
        metric = Metric(name, unit, measure.description)
        status = MetricStatus.DATA if measure.has_data else MetricStatus.ABSENT
        note = "" if measure.has_data else "never non-zero"
        stored.setdefault(name, StoredMetric(DeclaredMetric(metric, status, note), measure, scale))
    return dict(sorted(stored.items(), key=lambda item: _rank(item[1])))


def _rank(stored: StoredMetric) -> tuple[bool, int, bool, str]:
    # Databases list metrics in any order; that of a series must be one.
    metric = stored.declared.metric
    place = _PREFERRED.index(metric.name) if metric.name in _PREFERRED else len(_PREFERRED)
    return not stored.measure.has_data, place, not metric.is_time, metric.name


def _in_base_units(name: str) -> tuple[str, str, float]:
    """Split ``"CPUTIME (usec)"`` into ``"CPUTIME"``, ``"s"`` and 1e-6."""
    found = _NAME_AND_UNIT.fullmatch(name)
    if found:
        unit, scale = base_unit(found[2])
        if unit in {"s", "B"}:
            return found[1], unit, scale
    return name, "1", 1.0
