"""JSON of pyinstrument, a sampling profiler of Python."""

from __future__ import annotations

import re
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables.single_run import SingleRun, Stack
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, whole_text

CREATOR = "pyinstrument"

_SIGN = re.compile(r'\s*\{\s*"start_time"\s*:.{0,2000}?"root_frame"\s*:', re.DOTALL)
_MODULE = "<module>"
_SYNTHETIC = frozenset({"[self]", "[await]", "[out-of-context]"})
"""Names that pyinstrument gives to parts of a function."""


def is_one(text: str) -> bool:
    """Return whether JSON is of pyinstrument, by its beginning."""
    return bool(_SIGN.match(text))


def read(path: Path) -> tuple[SingleRun, list[Finding]]:
    """Return the run.

    Raises
    ------
    InputError
        If a frame has no name or no time.
    """
    document = json_of(path, whole_text(path, is_json=True))
    run, limits, depths = SingleRun(path), InputLimits.of(path), 0
    root = document.get("root_frame") if isinstance(document, dict) else None
    waiting: list[tuple[Stack, object]] = [((), root)]
    while waiting:
        above, frame = waiting.pop()
        held = frame if isinstance(frame, dict) else {}
        name, time, children = held.get("function"), held.get("time"), held.get("children", [])
        is_frame = isinstance(name, str) and isinstance(time, int | float)
        if not (is_frame and isinstance(children, list)):
            raise InputError(
                f"{path}: a frame below {'/'.join(above)[:200] or 'the root'} has no name or time",
                hint=COPY_IT_AGAIN,
            )
        if name == _MODULE:
            name = str(held.get("file_path_short") or name)
        names = above if name in _SYNTHETIC and above else (*above, str(name))
        depths += len(names)
        limits.check(Work.NAMES, depths, "write fewer levels of calls")
        below = sum(
            child["time"]
            for child in children
            if isinstance(child, dict) and isinstance(child.get("time"), int | float)
        )
        run.add(names, "time [s]", max(float(str(time)) - below, 0.0))
        waiting += [(names, child) for child in children]
    return run, []
