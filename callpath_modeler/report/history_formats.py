"""Judged histories where people look: comments, JUnit, a badge, and the next commit to measure."""

from __future__ import annotations

import hashlib
import html
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.text import Text

from callpath_modeler.history.commits import CommitHistory
from callpath_modeler.history.judgement import (
    DecidingRuns,
    HistoryChange,
    deciding_runs,
    middle_of,
    narrowed,
)
from callpath_modeler.printable import (
    github_message,
    github_property,
    in_one_line,
    json_text,
    markdown_text,
    shell_word,
)
from callpath_modeler.profile.omissions import is_partial, omissions_text
from callpath_modeler.report import history_text
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.page.markup import tag
from callpath_modeler.report.table_formats import Table
from callpath_modeler.report.test_reports import (
    CaseStatus,
    JUnitCase,
    junit_xml,
    omission_annotations,
    omission_cases,
)
from callpath_modeler.units import counted, setting_text, significant

_LINES = 10
"""Largest number of lines of a comment that are not folded."""

_MOST_ROWS = 100
"""Largest number of rows of the folded table; hosts refuse long comments."""

_LEVELS = {history_text.EntryStatus.WORSE: "error", history_text.EntryStatus.SUSPECTED: "warning"}
_SEVERITIES = {history_text.EntryStatus.WORSE: "major", history_text.EntryStatus.SUSPECTED: "minor"}


def to_comment(history: CommitHistory, found: Sequence[history_text.HistoryEntry]) -> str:
    """Return a comment of a pull request in Markdown: the verdict first, and a folded table."""
    lines = [f"**{markdown_text(history_text.headline(history, found))}**", ""]
    told = [each for each in found if each.status in _LEVELS]
    room = _LINES - len(lines) - 2
    shown = told if len(told) <= room else told[: room - 1]
    for each in shown:
        dated = f"; {markdown_text(each.dated)}" if each.dated else ""
        name = markdown_text(each.name)
        lines.append(f"- {each.status}: {name}: {markdown_text(each.said)}{dated}")
    if len(shown) < len(told):
        lines.append(f"- {counted(len(told) - len(shown), 'other')} in the table")
    lines += [""] * bool(shown) + [markdown_text(history_text.basis(history))]
    if found:
        lines += ["", f"<details><summary>Table of {counted(len(found), 'change')}</summary>", ""]
        lines += ["| status | call path | change | commit |", "|---|---|---|---|"]
        for each in found[:_MOST_ROWS]:
            cells = (str(each.status), each.name, each.said, each.dated)
            lines.append(f"| {' | '.join(map(markdown_text, cells))} |")
        if len(found) > _MOST_ROWS:
            lines.append(f"| | {counted(len(found) - _MOST_ROWS, 'other')} | | |")
        lines += ["", "</details>"]
    rows = history_text.efficiency_rows(history)
    if rows:
        # Hosts take the line as HTML, in which Markdown has no meaning.
        title = html.escape(in_one_line(history_text.efficiency_title(history)))
        lines += ["", f"<details><summary>{title}</summary>", ""]
        for number, row in enumerate(rows):
            lines.append(f"| {' | '.join(map(markdown_text, row))} |")
            lines += ["|---|" + "---:|" * (len(row) - 1)] * (number == 0)
        lines += ["", "</details>"]
    return "".join(f"{line}\n" for line in lines)


def to_github(history: CommitHistory, found: Sequence[history_text.HistoryEntry]) -> str:
    """Return workflow commands of GitHub: an error for what fails, else a warning or a notice."""
    lines = []
    for each in found:
        level = _LEVELS.get(each.status, "notice")
        title = github_property(f"{each.status.upper()} {each.name}")
        message = github_message("\n".join(filter(None, (each.said, each.dated))))
        lines.append(f"::{level} title={title}::{message}")
    lines += omission_annotations(history.omissions)
    return "".join(
        f"{line}\n" for line in [*lines, in_one_line(history_text.headline(history, found))]
    )


def to_gitlab(
    history: CommitHistory, found: Sequence[history_text.HistoryEntry], source: str
) -> str:
    """Return a code quality report of GitLab.

    Parameters
    ----------
    source : name of the history's file, which GitLab shows as the place
    """
    issues = []
    for each in found:
        said = f"{each.status.upper()} {each.name}: {each.said}; {each.dated}".removesuffix("; ")
        identity = "\0".join((each.status, each.name, each.commits[2], history.newest.metric))
        issues.append({
            "description": in_one_line(said),
            "check_name": f"cpmodel-watch-{each.status}",
            "fingerprint": hashlib.blake2b(identity.encode(), digest_size=16).hexdigest(),
            "severity": _SEVERITIES.get(each.status, "info"),
            "location": {"path": in_one_line(source), "lines": {"begin": 1}},
        })  # fmt: skip
    if history.omissions:
        said = f"parts left out: judged {omissions_text(history.omissions)}"
        issues.append({
            "description": in_one_line(said),
            "check_name": "cpmodel-watch-omission",
            "fingerprint": hashlib.blake2b(said.encode(), digest_size=16).hexdigest(),
            "severity": "minor",
            "location": {"path": in_one_line(source), "lines": {"begin": 1}},
        })  # fmt: skip
    return json_text(json.dumps(issues, ensure_ascii=False, indent=1)) + "\n"


