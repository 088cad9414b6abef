"""Metrics of attributes: inclusive or exclusive, per process or summed over processes.

Names are chains, read from right to left: ``sum#inclusive#sum#time.duration`` is a time, summed in
each process, with all callees, and summed over processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from callpath_modeler.profile.schema import Metric, base_unit
from cpmodel_caliper.contents import Contents, Quantity

_INCLUSIVE = frozenset({"inclusive", "inclusive_scale", "iscale"})
_SUMS = frozenset({"sum", "scale", *_INCLUSIVE})
_AVERAGES = frozenset({"avg", *_SUMS})
_ALONE = frozenset(
    {"count", "scount", "time.duration", "time.duration.ns", "time.inclusive.duration"}
)
_NO_COST = frozenset({"aggregate.slot"})
"""Attributes whose sum has no meaning."""
_DURATION = re.compile(r"time\.(?:inclusive\.)?duration(\.ns)?")
_ON_GPUS = frozenset(
    {"cupti.activity.duration", "rocm.activity.duration", "rocm.activity.duration.ns", "t.gpu.c",
     "t.gpu.r"}
)  # fmt: skip
"""Durations in nanoseconds, although their names may suggest another unit."""
_TIMES = re.compile(r"time(?: \(?(I|E|inc|exc)\)?)?")
_INCLUSIVE_WORDS = ("I", "inc")


@dataclass(frozen=True, slots=True)
class Stored:
    """An attribute with the values of a metric.

    Attributes
    ----------
    attribute : name
    metric : measured quantity
    factor : factor from stored values to base units
    inclusive : whether values include callees
    summed : whether values are sums over processes
    note : reason why the attribute cannot be used, or ""
    """

    attribute: str
    metric: Metric
    factor: float
    inclusive: bool
    summed: bool
    note: str = ""


def stored_metrics(contents: Contents, *, per_process: bool) -> list[Stored]:
    """Return one attribute per metric, the best one in the file.

    Parameters
    ----------
    per_process : whether records have the rank of their process
    """
    found: dict[str, list[Stored]] = {}
    for name, column in contents.columns.items():
        stored = _recognise(name, contents.quantities.get(name, Quantity()))
        if stored is not None and column.records:
            found.setdefault(stored.metric.name, []).append(stored)
    return [_best(candidates, per_process=per_process) for candidates in found.values()]


def _best(candidates: Iterable[Stored], *, per_process: bool) -> Stored:
    """Return the best attribute: usable, summed over processes, and inclusive."""

    def rank(stored: Stored) -> tuple[bool, bool, bool]:
        return not stored.note, stored.summed and not per_process, stored.inclusive

    return max(candidates, key=rank)


def _recognise(name: str, quantity: Quantity) -> Stored | None:
    *operations, base = name.split("#")
    if base in _NO_COST:
        return None
    titled = _TIMES.fullmatch(name)
    if titled:
        # A report has renamed the column.
        return _stored(name, "time", quantity, inclusive=titled[1] in _INCLUSIVE_WORDS)
    chain = set(operations)
    if not (operations or base in _ALONE) or not chain <= _AVERAGES:
        return None
    inclusive = bool(chain & _INCLUSIVE) or ".inclusive." in base
    if "avg" in chain:
        # Averages over the records of a process are useless. Averages over processes are not.
        if operations[0] != "avg" or len(operations) < 2:
            return None
        note = "only an average over processes with the region; add the sum to the output"
    else:
        note = ""
    called = "time" if _DURATION.fullmatch(base) else base
    scaled = bool(chain & {"scale", "inclusive_scale", "iscale"})
    nanoseconds = base.endswith(".ns") or base in _ON_GPUS
    return _stored(
        name,
        called,
        quantity,
        inclusive=inclusive,
        summed=_is_over_processes(operations, base),
        nanoseconds=nanoseconds and not scaled,
        seconds=nanoseconds and scaled,
        note=note,
    )


def _is_over_processes(operations: Sequence[str], base: str) -> bool:
    """Return whether a value is a sum over processes of aggregated values of each process."""
    first, rest = operations[:1], operations[1:]
    is_aggregated = "sum" in rest or bool(_INCLUSIVE & {*rest}) or (rest and base in _ON_GPUS)
    return first == ["sum"] and bool(is_aggregated)


def _stored(
    name: str,
    called: str,
    quantity: Quantity,
    *,
    inclusive: bool,
    summed: bool = False,
    nanoseconds: bool = False,
    seconds: bool = False,
    note: str = "",
) -> Stored:
    unit, factor = base_unit(quantity.unit)
    if nanoseconds and not quantity.unit:
        unit, factor = "s", 1e-9
    elif seconds and not quantity.unit:
        unit, factor = "s", 1.0
    elif called == "time" and unit != "s":
        unit, note = "s", note or "the file does not state the unit of its times"
    metric = Metric(called, unit, quantity.alias or name)
    return Stored(name, metric, factor, inclusive, summed, note)
