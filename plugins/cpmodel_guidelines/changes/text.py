"""Changes between two campaigns as lines for people, and as a table for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from rich.text import Text

from callpath_modeler.report.layout import TextColumn, TextStyle, shorten
from callpath_modeler.report.outlined_view import NAMED
from callpath_modeler.report.table_formats import Cell, Table
from callpath_modeler.units import as_option, counted, percent, setting_text, signed_percent
from cpmodel_guidelines.answer import Judged, Verification
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
    before, after = (_slower(side.here, k) for side, k in
                     ((changes.before, pair.before), (changes.after, pair.after)))  # fmt: skip
    return f", {before} before and {after} after at {setting_text(dict(pair.setting))}"


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
    before, after = changes.before.here, changes.after.here
    pairs = [None if each.deciding is None else changes.pairs[each.deciding] for each in shown]
    lefts = [None if each.deciding is None else changes.of_left[each.deciding] for each in shown]
    styles = [_STYLES[each.change] for each in shown]
    columns = [
        TextColumn("change", [str(each.change) for each in shown], right=False, styles=styles),
        TextColumn("before", [_slower(before, pair.before) if pair else "mean" for pair in pairs]),
        TextColumn("after", [_slower(after, pair.after) if pair else "mean" for pair in pairs]),
        TextColumn(
            f"{changes.after.confidence:.0%} interval",
            [_interval(after, pair.after) if pair else "" for pair in pairs],
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


def _slower(of: Judged, check: int) -> str:
    return signed_percent(float(of.verdicts.factor[check]) - 1)


def _interval(of: Judged, check: int) -> str:
    return _ends(float(of.verdicts.low[check]), float(of.verdicts.high[check]))


def _ends(low: float, high: float) -> str:
    return "" if np.isnan(low) else f"{signed_percent(low - 1)} … {signed_percent(high - 1)}"


def _ratio(of: Ratios, row: int | None) -> str:
    """Return a change that is shown, as text."""
    if row is None or not (of.larger[row] or of.smaller[row]):
        return ""
    return signed_percent(float(of.ratio[row]) - 1)


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
    cells = [signed_percent(float(of.ratio[k]) - 1) for of, k in ratios]
    ends = [_ends(float(of.low[k]), float(of.high[k])) for of, k in ratios]
    counts = [
        f"{int((times.larger if is_slower else times.smaller)[[*each.rows]].sum())} of "
        f"{len(each.rows)}"
        for each, is_slower in zip(shown, slower, strict=True)
    ]
    at = ["mean" if row is None else _at(changes, each.settings[row])
          for each, row in zip(shown, worst, strict=True)]  # fmt: skip
    colours = ["red" if each else "green" for each in slower]
    columns = [
        TextColumn("time", cells, styles=colours),
        TextColumn(f"{changes.after.confidence:.0%} interval", ends, droppable=3),
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
    control = changes.after.method.control
    if control is Control.DISCOVERY:
        yield f"At most {rate} of these changes are expected to be false."
    elif control is Control.NONE:
        yield f"Each time that did not change is called changed with a probability of {rate}."
    else:
        yield f"The probability that any of these changes is false is at most {rate}."
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
    names = [*rows[0]] if rows else []
    unit = changes.after.benchmark.metric.unit
    columns: dict[str, list[Cell]] = {name: [row[name] for row in rows] for name in names}
    return Table(columns, dict.fromkeys(("before_left", "after_left"), unit), _header(changes))


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
                f"{name}_factor": float(verdicts.factor[k]),
                f"{name}_low": float(verdicts.low[k]),
                f"{name}_high": float(verdicts.high[k]),
                f"{name}_rate": float(verdicts.rate[k]),
                f"{name}_left": float(side.here.left[k]),
            }
        row |= _named("factor", changes.factors, number)
        row |= _named("time", changes.times, changes.of_left[number])
        yield row


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
