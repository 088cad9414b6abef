"""Names in files reach no output with control characters."""

from __future__ import annotations

import unicodedata

import pytest

ESCAPE = "\x1b[31m\x1b]0;title\x07"


@pytest.fixture
def table(tmp_path):
    """Write a series in which every name that a file can set holds escape sequences."""
    path = tmp_path / "runs.csv"
    lines = [f"callpath,p{ESCAPE},t{ESCAPE} [s]"]
    for p in (2, 4, 8, 16, 32):
        lines += [f"main,{p},1.0", f"main/f{ESCAPE}\u202e,{p},{p * 0.5}"]
    path.write_text("\n".join([*lines, ""]), "utf-8")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["info"],
        ["-v", "info"],
        ["rank", "--target", "64"],
        ["rank", "--target", "64", "-f", "csv"],
        ["rank", "--target", "64", "-f", "json"],
        ["rank", "--target", "64", "-f", "markdown"],
        ["rank", "--target", "64", "-f", "latex"],
        ["rank", "--target", "64", "--wide"],
        ["views", "--target", "64"],
        ["excess"],
        ["report", "--target", "64"],
        ["export", "-f", "dot"],
        ["export", "-f", "python"],
        ["export", "-f", "graphml"],
        ["rank", "--target", "64", "-m", "nothing"],
        ["rank", "--target", "64", "--where", "nothing=1"],
    ],
    ids=" ".join,
)
def test_no_control_character_is_written(run, table, words):
    at = words.index("info") if "info" in words else 0
    told = run(*words[: at + 1], table, *words[at + 1 :])
    for text in (told.out, told.err):
        signs = {sign for sign in text if unicodedata.category(sign) in {"Cc", "Cf"}}
        assert signs <= {"\n", "\t"}, (words, signs)
    assert told.status == (2 if any("nothing" in word for word in words) else 0), told.err
