"""A test of many cells runs each of them, and names those that fail."""

from __future__ import annotations

import pytest

from cells import cells


def test_each_cell_runs_and_those_that_fail_are_named():
    seen = []

    @cells("n", range(1, 3))
    @cells(("name", "limit"), [("a", 1), ("b", 2)])
    def check(folder, name, limit, n):
        seen.append((folder, name, n))
        assert n <= limit

    with pytest.raises(ExceptionGroup, match="1 of 2 cells of check fail") as caught:
        check(folder="x")
    assert seen == [("x", name, n) for n in (1, 2) for name in "ab"]
    (failed,) = caught.value.exceptions
    assert failed.__notes__ == ["in the cell n = 2"]
    assert failed.exceptions[0].__notes__ == ["in the cell name = 'a', limit = 1"]


@cells("n", range(3))
def test_each_cell_has_an_empty_folder(tmp_path, n):
    assert not list(tmp_path.iterdir())
    (tmp_path / str(n)).touch()


def test_a_test_without_cells_is_refused():
    with pytest.raises(AssertionError, match="without cells"):
        cells("n", [])
