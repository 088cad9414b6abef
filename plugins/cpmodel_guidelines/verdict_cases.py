"""Verdicts as test cases for continuous integration servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callpath_modeler.report.test_reports import CaseStatus, JUnitCase
from callpath_modeler.units import as_option, counted, percent, setting_text, signed_percent
from cpmodel_guidelines.answer import Judged, Row, VerdictTally, Verification
from cpmodel_guidelines.campaigns.campaign import Campaign
from cpmodel_guidelines.changes.comparison import (
    CampaignChange,
    CheckPair,
    FunctionChange,
    GuidelineChange,
    VerdictChange,
)
from cpmodel_guidelines.judge import GuidelineVerdict
from cpmodel_guidelines.matrix_content import Matrix, MatrixRow, published_matrices
from cpmodel_guidelines.published import PublishedCheck

KIND = "guideline"
"""Kind of failures."""

_MOST = 100
"""Largest number of settings in the text of a failure."""


def cases_of(found: Verification, *, ahead: bool) -> list[JUnitCase]:
    """Return one test case per guideline and group.

    Parameters
    ----------
    ahead : a guideline that is predicted to be violated fails as well
    """
    return [_case(found, row, ahead=ahead) for row in found.rows]


def published_cases(campaign: Campaign, checks: Sequence[PublishedCheck]) -> list[JUnitCase]:
    """Return one test case per guideline, library and number of processes.

    PGMPI's code cannot show that a guideline holds, so all others pass unless they were not
    measured.
    """
    return [
        _published_case(campaign, matrix, row)
        for matrix in published_matrices(campaign, checks)
        for row in matrix.rows
    ]


def class_of(name: str, group: Sequence[str]) -> str:
    """Return the name of a group of functions, for servers that list groups."""
    return "/".join(group) or name


def _case(found: Verification, row: Row, *, ahead: bool) -> JUnitCase:
    parts = [(found.here, row.here)]
    if ahead and found.ahead is not None:
        parts.append((found.ahead, row.ahead))
    told = [(of, tally) for of, tally in parts if tally is not None]
    verdicts = {tally.verdict for _, tally in told}
    status, message = CaseStatus.PASSED, f"{row.guideline.text} holds"
    if GuidelineVerdict.VIOLATED in verdicts:
        status, message = CaseStatus.FAILED, " and ".join(_failures(found, row, told))
    elif verdicts != {GuidelineVerdict.HOLDS}:
        status = CaseStatus.SKIPPED
        message = f"{row.guideline.text} is not decided: measure more mpiruns"
    lines = [line for of, tally in told for line in _settings(found, of, tally)]
    classname = class_of(found.benchmark.experiment.name, row.group)
    return JUnitCase(row.guideline.text, classname, status, message, KIND, "\n".join(lines))


def _failures(
    found: Verification, row: Row, told: Sequence[tuple[Judged, VerdictTally]]
) -> Iterator[str]:
    """Yield one clause for the measured and one for the predicted violation."""
    other = row.guideline.text.partition(" <= ")[2]
    for of, tally in told:
        if tally.verdict is not GuidelineVerdict.VIOLATED:
            continue
        where = _at(found, of, tally.worst) if tally.mean is None else "in the mean of all settings"
        is_ahead = of is found.ahead and not found.is_run
        verb = "is predicted to be" if is_ahead else "is"
        by = tally.slowdown(of).by
        yield f"{row.guideline.left} {verb} slower than {other}: {by} {where}".rstrip()


def _at(found: Verification, of: Judged, check: int) -> str:
    setting = dict(zip(found.benchmark.names, of.checks[check].left.setting, strict=True))
    return f"at {setting_text(setting)}" if setting else ""


def _settings(found: Verification, of: Judged, tally: VerdictTally) -> Iterator[str]:
    """Yield one line for each violation; without any, for each setting that does not hold."""
    verdicts = of.verdicts
    told = verdicts.violated if tally.violated else ~verdicts.holds
    rows = [row for row in tally.checks if told[row]]
    for row in rows[:_MOST]:
        slowdown = verdicts.slowdown(row)
        said = f"{verdicts.verdict(row)}, {slowdown.by} ({slowdown.interval or '- … -'})"
        setting = dict(zip(found.benchmark.names, of.checks[row].left.setting, strict=True))
        rate = float(verdicts.rate[row])
        sure = f", error rate {percent(rate, 1)}" if verdicts.violated[row] else ""
        if of is found.ahead and not found.is_run:
            sure = f", probability {percent(1 - float(verdicts.chance[row]))}"
        yield f"{as_option(setting)}: {said}{sure}"
    if len(rows) > _MOST:
        yield f"… {counted(len(rows) - _MOST, 'other setting')}"


def _published_case(campaign: Campaign, matrix: Matrix, row: MatrixRow) -> JUnitCase:
    classname = ", ".join([class_of(campaign.name, matrix.group), setting_text(matrix.at)])
    text = row.guideline.text
    violated = [
        f"{matrix.axis}={size:g}: {signed_percent(cell.factor - 1)} {cell.mark}"
        for size, cell in zip(matrix.columns, row.cells, strict=True)
        if cell is not None and cell.is_violated
    ]
    if violated:
        where = counted(len(violated), "size")
        message = f"{text} is violated at {where} by the rules of PGMPI's code"
        lines = "\n".join(violated[:_MOST])
        return JUnitCase(text, classname, CaseStatus.FAILED, message, KIND, lines)
    if row.verdict is None:
        message = f"{text} was not measured"
        return JUnitCase(text, classname, CaseStatus.SKIPPED, message, KIND)
    message = f"{text}: no violation is shown"
    return JUnitCase(text, classname, CaseStatus.PASSED, message, KIND)


def change_cases(changes: CampaignChange, *, worse: bool) -> list[JUnitCase]:
    """Return one test case per guideline and group: new violations fail.

    Parameters
    ----------
    worse : each function is a test case as well, which fails if the function is slower
    """
    cases = [_change_case(changes, each) for each in changes.guidelines]
    if worse:
        slower = {id(each) for each in changes.slower()}
        cases += [
            _function_case(changes, each, is_slower=id(each) in slower)
            for each in changes.functions
        ]
    return cases


def _change_case(changes: CampaignChange, of: GuidelineChange) -> JUnitCase:
    text, change = of.guideline.text, of.change
    status, message = {
        VerdictChange.NEW: (CaseStatus.FAILED, f"{text} is newly violated"),
        VerdictChange.SHOWN: (
            CaseStatus.SKIPPED,
            f"{text} is violated; before, it was not decided, and a larger slowdown is not shown",
        ),
        VerdictChange.STILL: (CaseStatus.SKIPPED, f"{text} is still violated"),
        VerdictChange.HIDDEN: (
            CaseStatus.SKIPPED,
            f"{text} was violated; now it is not decided: measure more mpiruns",
        ),
        VerdictChange.MENDED: (CaseStatus.PASSED, f"{text} was violated and holds now"),
        VerdictChange.OPEN: (CaseStatus.SKIPPED, f"{text} is not decided: measure more mpiruns"),
        VerdictChange.HOLDS: (CaseStatus.PASSED, f"{text} holds"),
    }[change]
    pairs = [changes.pairs[k] for k in of.pairs if changes.pairs[k].change is change]
    lines = [_pair_text(changes, pair) for pair in pairs[:_MOST]]
    if not pairs:
        lines = ["in the mean of all settings"]
    classname = class_of(changes.after.benchmark.experiment.name, of.group)
    return JUnitCase(text, classname, status, message, KIND, "\n".join(lines))


def _pair_text(changes: CampaignChange, pair: CheckPair) -> str:
    told = []
    for name, side, k in (
        ("before", changes.before, pair.before),
        ("after", changes.after, pair.after),
    ):
        verdicts = side.here.verdicts
        told.append(f"{name} {verdicts.slowdown(k).by} ({verdicts.verdict(k)})")
    return f"{as_option(dict(pair.setting))}: {', '.join(told)}"


def _function_case(changes: CampaignChange, of: FunctionChange, *, is_slower: bool) -> JUnitCase:
    times, means = changes.times, changes.means
    lines = [
        f"{as_option(dict(setting))}: {signed_percent(float(times.ratio[row]) - 1)}"
        for setting, row in zip(of.settings, of.rows, strict=True)
        if times.larger[row]
    ]
    if means.larger[of.number]:
        lines.append(f"mean of all settings: {signed_percent(float(means.ratio[of.number]) - 1)}")
    classname = class_of(changes.after.benchmark.experiment.name, of.group)
    if is_slower:
        message = f"{of.function} is slower than before"
        status = CaseStatus.FAILED
    else:
        status, message = CaseStatus.PASSED, f"{of.function} is not shown to be slower"
    name = f"time of {of.function}"
    return JUnitCase(name, classname, status, message, "time", "\n".join(lines[:_MOST]))
