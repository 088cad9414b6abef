"""Golden outputs: what each command prints and writes; `make golden` writes them again.

They record what users see, and do not say whether it is right. Other tests do that.
"""

from __future__ import annotations

import difflib
import io
import math
import os
import shutil
import sys
from pathlib import Path

import pytest
from golden_cases import EXPECTED, Case, Step, all_cases
from golden_inputs import INPUTS, Inputs
from normal_form import normalised, with_numbers_of
from written_files import as_text

from callpath_modeler.cli import console

CASES = all_cases()
ANEW = bool(os.environ.get("CPMODEL_NEW_GOLDEN"))
MOST_LINES = 60
WIDTH = "100"


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    return Inputs(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def perform(run, inputs, monkeypatch):
    """Run a command, and return all that it printed and wrote."""
    monkeypatch.setattr(console, "_PROGRESS_AFTER", math.inf)  # Stages take other times each time.

    def perform(step: Step) -> str:
        monkeypatch.chdir(inputs.folder)
        inputs.need_those_of(step.line)
        monkeypatch.setenv("COLUMNS", WIDTH)
        for name, value in step.variables.items():
            monkeypatch.setenv(name, value)
        if step.given is not None:
            text = (inputs.folder / step.given).read_text()
            monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        done = run(*step.words)
        parts = [f"$ {step.line}\nexit status {done.status}\n"]
        parts += [f"--- standard output\n{done.out}"] if done.out else []
        parts += [f"--- standard error\n{done.err}"] if done.err else []
        return "".join(parts)

    return perform


@pytest.fixture
def written(run, inputs):
    """Return the files that commands wrote; they are deleted after the test."""

    def new() -> list[Path]:
        found = (path for path in inputs.folder.iterdir() if path.name not in inputs.names)
        return sorted(path for path in found if not path.name.endswith(("-shm", "-wal")))

    def written() -> str:
        names = [Path(path.name) for path in new()]
        return "".join(f"--- written: {name}\n{as_text(name, run)}" for name in names)

    yield written
    for path in new():
        path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
        path.with_name(f"{path.name}-wal").unlink(missing_ok=True)
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def compare(path: Path, text: str) -> None:
    """Compare a text with a golden file, or write it again."""
    old = path.read_bytes().decode() if path.exists() else None
    new = text if old is None or old == text else with_numbers_of(old, text)
    if new == old:
        return
    if ANEW:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(new.encode())
        return
    assert old is not None, f"no golden output {path}: `make golden` writes it"
    lines = (each.splitlines(keepends=True) for each in (old, new))
    changes = list(difflib.unified_diff(*lines, "golden", "now", n=2))
    shown = "".join(line.rstrip("\n") + "\n" for line in changes[:MOST_LINES])
    more = f"... {len(changes) - MOST_LINES} more\n" if len(changes) > MOST_LINES else ""
    pytest.fail(
        f"{path.relative_to(EXPECTED)} differs; if this is meant, `make golden` writes it again\n"
        f"{shown}{more}",
        pytrace=False,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}/{case.name}")
def test_the_output_is_the_golden_one(perform, written, inputs, case: Case):
    text = "".join(perform(step) for step in case.steps) + written()
    compare(case.file, normalised(text, inputs.folder))


def test_every_golden_output_has_a_case():
    left = set(EXPECTED.rglob("*.txt")) - {case.file for case in CASES}
    if ANEW:
        for path in left:
            path.unlink()
        return
    assert not left, "`make golden` deletes them"


def test_every_input_has_a_command():
    words = " ".join(step.line for case in CASES for step in case.steps)
    assert not [name for name in INPUTS if name not in words]
