"""The recipes of the how-to page on histories of commits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from callpath_modeler.history_store import read

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "watch.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def workplace(tmp_path, samples):
    """A directory with runs and a repository, in which `cpmodel` is a command."""
    (tmp_path / "runs").symlink_to(samples / "lulesh")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "cpmodel"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m callpath_modeler "$@"\n')
    command.chmod(0o755)
    return tmp_path


def shell(script, workplace):
    path = f"{workplace / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-ec", script],
        cwd=workplace,
        env={**os.environ, "PATH": path, "COMMIT": "4f2c9e1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_shell_recipes_keep_judge_and_write(workplace):
    keep, _, write = blocks("sh")
    done = shell(keep, workplace)
    assert (done.returncode, done.stdout.splitlines()[0][:8]) == (0, "1 record"), done.stderr
    assert [each.commit for each in read(workplace / "history.db")] == ["4f2c9e1"]
    assert shell(write, workplace).returncode == 0
    for name in ("comment.md", "quality.json", "watch.xml", "history.html", "badge.svg"):
        assert (workplace / name).stat().st_size > 0


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_makefile_keeps_and_judges(workplace):
    (recipe,) = blocks("make")
    (workplace / "Makefile").write_text(recipe.replace("$(shell git rev-parse --short HEAD)", "c1"))
    assert shell("make watch && make watch", workplace).returncode == 0
    assert [each.commit for each in read(workplace / "history.db")] == ["c1"]


def test_the_jobs_of_both_hosts_call_commands_that_exist(run):
    lines = [line.strip(" -") for block in blocks("yaml") for line in block.splitlines()]
    called = [line.removeprefix("run: ") for line in lines if "cpmodel " in line]
    assert len(called) == 4
    for line in called:
        _, group, command, *words = line.split()
        options = [word for word in words if word.startswith("-")]
        told = run(group, command, "--help").out
        assert all(option in told for option in options)
