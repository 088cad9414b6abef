"""Excess work between scales as lines of text, as a table, and in the three views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.ensemble import Losses, unmatched
from callpath_modeler.analysis.excess_work import (
    NOTICEABLE,
    ExcessPattern,
    doubtful,
    efficiency_of,
    is_summed,
    overlap,
    readings,
)
from callpath_modeler.analysis.uncertain import Band, basis_of
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.headline import left_out
from callpath_modeler.report.layout import EXPERIMENT, Invocation, TextColumn, TextStyle, shorten
from callpath_modeler.report.losses_text import (
    ENSEMBLE,
    OVERLAP_NOTE,
    ensemble_json,
    excess_texts,
    expected_json,
    loss_sentence,
    pair_title,
)
from callpath_modeler.report.outlined_view import (
    NAMED,
    OutlineColumns,
    OutlinedView,
    short_names,
    sum_check_text,
    tree_lines,
    tree_table,
    unmatched_json,
    unmatched_lines,
    view_header,
)
from callpath_modeler.report.table_formats import Cell, RowColumns, Table, cells_of, provenance
from callpath_modeler.units import parameter_value, percent, setting_text

if TYPE_CHECKING:
    from callpath_modeler.report.table_formats import Values


Overlaps = tuple[BoolArray, BoolArray] | None
"""Overlap of repetitions: inclusive and exclusive, each [lines]; None = not repeated."""


@dataclass(frozen=True, eq=False)
class ExcessView(OutlinedView):
    """Excess work in one of the three views.

    Attributes
    ----------
    losses : the excess work
    request : view, depth, filter and zoom
    prediction : costs at the predicted target of the last pair; None = there is no target
    """

    losses: Losses
    request: ViewRequest
    prediction: Answer | None = None

    @property
    def tree(self) -> CallTree:
        """The call paths."""
        return self.losses.experiment.tree

    @property
    def costs(self) -> Costs:
        """Excess work, [call paths, pairs]."""
        return self.losses.excess

    @property
    def column(self) -> int:
        """Number of the last pair, which orders the lines."""
        return len(self.losses.pairs) - 1

    @cached_property
    def overlaps(self) -> list[Overlaps]:
        """Overlap of repetitions, per pair: inclusive and exclusive, each [lines]."""
        found: list[Overlaps] = []
        for pair in range(len(self.losses.pairs)):
            runs = self.losses.repetitions(pair)
            if runs is None:
                found.append(None)
                continue
            before, after = (self.outline.values(costs) for costs in runs)
            own, whole = overlap(before[0], after[0]), overlap(before[1], after[1])
            found.append(None if own is None or whole is None else (whole, own))
        return found

    @cached_property
    def bands(self) -> tuple[Band, Band] | None:
        """Excess work of lines at a predicted target, exclusive and inclusive; None = no target."""
        if self.prediction is None:
            return None
        own, whole = self.prediction.of_outline(self.outline)
        return own.excess_band, whole.excess_band

    @cached_property
    def band_of_total(self) -> Band:
        """Excess work of the program at a predicted target with its band, [1]; NaN = no target."""
        if self.prediction is None:
            nothing = np.full(1, np.nan)
            return Band(nothing, nothing, nothing)
        return self.prediction.program_excess

    @cached_property
    def ensemble(self) -> tuple[FloatArray, FloatArray] | None:
        """Mean excess work of lines over all pairs, exclusive and inclusive, each [lines].

        None = there is at most one pair.
        """
        ensemble = self.losses.ensemble
        if ensemble.count < 2:
            return None
        own, whole = self.outline.values(ensemble.costs)
        return own[:, 0], whole[:, 0]

    @property
    def has_one_base(self) -> bool:
        """Whether all pairs have the same smaller scale."""
        return len({base for base, _ in self.losses.pairs}) == 1

    @property
    def gain(self) -> str:
        """Word for negative excess work."""
        return "superlinear" if self.losses.ideal.scaling else "less than expected"

    def efficiency(self, excess: FloatArray, cost: FloatArray, pair: int) -> FloatArray:
        """Return the expected cost of lines, divided by their cost, [lines].

        Parameters
        ----------
        excess, cost : [lines] inclusive values at the larger scale of the pair
        pair : number of the pair
        """
        run_time = self.losses.run_time[self.losses.columns(pair)[1]]
        return efficiency_of(np.nan_to_num(cost), np.nan_to_num(excess) * run_time)


_GREY = "dim"
_OVERLAP_OF_EXPECTED = (
    "~ the repetitions and the expected costs overlap, so noise may explain the difference"
)
_SHORT = {
    ExcessPattern.OWN: "own",
    ExcessPattern.CALLEES: "callees",
    ExcessPattern.BOTH: "both",
    ExcessPattern.GAIN: "gain",
    ExcessPattern.NONE: "-",
}


def excess_text(
    shown: ExcessView,
    *,
    style: TextStyle,
    invocation: Invocation = EXPERIMENT,
) -> list[Text]:
    """Return excess work as text: the loss, its places, and call paths that were not compared.

    Parameters
    ----------
    shown : the view
    style : width, length of names, and characters of text
    invocation : command lines for the same experiment
    """
    columns = _columns(shown, style=style)
    body = tree_lines(shown.outline, columns, style=style, below=_lines_below(shown))
    is_doubted = any("~" in cell for column in columns for cell in column.cells)
    footer = [
        *_no_room(shown, body[0].plain, style=style),
        *_footer(shown, invocation, is_doubted=is_doubted, style=style),
    ]
    # The formula is not wrapped.
    context = " · ".join(_context(shown))
    has_room = style.width is None or cell_len(context) <= style.width
    return [
        *style.lines([_verdict(shown, style=style)], "bold"),
        *style.lines([context] if has_room else _context(shown), _GREY),
        Text(""),
        *body,
        Text(""),
        *style.lines(footer, _GREY, "  "),
    ]


def excess_text_table(shown: ExcessView, style: TextStyle) -> Table:
    """Return the table of `excess_text`."""
    return tree_table(shown.outline, _columns(shown, style=style), _lines_below(shown))


def _verdict(shown: ExcessView, *, style: TextStyle) -> str:
    """Return the sentence that answers: how much is lost, and where."""
    losses, k = shown.losses, len(shown.losses.pairs) - 1
    p, q = (parameter_value(point) for point in losses.pairs[k])
    name = losses.parameter
    run_time = float(losses.run_time[losses.columns(k)[1]])
    is_relative = losses.ideal.is_relative
    between = f"From {name} = {p} to {q}" if is_relative else f"At {name} = {q}"
    if losses.line.held:
        between += f" at {setting_text(losses.line.held)}"
    answer = loss_sentence(
        losses.metric,
        between,
        float(losses.total[k]),
        run_time,
        style=style,
        is_scaling=losses.ideal.scaling is not None,
        band=_total_band_text(shown),
    )
    return f"{answer}. {_hot_text(shown)}".rstrip()


def _hot_text(shown: ExcessView) -> str:
    """Return the place of the loss, and its interpretation."""
    if not shown.hot:
        return ""
    node, name = shown.culprit
    own, whole = (v[0, -1] for v in shown.view.values(np.array([node]), shown.costs))
    if shown.request.kind is not ViewKind.TOP_DOWN:
        share = percent(whole) if shown.inclusive else f"{percent(own)} exclusive"
        return f"Most is lost in {name}: {share}."
    (reading,) = readings(np.array([whole]), np.array([own]))
    answer = f"The hot path leads to {name}: {percent(whole)}, {reading}."
    by_itself = np.nan_to_num(shown.costs.exclusive[:, -1])
    worst = int(np.argmax(by_itself))
    if worst == node or by_itself[worst] < NOTICEABLE:
        return answer
    names = short_names(shown.tree.names(worst))
    return f"{answer} Largest exclusive loss: {shorten(names, NAMED)}, {percent(by_itself[worst])}."


def _context(shown: ExcessView) -> tuple[str, str]:
    """Return a description of the measurements and the formula of excess work."""
    losses, experiment = shown.losses, shown.losses.experiment
    formula = losses.ideal.formula
    is_recognised = losses.ideal.scaling is experiment.scaling
    why = f" ({experiment.scaling_reason})" if is_recognised else ""
    each = " / p" if is_summed(experiment, losses.parameter) else ""
    said = f"{experiment.name} · {losses.metric.name}, {experiment.reduction.words}{each}"
    return f"{said} · {losses.ideal.meaning}{why}{left_out(experiment)}", f"X = {formula}"


def _lines_below(shown: ExcessView) -> list[str]:
    """Return the names of the lines below those of nodes."""
    is_whole = shown.outline.start == ROOT
    return [*["imbalance"] * (is_whole and shown.losses.has_imbalance), "total"]


def _columns(shown: ExcessView, *, style: TextStyle) -> list[TextColumn]:
    losses = shown.losses
    blank = [""] * len(_lines_below(shown))
    rest = len(blank) - 1  # 1 = the imbalance has a line
    own, whole = shown.outline.values(losses.excess)
    total, last = losses.total, len(losses.pairs) - 1
    columns = []
    if len(losses.pairs) == 1:
        columns = _costs(shown, style=style)
    for k in range(len(losses.pairs)):
        overlaps = shown.overlaps[k]
        # Larger scales are more informative, so a narrow terminal drops the smaller ones first.
        rank = last - k and 2 + last - k
        columns.append(
            TextColumn(
                _head(shown, k) if last else "excess",
                [
                    *_shares(whole[:, k], overlaps, 0),
                    *[percent(losses.imbalance[k])] * rest,
                    percent(total[k]),
                ],
                droppable=rank,
            )
        )
        cells = [*_shares(own[:, k], overlaps, 1), *blank]
        columns.append(TextColumn("own", cells, droppable=rank))
    if shown.bands is not None and shown.prediction is not None:
        texts = [_share_band(shown.bands[1], line) for line in range(len(shown.outline))]
        texts += [*blank[1:], _share_band(shown.band_of_total, 0)]
        title = f"{shown.prediction.fitted.models.confidence:.0%} band"
        columns.append(TextColumn(title, texts, droppable=2))
    if shown.ensemble is not None and last:
        mean = [[percent(x) for x in values.tolist()] for values in shown.ensemble]
        of_all = [*[losses.ensemble.imbalance][:rest], losses.ensemble.total]
        cells = [*mean[1], *map(percent, of_all)]
        columns.append(TextColumn(ENSEMBLE, cells, droppable=3 + last))
        columns.append(TextColumn("own", [*mean[0], *blank], droppable=3 + last))
    if last == 0:
        costs = shown.outline.values(losses.costs)[1][:, losses.columns(0)[1]]
        of_lines = shown.efficiency(whole[:, 0], costs, 0)
        efficiency = [percent(x) for x in of_lines.tolist()]
        efficiency += [*blank[1:], percent(1 - total[0])]
        title = "efficiency" if losses.ideal.scaling else "expected"
        columns.append(TextColumn(title, efficiency, droppable=2))
    words = [_SHORT[reading] for reading in readings(whole[:, last], own[:, last])]
    columns.append(TextColumn("reading", [*words, *blank], right=False, droppable=1))
    marks = [">" * is_hot for is_hot in shown.is_hot]
    return [*columns, TextColumn("", [*marks, *blank])]


def _head(shown: ExcessView, pair: int) -> str:
    """Return the title of a pair: its larger scale, if all pairs have one base."""
    scales = shown.losses.pairs[pair]
    title = f"{shown.losses.parameter}={parameter_value(scales[1])}"
    return title if shown.has_one_base else pair_title(scales)


def _share_band(band: Band, place: int) -> str:
    """Return the band of a share; ``-`` without one."""
    _, low, high = band.at(place)
    return "-" if np.isnan(low) else f"{percent(low)} … {percent(high)}"


def _total_band_text(shown: ExcessView) -> str:
    """Return the band of the program's excess work at a predicted target; "" = no target."""
    found = shown.prediction
    if found is None:
        return ""
    return f"{percent(found.fitted.models.confidence)} band {_share_band(shown.band_of_total, 0)}"


