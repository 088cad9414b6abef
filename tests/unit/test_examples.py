"""Property tests draw the same examples in CI, and new ones elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRINTS = """
from hypothesis import given, settings, strategies as st

@settings(max_examples=5)
@given(st.integers())
def test_prints(number):
    print("drawn", number)
"""


@pytest.mark.parametrize(("environment", "alike"), [({"CI": "true"}, True), ({}, False)])
def test_examples_are_the_same_in_ci_alone(tmp_path, environment, alike):
    tests = Path(__file__).resolve().parents[1]
    (tmp_path / "conftest.py").write_bytes((tests / "conftest.py").read_bytes())
    (tmp_path / "test_prints.py").write_text(PRINTS)
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    drawn = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-s", "-q", "-p", "no:cacheprovider", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            env=kept | environment,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout
        drawn.append([line for line in done.stdout.splitlines() if "drawn" in line])
    assert len(drawn[0]) >= 5
    assert (drawn[0] == drawn[1]) == alike
