"""The recipes of the how-to page on histories of commits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from callpath_modeler.history_store import read
from recipes import blocks, furnish, shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "watch.md").read_text(encoding="utf-8")


@pytest.fixture
def workplace(tmp_path, samples):
    return furnish(tmp_path, samples / "lulesh")


def run_strictly(script, workplace):
    return shell(f"set -e\n{script}", workplace, COMMIT="4f2c9e1")


def test_the_shell_recipes_keep_judge_and_write(workplace):
    keep, _, write = blocks(PAGE, "sh")
    done = run_strictly(keep, workplace)
    assert (done.returncode, done.stdout.splitlines()[0][:8]) == (0, "1 record"), done.stderr
    assert [each.commit for each in read(workplace / "history.db")] == ["4f2c9e1"]
    assert run_strictly(write, workplace).returncode == 0
    for name in ("comment.md", "quality.json", "watch.xml", "history.html", "badge.svg"):
        assert (workplace / name).stat().st_size > 0


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_makefile_keeps_and_judges(workplace):
    (recipe,) = blocks(PAGE, "make")
    (workplace / "Makefile").write_text(recipe.replace("$(shell git rev-parse --short HEAD)", "c1"))
    assert run_strictly("make watch && make watch", workplace).returncode == 0
    assert [each.commit for each in read(workplace / "history.db")] == ["c1"]


def test_the_jobs_of_both_hosts_call_commands_that_exist(run):
    lines = [line.strip(" -") for block in blocks(PAGE, "yaml") for line in block.splitlines()]
    called = [line.removeprefix("run: ") for line in lines if "cpmodel " in line]
    assert len(called) == 4
    for line in called:
        _, group, command, *words = line.split()
        options = [word for word in words if word.startswith("-")]
        told = run(group, command, "--help").out
        assert all(option in told for option in options)
