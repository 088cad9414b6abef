"""Excluded time: measurement switched off, and writing the trace."""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_otf2.events import Batch

_OFF = 2
_OPEN = 2**63 - 1


class Pauses:
    """Pauses of one location that can still affect later events."""

    def __init__(self) -> None:
        self._gaps: list[tuple[int, int]] = []
        self._over = 0

    def add(self, batch: Batch) -> None:
        """Add the pauses of a batch."""
        for time, mode in batch.pauses.tolist():
            is_open = bool(self._gaps) and self._gaps[-1][1] == _OPEN
            if mode == _OFF and not is_open:
                self._gaps.append((time, _OPEN))
            elif mode != _OFF and is_open:
                self._gaps[-1] = (self._gaps[-1][0], time)
        # An open pause stays at the end.
        self._gaps[:0] = [(begin, end) for begin, end in batch.flushes.tolist() if end > begin]

    def forget(self, time: int) -> None:
        """Replace the pauses before `time` by their total length."""
        if self._gaps:
            self._over = time - int(self.without(np.array([time]))[0])
            self._gaps = [(max(begin, time), end) for begin, end in self._gaps if end > time]

    def without(self, time: Int64Array) -> Int64Array:
        """Return times, [n], on a clock that stops in pauses; none may precede a `forget`."""
        if not self._gaps:
            return time - self._over
        begin, end = self._merged()
        before = np.concatenate(([0], np.cumsum(end - begin)))
        over = np.searchsorted(end, time, side="right")
        inside = np.minimum(over, len(begin) - 1)
        current = np.where(over < len(begin), np.maximum(time - begin[inside], 0), 0)
        shortened: Int64Array = time - self._over - before[over] - current
        return shortened

    def _merged(self) -> tuple[Int64Array, Int64Array]:
        merged: list[list[int]] = []
        for begin, end in sorted(self._gaps):
            if merged and begin <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([begin, end])
        begins, ends = np.array(merged, np.int64).T
        return begins, ends
