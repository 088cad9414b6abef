"""Proposals of the next commit to measure, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.history.bisection import (
    DecidingRuns,
    deciding_runs,
    middle_of,
    narrowed,
)
from callpath_modeler.analysis.history.judgement import HistoryChange
from callpath_modeler.history.commits import CommitHistory
from callpath_modeler.printable import shell_word
from callpath_modeler.report.history import change_levels, name_of
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.table_formats import Table, known_or_none
from callpath_modeler.units import counted, setting_text, significant

_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class BisectionProposal:
    """The next commit to measure for one change.

    Attributes
    ----------
    name : the call path, or the program
    good, bad : the last commit without the change, and the first with it for certain
    left : number of commits that may have made the change
    commit : the commit to measure; None = the date is exact, or no commit between is known
    is_measured : True = the commit has a record, and more repetitions date the change
    at : scale of the runs, by parameter; empty = no scale decides
    runs : the runs that decide; None = no scale tells the levels apart
    """

    name: str
    good: str
    bad: str
    left: int
    commit: str | None
    is_measured: bool
    at: dict[str, float]
    runs: DecidingRuns | None

    @property
    def core_hours(self) -> float:
        """Cost of the runs; NaN = not known."""
        return math.nan if self.runs is None else self.runs.cost / _HOUR


def proposals(
    history: CommitHistory, commits: Sequence[str] | None = None
) -> tuple[BisectionProposal, ...]:
    """Return a proposal for each change of a call path that still stands.

    Parameters
    ----------
    commits : commits of the program, the oldest first; None = only those with records
    """
    return tuple(_proposal(history, each, commits) for each in history.regressions)


def _proposal(
    history: CommitHistory, change: HistoryChange, commits: Sequence[str] | None
) -> BisectionProposal:
    names = [each.commit for each in history.records]
    alarm = change.leading
    levels = change_levels(history, change)
    earliest, latest = narrowed(levels, alarm.earliest, alarm.latest)
    good, bad = names[max(earliest - 1, 0)], names[latest]
    between = _between(commits, good, bad)
    measured = set(names)
    open_ones = [each for each in between if not _has(measured, each)]
    is_measured = not open_ones
    if is_measured:
        open_ones = list(dict.fromkeys(names[earliest : latest + 1]))
    # The last one has the change for certain: nothing is left to decide if it is the only one.
    has_choice = not is_measured or len(open_ones) > 1
    number = len(open_ones) + (not is_measured)
    commit = open_ones[middle_of(number)] if has_choice else None
    before = levels[max(0, alarm.earliest - history.rule.memory) : alarm.earliest]
    runs = deciding_runs(before, levels[alarm.latest :], _repetitions(history), _costs(history))
    at = {} if runs is None else {history.newest.parameter: float(history.scales[runs.scale])}
    return BisectionProposal(
        name_of(history, change), good, bad, number, commit, is_measured, at, runs
    )


def _between(commits: Sequence[str] | None, good: str, bad: str) -> list[str]:
    """Return the commits after `good` and before `bad`, if the list has both or is of these."""
    listed = list(commits or ())
    first = [k for k, each in enumerate(listed) if _same(each, good)]
    last = [k for k, each in enumerate(listed) if _same(each, bad)]
    return listed[first[-1] + 1 if first else 0 : last[0] if last else len(listed)]


def _same(one: str, other: str) -> bool:
    """Return whether two names, one of which may be abbreviated, are of one commit."""
    return one.startswith(other) or other.startswith(one)


def _has(names: set[str], commit: str) -> bool:
    return commit in names or any(_same(commit, each) for each in names)


def _repetitions(history: CommitHistory) -> float:
    there = ~np.isnan(history.values).all(axis=0)
    return float(np.median(there.sum(axis=-1)[there.any(axis=-1)]))


def _costs(history: CommitHistory) -> np.ndarray:
    """Return the median cost of a run at each scale, [K]."""
    found = []
    for scale in history.scales:
        known = [each.seconds[each.scales == scale] for each in history.records]
        cost = np.concatenate(known)
        cost = cost[~np.isnan(cost)]
        found.append(float(np.median(cost)) if len(cost) else math.nan)
    return np.array(found)


def proposal_text(found: Sequence[BisectionProposal], store: Path, style: TextStyle) -> list[Text]:
    """Return proposals as lines of text."""
    if not found:
        return style.lines(["No call path is worse, so there is no commit to look for."])
    return [line for each in found for line in _lines(each, store, style)]


def _lines(each: BisectionProposal, store: Path, style: TextStyle) -> list[Text]:
    indent = "  "
    left = f"{counted(each.left, 'commit')} may have made it"
    said = [f"after {each.good}, at {each.bad} at the latest: {left}"]
    if each.commit is None and each.left <= 1:
        span = shell_word(f"{each.good}..{each.bad}")
        said.append(f"next: git rev-list --reverse {span} | "
                    f"cpmodel watch bisect {shell_word(str(store))} --commits -")  # fmt: skip
    elif each.commit is not None:
        what = "once more commit" if each.is_measured else "commit"
        said.append(f"measure {what} {each.commit}{_with(each)}")
        said.append(f"then: cpmodel watch add {shell_word(str(store))} RUNS --commit "
                    f"{shell_word(each.commit)} --time TIME")  # fmt: skip
    texts = style.lines([indent + text for text in said], indent=indent)
    return [*style.lines([each.name], "bold"), *texts]


def _with(each: BisectionProposal) -> str:
    if each.runs is None:
        return " at all scales: no single scale tells the levels apart with 50 runs"
    number = counted(each.runs.repetitions, "run")
    cost = "" if math.isnan(each.core_hours) else f", {significant(each.core_hours)} core-hours"
    return f" with {number} at {setting_text(each.at)}{cost}"


def proposal_table(found: Sequence[BisectionProposal]) -> Table:
    """Return a table with one row per proposal."""
    columns: dict[str, list[str | float | bool | None]] = {
        "callpath": [each.name for each in found],
        "good": [each.good for each in found],
        "bad": [each.bad for each in found],
        "commits": [each.left for each in found],
        "commit": [each.commit for each in found],
        "measured": [each.is_measured for each in found],
        "scale": [next(iter(each.at.values()), None) for each in found],
        "repetitions": [None if each.runs is None else each.runs.repetitions for each in found],
        "core_hours": [known_or_none(each.core_hours) for each in found],
    }
    return Table(columns, {}, {})
