"""Code on documentation pages is the code of the example plugin."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "write-a-reader.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|toml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLE = [
    path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "plugins" / "example").iterdir())
    if path.suffix in {".py", ".toml"}
]


def test_the_page_shows_reader_profile_test_package_and_command():
    assert [kind for kind, _ in BLOCKS] == ["python", "python", "python", "toml", "python"]


@pytest.mark.parametrize("block", [text for _, text in BLOCKS])
def test_code_on_the_page_is_code_of_the_example(block):
    assert any(block in text for text in EXAMPLE)
