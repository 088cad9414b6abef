"""Results of expectations as lines of text, tables, annotations and JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rich.cells import cell_len
from rich.text import Text

from callpath_modeler.analysis.expectations.check_result import (
    Check,
    Judgement,
    Outcome,
    Status,
    details,
    sentence,
)
from callpath_modeler.analysis.expectations.expectation import GrowthLimit
from callpath_modeler.printable import github_message, github_property, xml_text
from callpath_modeler.profile.calltree import escape
from callpath_modeler.profile.omissions import Omission, omissions_text
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.layout import Listing, ListingEntry, TextStyle, shorten, wrap
from callpath_modeler.report.table_formats import Cell, Table, provenance
from callpath_modeler.units import as_option, setting_text

if TYPE_CHECKING:
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.fitted import Fitted


_WORD = 8
"""Width of the status, in cells."""

_INDENT = " " * 10
_MOST = 48
"""Width of a name, in cells; after longer names, the result is on the next line."""

STYLES = {
    Status.PASS: "green",
    Status.FAIL: "bold red",
    Status.UNSURE: "yellow",
    Status.XFAIL: "dim",
    Status.XPASS: "yellow",
}
_GREY = "dim"


def check_text(check: Check, *, style: TextStyle, complete: bool = True) -> list[Text]:
    """Return the results as lines of text, in the order of the file, and a summary line.

    Parameters
    ----------
    check : the results
    style : width, length of names, and characters of text
    complete : False = without the expectations that pass; the summary counts them
    """
    listing = check_listing(check, style=style, complete=complete)
    return [*(line for entry in listing.entries for line in entry.lines), *listing.foot]


def check_listing(check: Check, *, style: TextStyle, complete: bool = True) -> Listing:
    """Return the results as a list that starts at the first failure.

    Each entry leads to the call path that decides the result. `complete` is as for `check_text`.
    """
    say = style.say
    shown = [each for each in check.outcomes if complete or _is_notable(each)]
    names = [cell_len(outcome.name) for outcome in shown]
    column = min(_MOST, max(names, default=0))
    entries = [
        ListingEntry([*_outcome_lines(check, outcome, column, style=style)], _worst(outcome))
        for outcome in shown
    ]
    colour = "bold green" if check.passed else "bold red"
    failed = (k for k, outcome in enumerate(shown) if outcome.failed)
    return Listing([], entries, wrap(say(last_line(check)), style.width, colour), next(failed, 0))


def _is_notable(outcome: Outcome) -> bool:
    """Return whether an outcome is more than one of many that pass; no match may be a mistake."""
    return outcome.status is not Status.PASS or not outcome.matched


def _outcome_lines(
    check: Check, outcome: Outcome, column: int, *, style: TextStyle
) -> Iterator[Text]:
    say = style.say
    name, said = say(outcome.name), say(sentence(outcome))
    head = Text(outcome.status.upper().ljust(_WORD), style=STYLES[outcome.status])
    room = None if style.width is None else style.width - _WORD
    if cell_len(name) <= column and (room is None or column + 2 + cell_len(said) <= room):
        yield head + Text(name + " " * (column - cell_len(name) + 2) + said, style="default")
    else:
        first, *rest = wrap(name, room)
        yield head + first
        yield from (Text(" " * _WORD) + part for part in rest)
        yield from _indented(said, style.width)
    if outcome.status is not Status.PASS:
        yield from _place(check, outcome, style=style)
    for line in details(outcome, check.control_of(outcome)):
        yield from _indented(say(line), style.width, _GREY)


def _place(check: Check, outcome: Outcome, *, style: TextStyle) -> Iterator[Text]:
    """Yield the lines that name the call path and the line of the file."""
    say = style.say
    where = say(f"{check.path}:{outcome.line}")
    names = [say(short_name(name)) for name in worst_names(outcome)]
    room = None if style.width is None else style.width - len(_INDENT)
    beside = None if room is None else room - cell_len(where) - 2
    path = shorten(names, beside, say("…")) if beside is None or beside > _MOST // 2 else ""
    if names and not path:
        yield Text(_INDENT + shorten(names, room, say("…")))
    yield from _indented(f"{path}  {where}".strip(), style.width, "" if path else _GREY)


def _indented(text: str, width: int | None, style: str = "") -> Iterator[Text]:
    room = None if width is None else width - len(_INDENT)
    return (Text(_INDENT) + part for part in wrap(text, room, style))


def worst_names(outcome: Outcome) -> tuple[str, ...]:
    """Return the names of the call path that decides; empty for the whole program."""
    decisive = outcome.decisive
    if decisive is None or decisive.worst is None:
        return ()
    return outcome.fitted.experiment.tree.names(decisive.worst)


def _worst(outcome: Outcome) -> str:
    return "/".join(map(escape, worst_names(outcome)))


def last_line(check: Check) -> str:
    """Return the summary line: counts of results, and the scale and confidence of the check."""
    judged = dict.fromkeys((o.fitted, target) for o in check.outcomes for target in o.targets)
    # Growth has no target of its own, so the target of the values describes it as well.
    finite = [each for each in judged if each[1] is not None]
    targets = dict.fromkeys(setting_text(_where(*each)) for each in finite or judged)
    confidences = sorted({outcome.expectation.confidence for outcome in check.outcomes})
    at = " and ".join(target for target in targets if target)
    sure = " and ".join(f"{100 * confidence:g}" for confidence in confidences)
    words = [at] * bool(at) + [f"{sure} % confidence"] * bool(confidences)
    return f"{check.summary()} — {', '.join(words)}"


def _where(fitted: Fitted, target: float | None) -> dict[str, float]:
    """Return the parameters of a judgement; for growth, the parameters that are held constant."""
    return {**fitted.held} if target is None else fitted.at(target)


def check_table(check: Check, findings: Sequence[Finding] = ()) -> Table:
    """Return a table with one row per expectation, in the order of the file."""
    outcomes = check.outcomes
    experiment = outcomes[0].fitted.experiment if outcomes else None
    ids = experiment.tree.ids() if experiment else []
    rows = [_row(outcome, ids) for outcome in outcomes]
    columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
    header: dict[str, object] = {
        **(provenance(experiment, findings) if experiment else {}),
        "file": check.path,
        "passed": check.passed,
        "counts": {str(status): number for status, number in check.counts().items()},
        "parameter": outcomes[0].fitted.parameter if outcomes else None,
    }
    return Table(columns, {}, header)


def _row(outcome: Outcome, ids: Sequence[str]) -> dict[str, Cell]:
    expectation, decisive = outcome.expectation, outcome.decisive
    worst = None if decisive is None else decisive.worst
    tree = outcome.fitted.experiment.tree
    found = None if decisive is None else decisive.found
    value, low, high = found or (None,) * 3
    crossing = None if decisive is None else decisive.crossing
    growth = decisive.growths[0] if decisive is not None and decisive.growths else None
    parameter, compared = outcome.fitted.parameter, _compared(decisive, outcome.fitted.parameter)
    target = None if decisive is None else decisive.target
    return {
        "name": outcome.name,
        "status": str(outcome.status),
        "failed": outcome.failed,
        "verdict": str(outcome.verdict),
        "message": sentence(outcome),
        "line": outcome.line,
        "pattern": expectation.callpath,
        "metric": outcome.fitted.metric.name,
        "inclusive": expectation.inclusive or expectation.callpath is None,
        "expected": None if decisive is None else decisive.criterion.text,
        "callpaths": outcome.matched,
        "broken": None if decisive is None else decisive.broken,
        "unsure": None if decisive is None else decisive.unsure,
        "worst": None if worst is None else tree.path(worst),
        "id": None if worst is None else f"@{ids[worst]}",
        "growth": None if growth is None else growth[0].text(parameter),
        "growth_probability": None if growth is None else growth[1],
        "beyond_probability": None if decisive is None else decisive.beyond,
        **compared,
        "basis": None if decisive is None or found is None else decisive.basis,
        "value": value,
        "low": low,
        "high": high,
        "unit": None if decisive is None else decisive.unit or None,
        "parameter": parameter,
        "target": target,
        "at": as_option(_where(outcome.fitted, target)) or None,
        "broken_from": None if crossing is None else crossing.likely,
        "surely_broken_from": None if crossing is None else crossing.surely,
        "deciding_run": None if decisive is None else decisive.decides,
        "deciding_repetitions": None if decisive is None else decisive.repetitions,
        "confidence": expectation.confidence,
        "control": expectation.control,
        "xfail": expectation.xfail,
        "note": expectation.note,
        "source": expectation.source,
    }


def _compared(decisive: Judgement | None, parameter: str) -> dict[str, Cell]:
    """Return how a growth compares with the expected one; None = it is not about growth."""
    names = ("match", "divergence", "adjusted_r2", "growth_in_rankings")
    criterion = None if decisive is None else decisive.criterion
    if decisive is None or not isinstance(criterion, GrowthLimit) or not decisive.growths:
        return dict.fromkeys(names)
    divergence = (decisive.growths[0][0] / criterion.expected).text(parameter)
    ranked = decisive.in_rankings
    shown = None if ranked is None else ranked.text(parameter)
    numbers = (decisive.match.name.lower(), divergence, decisive.adjusted_r2, shown)
    return dict(zip(names, numbers, strict=True))


def to_annotations(check: Check) -> str:
    """Return an error, a warning or a notice for every expectation that did not simply pass."""
    lines = []
    for outcome in check.outcomes:
        if outcome.status is Status.PASS:
            continue
        notable = outcome.status is Status.UNSURE
        level = "error" if outcome.failed else "warning" if notable else "notice"
        said = [sentence(outcome), "/".join(worst_names(outcome))]
        said += details(outcome, check.control_of(outcome))
        title = f"{outcome.status.upper()} {outcome.name}"
        properties = (
            f"file={github_property(check.path)},line={outcome.line},title={github_property(title)}"
        )
        lines.append(f"::{level} {properties}::{github_message(chr(10).join(filter(None, said)))}")
    lines += omission_annotations(check.omissions)
    return "".join(f"{line}\n" for line in [*lines, check.summary()])


def omission_annotations(omissions: Sequence[Omission]) -> list[str]:
    """Return a warning about what a verdict leaves out; none if it leaves out nothing."""
    if not omissions:
        return []
    said = github_message(f"judged {omissions_text(omissions)}")
    return [f"::warning title=parts left out::{said}"]


class CaseStatus(StrEnum):
    """Result of a test case; its value is the tag in XML."""

    PASSED = "system-out"
    FAILED = "failure"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """One test case.

    Attributes
    ----------
    name : name of the test case
    classname : name of its group
    status : result
    message : result in one sentence
    kind : kind of failure, for programs
    text : details of a case that did not pass
    place : file and line of what was tested; None = unknown
    """

    name: str
    classname: str
    status: CaseStatus
    message: str
    kind: str
    text: str = ""
    place: tuple[str, int] | None = None


def junit_xml(command: str, suite: str, cases: Sequence[JUnitCase]) -> str:
    """Return XML with one suite.

    ``time`` is 0, because these tests have no run time.

    Parameters
    ----------
    command : name of the command
    suite : name of the suite
    cases : its test cases
    """
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(each.status is CaseStatus.FAILED for each in cases)),
        "errors": "0",
        "skipped": str(sum(each.status is CaseStatus.SKIPPED for each in cases)),
        "time": "0.000",
    }
    suites = ET.Element("testsuites", {"name": command, **counts})
    element = ET.SubElement(suites, "testsuite", {"name": xml_text(suite), **counts})
    for case in cases:
        _add(element, case)
    ET.indent(suites)
    text = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _add(suite: ET.Element, case: JUnitCase) -> None:
    about = {"name": xml_text(case.name), "classname": xml_text(case.classname)}
    if case.place is not None:
        file, line = case.place
        about |= {"file": xml_text(file), "line": str(line)}
    element = ET.SubElement(suite, "testcase", {**about, "time": "0.000"})
    message = xml_text(case.message)
    if case.status is CaseStatus.PASSED:
        ET.SubElement(element, case.status).text = message
        return
    kind = {"type": case.kind} if case.status is CaseStatus.FAILED else {}
    ET.SubElement(element, case.status, {"message": message, **kind}).text = xml_text(case.text)


def to_junit(check: Check) -> str:
    """Return XML with one test case per expectation.

    A failed expectation holds ``failure``. One that the data do not decide, or that fails as
    expected, holds ``skipped``. So does a last case that says what is left out.
    """
    cases = [_case(check, outcome) for outcome in check.outcomes]
    return junit_xml("cpmodel check", check.path, [*cases, *omission_cases(check.omissions)])


def omission_cases(omissions: Sequence[Omission]) -> list[JUnitCase]:
    """Return one skipped case for what a verdict leaves out; none if it leaves out nothing."""
    if not omissions:
        return []
    said = f"judged {omissions_text(omissions)}"
    return [JUnitCase("parts left out", "omissions", CaseStatus.SKIPPED, said, "omission")]


def _case(check: Check, outcome: Outcome) -> JUnitCase:
    lines = [
        f"{check.path}:{outcome.line}",
        *["/".join(worst_names(outcome))],
        *details(outcome, check.control_of(outcome)),
    ]
    return JUnitCase(
        outcome.name,
        outcome.fitted.experiment.name,
        _status(outcome),
        f"{outcome.status.upper()}: {sentence(outcome)}",
        "expectation",
        "\n".join(line for line in lines if line),
        (check.path, outcome.line),
    )


def _status(outcome: Outcome) -> CaseStatus:
    if outcome.failed:
        return CaseStatus.FAILED
    is_skipped = outcome.status in {Status.UNSURE, Status.XFAIL}
    return CaseStatus.SKIPPED if is_skipped else CaseStatus.PASSED