def _no_room(shown: ExcessView, header: str, *, style: TextStyle) -> list[str]:
    """Return a note on scales whose columns do not fit a narrow terminal."""
    losses = shown.losses
    heads = [style.say(_head(shown, k)) for k in range(len(losses.pairs))]
    heads += [ENSEMBLE] * (shown.ensemble is not None)
    if len(heads) < 3:  # A single pair has no column of the ensemble.
        return []
    gone = [head for head in heads if head not in header.split()]
    return [f"not shown for lack of space: {', '.join(gone)}; use --wide or -f csv"] if gone else []


def _costs(shown: ExcessView, *, style: TextStyle) -> list[TextColumn]:
    """Return columns of inclusive costs at the scales that matter, if there is one pair only."""
    losses = shown.losses
    _, whole = shown.outline.values(losses.costs)
    found = []
    scales = list(zip(losses.pairs[0], losses.columns(0), strict=True))
    for point, column in scales if losses.ideal.is_relative else scales[1:]:
        run_time = losses.run_time[column]
        rest = [run_time - losses.costs.total[column]][: len(_lines_below(shown)) - 1]
        values = [*whole[:, column], *rest, run_time]
        cells = [style.amount(float(v), losses.metric.unit) for v in values]
        head = f"{losses.parameter}={parameter_value(point)}"
        found.append(TextColumn(head, cells, droppable=3))
    return found


