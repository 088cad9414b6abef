"""Comparison of outputs with golden files, or new golden files."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest
from normal_form import with_numbers_of

EXPECTED = Path(__file__).parent / "expected"
AGAIN = bool(os.environ.get("CPMODEL_NEW_GOLDEN"))
"""Whether golden files are written, as by `make golden`."""
_MOST_LINES = 60


def compare(path: Path, text: str) -> None:
    """Compare a text with a golden file, or write it again."""
    old = path.read_bytes().decode() if path.exists() else None
    new = text if old is None or old == text else with_numbers_of(old, text)
    if new == old:
        return
    if AGAIN:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(new.encode())
        return
    assert old is not None, f"no golden output {path}: `make golden` writes it"
    lines = (each.splitlines(keepends=True) for each in (old, new))
    changes = list(difflib.unified_diff(*lines, "golden", "now", n=2))
    shown = "".join(line.rstrip("\n") + "\n" for line in changes[:_MOST_LINES])
    more = f"... {len(changes) - _MOST_LINES} more\n" if len(changes) > _MOST_LINES else ""
    pytest.fail(
        f"{path.relative_to(EXPECTED)} differs; if this is meant, `make golden` writes it again\n"
        f"{shown}{more}",
        pytrace=False,
    )
