"""Judged histories of commits in words: entries, lines of text, and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from rich.text import Text

from callpath_modeler.arrays import FloatArray
from callpath_modeler.history.alarms import Alarm
from callpath_modeler.history.commits import CommitHistory
from callpath_modeler.history.history_store import FACTORS
from callpath_modeler.history.judgement import (
    ALL,
    GROWTH,
    LARGEST,
    TARGET,
    HistoryChange,
    JointChange,
)
from callpath_modeler.profile.omissions import omissions_json, omissions_text
from callpath_modeler.report.layout import TextColumn, TextStyle, wrap
from callpath_modeler.report.table_formats import Cell, Table
from callpath_modeler.units import counted, parameter_value, percent, setting_text, signed_percent

_WORTH = 0.005
"""Least change of a factor that is shown."""


def efficiency_title(history: CommitHistory) -> str:
    """Return what the rows are; "" = the profiles of the newest record do not allow factors."""
    if not history.newest.efficiency.size:
        return ""
    title = f"Efficiency at commit {history.newest.commit}"
    changes = len(history.records) > 1
    return title + " (change from the median of earlier records, in points)" * changes


def efficiency_rows(history: CommitHistory) -> list[tuple[str, ...]]:
    """Return the rows of a table: scales, then one row for each factor; empty = not known."""
    newest = history.newest
    if not newest.efficiency.size:
        return []
    scales = (f"{newest.parameter} = {parameter_value(each)}" for each in newest.scales.tolist())
    before = history.efficiency_before().tolist()
    rows = [("factor", *scales)]
    for name, values, earlier in zip(FACTORS, newest.efficiency.tolist(), before, strict=True):
        rows.append((name, *map(_cell, values, earlier)))
    return rows


def _cell(value: float, before: float) -> str:
    if math.isnan(value):
        return "-"
    change = value - before
    if math.isnan(change) or abs(change) < _WORTH:
        return percent(value, 1)
    return f"{percent(value, 1)} ({100 * change:+.1f})"


def efficiency_json(history: CommitHistory) -> dict[str, list[float]]:
    """Return the factors of the newest record by name, at its scales."""
    values = history.newest.efficiency.tolist()
    return {name.replace(" ", "_"): row for name, row in zip(FACTORS, values, strict=False)}


_WORD = 10
"""Width of the status, in cells."""

_NOISY = 0.2
"""Smallest slowdown that a control shows, above which it is noisy."""

_MOST_NAMES = 8
"""Largest number of names of a group in one line."""

_MOST_COMMON = 3
"""Largest number of common changes, and of joint ones, that text lists."""


class EntryStatus(StrEnum):
    """Verdict of an entry.

    Attributes
    ----------
    WORSE : a call path, few of them together, or the program beside a control became worse, and
        nothing made that good or accepted it
    PAST : a change for the worse that was made good or accepted
    BETTER : a call path became better
    COMMON : all call paths, or those of the control, changed by one factor
    JOINT : several call paths changed at one time, and nothing says that the program did it
    SUSPECTED : the newest record alone deviates
    """

    WORSE = "worse"
    PAST = "past"
    BETTER = "better"
    COMMON = "common"
    JOINT = "joint"
    SUSPECTED = "suspected"


STYLES = {
    EntryStatus.WORSE: "bold red",
    EntryStatus.PAST: "dim",
    EntryStatus.BETTER: "green",
    EntryStatus.COMMON: "yellow",
    EntryStatus.JOINT: "yellow",
    EntryStatus.SUSPECTED: "yellow",
}


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One change, or one suspicion, in words.

    Attributes
    ----------
    status : what it is
    name : the call path, or a name of several
    row : number of the call path; None = several
    said : size of the change
    dated : commits of the change; "" = a suspicion
    commits : the commit before the change, the earliest, likely and latest commit with it, and that
        of the alarm
    answers : alarms by question
    """

    status: EntryStatus
    name: str
    row: int | None
    said: str
    dated: str = ""
    commits: tuple[str, str, str, str, str] = ("", "", "", "", "")
    answers: tuple[tuple[str, Alarm], ...] = ()

    @property
    def failed(self) -> bool:
        """True if the entry is a reason for exit status 1."""
        return self.status is EntryStatus.WORSE


