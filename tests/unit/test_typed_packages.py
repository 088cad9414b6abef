"""Packages that state their types to the type checkers of their users."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_package_of_the_wheel_has_a_type_marker():
    built = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    packages = [ROOT / name for name in built["targets"]["wheel"]["packages"]]
    assert packages
    assert [each.name for each in packages if not (each / "py.typed").is_file()] == []
