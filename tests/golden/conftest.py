from __future__ import annotations

import io
import math
import shutil
import sys
from pathlib import Path

import pytest
from golden_cases import Step
from golden_inputs import Inputs
from golden_rules import check_rules
from written_files import as_text

from callpath_modeler.cli import console
from command_line import clean, run  # noqa: F401

WIDTH = "100"


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    return Inputs(tmp_path_factory.mktemp("golden"))


@pytest.fixture
def perform(run, inputs, monkeypatch):  # noqa: F811
    """Run a command, check its output, and return its status and all that it printed."""
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
        check_rules(step, done, int(step.variables.get("COLUMNS", WIDTH)))
        parts = [f"$ {step.line}\nexit status {done.status}\n"]
        parts += [f"--- standard output\n{done.out}"] if done.out else []
        parts += [f"--- standard error\n{done.err}"] if done.err else []
        return "".join(parts)

    return perform


@pytest.fixture
def written(run, inputs):  # noqa: F811
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
