"""What came of guidelines, as lines for people: a row per guideline and library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.text import Text

from callpath_modeler.report.layout import GAP, TextColumn, shorten, table, wrap
from callpath_modeler.report.outlined_view import NAMED
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    quantity,
    rough_value,
    setting_text,
    signed_percent,
    to_ascii,
)
from cpmodel_guidelines.answer import BETWEEN, Judged, Row, VerdictTally, Verification
from cpmodel_guidelines.judge import FALSE, GuidelineVerdict

_GREY = "dim"
_STYLES = {
    GuidelineVerdict.VIOLATED: "bold red",
    GuidelineVerdict.HOLDS: "green",
    GuidelineVerdict.OPEN: "yellow",
}
_WIDEST_GROUP = 24
"""On a terminal, callers have so many cells; guidelines need the others."""

_LACKING = 4
"""So many functions that were not measured are named for people."""


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How the lines look.

    Attributes
    ----------
    width : of the terminal; None = nothing is cut
    top : guidelines that are listed at most
    ascii_only : no character beyond ASCII
    """

    width: int | None
    top: int
    ascii_only: bool

    def say(self, text: str) -> str:
        """Return `text` in the characters that may be used."""
        return to_ascii(text) if self.ascii_only else text.replace("<=", "≤")


def verification_text(found: Verification, look: TextStyle) -> list[Text]:
    """Return the answer, what it is about, the worst guidelines, and what is not among them."""
    shown = found.rows[: look.top]
    lines = [*wrap(look.say(_headline(found)), look.width, "bold")]
    lines += wrap(look.say(_context(found)), look.width, _GREY)
    if shown:
        columns = [
            replace(c, header=look.say(c.header), cells=[look.say(cell) for cell in c.cells])
            for c in _columns(found, shown, look)
        ]
        names = [[look.say(row.guideline.short)] for row in shown]
        title, dots = "guideline", look.say("…")
        columns = _fitting(columns, max(len(name) for (name,) in names), look.width)
        lines += [
            Text(""),
            *table(columns, names, look.width, title=title, ellipsis=dots),
            Text(""),
        ]
    notes = [*_below(found, look.top), *_legend(found, look)]
    lines += [part for note in notes for part in wrap(look.say(note), look.width, _GREY, "  ")]
    return lines


def _headline(found: Verification) -> str:
    """Answer: what is violated, what is predicted to be."""
    bench, violated = found.benchmark, found.rows_that_are(GuidelineVerdict.VIOLATED)
    here = [row for row in found.rows if row.here is not None]
    if violated:
        worst = violated[0]
        said = f"{len(violated)} of {counted(len(here), 'guideline')} violated, most "
        said += f"{_name(worst)}, {_by(found.here, worst.here, found)}."
    elif found.rows_that_are(GuidelineVerdict.HOLDS):
        said = f"No violation of {counted(len(here), 'guideline')} is shown."
    else:
        said = f"None of {counted(len(here), 'guideline')} can be decided."
    if found.ahead is None:
        return said
    ahead = [
        row for row in found.rows if row.ahead and row.ahead.verdict is GuidelineVerdict.VIOLATED
    ]
    verb = "is" if len(ahead) < 2 else "are"
    word = "" if found.is_run else " predicted to be"
    where = _target(found, " = ")
    told = f" {len(ahead) or 'None'} {verb}{word} violated at {where}"
    turning = [row for row in found.rows if row.turns]
    if turning:
        first = turning[0]
        told += f"; {len(turning)} of them {'holds' if len(turning) == 1 else 'hold'} as measured"
        told += f": {_name(first)}"
        if first.crossing is not None and first.crossing.likely is not None:
            told += f", until about {bench.processes} = {rough_value(first.crossing.likely)}"
    return f"{said}{told}."


def _target(found: Verification, sign: str) -> str:
    assert found.target is not None, "what is ahead has a target"
    return f"{found.benchmark.processes}{sign}{parameter_value(found.target)}"


def _name(row: Row) -> str:
    return ": ".join(part for part in (shorten(row.group, NAMED), row.guideline.short) if part)


def _by(of: Judged, tally: VerdictTally | None, found: Verification) -> str:
    """Say by how much a guideline is violated at its worst, and where."""
    assert tally is not None, "what is violated was measured"
    verdicts, worst = of.verdicts, tally.worst
    by, low, high = (
        signed_percent(float(column[worst] - 1))
        for column in (verdicts.factor, verdicts.low, verdicts.high)
    )
    where = setting_text(_at(found, of, worst))
    return f"{by} ({low} … {high})" + f" at {where}" * bool(where)


def _at(found: Verification, of: Judged, check: int) -> dict[str, float]:
    """Return the values of the parameters that vary, or are asked for, of a check."""
    bench = found.benchmark
    varying = {each.name for each in bench.experiment.parameters}
    named = zip(bench.names, of.checks[check].left.setting, strict=True)
    return {name: value for name, value in named if name in varying}


def _context(found: Verification) -> str:
    bench = found.benchmark
    settings = counted(len(bench.settings), "setting")
    parts = [bench.experiment.name, f"{bench.metric.name}{' per call' * bench.per_call}"]
    for each in bench.experiment.parameters:
        first, last = parameter_value(each.values[0]), parameter_value(each.values[-1])
        settings += f", {each.name} = {first} … {last}"
    parts.append(settings)
    if bench.size is None:
        parts.append("messages taken to be of one size")
    if np.isnan(found.here.verdicts.low).all():
        parts.append("nothing repeated at scales enough for models: noise is not known")
    elif not bench.tells_noise:
        parts.append("nothing repeated: noise is what models leave")
    return " · ".join(parts)


