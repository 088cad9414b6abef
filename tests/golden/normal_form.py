"""Outputs in a form that is the same on every machine and every day."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from importlib.metadata import version
from pathlib import Path

DIGITS = 9
"""Most digits of a number."""
ROUNDED = 6
"""Digits up to which a number counts as rounded for readers, and has to be the same."""
CLOSE = 1e-6
"""Relative difference of other numbers that processors may cause; most come from bands."""

_NUMBER = re.compile(r"(?<![\w.])-?(?:\d+\.\d+|\d)(?:[eE][+-]?\d+)?(?![\w.])")
_DIGEST = re.compile(r"(\d+ B \| )?\b[0-9a-f]{64}\b")
_BUILD = re.compile(r"VERSION(?: \(commit [0-9a-f]+\))?, sources [0-9a-f]+")
_VERSIONS = re.compile(r"numpy \S+, scipy \S+, python \S+")
_LIBRARY = re.compile(r"^(models are made) .*$", re.MULTILINE)
_STAGE = re.compile(r"^(stage .*: )[\d.]+ s$", re.MULTILINE)
_SECONDS = re.compile(r"\b\d{10}(?:\.\d+)?\b")
_DATE = re.compile(r"(20\d\d-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_DAY = timedelta(days=1)


def normalised(text: str, folder: Path) -> str:
    """Return a text without paths, version, times of today and digests, and with shorter numbers.

    Parameters
    ----------
    folder : the working directory
    """
    root = Path(__file__).resolve().parents[2]
    for path, name in ((folder.resolve(), "FOLDER"), (folder, "FOLDER"), (root, "ROOT")):
        text = text.replace(str(path), name)
    text = text.replace(version("callpath-modeler"), "VERSION")
    text = _BUILD.sub("BUILD", text)
    text = _VERSIONS.sub("LIBRARIES", text)
    text = _LIBRARY.sub(r"\1 BY A LIBRARY", text)
    text = _DATE.sub(_of_today, text)
    text = _SECONDS.sub(_of_now, text)
    text = _DIGEST.sub("DIGEST", text)
    text = _STAGE.sub(r"\1SECONDS", text)
    return _NUMBER.sub(_shorter, text)


def _of_today(found: re.Match[str]) -> str:
    now = datetime.now(UTC)
    days = {(now + k * _DAY).strftime("%Y-%m-%d") for k in (-1, 0, 1)}
    return "DATE" if found[1] in days else found[0]


def _of_now(found: re.Match[str]) -> str:
    away = abs(float(found[0]) - datetime.now(UTC).timestamp())
    return "NOW" if away < _DAY.total_seconds() else found[0]


def _shorter(found: re.Match[str]) -> str:
    number = found[0]
    return repr(float(f"{float(number):.{DIGITS}g}")) if _digits(number) > DIGITS else number


def _digits(number: str) -> int:
    """Return the number of significant digits."""
    return len(number.lower().partition("e")[0].lstrip("-0.").replace(".", ""))


def with_numbers_of(old: str, new: str) -> str:
    """Return `new` with each number of `old` that is close to it, in lines that are alike."""
    before, after = (text.splitlines(keepends=True) for text in (old, new))
    masks = [[_NUMBER.sub("#", line) for line in lines] for lines in (before, after)]
    for i, j, size in SequenceMatcher(None, *masks, autojunk=False).get_matching_blocks():
        for k in range(size):
            numbers = iter(_NUMBER.findall(before[i + k]))
            after[j + k] = _NUMBER.sub(
                lambda found, numbers=numbers: _closest(next(numbers), found[0]), after[j + k]
            )
    return "".join(after)


def _closest(old: str, new: str) -> str:
    is_full = max(_digits(old), _digits(new)) > ROUNDED
    is_close = math.isclose(float(old), float(new), rel_tol=CLOSE, abs_tol=CLOSE**2)
    return old if is_full and is_close else new