def entries(history: CommitHistory) -> tuple[HistoryEntry, ...]:
    """Return the entries of a history: regressions first, then suspicions, then all others."""
    found = history.found
    standing = set(map(id, history.regressions))
    own = []
    for change in (*found.program, *found.own):
        past = EntryStatus.PAST if change.is_worse else EntryStatus.BETTER
        status = EntryStatus.WORSE if id(change) in standing else past
        own.append(_of_change(history, change, status))
    groups = history.worse_groups
    own += [_of_joint(history, each, EntryStatus.WORSE) for each in groups]
    own.sort(key=lambda each: not each.failed)
    regressions = [each for each in own if each.failed]
    suspected = [_suspicion(history, row) for row in np.flatnonzero(found.suspected).tolist()]
    common = [_of_change(history, each, EntryStatus.COMMON) for each in found.common]
    failing = set(map(id, groups))
    joint = [
        _of_joint(history, each, EntryStatus.JOINT)
        for each in found.joint
        if id(each) not in failing
    ]
    others = [each for each in own if not each.failed]
    return (*regressions, *suspected, *others, *joint, *common)


def name_of(history: CommitHistory, change: HistoryChange) -> str:
    """Return the name of the changed call path, or of the part of the program."""
    if change.row is not None:
        return history.callpaths[change.row]
    if any(each is change for each in history.found.program):
        return PROGRAM_BESIDE_CONTROL
    return "all call paths" if history.control is None else "the control"


def change_levels(history: CommitHistory, change: HistoryChange) -> FloatArray:
    """Return the levels of the changed call path, or of the program, [T, K]."""
    levels = history.found.levels
    if change.row is not None:
        return np.asarray(levels.own[change.row])
    assert levels.program is not None
    return levels.program


def _of_change(history: CommitHistory, change: HistoryChange, status: EntryStatus) -> HistoryEntry:
    name = name_of(history, change)
    leading = change.leading
    dates = leading.earliest, leading.likely, leading.latest, change.raised
    sizes = [] if change.level is None else [change.level]
    sizes += [(name, change.answers[name]) for name in (GROWTH, TARGET) if name in change.answers]
    said = ", ".join(_size(history, *each) for each in sizes)
    answers = tuple(change.answers.items())
    return HistoryEntry(
        status, name, change.row, said, _dated(history, *dates), _commits(history, *dates), answers
    )


def _of_joint(history: CommitHistory, change: JointChange, status: EntryStatus) -> HistoryEntry:
    number = len(change.rows)
    dates = change.earliest, change.likely, change.latest, change.raised
    size = "their growth" if math.isnan(change.change) else signed_percent(_relative(change.change))
    name = f"{number} of {counted(len(history.callpaths), 'call path')}"
    if status is EntryStatus.WORSE:
        name = group_name(history, change)
        said = f"{size} in the middle, all others are unchanged: the program or the machine"
    elif change.is_alike:
        said = f"{size} in the middle, by one factor: probably the machine"
    else:
        said = f"{size} in the middle: the program, a library or the machine"
    return HistoryEntry(
        status, name, None, said, _dated(history, *dates), _commits(history, *dates)
    )


def group_name(history: CommitHistory, change: JointChange) -> str:
    """Return the number and the names of call paths that changed together."""
    names = [history.callpaths[each.row] for each in change.parts if each.row is not None]
    more = len(names) - _MOST_NAMES
    listed = ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
    return f"{len(names)} of {counted(len(history.callpaths), 'call path')}: {listed}"


def _suspicion(history: CommitHistory, row: int) -> HistoryEntry:
    said = f"the newest record deviates: measure commit {history.newest.commit} once more"
    return HistoryEntry(EntryStatus.SUSPECTED, history.callpaths[row], row, said)


