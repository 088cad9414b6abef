"""The recipes of the how-to page on histories of commits."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler.history.history_store import add, read
from recipes import blocks, furnish, shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "watch.md").read_text(encoding="utf-8")


@pytest.fixture
def workplace(tmp_path, samples):
    return furnish(tmp_path, samples / "lulesh")


def run_strictly(script, workplace):
    return shell(f"set -e\n{script}", workplace, COMMIT="4f2c9e1")


def test_the_shell_recipes_keep_judge_and_write(workplace):
    keep, _, _, write, *_ = blocks(PAGE, "sh")
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


def tool(name, install):
    """Return the path of a program of another package, or skip the test.

    A package of Python belongs into an environment of its own, because it brings its own
    dependencies.
    """
    variable = f"CPMODEL_TEST_{name.upper().replace('-', '_')}"
    found = os.environ.get(variable) or shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}: {install}, and let {variable} name it")
    return found


@pytest.mark.parametrize("slower", [False, True])
def test_reframe_keeps_and_judges(workplace, tmp_path, slower):
    """ReFrame runs the recipe; the test fails if a call path is worse."""
    reframe = tool("reframe", "install reframe-hpc in a new environment")
    (workplace / "measure.sh").write_text(f'#!/bin/sh\nln -s {workplace / "runs"} "$1"\n')
    (workplace / "measure.sh").chmod(0o755)
    if slower:
        keep_a_faster_past(workplace)
    recipe = ROOT / "docs" / "how-to" / "recipes" / "performance_history.py"
    shutil.copy(recipe, workplace)
    *_, called, _ = blocks(PAGE, "sh")
    done = run_strictly(
        called.replace("reframe -c", f"{reframe} --nocolor --prefix {tmp_path / 'out'} -c"),
        workplace,
    )
    assert (done.returncode != 0) == slower, done.stdout + done.stderr
    assert ("FAILED" if slower else "PASSED") in done.stdout
    assert "4f2c9e1" in [each.commit for each in read(workplace / "history.db")]


MEASURE = """#!/bin/sh
mkdir -p "$2" && awk -v p="$1" 'BEGIN {
    print "callpath,time"
    for (k = 1; k <= 9; k++) printf "main/f%d,%.6f\\n", k, k * (1 + 0.01 * p)
}' > "$2/profile.csv"
"""
"""A program whose profiles do not tell p, so that it must be found in the names of directories."""


@pytest.mark.parametrize("slower", [False, True])
def test_jube_keeps_and_judges(tmp_path, slower):
    """JUBE runs the recipe with -e, which fails if a call path is worse."""
    jube = tool("jube", "apt-get install jube")
    (tmp_path / "measure.sh").write_text(MEASURE)
    (tmp_path / "measure.sh").chmod(0o755)
    workplace = furnish(tmp_path, tmp_path / "earlier")
    for p in (2, 4, 8, 16, 32):
        subprocess.run(["./measure.sh", str(p), f"earlier/app.p{p}"], cwd=tmp_path, check=True)
    if slower:
        keep_a_faster_past(workplace)
    shutil.copy(ROOT / "docs" / "how-to" / "recipes" / "performance_history.xml", workplace)
    *_, called = blocks(PAGE, "sh")
    done = run_strictly(called.replace("jube run", f"{jube} run --hide-animation"), workplace)
    assert (done.returncode != 0) == slower, done.stdout + done.stderr
    *_, record = read(workplace / "history.db")
    assert (record.commit, record.parameter) == ("4f2c9e1", "p")
    assert (record.scales.tolist(), record.values.shape[1:]) == ([2, 4, 8, 16, 32], (5, 3))
    verdict = (workplace / "jube_runs/000000/measure_runs/stdout").read_text()
    assert ("1 call path is worse at commit 4f2c9e1" in verdict) == slower


def keep_a_faster_past(workplace):
    """Keep records of earlier commits, in the older of which the costliest call path was faster."""
    assert run_strictly("cpmodel watch add now.db runs --commit now", workplace).returncode == 0
    (now,) = read(workplace / "now.db")
    costliest = int(np.nanargmax(now.values[:, -1, 0]))
    for k in range(13):
        values = now.values * np.random.default_rng(k).normal(1, 0.01, now.values.shape)
        values[costliest] *= 0.5 if k < 10 else 1.0
        add(workplace / "history.db", replace(now, commit=f"old{k}", time=float(k), values=values))


@pytest.mark.parametrize(("number", "schema"), [(0, "github-workflows"), (1, "gitlab-ci")])
def test_the_jobs_of_both_hosts_follow_their_schemas(tmp_path, number, schema):
    check = tool("check-jsonschema", "install check-jsonschema in a new environment")
    path = tmp_path / "jobs.yml"
    asked = [check, "--builtin-schema", f"vendor.{schema}", path]
    path.write_text(blocks(PAGE, "yaml")[number])
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    path.write_text(
        blocks(PAGE, "yaml")[number].replace("script:", "skript:").replace("runs-on", "on")
    )
    assert subprocess.run(asked, capture_output=True, check=False).returncode == 1
