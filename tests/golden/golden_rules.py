"""Rules that every output follows, whatever its golden file says."""

from __future__ import annotations

import re

from golden_cases import Step
from rich.cells import cell_len

from command_line import Outcome

RESULTS = frozenset({0, 1})
"""Exit statuses of commands that have a result; 1: something failed a check or became worse."""
_NOT_FITTED = ("-f", "--format", "--wide", "--write-manifest", "completion", "baseline", "--color")
_WIDER = ({"views", "--compare"}, {"guidelines", "plan"}, {"trace", "check"},
          {"run", "--dry-run"})  # fmt: skip
"""Words of commands whose tables and sentences can be wider than the terminal."""
_WORD = re.compile(r"\S+")


def check_rules(step: Step, done: Outcome, width: int) -> None:
    """Check an output.

    - Tables fit the width of the terminal, unless a word or a command for pasting does not.
    - With ``--ascii``, there are no other characters.
    - An error is one line with one hint, and no result.
    - No output has "nan" or a traceback.
    """
    if done.status not in RESULTS:
        done.fails(done.status)
    both = done.out + done.err
    assert "Traceback" not in both
    assert not re.search(r"\bnan\b", both), step.line
    assert "--ascii" not in step.words or both.isascii()
    words = set(step.words)
    if not set(_NOT_FITTED) & words and not any(wider <= words for wider in _WIDER):
        wide = [line for line in done.out.splitlines() if cell_len(line) > width]
        assert not [line for line in wide if "cpmodel " not in line and _breaks(line, width)], wide


def _breaks(line: str, width: int) -> bool:
    """Return whether each word of a line fits the width, so that the line can be broken."""
    indent = len(line) - len(line.lstrip())
    return all(indent + cell_len(word) <= width for word in _WORD.findall(line))