def _size(history: CommitHistory, question: str, alarm: Alarm) -> str:
    """Return the size of a change in words."""
    parameter = history.newest.parameter
    if question == GROWTH:
        return f"growth by {parameter}^{alarm.change:+.2f}"
    size = signed_percent(_relative(alarm.change))
    ends = [signed_percent(_relative(each)) for each in (alarm.low, alarm.high)]
    if question == TARGET and history.target is not None:
        return f"{size} at {setting_text({parameter: history.target})} if it goes on so"
    values = history.scales if question == ALL else history.scales[-(len(history.scales) // 2) :]
    first, last = (parameter_value(float(each)) for each in (values[0], values[-1]))
    at = f"{parameter} = {first}" + (f" … {last}" if first != last else "")
    return f"{size} at {at} (95 % interval {ends[0]} to {ends[1]})"


def _relative(logarithm: float) -> float:
    return math.expm1(min(logarithm, 700.0))


def _dated(history: CommitHistory, earliest: int, likely: int, latest: int, raised: int) -> str:
    names = [each.commit for each in history.records]
    alarm = f"alarm at {names[raised]}"
    if earliest == latest:
        return f"since commit {names[likely]}; {alarm}"
    between = f"{names[earliest]} to {names[latest]}"
    return f"since commit {names[likely]} (one of {between}); {alarm}"


def _commits(
    history: CommitHistory, earliest: int, likely: int, latest: int, raised: int
) -> tuple[str, str, str, str, str]:
    names = [each.commit for each in history.records]
    before = names[earliest - 1] if earliest else ""
    return before, names[earliest], names[likely], names[latest], names[raised]


def headline(history: CommitHistory, found: Sequence[HistoryEntry]) -> str:
    """Return the headline in one sentence, and what the records leave out in another."""
    said, newest = _verdict(history, found), omissions_text(history.newest.omissions)
    if newest:
        return f"{said} Judged {newest}."
    if history.omissions:
        return f"{said} Earlier records are {omissions_text(history.omissions)}."
    return said


def _verdict(history: CommitHistory, found: Sequence[HistoryEntry]) -> str:
    newest = history.newest.commit
    worse = len({each.row for each in found if each.failed} - {None})
    together = sum(len(each.parts) for each in history.worse_groups)
    number = counted(len(history.callpaths), "call path")
    if any(each.failed and each.name == PROGRAM_BESIDE_CONTROL for each in found):
        beside = f", and so {'is' if worse == 1 else 'are'} {counted(worse, 'call path')}"
        return (
            f"The program is worse at commit {newest} than before, relative to the control"
            f"{beside if worse else ''}."
        )
    if together or worse:
        verb = "is" if worse == 1 else "are"
        said = f"{together} of {number} are worse together" if together else ""
        beside = f", and {counted(worse, 'other')} on {'its' if worse == 1 else 'their'} own"
        said += beside if together and worse else ""
        said = said or f"{counted(worse, 'call path')} {verb} worse"
        return f"{said} at commit {newest} than before."
    suspected = sum(each.status is EntryStatus.SUSPECTED for each in found)
    if suspected:
        return f"Nothing is worse at commit {newest} for certain, {suspected} suspected."
    if len(history.records) < LEAST_TO_JUDGE:
        number = counted(len(history.records), "record")
        return f"{number}: too few for an alarm; about 8 show a slowdown by half."
    program = "" if history.control is None else ", nor is the program relative to the control"
    shared = _slower_together(history)
    if shared:
        return (
            f"No call path is worse on its own at commit {newest} than before{program}, {shared}."
        )
    return f"No call path is worse at commit {newest} than before{program}."


def _slower_together(history: CommitHistory) -> str:
    """Return what became slower together last, with its conjunction; "" = nothing, or accepted."""
    found = history.found
    newest = found.joint[0] if found.joint else None
    if newest is not None and newest.latest >= history.accepted and newest.is_worse:
        number = counted(len(history.callpaths), "call path")
        return f"but {len(newest.rows)} of {number} changed together"
    common = found.common[0] if found.common and history.control is None else None
    if common and common.is_worse and common.leading.latest >= history.accepted:
        return "but all changed by one factor"
    return ""


PROGRAM_BESIDE_CONTROL = "the program, relative to the control"
"""Name of a change of the cost of all call paths beside a control."""

LEAST_TO_JUDGE = 5
"""Fewest records with which an alarm is possible in practice."""


def basis(history: CommitHistory) -> str:
    """Return what was judged, with the stated rate of false alarms."""
    newest, scales = history.newest, history.scales
    values = [parameter_value(float(scale)) for scale in scales]
    span = values[0] if len(values) == 1 else f"{values[0]} … {values[-1]}"
    rate = percent(history.rule.false_alarms, 0 if history.rule.false_alarms >= 0.01 else 1)
    target = "" if history.target is None else f", target {parameter_value(history.target)}"
    return (
        f"{newest.metric}, {counted(len(history.records), 'record')}, "
        f"{counted(len(history.callpaths), 'call path')}, {newest.parameter} = {span}{target}, "
        f"false alarms in at most {rate} of histories{_control(history)}"
    )


def _control(history: CommitHistory) -> str:
    """Return what the control did and can show, as an addition to the basis."""
    change = history.control_change()
    if change is None or history.control is None:
        return ""
    said = f"; control of {counted(int(history.control.sum()), 'call path')}"
    if not math.isnan(change):
        said += f": {signed_percent(change)} now against the median of earlier ones"
    least = history.least_program_change()
    if least is None or math.isinf(least):
        return f"{said}; too few records to name a slowdown of the program within three commits"
    return f"{said}; a slowdown of the program by {percent(least)} is named within three commits"


def history_text(
    history: CommitHistory, found: Sequence[HistoryEntry], style: TextStyle
) -> list[Text]:
    """Return a judged history as lines: headline, basis, and entries."""
    lines = style.lines([headline(history, found)], "bold") + style.lines([basis(history)], "dim")
    left_out = 0
    shown = {EntryStatus.COMMON: 0, EntryStatus.JOINT: 0, EntryStatus.PAST: 0}
    for entry in found:
        if entry.status in shown:
            shown[entry.status] += 1
            if shown[entry.status] > _MOST_COMMON:
                left_out += 1
                continue
        lines += _lines(entry, style)
    if left_out:
        lines.append(Text(f"{counted(left_out, 'earlier entry')} left out: -f csv", style="dim"))
    lines += _efficiency_lines(history, style)
    return lines + style.lines(_advice(history, found), "dim")


def _efficiency_lines(history: CommitHistory, style: TextStyle) -> list[Text]:
    """Return the factors of efficiency as a table; empty if they are not known."""
    rows = efficiency_rows(history)
    if not rows:
        return []
    header, *factors = rows
    columns = [
        TextColumn(title, [row[k] for row in factors], droppable=len(header) - k)
        for k, title in enumerate(header[1:], start=1)
    ]
    body = style.table(columns, [[row[0]] for row in factors], title=header[0])
    return [*style.lines([efficiency_title(history)], "dim"), *body]


def _lines(entry: HistoryEntry, style: TextStyle) -> list[Text]:
    word = Text(entry.status.upper().ljust(_WORD), style=STYLES[entry.status])
    room = None if style.width is None else style.width - _WORD
    texts = [entry.name, entry.said, entry.dated]
    parts = [part for text in texts if text for part in wrap(style.say(text), room)]
    return [word + parts[0], *(Text(" " * _WORD) + part for part in parts[1:])]


def _advice(history: CommitHistory, found: Sequence[HistoryEntry]) -> list[str]:
    said = []
    if any(each.status in {EntryStatus.COMMON, EntryStatus.JOINT} for each in found):
        said.append(
            "Changes that many call paths share come from the machine, a library or the whole "
            "program: run an older commit once more to tell them apart, or name kernels that did "
            "not change: --control."
            if history.control is None
            else "COMMON changes are those of the control, so they come from the machine or a "
            "library. JOINT changes are relative to the control."
        )
    least = history.least_program_change()
    if least is not None and _NOISY < least < math.inf:
        said.append(
            "The program scatters much relative to the control, so small slowdowns are named late "
            "or never. Name more call paths that did not change, or less noisy ones, or add "
            "records."
        )
    lacking = int(np.isnan(history.found.levels.common).all(axis=1).sum())
    if history.control is not None and lacking:
        said.append(f"{counted(lacking, 'record')} with too few values of the control not judged.")
    if history.others:
        said.append(f"{counted(history.others, 'record')} of other metrics or labels not judged.")
    return said


def history_table(history: CommitHistory, found: Sequence[HistoryEntry]) -> Table:
    """Return a table with one row per entry."""
    rows = [_row(history, entry) for entry in found]
    columns = {name: [row[name] for row in rows] for name in _row(history, _NOTHING)}
    newest = history.newest
    header: dict[str, object] = {
        "commit": newest.commit,
        "verdict": headline(history, found),
        "passed": not any(each.failed for each in found),
        "left_out": omissions_json(history.omissions),
        "records": len(history.records),
        "callpaths": len(history.callpaths),
        "metric": newest.metric,
        "parameter": newest.parameter,
        "scales": history.scales.tolist(),
        "target": history.target,
        "false_alarms": history.rule.false_alarms,
        "efficiency": efficiency_json(history),
        "control": _control_json(history),
    }
    return Table(columns, {}, header)


def _control_json(history: CommitHistory) -> dict[str, object] | None:
    """Return the control and its change; None = no control."""
    change = history.control_change()
    if change is None or history.control is None:
        return None
    names = [history.callpaths[row] for row in np.flatnonzero(history.control).tolist()]
    least = history.least_program_change()
    return {
        "callpaths": names,
        "change": change,
        "least_change": None if least is None else least,
    }


_LEVELS = {ALL: "all", LARGEST: "large"}
"""Scales of each question about the level."""

_NOTHING = HistoryEntry(EntryStatus.PAST, "", None, "")


def _row(history: CommitHistory, entry: HistoryEntry) -> dict[str, Cell]:
    answers = dict(entry.answers)
    level = HistoryChange(entry.row, answers).level
    growth, target = answers.get(GROWTH), answers.get(TARGET)
    before, earliest, likely, latest, raised = (each or None for each in entry.commits)
    sizes = () if level is None else (level[1].change, level[1].low, level[1].high)
    change, low, high = map(_relative, sizes) if sizes else (None,) * 3
    return {
        "status": str(entry.status),
        "failed": entry.failed,
        "callpath": entry.name,
        "change": change,
        "low": low,
        "high": high,
        "scales": _LEVELS.get(level[0]) if level else None,
        "scale": float(history.scales[-1]),
        "growth_change": None if growth is None else growth.change,
        "change_at_target": None if target is None else _relative(target.change),
        "commit_before": before,
        "commit_earliest": earliest,
        "commit_likely": likely,
        "commit_latest": latest,
        "alarm": raised,
        "message": f"{entry.said}; {entry.dated}" if entry.dated else entry.said,
    }
