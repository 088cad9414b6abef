"""Verifications as lines for people, and as tables for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.expectations.check_result import Crossing
from callpath_modeler.report.layout import GAP, TextColumn, TextStyle, shorten
from callpath_modeler.report.outlined_view import NAMED
from callpath_modeler.report.table_formats import Cell, Table, provenance
from callpath_modeler.units import (
    as_option,
    counted,
    parameter_value,
    percent,
    rough_value,
    setting_text,
    signed_percent,
)
from cpmodel_guidelines.answer import (
    BETWEEN,
    COMPOSED,
    MOCK_UP,
    POOLED,
    PREDICTED,
    Judged,
    Row,
    VerdictTally,
    Verification,
)
from cpmodel_guidelines.checks import GuidelineCheck
from cpmodel_guidelines.judge import GuidelineVerdict
from cpmodel_guidelines.predicted_excess import LIKELY
from cpmodel_guidelines.rules import PAPERS, GuidelineKind
from cpmodel_guidelines.statistics.permutations import Control

_GREY = "dim"
_STYLES = {
    GuidelineVerdict.VIOLATED: "bold red",
    GuidelineVerdict.HOLDS: "green",
    GuidelineVerdict.OPEN: "yellow",
}
_WIDEST_GROUP = 24
"""Maximum width of callers on a terminal, in cells. The guidelines need the rest of the line."""

_NAMED = 3
"""Maximum number of guidelines that the first sentences list as likely violated."""
_LACKING = 4
"""Maximum number of functions that a note about missing measurements lists."""


@dataclass(frozen=True, slots=True)
class GuidelineStyle(TextStyle):
    """The style of lines with the sign of guidelines."""

    @classmethod
    def of(cls, style: TextStyle) -> GuidelineStyle:
        """Return a style with this sign."""
        return cls(style.width, style.full_names, style.ascii_only)

    def say(self, text: str) -> str:
        """Return `text` in the characters that may be used."""
        return TextStyle.say(self, text) if self.ascii_only else text.replace("<=", "≤")


def verification_text(found: Verification, style: TextStyle, top: int) -> list[Text]:
    """Return the headline, the context, the worst guidelines, and notes."""
    style, shown = GuidelineStyle.of(style), found.rows[:top]
    lines = style.lines([headline(found)], "bold") + style.lines([context(found)], _GREY)
    if shown:
        names = [[row.guideline.short] for row in shown]
        columns = [column.spelled(style.say) for column in _columns(found, shown, style)]
        columns = fitting(columns, max(len(style.say(name)) for (name,) in names), style.width)
        lines += [Text(""), *style.table(columns, names, title="guideline"), Text("")]
    return lines + style.lines([*_below(found, top), *legend(found, style)], _GREY, "  ")


def headline(found: Verification) -> str:
    """Return the sentence about violated guidelines, and about predicted ones."""
    violated = found.rows_that_are(GuidelineVerdict.VIOLATED)
    here = [row for row in found.rows if row.here is not None]
    if violated:
        worst = violated[0]
        verb = "is" if len(violated) == 1 else "are"
        said = f"{len(violated)} of {counted(len(here), 'guideline')} {verb} violated."
        said += f" The worst is {_name(worst)}, {_by(found.here, worst.here, found)}."
    elif found.rows_that_are(GuidelineVerdict.HOLDS):
        said = f"None of {counted(len(here), 'guideline')} is shown to be violated."
    else:
        said = f"None of {counted(len(here), 'guideline')} can be decided."
    if found.ahead is None:
        return said
    turning = [row for row in found.rows if row.turns]
    told = _violated_at(found) if found.is_run else _likely_at(found, found.ahead)
    if turning:
        first = turning[0]
        verb = "holds" if len(turning) == 1 else "hold"
        told += f" {len(turning)} of these guidelines {verb} as measured: {_name(first)}"
        if first.crossing is not None and first.crossing.likely is not None:
            told += f", until about {found.benchmark.processes} = "
            told += rough_value(first.crossing.likely)
        told += "."
    return f"{said} {told}"


def _violated_at(found: Verification) -> str:
    """Return the sentence about violations at a target that was measured."""
    number = sum(
        row.ahead is not None and row.ahead.verdict is GuidelineVerdict.VIOLATED
        for row in found.rows
    )
    verb = "is" if number < 2 else "are"
    return f"{number or 'None'} {verb} violated at {_target(found, ' = ')}."


def _likely_at(found: Verification, ahead: Judged) -> str:
    """Return the sentences about predicted checks, with the likeliest guidelines."""
    every = [(ahead.likeliest(row.ahead), row) for row in found.rows if row.ahead is not None]
    rows = sorted(((s, row) for s, row in every if s >= 0), key=lambda pair: -pair[0])
    where = f"At {_target(found, ' = ')}"
    if not rows:
        return f"{where}, no probability of a violation is known."
    share, first = rows[0]
    likely, very = (ahead.above(limit) for limit in LIKELY)
    if not likely:
        name = f"{_name(first)}, with {_sure(share)}"
        return f"{where}, no violation is likely: the likeliest is {name}."
    checks = counted(len(ahead.checks), "check")
    verb = "is" if likely == 1 else "are"
    told = f"{where}, {likely} of {checks} {verb} likely violated (above {percent(LIKELY[0])})"
    told += f", {very} of them above {percent(LIKELY[1])}" * bool(very)
    named = [(share, row) for share, row in rows if share > LIKELY[0]]
    names = ", ".join(f"{_name(row)} ({_sure(share)})" for share, row in named[:_NAMED])
    more = f" and {counted(len(named) - _NAMED, 'other guideline')}" * (len(named) > _NAMED)
    return f"{told}: {names}{more}."


def _sure(share: float) -> str:
    """Return the probability of a prediction as text; no prediction is certain."""
    return percent(min(share, 0.99))


def _target(found: Verification, sign: str) -> str:
    assert found.target is not None, "predictions have a target"
    return f"{found.benchmark.processes}{sign}{parameter_value(found.target)}"


def _name(row: Row) -> str:
    return ": ".join(part for part in (shorten(row.group, NAMED), row.guideline.short) if part)


def _by(of: Judged, tally: VerdictTally | None, found: Verification) -> str:
    """Return the slowdown of the worst check, its interval and its setting."""
    assert tally is not None, "a violated guideline was measured"
    slowdown = tally.slowdown(of)
    said = f"{slowdown.by} ({slowdown.interval})"
    if tally.mean is not None:
        return f"{said} in the mean of all settings"
    where = setting_text(_at(found, of, tally.worst))
    return said + f" at {where}" * bool(where)


def _at(found: Verification, of: Judged, check: int) -> dict[str, float]:
    """Return the values of the varying parameters at which a check was made."""
    bench = found.benchmark
    varying = {each.name for each in bench.experiment.parameters}
    named = zip(bench.names, of.checks[check].left.setting, strict=True)
    return {name: value for name, value in named if name in varying}


def context(found: Verification) -> str:
    """Return the metric, the settings, and what is unknown, as one line."""
    bench = found.benchmark
    settings = counted(len(bench.settings), "setting")
    parts = [bench.experiment.name, f"{bench.metric.name}{' per call' * bench.per_call}"]
    for each in bench.experiment.parameters:
        first, last = parameter_value(each.values[0]), parameter_value(each.values[-1])
        settings += f", {each.name} = {first} … {last}"
    parts.append(settings)
    if bench.size is None:
        parts.append("all messages assumed to have one size")
    if np.isnan(found.here.verdicts.low).all():
        parts.append("noise unknown: no repetitions, too few scales for models")
    elif not bench.tells_noise:
        parts.append("no repetitions: noise estimated from deviations from models")
    return " · ".join(parts)


def _columns(found: Verification, shown: Sequence[Row], style: TextStyle) -> list[TextColumn]:
    here = [row.here for row in shown]
    slowdowns = [tally and tally.slowdown(found.here) for tally in here]
    verdicts = [tally.verdict if tally else None for tally in here]
    styles = [_STYLES[verdict] if verdict else "" for verdict in verdicts]
    columns = [
        TextColumn("verdict", [str(v or "-") for v in verdicts], right=False, styles=styles),
        TextColumn("slower", [each.by if each else "" for each in slowdowns]),
        TextColumn(
            f"{found.confidence:.0%} interval",
            [each.interval if each else "" for each in slowdowns],
            droppable=3,
        ),
    ]
    if found.benchmark.experiment.parameters:
        columns += [
            TextColumn("at", [_where(found, found.here, t) for t in here], droppable=4),
            TextColumn("settings", [_share(tally) for tally in here], droppable=5),
        ]
    bases = [_right_side(found.here, tally) for tally in here]
    if any(bases):
        columns.append(TextColumn("right side", bases, right=False, droppable=1))
    if found.ahead is not None:
        columns += _columns_ahead(found, found.ahead, shown)
    gains = [found.best_gain(row) for row in shown]
    if found.stakes is not None and any(gains):
        unit = found.stakes.unit
        cells = [style.amount(g, unit) if g else "" for g in gains]
        columns.append(TextColumn("gain up to", cells))
    room = None if style.width is None else _WIDEST_GROUP
    groups = [shorten(row.group, room) for row in shown]
    return [*columns, TextColumn("in", groups, right=False)] if any(groups) else columns


def fitting(columns: Sequence[TextColumn], longest: int, width: int | None) -> list[TextColumn]:
    """Return the columns that leave room for whole guidelines; drop others as far as allowed."""
    kept = list(columns)
    while width is not None and sum(c.width + GAP for c in kept) + longest > width:
        first = max(column.droppable for column in kept)
        if not first:
            break
        kept = [column for column in kept if column.droppable != first]
    return kept


def _columns_ahead(found: Verification, ahead: Judged, shown: Sequence[Row]) -> list[TextColumn]:
    tallies = [row.ahead for row in shown]
    cells = [_verdict_ahead(ahead, tally, is_run=found.is_run) for tally in tallies]
    styles = [_STYLES[tally.verdict] if tally else "" for tally in tallies]
    columns = [TextColumn(_target(found, "="), cells, right=not found.is_run, styles=styles)]
    starts = [row.crossing.likely if row.crossing else None for row in shown]
    if any(start is not None for start in starts):
        least = min(found.benchmark.scales)
        cells = [_start(start, least) for start in starts]
        columns.append(TextColumn("from", cells, droppable=2))
    return columns


def _right_side(of: Judged, tally: VerdictTally | None) -> str:
    """Return whether the right side is a measured mock-up or a sum of functions."""
    basis = "" if tally is None else of.basis[tally.worst]
    return {MOCK_UP: "mock-up", COMPOSED: "sum", BETWEEN: "sum"}.get(basis, "")


def _start(start: float | None, least: float) -> str:
    """Return the number of processes from which a violation is likely, as text."""
    if start is None:
        return ""
    return "all" if start <= least else rough_value(start)


def _verdict_ahead(ahead: Judged, tally: VerdictTally | None, *, is_run: bool) -> str:
    """Return the verdict at the target, or the probability of a violation, as text."""
    if tally is None:
        return "-"
    if is_run:
        return str(tally.verdict)
    share = ahead.likeliest(tally)
    return _sure(share) if share >= 0 else str(tally.verdict)


def _where(found: Verification, of: Judged, tally: VerdictTally | None) -> str:
    if tally is None:
        return ""
    if tally.mean is not None:
        return "mean"
    at = _at(found, of, tally.worst)
    return ",".join(f"{name}={parameter_value(value)}" for name, value in at.items())


def _share(tally: VerdictTally | None) -> str:
    """Return the number of settings at which a guideline has its verdict, as text."""
    if tally is None:
        return ""
    if tally.mean is not None:
        return f"all {len(tally.checks)}"
    number = {
        GuidelineVerdict.VIOLATED: tally.violated,
        GuidelineVerdict.HOLDS: tally.holds,
        GuidelineVerdict.OPEN: len(tally.checks) - tally.holds,
    }[tally.verdict]
    return f"{number} of {len(tally.checks)}"


def _below(found: Verification, top: int) -> list[str]:
    """Return notes about guidelines that are not in the table."""
    lines = []
    if len(found.rows) > top:
        rest = Counter(str(row.here.verdict) for row in found.rows[top:] if row.here is not None)
        said = ", ".join(f"{number} {verdict}" for verdict, number in rest.items())
        lines.append(
            f"{counted(len(found.rows) - top, 'other guideline')}: {said}. Use -n all to list them."
        )
    if found.missing:
        lacking = Counter(name for each in found.missing for name in each.lacking)
        names = [name for name, _ in lacking.most_common(_LACKING)]
        more = ", ..." if len(lacking) > _LACKING else ""
        number = counted(len(found.missing), "guideline")
        lines.append(f"Not measured: {number}. The benchmark lacks {', '.join(names)}{more}")
    return lines


def legend(found: Verification, style: TextStyle) -> list[str]:
    """Return the notes that explain the verdicts."""
    least = percent(found.tolerance)
    lines = [
        f"slower: the left side, compared with the right side. From {least} on, it is violated."
    ]
    lines.append(error_rate_text(found))
    if found.power:
        lines.append(found.power)
    lines += _bases(found)
    if found.ahead is not None and not found.is_run:
        where = " at the size where it is largest" * (found.benchmark.size is not None)
        lines.append(f"{_target(found, '=')}: probability of a violation{where}")
        if any(row.crossing is not None and row.crossing.likely for row in found.rows):
            lines.append("from: number of processes from which models predict a violation")
    if found.stakes is not None:
        at = f" at {setting_text(found.stakes.at)}" if found.stakes.at else ""
        total = style.amount(found.stakes.total, found.stakes.unit)
        lines.append(f"gain up to: of the run time of {found.stakes.name}, {total}{at}")
    return lines


def error_rate_text(found: Verification) -> str:
    """Return the sentence about the error rate."""
    rate, control = percent(found.method.rate), found.method.control
    if control is Control.DISCOVERY:
        return f"At most {rate} of the violated checks are expected to be false."
    if control is Control.NONE:
        return f"Each check that just holds is called violated with a probability of {rate}."
    return f"The probability that any of the violations is false is at most {rate}."


def _bases(found: Verification) -> list[str]:
    """Return notes about sums of functions, and about their distance from measured mock-ups."""
    basis, lines = Counter(found.here.basis), []
    sums = basis[COMPOSED] + basis[BETWEEN]
    if sums:
        said = "sum: added times of separately measured functions, without a measured mock-up"
        lines.append(f"{said} ({counted(sums, 'check')})")
    if basis[BETWEEN]:
        lines.append(
            "Times at other message sizes are interpolated between the neighbouring sizes."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = found.here.composed / found.here.right
    distance = distance[np.isfinite(distance) & (distance > 0)]
    if len(distance):
        low, middle, high = (
            signed_percent(float(each) - 1) for each in np.quantile(distance, [0, 0.5, 1])
        )
        lines.append(
            f"{counted(len(distance), 'check')} with a mock-up and a sum: the sum differs from the "
            f"mock-up by {middle} in the median ({low} … {high})."
        )
    return lines


def verification_table(found: Verification, top: int | None = None) -> Table:
    """Return one row per check: first at measured settings, then at the target.

    Parameters
    ----------
    top : maximum number of guidelines; None = all
    """
    units = dict.fromkeys(("left", "right"), found.benchmark.metric.unit)
    if found.stakes is not None:
        units["gain_at_most"] = found.stakes.unit
    return Table.of_rows([*_rows(found, top)], units, header_of(found))


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
        **asdict(verdicts.slowdown(check)),
        "probability": 1 - chance if of.basis[check] in {PREDICTED, POOLED} else None,
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
        "likely_at_target": None
        if found.ahead is None or found.is_run
        else {f"above_{limit:.0%}": found.ahead.above(limit) for limit in LIKELY},
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
            "total": stakes.total,
            "collectives": dict(stakes.seconds),
            "unit": stakes.unit,
        },
    }


def _count(tallies: list[VerdictTally | None], verdict: GuidelineVerdict) -> int:
    return sum(each is not None and each.verdict is verdict for each in tallies)
