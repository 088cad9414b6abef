"""Run times at other numbers of processes, with a band from a trace that was held back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from callpath_modeler.units import interval, quantity, signed_percent
from cpmodel_commspec.operations import Traced
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
    """Replays of the largest trace, with its own computation and as the smaller ones predict it.

    Attributes
    ----------
    scales : of all traces
    predicted, traced : seconds
    """

    scales: tuple[Scale, ...]
    predicted: float
    traced: float

    @property
    def error(self) -> float:
        """The relative error."""
        return self.predicted / self.traced - 1 if self.traced else 0.0

    def band(self, scale: Scale) -> float:
        """Return half the width of the band of a run time, relative to it: it grows with log p."""
        *_, before, last = (one.processes for one in self.scales)
        further = log(scale.processes / last) / log(last / before)
        return _WIDTH * max(abs(self.error), _LEAST) * max(1.0, further)


def hold_out(found: Extrapolated, traces: Sequence[Traced]) -> HoldOut | None:
    """Return the error at the largest trace; None without times, or if a replay takes too long."""
    largest = max(traces, key=lambda one: len(one.ranks))
    if found.times is None or largest.counts().sum() > _MOST_OPERATIONS:
        return None
    scales = found.told.scales
    there = expanded(found.told, scales[-1], found.times.without_largest())
    traced = expanded(found.told, scales[-1], found.times)
    own = [
        replace(one, computing=seconds.computing, last=seconds.last)
        for one, seconds in zip(traced.ranks, largest.ranks, strict=True)
    ]
    seconds = [
        replay(x.shapes, x.communicators, x.ranks, platform_of(_NETWORK), by_arrival=False).seconds
        for x in (there, replace(traced, ranks=tuple(own)))
    ]
    return HoldOut(scales, *seconds)


def run_time_text(told: Specification, held: HoldOut | None, scale: Scale) -> Iterator[str]:
    """Yield the run time of a program with its band, and the error of the trace held back."""
    if held is None:
        return
    p = held.scales[-1].processes
    yield (
        f"held back p = {p}: {quantity(held.predicted, 's')} from the smaller traces, "
        f"{quantity(held.traced, 's')} in the trace ({signed_percent(held.error)})"
    )
    if told.operations <= _MOST_OPERATIONS:
        ranks, network = program_of(told), platform_of(_NETWORK)
        seconds = replay(told.shapes, told.communicators, ranks, network, by_arrival=False).seconds
        ends = interval(seconds * max(0.0, 1 - told.band), seconds * (1 + told.band), "s")
        yield f"{scale}: runs {quantity(seconds, 's')} ({ends}) on {_NETWORK}"
