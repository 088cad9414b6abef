from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler.arrays import give_back_pages, rows_of

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


def test_rows_of_a_mapped_column_are_those_of_the_array_in_any_order(tmp_path):
    values = np.arange(2_000_000, dtype=np.float64).reshape(-1, 4)
    large = np.concatenate([values] * 5)  # several parts of a file
    np.save(tmp_path / "column.npy", large)
    mapped = np.load(tmp_path / "column.npy", mmap_mode="r")
    rows = np.random.default_rng(1).integers(-1, len(large), 1000)
    mask = np.zeros(len(large), bool)
    mask[rows] = True
    for chosen in (rows, rows.tolist(), mask, rows[:0], slice(3, 7)):
        np.testing.assert_array_equal(rows_of(mapped, chosen), large[chosen])
