"""Run times at other numbers of processes, with a band from a trace that was held back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

from msgspec.structs import replace as replace_fields

from callpath_modeler.units import interval, quantity, signed_percent
from cpmodel_commspec.operations import Communicator, Recorded, Shape
from cpmodel_commspec.replay.loggp import replay
from cpmodel_commspec.replay.platform import platform_of
from cpmodel_commspec.replay.run_time import program_of
from cpmodel_commspec.scalable.expansion import expanded
from cpmodel_commspec.scalable.extrapolation import Extrapolated
from cpmodel_commspec.scalable.scales import Scale
from cpmodel_commspec.specification import Specification

_NETWORK = "infiniband"
_MOST_OPERATIONS = 1_000_000
"""Operations of a replay; more take minutes."""

_LEAST = 0.02
"""Relative error that is expected at least: the noise between runs."""

_WIDTH = 2.0
"""Half the width of a band, in errors."""


@dataclass(frozen=True, slots=True)
class HoldOut:
    """Run times of the largest trace, and as the smaller ones predict them.

    Attributes
    ----------
    scales : of all traces
    predicted, traced : seconds of replays on the default network
    run_predicted, run_traced : seconds on the machine of the traces; 0 if the traces have none
    slowdown : the measured time in MPI calls of the largest trace, over that of its replay
    """

    scales: tuple[Scale, ...]
    predicted: float
    traced: float
    run_predicted: float
    run_traced: float
    slowdown: float

    @property
    def error(self) -> float:
        """The relative error of the replay."""
        return self.predicted / self.traced - 1 if self.traced else 0.0

    @property
    def run_error(self) -> float:
        """The relative error on the machine of the traces."""
        return self.run_predicted / self.run_traced - 1 if self.run_traced else 0.0

    def band(self, scale: Scale, error: float) -> float:
        """Return half the width of the band of a run time, relative to it: it grows with log p."""
        *_, before, last = (one.processes for one in self.scales)
        further = log(scale.processes / last) / log(last / before)
        return _WIDTH * max(abs(error), _LEAST) * max(1.0, further)


@dataclass(frozen=True, slots=True)
class _Replay:
    """Seconds of a replay on the default network, and of computation, the mean of all ranks."""

    seconds: float
    computed: float

    def slowdown(self, measured: float) -> float:
        """Return the measured time in MPI calls over that of the replay."""
        called = self.seconds - self.computed
        return (measured - self.computed) / called if called > 0 else 1.0

    def on_machine(self, slowdown: float) -> float:
        """Return the seconds on a machine whose calls take longer."""
        return self.computed + slowdown * (self.seconds - self.computed)


def _replayed(
    shapes: Sequence[Shape], communicators: Sequence[Communicator], ranks: Sequence[Recorded]
) -> _Replay:
    network = platform_of(_NETWORK)
    seconds = replay(shapes, communicators, ranks, network, by_arrival=False).seconds
    computed = sum(float(one.computing.sum()) + one.last for one in ranks) / len(ranks)
    return _Replay(seconds, computed)


def hold_out(found: Extrapolated) -> HoldOut | None:
    """Return the error at the largest trace; None without times, or if a replay takes too long."""
    *_, before, largest = found.traces
    if found.times is None or largest.counts().sum() > _MOST_OPERATIONS:
        return None
    scales = found.told.scales
    there = expanded(found.told, scales[-1], found.times.without_largest())
    predicted = _replayed(there.shapes, there.communicators, there.ranks)
    own = []
    for trace, scale in zip((before, largest), scales[-2:], strict=True):
        made = expanded(found.told, scale, found.times)
        ranks = [
            replace(one, computing=seconds.computing, last=seconds.last)
            for one, seconds in zip(made.ranks, trace.ranks, strict=True)
        ]
        own.append(_replayed(made.shapes, made.communicators, ranks))
    slowdowns = [x.slowdown(one.seconds) for x, one in zip(own, (before, largest), strict=True)]
    return HoldOut(
        scales, predicted.seconds, own[1].seconds, predicted.on_machine(slowdowns[0]),
        largest.seconds, slowdowns[1],
    )  # fmt: skip


def with_run_time(
    told: Specification, held: HoldOut | None, scale: Scale
) -> tuple[Specification, list[str]]:
    """Return a program with its run times and bands, and what is said about them."""
    if held is None:
        return told, []
    bands = [held.band(scale, error) for error in (held.error, held.run_error)]
    p = held.scales[-1].processes
    lines = [
        f"held back p = {p}: {quantity(predicted, 's')} from the smaller traces, "
        f"{quantity(traced, 's')} {where} ({signed_percent(error)})"
        for predicted, traced, error, where in (
            (held.predicted, held.traced, held.error, f"in the trace, on {_NETWORK}"),
            (held.run_predicted, held.run_traced, held.run_error, "on the machine of the traces"),
        )
        if traced
    ]
    told = replace_fields(told, band=bands[0])
    if told.operations > _MOST_OPERATIONS:
        return told, lines
    replayed = _replayed(told.shapes, told.communicators, program_of(told))
    seconds = [replayed.seconds]
    if held.run_traced:
        seconds.append(replayed.on_machine(held.slowdown))
        told = replace_fields(told, run_time=seconds[1], run_time_band=bands[1])
    for value, band, where in zip(
        seconds, bands, (f"on {_NETWORK}", "on the machine of the traces"), strict=False
    ):
        ends = band_text(value, band)
        lines.append(f"{scale}: runs {quantity(value, 's')} ({ends}) {where}")
    return told, lines


def band_text(seconds: float, band: float) -> str:
    """Return the ends of a band that is relative to a run time."""
    return interval(seconds * max(0.0, 1 - band), seconds * (1 + band), "s")
