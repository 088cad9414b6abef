"""Judged histories of commits where people look: comments, annotations, JUnit, and a badge."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Sequence

from callpath_modeler.history.commits import CommitHistory
from callpath_modeler.printable import (
    github_message,
    github_property,
    in_one_line,
    json_text,
    markdown_text,
)
from callpath_modeler.profile.omissions import is_partial, omissions_text
from callpath_modeler.report.annotations import omission_annotations
from callpath_modeler.report.history import (
    PROGRAM_BESIDE_CONTROL,
    EntryStatus,
    HistoryEntry,
    basis,
    headline,
)
from callpath_modeler.report.history_efficiency import efficiency_rows, efficiency_title
from callpath_modeler.report.junit import CaseStatus, JUnitCase, junit_xml, omission_cases
from callpath_modeler.report.page.markup import tag
from callpath_modeler.units import counted

_LINES = 10
"""Largest number of lines of a comment that are not folded."""

_MOST_ROWS = 100
"""Largest number of rows of the folded table; hosts refuse long comments."""

_LEVELS = {EntryStatus.WORSE: "error", EntryStatus.SUSPECTED: "warning"}
_SEVERITIES = {EntryStatus.WORSE: "major", EntryStatus.SUSPECTED: "minor"}


def to_comment(history: CommitHistory, found: Sequence[HistoryEntry]) -> str:
    """Return a comment of a pull request in Markdown: the verdict first, and a folded table."""
    lines = [f"**{markdown_text(headline(history, found))}**", ""]
    told = [each for each in found if each.status in _LEVELS]
    room = _LINES - len(lines) - 2
    shown = told if len(told) <= room else told[: room - 1]
    for each in shown:
        dated = f"; {markdown_text(each.dated)}" if each.dated else ""
        name = markdown_text(each.name)
        lines.append(f"- {each.status}: {name}: {markdown_text(each.said)}{dated}")
    if len(shown) < len(told):
        lines.append(f"- {counted(len(told) - len(shown), 'other')} in the table")
    lines += [""] * bool(shown) + [markdown_text(basis(history))]
    if found:
        lines += ["", f"<details><summary>Table of {counted(len(found), 'change')}</summary>", ""]
        lines += ["| status | call path | change | commit |", "|---|---|---|---|"]
        for each in found[:_MOST_ROWS]:
            cells = (str(each.status), each.name, each.said, each.dated)
            lines.append(f"| {' | '.join(map(markdown_text, cells))} |")
        if len(found) > _MOST_ROWS:
            lines.append(f"| | {counted(len(found) - _MOST_ROWS, 'other')} | | |")
        lines += ["", "</details>"]
    rows = efficiency_rows(history)
    if rows:
        # Hosts take the line as HTML, in which Markdown has no meaning.
        title = html.escape(in_one_line(efficiency_title(history)))
        lines += ["", f"<details><summary>{title}</summary>", ""]
        for number, row in enumerate(rows):
            lines.append(f"| {' | '.join(map(markdown_text, row))} |")
            lines += ["|---|" + "---:|" * (len(row) - 1)] * (number == 0)
        lines += ["", "</details>"]
    return "".join(f"{line}\n" for line in lines)


def to_github(history: CommitHistory, found: Sequence[HistoryEntry]) -> str:
    """Return workflow commands of GitHub: an error for what fails, else a warning or a notice."""
    lines = []
    for each in found:
        level = _LEVELS.get(each.status, "notice")
        title = github_property(f"{each.status.upper()} {each.name}")
        message = github_message("\n".join(filter(None, (each.said, each.dated))))
        lines.append(f"::{level} title={title}::{message}")
    lines += omission_annotations(history.omissions)
    return "".join(f"{line}\n" for line in [*lines, in_one_line(headline(history, found))])


def to_gitlab(history: CommitHistory, found: Sequence[HistoryEntry], source: str) -> str:
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


def to_history_junit(history: CommitHistory, found: Sequence[HistoryEntry], source: str) -> str:
    """Return JUnit XML with one test case per call path.

    A call path that is worse holds ``failure``, and a suspected one ``skipped``.

    Parameters
    ----------
    source : name of the history's file, which is the name of the suite
    """
    told: dict[int, HistoryEntry] = {}
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
    cases += omission_cases(history.omissions)
    return junit_xml("cpmodel watch", source, cases)


def _program_case(history: CommitHistory, found: Sequence[HistoryEntry]) -> JUnitCase:
    """Return the test case of the program, relative to the control."""
    name, metric = PROGRAM_BESIDE_CONTROL, history.newest.metric
    failed = [each for each in found if each.failed and each.row is None]
    if not failed:
        said = f"not worse at commit {history.newest.commit}"
        return JUnitCase(name, metric, CaseStatus.PASSED, said, "history")
    message = f"{failed[0].status.upper()}: {failed[0].said}"
    return JUnitCase(name, metric, CaseStatus.FAILED, message, "history", failed[0].dated)


_LETTER, _PAD, _HEIGHT = 6.6, 7.0, 20
_COLORS = {"worse": "#b3260a", "suspected": "#8a6100", "not worse": "#00664a"}
_TITLE = "performance"


def to_badge(history: CommitHistory, found: Sequence[HistoryEntry]) -> str:
    """Return a badge as SVG: ``performance: 2 worse``, ``1 suspected`` or ``not worse``.

    ``(of a part)`` follows if the records leave out parts of the program.
    """
    worse = len({each.row for each in found if each.failed})
    suspected = sum(each.status is EntryStatus.SUSPECTED for each in found)
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
