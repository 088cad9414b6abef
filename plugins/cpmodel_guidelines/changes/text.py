"""Changes between two campaigns as lines for people, and as a table for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
from rich.text import Text

from callpath_modeler.report.layout import TextColumn, TextStyle, shorten
from callpath_modeler.report.outlined_view import NAMED
from callpath_modeler.report.table_formats import Cell, Table
from callpath_modeler.units import as_option, counted, percent, setting_text
from cpmodel_guidelines.answer import Verification
from cpmodel_guidelines.changes.comparison import (
    CampaignChange,
    FunctionChange,
    GuidelineChange,
    Ratios,
    VerdictChange,
)
from cpmodel_guidelines.statistics.permutations import Control
from cpmodel_guidelines.verification_text import GuidelineStyle, fitting, header_of

_GREY = "dim"
_STYLES = {
    VerdictChange.NEW: "bold red",
    VerdictChange.SHOWN: "red",
    VerdictChange.STILL: "red",
    VerdictChange.HIDDEN: "yellow",
    VerdictChange.MENDED: "green",
    VerdictChange.OPEN: "yellow",
    VerdictChange.HOLDS: "green",
}
_MEANINGS = {
    VerdictChange.NEW: "new: it held before, or its slowdown is shown to be larger",
    VerdictChange.SHOWN: "newly shown: not decided before; a larger slowdown is not shown",
    VerdictChange.HIDDEN: "no longer shown: it is not decided whether it still is violated",
}
_ERROR_RATES = {
    Control.DISCOVERY: "At most {rate} of these changes are expected to be false.",
    Control.NONE: "Each time that did not change is called changed with a probability of {rate}.",
}
_ANY_FALSE = "The probability that any of these changes is false is at most {rate}."
_MOST_ONLY = 6
"""Number of names that only one campaign has, in a note."""


def change_text(changes: CampaignChange, style: TextStyle, top: int) -> list[Text]:
    """Return the headline, changed guidelines, changed times, and notes."""
    style = GuidelineStyle.of(style)
    lines = style.lines([headline(changes)], "bold") + style.lines([_context(changes)], _GREY)
    lines += [Text(""), *_guidelines(changes, changes.guidelines[:top], style)]
    moved = [*dict.fromkeys([*changes.slower(), *changes.faster()])]
    if moved:
        lines += [Text(""), *_functions(changes, moved[:top], style)]
    return [*lines, Text(""), *style.lines(_notes(changes, top, len(moved)), _GREY, "  ")]


def headline(changes: CampaignChange) -> str:
    """Return the sentences about new violations and about times."""
    new = changes.that_are(VerdictChange.NEW)
    said = f"{_number(len(new))} newly violated"
    for change, word in (
        (VerdictChange.SHOWN, "newly shown to be violated"),
        (VerdictChange.STILL, "still violated"),
        (VerdictChange.MENDED, "mended"),
    ):
        number = len(changes.that_are(change))
        said += f", {number} {word}" if number else ""
    if new:
        said += f". The worst is {_name(new[0])}{_by(changes, new[0])}"
    slower, faster = len(changes.slower()), len(changes.faster())
    if not changes.is_tested:
        return f"{said}. Changes of times are not tested: there are too few mpiruns."
    verb = "is" if slower == 1 else "are"
    told = f"{counted(slower, 'function') if slower else 'No function'} {verb} slower"
    if not slower:
        told = "No function is shown to be slower"
    return f"{said}. {told}{f', {faster} faster' if faster else ''}."


def _number(count: int) -> str:
    if not count:
        return "No guideline is"
    return f"{counted(count, 'guideline')} {'is' if count == 1 else 'are'}"


def _by(changes: CampaignChange, of: GuidelineChange) -> str:
    if of.deciding is None:
        return ", in the mean of all settings"
    pair = changes.pairs[of.deciding]
    before, after = changes.slowdowns(pair)
    return f", {before.by} before and {after.by} after at {setting_text(dict(pair.setting))}"


def _name(of: GuidelineChange) -> str:
    return ": ".join(part for part in (shorten(of.group, NAMED), of.guideline.short) if part)


def _context(changes: CampaignChange) -> str:
    names = [_described(each) for each in (changes.before, changes.after)]
    return f"before: {names[0]} · after: {names[1]} · {counted(len(changes.pairs), 'common check')}"


def _described(of: Verification) -> str:
    runs = of.benchmark.values.shape[2]
    return f"{of.benchmark.experiment.name}, {counted(runs, 'mpirun')}"


def _guidelines(
    changes: CampaignChange, shown: Sequence[GuidelineChange], style: TextStyle
) -> list[Text]:
    pairs = [None if each.deciding is None else changes.pairs[each.deciding] for each in shown]
    slowdowns = [pair and changes.slowdowns(pair) for pair in pairs]
    lefts = [None if each.deciding is None else changes.of_left[each.deciding] for each in shown]
    styles = [_STYLES[each.change] for each in shown]
    columns = [
        TextColumn("change", [str(each.change) for each in shown], right=False, styles=styles),
        TextColumn("before", [each[0].by if each else "mean" for each in slowdowns]),
        TextColumn("after", [each[1].by if each else "mean" for each in slowdowns]),
        TextColumn(
            f"{changes.after.confidence:.0%} interval",
            [each[1].interval if each else "" for each in slowdowns],
            droppable=3,
        ),
        TextColumn("left side", [_ratio(changes.times, k) for k in lefts], droppable=2),
        TextColumn(
            "at", [_at(changes, pair.setting) if pair else "" for pair in pairs], droppable=4
        ),
        TextColumn("settings", [_share(changes, each) for each in shown], droppable=5),
    ]
    groups = [shorten(each.group, None if style.width is None else NAMED) for each in shown]
    if any(groups):
        columns.append(TextColumn("in", groups, right=False, droppable=6))
    names = [[style.say(each.guideline.short)] for each in shown]
    longest = max(len(name) for (name,) in names)
    columns = fitting([column.spelled(style.say) for column in columns], longest, style.width)
    return style.table(columns, names, title="guideline")


def _ratio(of: Ratios, row: int | None) -> str:
    """Return a change that is shown, as text."""
    if row is None or not (of.larger[row] or of.smaller[row]):
        return ""
    return of.change(row).by


def _at(changes: CampaignChange, setting: Sequence[tuple[str, float]]) -> str:
    """Return the values of the parameters that vary."""
    varying = {each.name for each in changes.after.benchmark.experiment.parameters}
    return ",".join(f"{name}={value:g}" for name, value in setting if name in varying)


def _share(changes: CampaignChange, of: GuidelineChange) -> str:
    number = sum(changes.pairs[k].change is of.change for k in of.pairs)
    return f"{number} of {len(of.pairs)}"


def _functions(
    changes: CampaignChange, shown: Sequence[FunctionChange], style: TextStyle
) -> list[Text]:
    """Return the functions whose times have changed."""
    times, means = changes.times, changes.means
    worst = [_worst(changes, each) for each in shown]
    ratios = [(means, each.number) if row is None else (times, each.rows[row])
              for each, row in zip(shown, worst, strict=True)]  # fmt: skip
    slower = [bool(of.larger[k]) for of, k in ratios]
    moved = [of.change(k) for of, k in ratios]
    counts = [
        f"{int((times.larger if is_slower else times.smaller)[[*each.rows]].sum())} of "
        f"{len(each.rows)}"
        for each, is_slower in zip(shown, slower, strict=True)
    ]
    at = ["mean" if row is None else _at(changes, each.settings[row])
          for each, row in zip(shown, worst, strict=True)]  # fmt: skip
    colours = ["red" if each else "green" for each in slower]
    columns = [
        TextColumn("time", [each.by for each in moved], styles=colours),
        TextColumn(
            f"{changes.after.confidence:.0%} interval",
            [each.interval for each in moved],
            droppable=3,
        ),
        TextColumn("at", at, droppable=2),
        TextColumn("settings", counts, droppable=4),
    ]
    return style.table(columns, [[*each.group, each.function] for each in shown], title="function")


def _worst(changes: CampaignChange, of: FunctionChange) -> int | None:
    """Return the setting with the largest change; slower before faster; None = their mean."""
    times, rows = changes.times, np.array(of.rows, np.intp)
    for shown, mean in (
        (times.larger, changes.means.larger),
        (times.smaller, changes.means.smaller),
    ):
        if shown[rows].any():
            change = np.where(shown[rows], np.abs(np.log(times.ratio[rows])), -1.0)
            return int(np.argmax(change))
        if mean[of.number]:
            return None
    return None


def _notes(changes: CampaignChange, top: int, moved: int) -> Iterator[str]:
    if len(changes.guidelines) > top:
        rest = Counter(str(each.change) for each in changes.guidelines[top:])
        said = ", ".join(f"{number} {word}" for word, number in rest.items())
        more = counted(len(changes.guidelines) - top, "other guideline")
        yield f"{more}: {said}. Use -n all to list them."
    if moved > top:
        yield f"{counted(moved - top, 'other function')} with another time. Use -n all."
    for word, names in (("before", changes.only_before), ("after", changes.only_after)):
        if names:
            dots = ", ..." if len(names) > _MOST_ONLY else ""
            yield f"Only {word}, not compared: {', '.join(names[:_MOST_ONLY])}{dots}"
    words = {each.change for each in changes.guidelines}
    yield from (said for change, said in _MEANINGS.items() if change in words)
    if not changes.is_tested:
        return
    yield (
        "left side, time: changes by "
        f"{percent(changes.after.tolerance)} or more that are not by chance"
    )
    rate = percent(changes.after.method.rate)
    yield _ERROR_RATES.get(changes.after.method.control, _ANY_FALSE).format(rate=rate)
    yield "Verdicts have the error rate of a check of one campaign."


_NUMBERS = ("experiment", "inputs", "findings", "power", "not_measured")
"""Fields that describe one of both campaigns."""


def change_table(changes: CampaignChange, top: int | None = None) -> Table:
    """Return one row per check, the most urgent guidelines first.

    Parameters
    ----------
    top : number of guidelines; None = all
    """
    rows = [row for each in changes.guidelines[:top] for row in _rows(changes, each)]
    unit = changes.after.benchmark.metric.unit
    units = dict.fromkeys(("before_left", "after_left"), unit)
    return Table.of_rows(rows, units, _header(changes))


def _rows(changes: CampaignChange, of: GuidelineChange) -> Iterator[dict[str, Cell]]:
    for number in of.pairs:
        pair = changes.pairs[number]
        row: dict[str, Cell] = {
            "group": "/".join(of.group),
            "guideline": of.guideline.text,
            "kind": str(of.guideline.kind),
            "function": of.guideline.left.function,
            "at": as_option(dict(pair.setting)),
            "change": str(pair.change),
            "guideline_change": str(of.change),
        }
        for name, side, k in (("before", changes.before, pair.before),
                              ("after", changes.after, pair.after)):  # fmt: skip
            verdicts = side.here.verdicts
            row |= {
                f"{name}_verdict": str(verdicts.verdict(k)),
                **_prefixed(name, asdict(verdicts.slowdown(k))),
                f"{name}_rate": float(verdicts.rate[k]),
                f"{name}_left": float(side.here.left[k]),
            }
        row |= _named("factor", changes.factors, number)
        row |= _named("time", changes.times, changes.of_left[number])
        yield row


def _prefixed(name: str, cells: Mapping[str, Cell]) -> dict[str, Cell]:
    return {f"{name}_{key}": cell for key, cell in cells.items()}


def _named(name: str, of: Ratios, k: int) -> dict[str, Cell]:
    """Return one ratio with its interval, its error rate and what it shows."""
    shown = "larger" if of.larger[k] else "smaller" if of.smaller[k] else None
    return {
        f"{name}_ratio": float(of.ratio[k]),
        f"{name}_ratio_low": float(of.low[k]),
        f"{name}_ratio_high": float(of.high[k]),
        f"{name}_ratio_rate": float(of.rate[k]),
        f"{name}_is": shown,
    }


def _header(changes: CampaignChange) -> dict[str, object]:
    sides = [header_of(each) for each in (changes.before, changes.after)]
    common = {key: value for key, value in sides[1].items()
              if key in {"metric", "processes", "size", "tolerance", "confidence", "test",
                         "control", "error_rate"}}  # fmt: skip
    before, after = ({key: side[key] for key in _NUMBERS} for side in sides)
    return {
        "before": before,
        "after": after,
        **common,
        "tested": changes.is_tested,
        "counts": {str(each): len(changes.that_are(each)) for each in VerdictChange},
        "only_before": list(changes.only_before),
        "only_after": list(changes.only_after),
        "functions": [_function(changes, each) for each in changes.functions],
    }


def _function(changes: CampaignChange, of: FunctionChange) -> dict[str, object]:
    times, rows = changes.times, np.array(of.rows, np.intp)
    mean = _named("mean_time", changes.means, of.number)
    return {
        "group": "/".join(of.group),
        "function": of.function,
        "settings": len(of.rows),
        "slower": int(times.larger[rows].sum()),
        "faster": int(times.smaller[rows].sum()),
        **mean,
    }