def _shares(values: FloatArray, overlaps: Overlaps, which: int) -> list[str]:
    """Return shares as text, with ``~`` where noise of the repetitions could explain them."""
    return excess_texts(values, doubtful(values, None if overlaps is None else overlaps[which]))


def _footer(
    shown: ExcessView, invocation: Invocation, *, is_doubted: bool, style: TextStyle
) -> list[str]:
    losses, k = shown.losses, len(shown.losses.pairs) - 1
    p, q = (f"{losses.parameter} = {parameter_value(point)}" for point in losses.pairs[k])
    against = f" relative to {losses.parameter} = {parameter_value(losses.pairs[k][0])}"
    what, where = (f"{losses.parameter}=...", "that scale") if k else ("excess", q)
    if not shown.has_one_base:
        what, where, against = "p→q", "q", " at q relative to p"
    if not losses.ideal.is_relative:
        against = ""
    shares = f"inclusive excess work{against}, share of the {losses.metric.name} at {where}"
    patterns = f"own = {ExcessPattern.OWN}, callees = {ExcessPattern.CALLEES}"
    lines = [
        f"{what}: {shares}; own: exclusive; negative: {shown.gain}",
        f"reading at {q}: {patterns}; > is the hot path",
    ]
    if is_doubted:
        lines.append(OVERLAP_NOTE if losses.ideal.scaling else _OVERLAP_OF_EXPECTED)
    lines += [*losses.ideal.notes, *_notes(shown)]
    if losses.ideal.is_relative:
        lines += _unmatched(shown, style=style, base=p, scale=q)
    sums = [percent(float(values[k]), 2) for values in (shown.check.counted, shown.check.total)]
    name = "the sum" if len(_lines_below(shown)) > 1 else "the total"
    lines.append(sum_check_text(shown.outline, shown.check, sums, name))
    if shown.request.kind is ViewKind.TOP_DOWN:
        lines.append(invocation.hint("excess", "--view bottom-up"))
    return lines


