"""`cpmodel` in the process of a test, with its exit status and what it writes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

from callpath_modeler.cli.console import run as run_command
from callpath_modeler.cli.group import cpmodel

SURROUNDINGS = ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "SHELL")


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The lines of an error, without findings and progress."""
        lines = self.err.splitlines()
        first = [k for k, line in enumerate(lines) if line.startswith("cpmodel: ")]
        assert len(first) == 1, self.err
        return "\n".join(lines[first[0] :])

    def fails(self, status: int, *words: str) -> None:
        """Check the exit status, and that the error has one line and one hint."""
        assert self.status == status, self.err
        lines = self.complaint.splitlines()
        assert len(lines) == 2, self.err
        assert lines[1].startswith("  hint: ")
        assert "Traceback" not in self.err
        assert not self.out
        for word in words:
            assert word in self.complaint


@pytest.fixture
def clean(monkeypatch):
    """Environment variables of the user do not influence the output."""
    options = [name for name in os.environ if name.startswith("CPMODEL_")]
    for name in {*SURROUNDINGS, *options}:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsysbinary, monkeypatch, clean):  # noqa: ARG001
    """Run `cpmodel` with these arguments in this process."""

    def run(*args: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["cpmodel", *map(str, args)])
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as left:
            run_command(cpmodel)
        said = capsysbinary.readouterr()
        return Outcome(left.value.code, said.out.decode(), said.err.decode())

    return run


@pytest.fixture
def spawn(clean):  # noqa: ARG001
    """Run `cpmodel` with these arguments in a separate process."""

    def spawn(*args: object, **environment: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "callpath_modeler", *map(str, args)],
            capture_output=True,
            check=False,
            env={**os.environ, **environment},
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return spawn
