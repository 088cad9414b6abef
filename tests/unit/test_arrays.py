from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler.arrays import give_back_pages

SMAPS = Path("/proc/self/smaps")


def resident(file: Path) -> int:
    """Return the resident memory of a mapped file in kB."""
    after = SMAPS.read_text().split(str(file), 1)[1]
    return int(after.split("Rss:", 1)[1].split()[0])


@pytest.mark.skipif(
    not (SMAPS.exists() and hasattr(mmap, "MADV_DONTNEED")), reason="the system tells no pages"
)
def test_pages_of_mapped_arrays_are_given_back_and_values_stay(tmp_path):
    file, size = tmp_path / "a.npy", 3_000_000
    np.save(file, np.arange(size, dtype=float))
    mapped = np.asarray(np.load(file, mmap_mode="r"))
    total = mapped.sum()
    assert resident(file) > 8 * size / 2048
    give_back_pages([mapped, np.zeros(size), None])
    assert resident(file) < 100
    assert mapped.sum() == total
