"""Verifications as tables for programs, with one row per check."""

from __future__ import annotations

from collections.abc import Iterator

from callpath_modeler.analysis.expectations.verdicts import Crossing
from callpath_modeler.report.table_formats import Cell, Table, json_number, provenance
from callpath_modeler.units import as_option
from cpmodel_guidelines.answer import PREDICTED, Judged, Row, VerdictTally, Verification
from cpmodel_guidelines.checks import GuidelineCheck
from cpmodel_guidelines.judge import GuidelineVerdict
from cpmodel_guidelines.rules import PAPERS, GuidelineKind


def verification_table(found: Verification, top: int | None = None) -> Table:
    """Return one row per check: first at measured settings, then at the target.

    Parameters
    ----------
    top : maximum number of guidelines; None = all
    """
    rows = [*_rows(found, top)]
    names = rows[0] if rows else {}
    columns = {name: [row[name] for row in rows] for name in names}
    units = dict.fromkeys(("left", "right"), found.benchmark.metric.unit)
    if found.stakes is not None:
        units["gain_at_most"] = found.stakes.unit
    return Table(columns, units, header_of(found))


def _rows(found: Verification, top: int | None) -> Iterator[dict[str, Cell]]:
    for row in found.rows[:top]:
        if row.here is not None:
            yield from (_row(found, row, found.here, check) for check in row.here.checks)
        # Checks at a target that was measured are already among the measured ones.
        if found.ahead is not None and row.ahead is not None and not found.is_run:
            yield from (_row(found, row, found.ahead, check) for check in row.ahead.checks)


def _row(found: Verification, row: Row, of: Judged, check: int) -> dict[str, Cell]:
    bench, verdicts, told = found.benchmark, of.verdicts, of.checks[check]
    setting = dict(zip(bench.names, told.left.setting, strict=True))
    chance = float(verdicts.chance[check])
    is_ahead = of is found.ahead
    tally = row.ahead if is_ahead else row.here
    assert tally is not None, "a check belongs to a tally"
    mean = of.means.get((row.guideline, row.group))
    decides = row.ahead is not None and of is found.ahead and check == row.ahead.worst
    crossing = row.crossing if decides and row.crossing is not None else Crossing(None, None)
    return {
        "group": "/".join(row.group),
        "guideline": row.guideline.text,
        "kind": str(row.guideline.kind),
        "source": PAPERS.get(row.guideline.source, row.guideline.source),
        "function": row.guideline.left.function,
        "metric": bench.metric.name,
        "at": as_option(setting),
        "verdict": str(verdicts.verdict(check)),
        "basis": of.basis[check],
        "factor": float(verdicts.factor[check]),
        "low": float(verdicts.low[check]),
        "high": float(verdicts.high[check]),
        "probability": 1 - chance if of.basis[check] == PREDICTED else None,
        "chance": chance,
        "rate": float(verdicts.rate[check]),
        "mean_factor": None if mean is None else mean.factor,
        "mean_rate": None if mean is None else mean.rate,
        "guideline_verdict": str(tally.verdict),
        "left": float(of.left[check]),
        "right": float(of.right[check]),
        "pieces": told.times if told.guideline.kind is GuidelineKind.SPLIT else None,
        "other_setting": _other_setting(found, told),
        "composed": float(of.composed[check]),
        "likely_from": crossing.likely,
        "surely_from": crossing.surely,
        "gain_at_most": found.gain(row.guideline.left.function, of, check),
    }


def _other_setting(found: Verification, check: GuidelineCheck) -> str | None:
    """Return the setting of the right side if it is the same function at another setting."""
    if check.guideline.kind is GuidelineKind.PATTERN:
        return None
    (right,) = check.right
    return as_option(dict(zip(found.benchmark.names, right.setting, strict=True)))


def header_of(found: Verification) -> dict[str, object]:
    """Return the JSON fields that describe the benchmark, the method and the application."""
    bench, stakes = found.benchmark, found.stakes
    return {
        **provenance(bench.experiment, found.findings),
        "metric": bench.metric.name,
        "per_call": bench.per_call,
        "processes": bench.processes,
        "size": bench.size,
        "target": found.target,
        "tolerance": found.tolerance,
        "confidence": found.confidence,
        "test": str(found.method.test),
        "control": str(found.method.control),
        "error_rate": found.method.rate,
        "power": found.power,
        "counts": {str(v): len(found.rows_that_are(v)) for v in GuidelineVerdict},
        "at_target": None
        if found.ahead is None
        else {str(v): _count([row.ahead for row in found.rows], v) for v in GuidelineVerdict},
        "not_measured": [
            {
                "group": "/".join(each.group),
                "guideline": each.guideline.text,
                "lacking": list(each.lacking),
            }
            for each in found.missing
        ],
        "application": None
        if stakes is None
        else {
            "experiment": stakes.name,
            "at": dict(stakes.at),
            "total": json_number(stakes.total),
            "collectives": dict(stakes.seconds),
            "unit": stakes.unit,
        },
    }


def _count(tallies: list[VerdictTally | None], verdict: GuidelineVerdict) -> int:
    return sum(each is not None and each.verdict is verdict for each in tallies)
