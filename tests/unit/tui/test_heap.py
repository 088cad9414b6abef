"""Unused memory is returned to the system."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

_FREED = """
import sys
from pathlib import Path
import numpy as np
from callpath_modeler.tui.value_keys import trim_heap

def private():
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024

np.ones(3_000_000)  # a freed array of 24 MB: from now on such are kept
before = private()
arrays = [np.ones(250_000) for _ in range(20)]
del arrays[:-1]
assert trim_heap()
print(private() - before)
"""


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not Path("/proc/self/status").exists(),
    reason="only the GNU C library keeps freed arrays",
)
def test_freed_arrays_are_given_back_though_a_later_one_is_still_used() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FREED], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 10  # MB; one array has 2, all of them 40