def _columns(found: Verification, shown: Sequence[Row], look: TextStyle) -> list[TextColumn]:
    here = [row.here for row in shown]
    verdicts = [tally.verdict if tally else None for tally in here]
    styles = [_STYLES[verdict] if verdict else "" for verdict in verdicts]
    columns = [
        TextColumn("verdict", [str(v or "-") for v in verdicts], right=False, styles=styles),
        TextColumn("slower", [_slower(found.here, tally) for tally in here]),
        TextColumn(
            f"{found.confidence:.0%} interval",
            [_interval(found.here, t) for t in here],
            droppable=3,
        ),
    ]
    if found.benchmark.experiment.parameters:
        columns += [
            TextColumn("at", [_where(found, found.here, t) for t in here], droppable=4),
            TextColumn("settings", [_share(tally) for tally in here], droppable=5),
        ]
    if found.ahead is not None:
        columns += _columns_ahead(found, found.ahead, shown)
    gains = [found.best_gain(row) for row in shown]
    if found.stakes is not None and any(gains):
        unit = found.stakes.unit
        cells = [quantity(g, unit, ascii_only=look.ascii_only) if g else "" for g in gains]
        columns.append(TextColumn("gain up to", cells))
    room = None if look.width is None else _WIDEST_GROUP
    groups = [shorten(row.group, room) for row in shown]
    return [*columns, TextColumn("in", groups, right=False)] if any(groups) else columns


def _fitting(columns: Sequence[TextColumn], longest: int, width: int | None) -> list[TextColumn]:
    """Return the columns beside which guidelines are written in full, as far as some can go."""
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
    columns = [TextColumn(_target(found, "="), cells, right=False, styles=styles)]
    if not found.is_run:
        starts = [row.crossing.likely if row.crossing else None for row in shown]
        least = min(found.benchmark.scales)
        cells = [_start(start, least) for start in starts]
        columns.append(TextColumn("from", cells, droppable=2))
    return columns


def _start(start: float | None, least: float) -> str:
    """Write from which number of processes on a guideline is likely violated."""
    if start is None:
        return ""
    return "all" if start <= least else rough_value(start)


def _verdict_ahead(ahead: Judged, tally: VerdictTally | None, *, is_run: bool) -> str:
    """Write a verdict at the target, with the probability that it is violated there."""
    if tally is None:
        return "-"
    if is_run:
        return str(tally.verdict)
    chance = float(ahead.verdicts.chance[tally.worst])
    sure = "" if chance != chance else f" {percent(min(1 - chance, 0.99))}"  # noqa: PLR0124
    return f"{tally.verdict}{sure}"


def _slower(of: Judged, tally: VerdictTally | None) -> str:
    return "" if tally is None else signed_percent(float(of.verdicts.factor[tally.worst]) - 1)


def _interval(of: Judged, tally: VerdictTally | None) -> str:
    if tally is None:
        return ""
    low, high = float(of.verdicts.low[tally.worst]), float(of.verdicts.high[tally.worst])
    return "" if low != low else f"{signed_percent(low - 1)} … {signed_percent(high - 1)}"  # noqa: PLR0124


def _where(found: Verification, of: Judged, tally: VerdictTally | None) -> str:
    if tally is None:
        return ""
    at = _at(found, of, tally.worst)
    return ",".join(f"{name}={parameter_value(value)}" for name, value in at.items())


def _share(tally: VerdictTally | None) -> str:
    """Write at how many settings a guideline has its verdict."""
    if tally is None:
        return ""
    number = {
        GuidelineVerdict.VIOLATED: tally.violated,
        GuidelineVerdict.HOLDS: tally.holds,
        GuidelineVerdict.OPEN: len(tally.checks) - tally.holds,
    }[tally.verdict]
    return f"{number} of {len(tally.checks)}"


def _below(found: Verification, top: int) -> list[str]:
    """Count what is not in the table."""
    lines = []
    if len(found.rows) > top:
        rest = Counter(str(row.here.verdict) for row in found.rows[top:] if row.here is not None)
        said = ", ".join(f"{number} {verdict}" for verdict, number in rest.items())
        lines.append(f"{counted(len(found.rows) - top, 'other')}: {said}; -n all shows them")
    if found.missing:
        lacking = Counter(name for each in found.missing for name in each.lacking)
        names = [name for name, _ in lacking.most_common(_LACKING)]
        more = ", ..." if len(lacking) > _LACKING else ""
        number = counted(len(found.missing), "guideline")
        lines.append(f"not measured: {number}, for want of {', '.join(names)}{more}")
    return lines


def _legend(found: Verification, look: TextStyle) -> list[str]:
    false = f"{100 * min(FALSE, (1 - found.confidence) / 2):.2g} %"
    least = percent(found.tolerance)
    lines = ["slower: than what could take its place; violated: that is shown, and by " + least]
    lines[0] += f" at least; at most {false} of such guidelines should be so by chance"
    if BETWEEN in found.here.basis:
        lines.append("messages of other sizes take what lies between the two next to them")
    if found.ahead is not None and not found.is_run:
        lines.append(
            "at the target: predicted, with the probability of a violation; from: the number of "
            "processes from which on it is likely"
        )
    if found.stakes is not None:
        at = f" at {setting_text(found.stakes.at)}" if found.stakes.at else ""
        total = quantity(found.stakes.total, found.stakes.unit, ascii_only=look.ascii_only)
        lines.append(f"gain: of {total} that {found.stakes.name} takes{at}")
    return lines
