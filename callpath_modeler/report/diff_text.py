"""Comparisons of two experiments as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.cause import NOTHING
from callpath_modeler.analysis.changes import Changes
from callpath_modeler.analysis.days import ScatterOfDays
from callpath_modeler.analysis.difference import (
    ExperimentDifference,
    Violation,
    causes_of,
    only_in_one,
)
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.profile.omissions import Omission, OmissionKind, omissions_text, share_of
from callpath_modeler.report.diff_table import VERDICTS, growth_texts
from callpath_modeler.report.headline import left_out, measured_by
from callpath_modeler.report.layout import NEW, Invocation, TextColumn, TextStyle, shorten
from callpath_modeler.report.outlined_view import NAMED, short_names, unmatched_lines
from callpath_modeler.report.ranking_text import distinct_names
from callpath_modeler.report.table_formats import Table, text_table_of
from callpath_modeler.units import (
    as_option,
    counted,
    parameter_value,
    percent,
    setting_text,
    signed_percent,
)

_STYLES = {1: "red", -1: "green", 0: ""}
_NAMED_BREACHES = 5
_ROUNDED = 5e-3
"""Relative difference of two amounts that are the same to three digits."""
NOISE_UNKNOWN = "without repetitions and models, any difference may be noise"
"""Note on differences whose noise is not known."""
_MODELS = "predicted"
"""Title of predictions for a scale that was measured as well."""


def difference_text(
    found: ExperimentDifference,
    rows: IntArray,
    style: TextStyle,
    invocation: Invocation = NEW,
) -> list[Text]:
    """Return a comparison as text: the answer, the table, and notes.

    Parameters
    ----------
    found : the comparison
    rows : call paths to show
    style : layout options
    invocation : command lines for call paths of the new experiment
    """
    tree = found.pair.tree
    columns, names = difference_columns(found, rows, style)
    body = style.table(columns, names, marks=[f"@{each}" for each in tree.ids(rows)])
    footer = difference_notes(found, rows, style, body[0].plain)
    shown = [row for row in rows if found.in_new[row]]
    if shown:
        footer.append(invocation.hint("show", f"@{tree.id_of(shown[0])}"))
    return style.answer([verdict(found, style)], [context(found)], body, footer)


def difference_columns(
    found: ExperimentDifference, rows: IntArray, style: TextStyle
) -> tuple[list[TextColumn], list[list[str]]]:
    """Return the columns, and the names of the call paths and of the lines below."""
    tree = found.pair.tree
    others = np.array([], np.intp) if found.inclusive else np.setdiff1d(found.order, rows)
    below = [[counted(len(others), "other")]] if len(others) else []
    below += [[whole_name(found)]] if found.pair.metric.additive else []
    names = distinct_names(tree, rows, full=style.full_names)
    return _columns(found, rows, others, style), [*names, *below]


def difference_text_tables(
    found: ExperimentDifference, rows: IntArray, style: TextStyle
) -> list[Table]:
    """Return the table of `difference_text`."""
    columns, names = difference_columns(found, rows, style)
    return [text_table_of(columns, ["/".join(path) for path in names])]


def whole_name(found: ExperimentDifference) -> str:
    """Return the name of the cost of the whole program."""
    return "run time" if found.pair.has_run_times else "total"


def verdict(found: ExperimentDifference, style: TextStyle) -> str:
    """Return the sentence that answers a comparison: the difference and its cause."""
    return " ".join(difference_sentences(found, style))


def difference_sentences(found: ExperimentDifference, style: TextStyle) -> list[str]:
    """Return one sentence for each scale, and one for what is left out, if anything is."""
    told = [_answer(found, changes, style) for changes in found.answers]
    said = left_out_of_both(found)
    return [*told, *([f"Judged {said}."] if said else [])]


def left_out_of_both(found: ExperimentDifference, rows: IntArray | None = None) -> str:
    """Return what a comparison leaves out in words; "" = nothing.

    Parameters
    ----------
    rows : the judged call paths; None = all
    """
    base, new = (
        omissions_text(side.experiment.omissions) for side in (found.pair.base, found.pair.new)
    )
    both = [base] if base == new else [f"{base or 'with everything'} in base",
                                       f"{new or 'with everything'} in new"]  # fmt: skip
    unjudged = () if rows is None else unjudged_rows(found, rows)
    return ", ".join(filter(None, [*both, omissions_text(unjudged)]))


def unjudged_rows(found: ExperimentDifference, rows: IntArray) -> tuple[Omission, ...]:
    """Return the omission of the call paths that are not judged; () = all are."""
    others = np.setdiff1d(found.order, rows)
    if not len(others):
        return ()
    share, changes = None, found.measured or found.at_target
    if changes is not None and found.pair.metric.additive and not found.inclusive:
        cost = np.nan_to_num(changes.new[:-1])
        share = share_of(float(cost[others].sum()), float(cost.sum()))
    name = found.pair.metric.name
    return (Omission(OmissionKind.UNSELECTED, len(others), share=share, metric=name),)


def known_by(found: ExperimentDifference, changes: Changes, style: TextStyle) -> str:
    """Return the basis of changes: the numbers of runs, or models next to too few runs."""
    if changes is not found.at_target:
        return "measured"
    if found.is_measured:
        return measured_by(found.pair.centre, *dict.fromkeys(found.repetitions))
    metric, ran = found.pair.metric, found.ran
    if ran is None or ran is found.measured or not metric.additive:
        return "predicted"
    before, after = (style.amount(float(costs[-1]), metric.unit) for costs in (ran.base, ran.new))
    return f"predicted; measured {before} before, {after} now"


def _answer(found: ExperimentDifference, changes: Changes, style: TextStyle) -> str:
    """Return the change at one scale: of the total, and of the call paths that changed most."""
    where = f"At {scale_text(found, changes)} ({known_by(found, changes, style)})"
    parts = []
    if found.pair.metric.additive:
        amounts, by, band = total_texts(found, changes, style)
        parts.append(f"{amounts}, {by}" + (f" ({band})" if band else ""))
    told = [_most(found, changes, mark, word) for mark, word in ((1, "worse"), (-1, "better"))]
    parts += [text for text in told if text] or ["no call path is shown to differ"]
    return f"{where}: {'; '.join(parts)}."


def scale_text(found: ExperimentDifference, changes: Changes) -> str:
    """Return the scale of changes as text."""
    return "an unknown scale" if found.pair.has_unknown_scale else setting_text(changes.at)


def total_texts(
    found: ExperimentDifference, changes: Changes, style: TextStyle
) -> tuple[str, str, str]:
    """Return the totals of both, their difference or that none is shown, and its interval."""
    unit = found.pair.metric.unit
    before, after = (style.amount(float(v[-1]), unit) for v in (changes.base, changes.new))
    band = _band(changes, -1)
    if changes.mark[-1]:
        says = VERDICTS[int(changes.mark[-1])]
        by = f"{says}, {signed_percent(float(changes.relative[-1]))}"
    else:
        by = _not_shown(found, changes)
        band += ", single comparison" * bool(_leaves_out_zero(changes)[-1])
    what = "run time " if found.pair.has_run_times else ""
    return f"{what}{before} before, {after} now", by, band


def _not_shown(found: ExperimentDifference, changes: Changes) -> str:
    """Return that the total shows no difference, and why if its interval excludes zero."""
    said = "no difference is shown"
    if not _leaves_out_zero(changes)[-1]:
        return said
    if changes.rate[-1] > 1 - found.confidence:
        return f"{said} among {int(np.isfinite(changes.p).sum())} compared"
    backed = changes is found.predicted and not found.is_measured
    return f"{said}: {'the measurements do' if backed else 'central values do'} not confirm it"


def _leaves_out_zero(changes: Changes) -> BoolArray:
    """Return whether the interval of each single call path excludes zero, [n + 1]."""
    with np.errstate(invalid="ignore"):
        return (changes.low > 0) | (changes.high < 0)


def _most(found: ExperimentDifference, changes: Changes, mark: int, word: str) -> str:
    """Return the number of call paths that are worse or better, and the most changed one."""
    rows = np.flatnonzero(changes.mark[:-1] == mark)
    if not len(rows):
        return ""
    most = int(rows[np.argmax(np.abs(changes.change[rows]))])
    name = shorten(short_names(found.pair.tree.names(most)), NAMED)
    by = signed_percent(float(changes.relative[most]))
    lead = ", most" if len(rows) > 1 else ":"
    # Repetitions of one day cannot show that the program changed, and not the day.
    of_one_day = changes is not found.predicted and found.days is None
    here = " in these runs" * (of_one_day and not np.isnan(changes.p).all())
    return f"{counted(len(rows), 'call path')} {word}{here}{lead} {name} ({by})"


def context(found: ExperimentDifference) -> str:
    """Return a description of both experiments."""
    pair = found.pair
    told = []
    for name, side in (("base", pair.base), ("new", pair.new)):
        first, last = (parameter_value(float(side.points[k])) for k in (0, -1))
        spread = f"{first} … {last}" if len(side.points) > 1 else first
        runs = counted(len(side.experiment.runs), "run")
        scales = "" if pair.has_unknown_scale else f", {pair.parameter} = {spread}"
        said = f"{name}: {side.experiment.name}, {runs}{scales}"
        told.append(said + left_out(side.experiment))
    flavour = "inclusive" if found.inclusive else "exclusive"
    both = int((found.in_base & found.in_new).sum())
    counts = [f"{counted(both, 'call path')} in both"]
    for name, only in (
        ("base", found.in_base & ~found.in_new),
        ("new", found.in_new & ~found.in_base),
    ):
        if only.any():
            counts.append(f"{int(only.sum())} only in {name}")
    if pair.line.measured_at:
        told.append(f"measured at {setting_text(pair.line.measured_at)}")
    reduction = pair.new.experiment.reduction.words
    return " · ".join([*told, f"{pair.metric.name}, {flavour}, {reduction}", ", ".join(counts)])


def _columns(
    found: ExperimentDifference, rows: IntArray, others: IntArray, style: TextStyle
) -> list[TextColumn]:
    unit, additive, costs = found.pair.metric.unit, found.pair.metric.additive, found.costs
    whole = len(costs.base) - 1
    lines = [*rows.tolist(), *[None] * bool(len(others)), *[whole] * additive]
    growth = dict(zip(rows.tolist(), growth_cells(found, rows, style), strict=True))

    def texts(text: Callable[[int], str]) -> list[str]:
        return ["" if line is None else text(line) for line in lines]

    def cost(values: FloatArray) -> list[str]:
        rest = float(np.nansum(values[others])) if additive else np.nan
        amounts = [rest if line is None else float(values[line]) for line in lines]
        return [style.amount(value, unit) for value in amounts]

    def changed(changes: Changes, header: str, droppable: int = 0) -> TextColumn:
        cells = texts(lambda row: _change(found, changes, row))
        styles = texts(lambda row: _STYLES[int(changes.mark[row])])
        return TextColumn(header, cells, droppable=droppable, styles=styles)

    columns = [TextColumn("base", cost(costs.base)), TextColumn("new", cost(costs.new))]
    # The change between the columns base and new is dropped last.
    columns += [changed(c, _title(found, c), -(c is found.costs)) for c in _from_left(found)]
    if found.is_measured and found.predicted is not None:
        columns.append(changed(found.predicted, _MODELS, droppable=4))
    at_target = found.at_target
    if at_target is not None:
        bands = texts(lambda row: _band(at_target, row))
        columns.append(TextColumn(_band_title(found), bands, droppable=3))
    if found.growth is not None:
        cells = texts(lambda row: growth.get(row, ""))
        columns.append(TextColumn("growth", cells, right=False, droppable=2))
    return columns


def _from_left(found: ExperimentDifference) -> list[Changes]:
    """Return the changes that have columns, in order; changes of `base` and `new` come first."""
    return sorted(found.answers, key=lambda changes: changes is not found.costs)


def _title(found: ExperimentDifference, changes: Changes) -> str:
    """Return the title of a scale, with the constants that are not the same for all scales."""
    line = found.pair.line
    apart = {k for k, v in line.measured_at.items() if v != line.held[k]}
    told = {k: v for k, v in changes.at.items() if k == line.parameter or k in apart}
    # What models say of the largest scale stands beside what was measured there.
    is_again = changes is found.predicted and found.ran is not None and found.ran is found.measured
    if found.pair.has_unknown_scale:
        return "change"
    return _MODELS if is_again else as_option(told)


def _band_title(found: ExperimentDifference) -> str:
    return f"{found.confidence:.0%} {'interval' if found.is_measured else 'band'}"


def _change(found: ExperimentDifference, changes: Changes, row: int) -> str:
    """Return a change with its interval, ``~`` if no difference is shown, else the reason."""
    if row < len(found.in_base) and found.in_base[row] != found.in_new[row]:
        return "gone" if found.in_base[row] else "new"
    if changes.mark[row]:
        return signed_percent(float(changes.relative[row]))
    return "-" if np.isnan(changes.base[row]) or np.isnan(changes.new[row]) else "~"


def _band(changes: Changes, row: int) -> str:
    low, high = float(changes.low[row]), float(changes.high[row])
    return "" if np.isnan(low) else f"{signed_percent(low)} … {signed_percent(high)}"


def growth_cells(found: ExperimentDifference, rows: IntArray, style: TextStyle) -> list[str]:
    """Return growths: one text if both are the same, and an arrow only for a certain change."""
    if found.growth is None:
        return [""] * len(rows)
    told = []
    before, after = growth_texts(found, rows, pretty=not style.ascii_only)
    for row, old, new in zip(rows, before, after, strict=True):
        if old is None or new is None or old == new:
            told.append(new or old or "")
        else:
            told.append(f"{old} {'→' if found.growth.mark[row] else '~'} {new}")
    return told


def difference_notes(
    found: ExperimentDifference, rows: IntArray, style: TextStyle, header: str
) -> list[str]:
    """Return the notes below the table, given its call paths and its header."""
    lines = [
        *_legend(found, header),
        *sums_note(found, style),
        *_common_scales(found),
        *_unmatched(found, style),
    ]
    # If runs give the answer, call paths without a model only matter to the column of models.
    if found.left_out.any() and (not found.is_measured or f" {_MODELS} " in header):
        costs = found.costs
        share = percent(float(np.nansum(costs.new[:-1][found.left_out]) / costs.sums[1]))
        part = "" if found.inclusive or not found.pair.metric.additive else f", {share} of the cost"
        lines.append(
            f"not predicted: {counted(int(found.left_out.sum()), 'call path')}{part}; base or new "
            f"has no model{'' if found.pair.has_run_times else ', so neither total includes them'}"
        )
    return [*lines, *_changed_causes(found, rows)]


def sums_note(found: ExperimentDifference, style: TextStyle) -> list[str]:
    """Return why the call paths do not add up to the run time, if they do not."""
    costs, unit = found.costs, found.pair.metric.unit
    whole = costs.base[-1], costs.new[-1]
    if not found.pair.has_run_times or np.allclose(whole, costs.sums, rtol=_ROUNDED):
        return []
    before, after = (style.amount(value, unit) for value in costs.sums)
    note = (
        f"run time: of the slowest process; the call paths, each the "
        f"{found.pair.new.experiment.reduction.words}, add up to {before} before and {after} now "
        f"at {scale_text(found, costs)}"
    )
    return [note]


def _changed_causes(found: ExperimentDifference, rows: IntArray) -> list[str]:
    """Return the new causes of growth of call paths that became worse."""
    worse = np.array([row for row in rows.tolist() if _is_worse(found, row)], np.intp)
    names = [" / ".join(short_names(found.pair.tree.names(row))[-2:]) for row in worse.tolist()]
    return [
        f"{name}: the cause of its growth is now: {cause.new}; before: {_before(cause.base)}"
        for name, cause in zip(names, causes_of(found, worse), strict=True)
        if cause.is_change
    ]


def _is_worse(found: ExperimentDifference, row: int) -> bool:
    """Return whether a call path is shown to cost more, or to grow faster."""
    marks = [changes.mark[row] for changes in found.answers]
    marks += [found.growth.mark[row]] if found.growth is not None else []
    return any(mark > 0 for mark in marks)


def _before(label: str) -> str:
    return "it did not grow" if label == NOTHING else label


_OF_ONE_DAY = (
    "Repetitions of one day do not show how much days differ, often by several percent: "
    "--history STORE does."
)


def _legend(found: ExperimentDifference, header: str) -> list[str]:
    is_predicted = found.costs is found.predicted
    costs = "predicted" if is_predicted else f"measured at {scale_text(found, found.costs)}"
    heads = [
        f"{_title(found, changes)}: change {'predicted ' * (changes is found.predicted)}there"
        for changes in _from_left(found)
        if not found.pair.has_unknown_scale
    ]
    if found.is_measured and f" {_MODELS} " in header:
        heads.append(f"{_MODELS}: change that models predict at {setting_text(found.changes.at)}")
    meanings = [f"base, new: {costs}", *heads, "~ no difference is shown"]
    lines = ["; ".join(meanings)]
    if not found.can_tell:
        lines.append(NOISE_UNKNOWN)
    else:
        chance = percent(1 - found.confidence)
        alone = _of_one_alone(found) if f" {_band_title(found)}" in header else ""
        lines.append(f"at most {chance} of the differences shown should be due to chance{alone}")
        if not is_predicted:
            lines.append(_OF_ONE_DAY if found.days is None else _of_days(found, found.days))
    return lines


def _of_days(found: ExperimentDifference, days: ScatterOfDays) -> str:
    scale = found.changes.scale if found.costs is found.ran else float(found.pair.scales[-1])
    usual = percent(float(np.expm1(days.usual(scale))))
    told = (
        f"Call paths usually differ by {usual} from day to day (history of {days.records} records)."
    )
    if days.has_base:
        told += " Base is all days since the last change of each call path."
    return told


def _of_one_alone(found: ExperimentDifference) -> str:
    """Return an explanation of intervals that exclude zero although no difference is shown."""
    at_target = found.at_target
    if at_target is None or not (_leaves_out_zero(at_target) & (at_target.mark == 0)).any():
        return ""
    return f"; each {_band_title(found).split()[-1]} is for a single comparison"


def _common_scales(found: ExperimentDifference) -> list[str]:
    """Return the scales that both experiments share, if they do not share all."""
    pair = found.pair
    if len(pair.scales) == len(pair.base.points) == len(pair.new.points):
        return []
    if not len(pair.scales):
        return [f"no {', '.join(pair.line.names)} measured in both, so predictions are compared"]
    listed = ", ".join(parameter_value(float(scale)) for scale in pair.scales)
    at = f", {setting_text(pair.line.measured_at)}" if pair.line.measured_at else ""
    return [f"measured in both: {pair.parameter} = {listed}{at}"]


def _unmatched(found: ExperimentDifference, style: TextStyle) -> list[str]:
    """Return the places where the call trees diverge."""
    metric = found.pair.metric

    def heading(is_new: bool, count: str, share: str) -> str:
        return f"only in {'new' if is_new else 'base'}: {count}, {share} of its {metric.name}:"

    return unmatched_lines(only_in_one(found), found.pair.tree, metric.unit, heading, style=style)


def violation_lines(found: ExperimentDifference, broken: Sequence[Violation]) -> list[str]:
    """Return the limits that are exceeded, the whole program first."""
    tree, lines = found.pair.tree, []
    for breach in broken[:_NAMED_BREACHES]:
        names = [whole_name(found)] if breach.row is None else short_names(tree.names(breach.row))
        what = shorten(names, NAMED)
        if breach.at is None:
            told = f"grows faster ({percent(breach.amount)} sure)"
        else:
            told = f"{signed_percent(breach.amount)} at {setting_text(breach.at)}"
        lines.append(f"{breach.limit}: {what}: {told}")
    if len(broken) > _NAMED_BREACHES:
        lines.append(f"... and {len(broken) - _NAMED_BREACHES} more")
    return lines
