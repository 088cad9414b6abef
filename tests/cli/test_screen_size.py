"""`rank` on terminals of several sizes: the first line, the table and the total stay visible."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

PROMPT = 1
SAMPLES = Path(__file__).resolve().parents[2] / "sample_profiles"


@pytest.fixture
def lulesh():
    """The samples with a short relative name: commands in the output repeat it."""
    return "lulesh"


def screen(columns, lines, *args):
    """Return the lines on a terminal of a given size after a command."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    words = [sys.executable, "-m", "callpath_modeler", "--color", "never", "--no-progress"]
    known = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    known |= {"PYTHONUTF8": "1", "TERM": "xterm"}
    with subprocess.Popen(
        [*words, *map(str, args)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=known,
        cwd=SAMPLES,
    ) as process:
        os.close(theirs)
        content = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # nobody writes to the terminal any more
                break
            if not part:
                break
            content += part
        os.close(ours)
    assert process.returncode == 0, content
    return content.decode().replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (60, 20), (200, 50), (120, 30)])
def test_first_line_table_and_total_are_visible_without_scrolling(lulesh, columns, lines):
    told = screen(columns, lines, "rank", lulesh, "--target", 1000)
    assert len(told) + PROMPT <= lines
    assert max(map(len, told)) <= columns
    assert told[0].startswith("lulesh2.0 will run ")
    assert any(line.endswith(" total") for line in told)
    assert any("next: cpmodel show" in line for line in told)
    assert sum(bool(re.match(r" *\d+  ", line)) for line in told) >= 3


def test_a_terminal_of_80_by_34_names_three_findings_and_the_command_for_all(lulesh):
    told = screen(80, 34, "rank", lulesh, "--target", 1000)
    assert sum("(CPM" in line for line in told) == 3
    assert any(" notes in full: cpmodel info " in line for line in told[-3:])


def test_a_taller_terminal_shows_more_rows_and_findings_in_full(lulesh):
    def rows(told):
        return sum(bool(re.match(r" *\d+  ", line)) for line in told)

    low, high = (screen(160, lines, "rank", lulesh, "--target", 1000) for lines in (30, 60))
    assert rows(low) < rows(high) == 20
    assert any("Add repetitions" in line for line in high)


def test_a_number_of_rows_that_was_asked_for_is_shown_however_small_the_terminal(lulesh):
    told = screen(80, 24, "rank", lulesh, "--target", 1000, "-n", 30)
    assert sum(bool(re.match(r" *\d+  ", line)) for line in told) == 30


def test_a_pipe_and_a_file_have_ten_rows(run, samples, tmp_path):
    lulesh = samples / "lulesh"
    out = run("rank", lulesh, "--target", 1000).out
    assert sum(bool(re.match(r" *\d+  ", line)) for line in out.splitlines()) == 10
    run("rank", lulesh, "--target", 1000, "-o", tmp_path / "r.txt")
    text = (tmp_path / "r.txt").read_text(encoding="utf-8")
    assert sum(bool(re.match(r" *\d+  ", line)) for line in text.splitlines()) == 10
