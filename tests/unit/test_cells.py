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


def test_a_cell_that_raises_nothing_where_an_error_is_expected_is_named():
    @cells("text", ["1", "x"])
    def check(text):
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(BaseExceptionGroup, match="1 of 2 cells of check fail") as caught:
        check()
    assert caught.value.exceptions[0].__notes__ == ["in the cell text = '1'"]


def test_a_skipped_cell_does_not_end_the_others():
    seen = []

    @cells("n", range(3))
    def check(n, limit):
        seen.append(n)
        if n == 0:
            pytest.skip("needs more")
        assert n <= limit

    with pytest.raises(pytest.skip.Exception, match="1 of 3 cells are skipped, first n = 0: needs"):
        check(limit=2)
    assert seen == [0, 1, 2]
    with pytest.raises(ExceptionGroup, match="1 of 3 cells of check fail"):
        check(limit=1)


@cells("n", range(3))
def test_each_cell_has_an_empty_folder(tmp_path, n):
    assert not list(tmp_path.iterdir())
    (tmp_path / str(n)).touch()


def test_a_test_without_cells_is_refused():
    with pytest.raises(AssertionError, match="without cells"):
        cells("n", [])
