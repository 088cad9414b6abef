"""How costs grow with call paths, runs, metrics and processes: processor seconds and memory."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from environments import WORK
from measure import TASKS, Cost, run
from results import Table

SERIES = WORK / "scaling"
CHARTS = Path(__file__).resolve().parents[1] / "docs" / "pictures"
_FIVE = ("2", "4", "8", "16", "32")
_HEIGHT = 2.6

NOTES = """\
Generated Score-P profiles of one program. Times are processor seconds with the start of the
interpreter, and memory is the largest resident set, of one run. The last line tells how many
processes waited for the processors meanwhile: with more than the machine has, times are longer.
"""


@dataclass(frozen=True, slots=True)
class _Input:
    """Profiles to measure: their number of call paths, their scales and metrics."""

    call_paths: int
    scales: tuple[str, ...] = _FIVE
    metrics: tuple[str, ...] = ("time",)

    def written(self) -> Path:
        """Return the directory of the profiles, written once."""
        name = f"{self.call_paths}-{len(self.scales)}-{self.scales[-1]}-{len(self.metrics)}"
        directory = SERIES / name
        if not directory.exists():
            told = ["--call-paths", str(self.call_paths), "--metrics", *self.metrics]
            writer = [sys.executable, TASKS.parent / "write_series.py", directory, *told]
            run([*writer, "--scales", *self.scales], reports=False)
        return directory


_METRICS = ("time", "visits", "min_time", "max_time")
_SWEEPS = {
    "call paths": {n: _Input(n) for n in (1_000, 10_000, 100_000)},
    "runs": {n: _Input(10_000, tuple(str(p) for p in range(8, 8 + n))) for n in (5, 10, 20, 40)},
    "metrics": {n: _Input(10_000, metrics=_METRICS[:n]) for n in (1, 2, 3, 4)},
    "processes of one profile": {p: _Input(100_000, (str(p),)) for p in (10, 100, 1000)},
}
"""For each quantity, the profiles at its values; one profile has no models."""


def table(_shared: Path) -> Table:
    """Measure, draw the charts, and return the table."""
    lines: list[tuple[str, ...]] = []
    series: dict[str, dict[str, dict[int, Cost]]] = {}
    for quantity, inputs in _SWEEPS.items():
        series[quantity] = {}
        for number, made in inputs.items():
            for name, cost in _costs(made):
                series[quantity].setdefault(name, {})[number] = cost
                what, memory = f"{name}, {number:,} {quantity}", f"{cost.resident / 1e6:.0f} MB"
                lines.append((what, f"{cost.cpu:.3g} s", memory))
    _draw(series)
    lines.append(("processes that waited", f"{os.getloadavg()[1]:.3g}", ""))
    return Table(("what", "processor time", "memory"), lines, range(1, 3))


def _costs(made: _Input) -> Iterator[tuple[str, Cost]]:
    """Yield the commands that apply, with their costs."""
    directory, store = made.written(), SERIES / "app.cpm"
    command = [sys.executable, "-m", "callpath_modeler", "--no-progress"]

    yield "info", run([*command, "info", directory], reports=False)
    if len(made.scales) > 1:
        shutil.rmtree(store, ignore_errors=True)
        yield "fit", run([*command, "fit", directory, "-o", store], reports=False)
        shutil.rmtree(store, ignore_errors=True)


def _draw(series: dict[str, dict[str, dict[int, Cost]]]) -> None:
    """Write one chart for each quantity, both axes logarithmic."""
    from callpath_modeler.report.model_plot import new_figure, saved, settings

    for quantity, commands in series.items():
        with settings():
            figure = new_figure(_HEIGHT)
            axes = figure.add_subplot()
            for name, costs in commands.items():
                axes.plot([*costs], [cost.cpu for cost in costs.values()], marker="o", label=name)
            axes.set(xscale="log", yscale="log", xlabel=quantity, ylabel="processor seconds")
            axes.legend()
        file = CHARTS / f"scaling-{quantity.replace(' ', '-')}.svg"
        file.write_bytes(saved(figure, "svg"))
