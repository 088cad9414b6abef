"""Daily tasks on real profiles: each answer is on the screen after the documented keys."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from driver import GIVEN, drive
from rich.text import Text

from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.layout import Listing, ListingEntry, TextStyle
from callpath_modeler.report.process_text import process_text
from callpath_modeler.studies.loading import LoadOptions, load
from callpath_modeler.studies.pipeline import fit
from callpath_modeler.studies.process_profile import process_profile
from callpath_modeler.studies.question import parse_pairs
from callpath_modeler.studies.study import Study
from callpath_modeler.tui.services import CommandAnswer
from cells import cells

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "browse.md"
PAIR = "8,125"
FUNCTION = "Waitall"
LONE = "FBHour"
LARGEST = 125.0


@pytest.fixture(scope="module")
def lulesh():
    return fit(load([ROOT / "sample_profiles" / "lulesh"], LoadOptions()))


@pytest.fixture(scope="module")
def given(lulesh):
    def models_of(name, pair):
        if not pair:
            return lulesh
        return Study(lulesh.experiment).measured(name, pairs=parse_pairs(pair.split()))

    def processes(names, rows, _, inclusive):
        found = process_profile(lulesh.experiment, rows, "time", inclusive=inclusive)

        def listing(_):
            first, *others = process_text(found, style=TextStyle())
            return Listing([Text(first)], [ListingEntry([Text(o)], "") for o in others], [])

        return CommandAnswer(names[-1], listing, "")

    services = {"models_of": models_of, "processes": processes}
    return replace(GIVEN, runs_of=lambda _: lulesh.experiment, **services)


def under_cursor(screen):
    """Return the line with the cursor."""
    (line,) = (line for line in screen.lines if line.startswith("▌"))
    return line


def pane(screen):
    """Return the details on the screen."""
    box = screen.app.query_one("#pane").content_region
    return "\n".join(screen.lines[y][box.x :] for y in range(box.y, box.bottom))


def at_scale(fitted, scale):
    """Return means over repetitions of the exclusive time of each call path at a scale."""
    points, values = fitted.experiment.by_point("time", "p")
    return np.nan_to_num(np.nanmean(values[:, points.tolist().index(scale)], axis=1))


def hot_path(screen, fitted):
    costliest = int(np.argmax(screen.session.forecast.costs.value.exclusive[:, 0]))
    assert short_name(fitted.experiment.tree.name(costliest)) in under_cursor(screen)


def worst_loss(screen, fitted):
    base, new = (at_scale(fitted, float(scale)) for scale in PAIR.split(","))
    tree, lost = fitted.experiment.tree, {}
    for row, loss in enumerate((new - base).tolist()):
        lost[tree.name(row)] = lost.get(tree.name(row), 0.0) + loss
    worst = max(lost, key=lost.__getitem__)
    first = screen.lines[3].strip(" ▌▸▾")
    assert first.startswith(short_name(worst))
    run_time = float(fitted.run_time.measured[0, -1])
    assert f"{100 * lost[worst] / run_time:.0f} %" in first


def callers(screen, fitted):
    tree = fitted.experiment.tree
    rows = [row for row in range(len(tree)) if FUNCTION in tree.name(row)]
    names = {short_name(tree.name(int(tree.parent[row]))) for row in rows}
    place = screen.lines.index(under_cursor(screen))
    shown = {line.strip(" ▸▾").split("  ")[0] for line in screen.lines[place + 1 :]}
    assert len(names) > 2
    assert len(names & shown) >= len(names) - 1  # a small one may share a line


def imbalance(screen, fitted):
    row = int(np.argmax(screen.session.forecast.costs.value.exclusive[:, 0]))
    ratio = fitted.experiment.imbalance("time", row, {"p": LARGEST})
    assert ratio > 1.05
    assert re.search(rf"(imbalance|125:) {ratio:.2f}", pane(screen))


def slowest_rank(screen, fitted):
    values = process_profile(fitted.experiment, [screen.session.node], "time").of_repetitions()
    slowest = int(np.argmax(np.median(values, axis=0)))
    (line,) = (line for line in screen.lines if line.strip().startswith("maximum"))
    assert line.split()[3] == str(slowest)


def source_line(screen, fitted):
    (region,) = (region for region in fitted.experiment.tree.regions if LONE in region.name)
    assert region.line > 0
    assert LONE in screen.session.view.name(screen.session.node)
    assert f"{Path(region.file).name}:{region.line}" in pane(screen).replace("\n  ", "")


TASKS = {
    "the hot path": ([], hot_path),
    "the worst loss between two scales": (["b", *PAIR, "enter", "3"], worst_loss),
    "the callers of a function": (["2", "slash", *FUNCTION, "enter", "l"], callers),
    "the imbalance of a call path": ([], imbalance),
    "the slowest rank of a call path": (["i", "r"], slowest_rank),
    "the source line of a function": (
        ["slash", *LONE, "enter", "ctrl+d", "ctrl+d", "ctrl+d", "ctrl+d"],
        source_line,
    ),
}
"""For each task, the keys and a check of the screen."""


@cells("size", [(80, 24), (160, 50)])
@cells("task", TASKS)
def test_the_answer_is_on_the_screen_after_the_keys(lulesh, given, task, size):
    keys, check = TASKS[task]

    async def steps(screen):
        await screen.press(*keys)
        check(screen, lulesh)

    drive(steps, lulesh, size=size, target=1000.0, given=given)


def test_the_documented_numbers_of_keys_are_those_of_the_tasks():
    rows = (line.split("|")[1:3] for line in PAGE.read_text("utf-8").splitlines() if "|" in line)
    told = {task.strip(): keys.strip() for task, keys in rows}
    assert {task: told.get(task, "").split(":")[0] for task in TASKS} == {
        task: str(len(keys)) for task, (keys, _) in TASKS.items()
    }