def _notes(shown: ExcessView) -> list[str]:
    """Return the notes on scales without an expected cost, on the target, and on the ensemble."""
    losses, name = shown.losses, shown.losses.parameter
    notes = []
    if len(_lines_below(shown)) > 1:
        notes.append(
            "imbalance: the run time less the sum of all call paths. X divides by the run time, "
            "which is the time of the slowest process."
        )
    if not losses.has_run_time and losses.metric.is_time:
        notes.append("X divides by the sum of all call paths, because the runs have no run time")
    if losses.omitted:
        scales = ", ".join(map(parameter_value, losses.omitted))
        base, last = losses.omitted[0], losses.pairs[-1][1]
        gap = losses.ideal.gap(base, last) or losses.ideal.gap(losses.pairs[0][0], base)
        notes.append(f"not compared: {name} = {scales}, because {gap}")
    if shown.prediction is not None:
        told = f"{name} = {parameter_value(shown.prediction.target)} is predicted"
        share = shown.prediction.unmodelled_share
        rest = f"; without call paths that have no model, {percent(share)} of the largest scale"
        notes.append(told + rest * bool(share > 0))
    if shown.ensemble is not None and len(losses.pairs) > 1:
        count = losses.ensemble.count
        notes.append(f"{ENSEMBLE}: mean over all {count} pairs of measured scales")
    return notes


