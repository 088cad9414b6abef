"""Whole commands on 10^4 to 10^6 call paths: processor seconds and memory."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from environments import WORK
from measure import TASKS, Cost, run
from results import Row

SERIES = WORK / "whole"
TIMES = 3
_SIZES = (10_000, 100_000, 1_000_000)
_SCALES = ("2", "4", "8", "16", "32")
_TARGET = "4096"
_LINEAR = 1.2
"""Largest growth of a command's cost, relative to that of the number of call paths."""
_SECONDS = {"info": 8.0, "fit": 25.0, "rank": 3.0, "report": 8.0, "export": 15.0}
_MEGABYTES = {"fit": 900, "export": 700}
_FIRST_SCREEN = 0.5

NOTES = """\
Each command reads five generated Score-P profiles of one program on 2 to 32 processes with one
metric, or the models that `fit` stored of them. Siblings of one name are added, so there are about
a tenth fewer call paths than in the files. `report` and `export` write files, and `export` writes
models as CSV. Times are processor seconds (user and system) with the start of the interpreter, and
memory is the largest resident set of the command, each the median of 3 runs. Growth is the time
relative to the smallest series, divided by the ratio of the numbers of call paths. The start of the
interpreter makes it smaller than 1. The first screen of the browser is as in the benchmark
`browse`.
"""


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    costs = {size: _costs(size) for size in _SIZES}
    found = []
    for name in _SECONDS:
        for size in _SIZES:
            found += _rows(name, size, costs[size][name], costs[_SIZES[0]][name])
    store = _store(_SIZES[-1])
    command = [sys.executable, TASKS / "browse_ours.py", str(_SIZES[-1]), store]
    screen = median(run(command).report["seconds"]["first screen"] for _ in range(TIMES))
    goal, met = f"< {_FIRST_SCREEN:g} s", screen < _FIRST_SCREEN
    return [*found, Row("whole: browse, first screen", f"{screen:.3g} s", goal=goal, met=met)]


def _rows(name: str, size: int, costs: Sequence[Cost], smallest: Sequence[Cost]) -> list[Row]:
    """Return the time of a command, and of the largest series its growth and memory."""
    seconds = median(cost.cpu for cost in costs)
    what = f"whole: {name}, {size:,} call paths"
    if size < _SIZES[-1]:
        return [Row(what, f"{seconds:.3g} s")]
    goal = _SECONDS[name]
    growth = seconds / median(cost.cpu for cost in smallest) * _SIZES[0] / size
    memory = median(cost.resident for cost in costs) / 1e6
    most = _MEGABYTES.get(name)
    return [
        Row(what, f"{seconds:.3g} s", goal=f"< {goal:g} s", met=seconds < goal),
        Row(
            f"whole: {name}, growth",
            f"{growth:.2g}",
            goal=f"≤ {_LINEAR:g}",
            met=growth <= _LINEAR,
        ),
        Row(
            f"whole: {name}, largest resident set",
            f"{memory:.0f} MB",
            goal=f"≤ {most} MB" if most else "",
            met=memory <= most if most else None,
        ),
    ]


def _store(size: int) -> Path:
    return SERIES / f"app{size}.cpm"


def _costs(size: int) -> dict[str, list[Cost]]:
    """Return the costs of each command on the series of a size."""
    series, store, output = SERIES / f"p{size}", _store(size), SERIES / "output"
    if not series.exists():
        writer = TASKS.parent / "write_series.py"
        told = ["--call-paths", str(size), "--metrics", "time", "--scales", *_SCALES]
        run([sys.executable, writer, series, *told], reports=False)
    command: list[str | Path] = [sys.executable, "-m", "callpath_modeler"]
    commands: dict[str, list[str | Path]] = {
        "info": ["info", series],
        "fit": ["fit", series, "-o", store],
        "rank": ["rank", store, "--target", _TARGET],
        "report": ["report", store, "-o", output.with_suffix(".html"), "--force"],
        "export": ["export", store, "-f", "csv", "-o", output.with_suffix(".csv"), "--force"],
    }
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(TIMES):
        shutil.rmtree(store, ignore_errors=True)
        for name, words in commands.items():
            found[name].append(run([*command, *words], reports=False))
    return found