def to_history_junit(
    history: CommitHistory, found: Sequence[history_text.HistoryEntry], source: str
) -> str:
    """Return JUnit XML with one test case per call path, and one per group that is worse.

    A call path that is worse holds ``failure``, and a suspected one ``skipped``.

    Parameters
    ----------
    source : name of the history's file, which is the name of the suite
    """
    told: dict[int, history_text.HistoryEntry] = {}
    for each in found:
        if each.row is not None and each.status in _LEVELS:
            told.setdefault(each.row, each)
    metric, newest = history.newest.metric, history.newest.commit
    cases = [_program_case(history, found)] if history.control is not None else []
    for row, name in enumerate(history.callpaths):
        entry = told.get(row)
        if entry is None:
            said = f"not worse at commit {newest}"
            cases.append(JUnitCase(name, metric, CaseStatus.PASSED, said, "history"))
            continue
        status = CaseStatus.FAILED if entry.failed else CaseStatus.SKIPPED
        message = f"{entry.status.upper()}: {entry.said}"
        cases.append(JUnitCase(name, metric, status, message, "history", entry.dated))
    for group in (each for each in found if each.failed and each.row is None):
        if group.name != history_text.PROGRAM_BESIDE_CONTROL:
            message = f"{group.status.upper()}: {group.said}"
            case = (group.name, metric, CaseStatus.FAILED, message, "history", group.dated)
            cases.append(JUnitCase(*case))
    cases += omission_cases(history.omissions)
    return junit_xml("cpmodel watch", source, cases)


def _program_case(history: CommitHistory, found: Sequence[history_text.HistoryEntry]) -> JUnitCase:
    """Return the test case of the program, relative to the control."""
    name, metric = history_text.PROGRAM_BESIDE_CONTROL, history.newest.metric
    failed = [each for each in found if each.failed and each.name == name]
    if not failed:
        said = f"not worse at commit {history.newest.commit}"
        return JUnitCase(name, metric, CaseStatus.PASSED, said, "history")
    message = f"{failed[0].status.upper()}: {failed[0].said}"
    return JUnitCase(name, metric, CaseStatus.FAILED, message, "history", failed[0].dated)


_LETTER, _PAD, _HEIGHT = 6.6, 7.0, 20
_COLORS = {"worse": "#b3260a", "suspected": "#8a6100", "not worse": "#00664a"}
_TITLE = "performance"


def to_badge(history: CommitHistory, found: Sequence[history_text.HistoryEntry]) -> str:
    """Return a badge as SVG: ``performance: 2 worse``, ``1 suspected`` or ``not worse``.

    ``(of a part)`` follows if the records leave out parts of the program.
    """
    worse = len({each.row for each in found if each.failed})
    suspected = sum(each.status is history_text.EntryStatus.SUSPECTED for each in found)
    word = "worse" if worse else "suspected" if suspected else "not worse"
    number = worse or suspected
    text = f"{number} {word}" if number else word
    text += " (of a part)" * is_partial(history.omissions)
    left, right = (_LETTER * len(each) + 2 * _PAD for each in (_TITLE, text))
    width = left + right
    parts = [tag("title", f"{_TITLE}: {text}")]
    for x, size, color in ((0.0, left, "#3d4450"), (left, right, _COLORS[word])):
        parts.append(tag("rect", x=x, width=size, height=_HEIGHT, fill=color))
    for x, size, said in ((0.0, left, _TITLE), (left, right, text)):
        length, middle = size - 2 * _PAD, x + size / 2
        label = tag("text", said, x=middle, y=14.0, fill="#ffffff", textLength=length)
        parts.append(label)
    svg = tag(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=_HEIGHT,
        role="img",
        font_family="Verdana,DejaVu Sans,sans-serif",
        font_size=11.0,
        text_anchor="middle",
    )
    return f"{svg}\n"


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
    single = [(each, history_text.name_of(history, each)) for each in history.regressions]
    groups = [
        (min(each.parts, key=lambda part: part.leading.latest - part.leading.earliest), each)
        for each in history.worse_groups
    ]
    several = [(part, history_text.group_name(history, each)) for part, each in groups]
    return tuple(_proposal(history, *each, commits) for each in (*single, *several))


def _proposal(
    history: CommitHistory, change: HistoryChange, name: str, commits: Sequence[str] | None
) -> BisectionProposal:
    names = [each.commit for each in history.records]
    alarm = change.leading
    levels = history_text.change_levels(history, change)
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
    return BisectionProposal(name, good, bad, number, commit, is_measured, at, runs)


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
        "core_hours": [each.core_hours for each in found],
    }
    return Table(columns, {}, {})