def _unmatched(shown: ExcessView, *, style: TextStyle, base: str, scale: str) -> list[str]:
    """Return the places where the call trees of the last pair diverge."""
    losses, tree = shown.losses, shown.tree
    parted = unmatched(losses, len(losses.pairs) - 1)
    if not len(parted.rows):
        return [f"unmatched: none, all call paths occur at {base} and at {scale}"]

    def heading(is_new: bool, count: str, share: str) -> str:
        at = scale if is_new else base
        return f"unmatched: {count} at {at} only, {share} of the {losses.metric.name} there:"

    return unmatched_lines(parted, tree, losses.metric.unit, heading, style=style)


def excess_table(shown: ExcessView, findings: Sequence[Finding] = ()) -> Table:
    """Return a table with one row per line of the view and pair of scales."""
    losses, size, names = shown.losses, len(shown.outline), OutlineColumns(shown.outline)
    own, whole = shown.outline.values(losses.excess)
    cost_own, cost_whole = shown.outline.values(losses.costs)
    spent_own, spent_whole = shown.outline.values(losses.expected)
    empty: list[Cell] = [None] * size
    means: dict[str, Values] = {
        f"excess_ensemble_{kind}": empty for kind in ("inclusive", "exclusive")
    }
    if losses.ensemble.count:
        means_own, means_whole = shown.outline.values(losses.ensemble.costs)
        means = {
            "excess_ensemble_inclusive": means_whole[:, 0],
            "excess_ensemble_exclusive": means_own[:, 0],
        }
    parts: list[dict[str, Values]] = []
    for k, (p, q) in enumerate(losses.pairs):
        base, scale = losses.columns(k)
        overlaps = shown.overlaps[k]
        efficiency = shown.efficiency(whole[:, k], cost_whole[:, scale], k)
        parts.append(
            {
                "base": np.broadcast_to(p, size),
                "scale": np.broadcast_to(q, size),
                "cost_at_base_inclusive": cost_whole[:, base],
                "cost_at_base_exclusive": cost_own[:, base],
                "cost_at_scale_inclusive": cost_whole[:, scale],
                "cost_at_scale_exclusive": cost_own[:, scale],
                "cost_expected_inclusive": spent_whole[:, k],
                "cost_expected_exclusive": spent_own[:, k],
                "excess_inclusive": whole[:, k],
                "excess_exclusive": own[:, k],
                **_ends(shown, k, empty),
                **means,
                "efficiency": efficiency if losses.ideal.scaling else empty,
                "overlap_inclusive": empty if overlaps is None else overlaps[0],
                "overlap_exclusive": empty if overlaps is None else overlaps[1],
                "reading": _readings(shown, whole[:, k], own[:, k]),
                "occurs": _occurs(cost_whole[:, base], cost_whole[:, scale]),
                "basis": [_basis(shown, k)] * size,
                "is_hot": shown.is_hot,
            }
        )

    def cells(rows: IntArray) -> dict[str, list[Cell]]:
        # All pairs of a line are in consecutive rows.
        lines, pairs = rows // len(parts), (rows % len(parts)).tolist()
        distinct, which = np.unique(lines, return_inverse=True)
        columns = cells_of(names.cells(distinct), which)
        columns["metric"] = [losses.metric.name] * len(rows)
        of_pairs = [cells_of(part, distinct) for part in parts]
        places = [*zip(pairs, which.tolist(), strict=True)]
        return columns | {name: [of_pairs[k][name][at] for k, at in places] for name in parts[0]}

    columns = RowColumns(np.arange(size * len(parts)), cells)
    units = {name: losses.metric.unit for name in columns if name.startswith("cost_")}
    return Table(columns, units, _header(shown, findings))


