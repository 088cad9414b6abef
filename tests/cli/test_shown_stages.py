"""Progress with the remaining time on a terminal, and seconds of stages with ``-v``."""

from __future__ import annotations

import io
import re
import sys

import pytest

from callpath_modeler.cli import console as home
from callpath_modeler.cli.console import Console


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    """Return a function that shows the progress at given seconds, and returns what was written."""

    def shown(stream, *reports):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(home.time, "monotonic", lambda: 0.0)
        report = Console().progress("read")
        for at, done, total in reports:
            monkeypatch.setattr(home.time, "monotonic", lambda at=at: at)
            report(done, total)
        return stream.getvalue()

    return shown


def test_a_terminal_shows_the_remaining_time_after_two_seconds(shown):
    said = shown(Terminal(), (0.0, 0, 10), (1.0, 1, 10), (4.0, 2, 10), (600.0, 3, 10))
    assert "read 1/10 ..." in said
    assert "read 2/10 ..., about 16 s left" in said
    assert "read 3/10 ..., about 23 min left" in said
    assert said.index("read 1/10") < said.index("left")


def test_a_file_gets_no_estimate(shown):
    said = shown(io.StringIO(), (0.0, 0, 10), (4.0, 2, 10), (20.0, 10, 10))
    assert said == "read 10/10 20.0 s\n"


def test_what_is_not_noted_leaves_nothing_in_a_file(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(home.time, "monotonic", lambda: 0.0)
    report = Console().progress("fit", noted=False)
    monkeypatch.setattr(home.time, "monotonic", lambda: 9.0)
    report(10, 10)
    assert not stream.getvalue()


def test_verbose_tells_the_seconds_of_each_stage(run, samples, tmp_path):
    done = run("-v", "fit", samples / "stencil", "-m", "time", "-o", tmp_path / "app.cpm")
    assert done.status == 0
    stages = re.findall(r"^stage (\w+): \d+\.\d\d s$", done.err, re.MULTILINE)
    assert stages == ["read", "unify", "fit", "findings", "write"]


def test_without_verbose_no_stage_is_told(run, samples, tmp_path):
    done = run("fit", samples / "stencil", "-m", "time", "-o", tmp_path / "app.cpm")
    assert "stage" not in done.err
