"""Every seed is read, and every input that once was a crash is read or refused within bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.judge import attempt
from fuzz.targets import TARGETS

HERE = Path(__file__).parent / "regressions"
CASES = sorted(path for path in HERE.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_read(name, tmp_path):
    target = TARGETS[name]
    seeds = target.seeds()
    assert seeds
    for number, content in enumerate(seeds):
        assert attempt(target, content, tmp_path) is True, f"seed {number} of {name}"


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_was_a_crash_is_read_or_refused(case, tmp_path):
    target = TARGETS[case.parent.name]
    assert attempt(target, case.read_bytes(), tmp_path) is not None
