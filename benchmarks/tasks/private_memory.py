"""Private memory of a process (its unique set), sampled by a thread."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

_EVERY = 0.001


def private_bytes() -> int:
    """Return the private memory of this process, clean and dirty."""
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    lines = [line.split() for line in text.splitlines()]
    return 1024 * sum(int(words[1]) for words in lines if words[0].startswith("Private_"))


def _give_back() -> None:
    # New memory would otherwise reuse freed memory, and would not be noticed.
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Watch:
    """The largest private memory during a block.

    Attributes
    ----------
    before, peak : bytes
    """

    def __init__(self) -> None:
        self.before = self.peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        # The sampling thread must run between two short calls of the other thread.
        sys.setswitchinterval(_EVERY / 2)
        _give_back()
        self.before = self.peak = private_bytes()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self.peak = max(self.peak, private_bytes())

    def _look(self) -> None:
        while not self._over.is_set():
            self.peak = max(self.peak, private_bytes())
            time.sleep(_EVERY)
