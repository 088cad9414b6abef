"""Cells of a test: many values for which one test executes the same statements."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

Test = Callable[..., None]


def cells(names: str | Sequence[str], values: Iterable[Any]) -> Callable[[Test], Test]:
    """Return a decorator that runs all cells in one test, and names those that fail.

    The arguments are those of `pytest.mark.parametrize`, which makes one test of each cell. Use it
    where each cell has its own meaning. Each cell has a folder of its own as `tmp_path`. A cell
    that is skipped does not end the others, and the test is then skipped for its reason.
    """
    keys = [names] if isinstance(names, str) else [*names]
    rows = [(value,) if isinstance(names, str) else tuple(value) for value in values]
    assert rows, "a test without cells tests nothing"

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def every(*this: object, **fixtures: Any) -> None:
            failed: list[BaseException] = []
            skipped: list[str] = []
            for k, row in enumerate(rows):
                cell = dict(zip(keys, row, strict=True))
                own = dict(fixtures)
                if "tmp_path" in own:
                    own["tmp_path"] /= f"cell{k}"
                    own["tmp_path"].mkdir()
                try:
                    test(*this, **own, **cell)
                except pytest.skip.Exception as skip:
                    skipped.append(f"{_shown(cell)}: {skip.msg}")
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised below
                    error.add_note(f"in the cell {_shown(cell)}")
                    failed.append(error)
            if failed:
                message = f"{len(failed)} of {len(rows)} cells of {test.__name__} fail"
                raise BaseExceptionGroup(message, failed)
            if skipped:
                pytest.skip(f"{len(skipped)} of {len(rows)} cells are skipped, first {skipped[0]}")

        others = [each for each in signature.parameters.values() if each.name not in keys]
        assert len(others) + len(keys) == len(signature.parameters), keys
        every.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return every

    return decorate


def _shown(cell: dict[str, object]) -> str:
    """Return the values of a cell, each within one short line."""
    return ", ".join(f"{name} = {repr(value)[:200]}" for name, value in cell.items())