def _ends(shown: ExcessView, pair: int, empty: Sequence[Cell]) -> dict[str, Values]:
    """Return the bands of excess work, which are empty between measured scales."""
    found: dict[str, Values] = {}
    for place, kind in ((1, "inclusive"), (0, "exclusive")):
        low: Values = empty
        high: Values = empty
        if shown.bands is not None and shown.losses.is_predicted(pair):
            low, high = shown.bands[place].low, shown.bands[place].high
        found |= {f"excess_low_{kind}": low, f"excess_high_{kind}": high}
    return found


def _basis(shown: ExcessView, pair: int) -> str:
    return basis_of(not shown.losses.is_predicted(pair))


def _readings(shown: ExcessView, inclusive: FloatArray, exclusive: FloatArray) -> list[Cell]:
    """Return the origins of losses as text; a gain is superlinear or less than expected."""
    found = readings(inclusive, exclusive)
    return [shown.gain if each is ExcessPattern.GAIN else str(each) for each in found]


def _occurs(before: FloatArray, after: FloatArray) -> list[Cell]:
    words = {(True, True): "both", (True, False): "base", (False, True): "scale"}
    pairs = zip(~np.isnan(before), ~np.isnan(after), strict=True)
    return [words.get((bool(a), bool(b)), "neither") for a, b in pairs]


def _header(shown: ExcessView, findings: Sequence[Finding]) -> dict[str, object]:
    losses, tree = shown.losses, shown.tree
    total = shown.band_of_total
    pairs = []
    for k, (p, q) in enumerate(losses.pairs):
        base, scale = losses.columns(k)
        pairs.append(
            {
                "base": p,
                "scale": q,
                "total_at_base": float(losses.run_time[base]),
                "total_at_scale": float(losses.run_time[scale]),
                "run_time_at_scale": float(losses.run_time[scale]) if losses.has_run_time else None,
                "excess": float(losses.total[k]),
                "imbalance": float(losses.imbalance[k]),
                "efficiency": 1.0 - float(losses.total[k]) if losses.ideal.scaling else None,
                "basis": _basis(shown, k),
                "low": total.low[0] if losses.is_predicted(k) else None,
                "high": total.high[0] if losses.is_predicted(k) else None,
                "unmatched": unmatched_json(unmatched(losses, k), tree, ("base", "scale")),
            }
        )
    return {
        **provenance(losses.experiment, findings),
        "metric": losses.metric.name,
        "parameter": losses.parameter,
        "held": dict(losses.line.held),
        "formula": str(losses.ideal.scaling or "expected"),
        "expected": {**expected_json(losses.ideal), "omitted": list(losses.omitted)},
        "centre": losses.centre,
        "view": str(shown.request.kind),
        "pairs": pairs,
        ENSEMBLE: ensemble_json(losses.ensemble),
        **view_header(shown),
    }
