"""Values of one location per call path, added up while its events are replayed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from callpath_modeler.arrays import FloatArray, Int32Array, Int64Array


@dataclass(slots=True)
class ReplayTotals:
    """What one location spent in each call path.

    Attributes
    ----------
    cells : (int32 [n] call paths, float64 [n] values other than zero) by metric, times in ticks
    totals : by metric, counted without call paths
    outside : number of messages and other operations outside any region
    left_open : number of regions that were never left
    mended : number of returns that were added or left out, so that calls nest
    paused : ticks that do not count, because measurement was off or the trace was written
    sampled : number of events that have no place among calls
    program : the program that ran, as it was called, or ""
    """

    cells: dict[str, tuple[Int32Array, FloatArray]] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)
    outside: int = 0
    left_open: int = 0
    mended: int = 0
    paused: int = 0
    sampled: int = 0
    program: str = ""
    _dense: dict[str, FloatArray] = field(default_factory=dict)

    def add(
        self, metric: str, paths: Int64Array, amounts: Int64Array | FloatArray | None = None
    ) -> None:
        """Add amounts [n] (None: ones) to call paths [n]."""
        if not len(paths):
            return
        found = np.bincount(paths, None if amounts is None else amounts.astype(np.float64))
        held = self._dense.get(metric)
        if held is None or len(held) < len(found):
            grown = np.zeros(len(found))
            if held is not None:
                grown[: len(held)] = held
            held = self._dense[metric] = grown
        held[: len(found)] += found

    def add_to_total(self, metric: str, amount: float) -> None:
        """Add to the total of a metric."""
        self.totals[metric] = self.totals.get(metric, 0.0) + amount

    def pack(self) -> None:
        """Move what was added to `cells`: a location may know few of all call paths."""
        for metric, values in self._dense.items():
            paths = np.flatnonzero(values).astype(np.int32)
            self.cells[metric] = paths, values[paths]
        self._dense.clear()
