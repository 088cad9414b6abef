"""The formats of profilers, recognised by their content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Match, RunSource
from cpmodel_tables.profilers import (
    callgrind,
    cprofile,
    perf_script,
    pprof,
    pyinstrument,
    speedscope,
)
from cpmodel_tables.single_run import SingleRun
from cpmodel_tables.text import first_content, text_of

_TEXTS = (speedscope, pyinstrument, callgrind, perf_script)
_BINARY = (cprofile, pprof)


class Profilers:
    """Reader of profiles of one process, without call paths where the profiler has none."""

    def match(self, path: Path) -> Match:
        """Return whether `path` is a profile, by its first block."""
        return Match.CONTENT if _module(path) else Match.NO

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the run.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        module = _module(path)
        if module is None:
            raise InputError(f"{path}: no profile of a known profiler", hint="check the file")
        run: SingleRun
        run, findings = module.read(path)
        return run.runs(module.CREATOR, findings)


def _module(path: Path) -> ModuleType | None:
    """Return the module that reads a file, or None."""
    content = first_content(path)
    text = text_of(content)
    for module in _TEXTS:
        if module.is_one(text):
            return module
    return next((module for module in _BINARY if module.is_one(content)), None)
