"""Excess work between scales as lines of text, as a table, and in the three views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.cells import cell_len

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
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.headline import left_out
from callpath_modeler.report.layout import DEFAULT_STYLE, TextColumn, TextStyle, shorten
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
    unmatched_json,
    unmatched_lines,
    view_header,
)
from callpath_modeler.report.table_formats import (
    Cell,
    Column,
    RowColumns,
    Table,
    cells_of,
    file_units,
    file_values,
    provenance,
    shown_columns,
)
from callpath_modeler.units import parameter_value, percent, setting_text

if TYPE_CHECKING:
    from callpath_modeler.report.table_formats import Values


Overlaps = tuple[BoolArray, BoolArray] | None
"""Overlap of repetitions: exclusive and inclusive, each [lines]; None = not repeated."""


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
    command = "excess"

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
        """Overlap of repetitions, per pair: exclusive and inclusive, each [lines]."""
        found: list[Overlaps] = []
        for pair in range(len(self.losses.pairs)):
            runs = self.losses.repetitions(pair)
            if runs is None:
                found.append(None)
                continue
            before, after = (self.outline.values(costs) for costs in runs)
            own, whole = overlap(before[0], after[0]), overlap(before[1], after[1])
            found.append(None if own is None or whole is None else (own, whole))
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
    def excess(self) -> tuple[FloatArray, FloatArray]:
        """Excess work of lines, exclusive and inclusive, each [lines, pairs]."""
        return self.outline.values(self.losses.excess)

    @cached_property
    def spent(self) -> tuple[FloatArray, FloatArray]:
        """Costs of lines, exclusive and inclusive, each [lines, scales]."""
        return self.outline.values(self.losses.costs)

    @cached_property
    def expected(self) -> tuple[FloatArray, FloatArray]:
        """Expected costs of lines, exclusive and inclusive, each [lines, pairs]."""
        return self.outline.values(self.losses.expected)

    @cached_property
    def means(self) -> tuple[FloatArray, FloatArray]:
        """Mean excess work of lines over all pairs, exclusive and inclusive, each [lines, 1]."""
        return self.outline.values(self.losses.ensemble.costs)

    @property
    def has_imbalance(self) -> bool:
        """Whether the imbalance of the program has a line."""
        return self.losses.has_imbalance

    @property
    def has_ensemble(self) -> bool:
        """Whether there are several pairs of measured scales, and so a mean over them."""
        return self.losses.ensemble.count > 1

    @property
    def band_title(self) -> str:
        """Title of bands; "" = no target."""
        if self.prediction is None:
            return ""
        return f"{self.prediction.fitted.models.confidence:.0%} band"

    @property
    def has_one_base(self) -> bool:
        """Whether all pairs have the same smaller scale."""
        return len({base for base, _ in self.losses.pairs}) == 1

    @property
    def gain(self) -> str:
        """Word for negative excess work."""
        return "superlinear" if self.losses.ideal.scaling else "less than expected"

    def scale(self, pair: int, end: int = 1) -> str:
        """Return the title of the smaller scale of a pair (0), or of the larger one (1)."""
        return f"{self.losses.parameter}={parameter_value(self.losses.pairs[pair][end])}"

    def title(self, pair: int) -> str:
        """Return the title of a pair: its larger scale, if all pairs have one base."""
        return self.scale(pair) if self.has_one_base else pair_title(self.losses.pairs[pair])

    def columns(self, style: TextStyle) -> list[TextColumn]:
        """Return the columns of all pairs."""
        below, pairs = len(self.names_below), range(len(self.losses.pairs))
        made = (shown_columns(_columns(self, pair, style), style, below) for pair in pairs)
        return [column for columns in made for column in columns]

    def sentences(self, style: TextStyle) -> list[str]:
        """Return the answer: how much is lost, and where."""
        return [_verdict(self, style=style)]

    def context(self, style: TextStyle) -> list[str]:
        """Return a description of the measurements, and the formula, which is not wrapped."""
        context = _context(self)
        line = " · ".join(context)
        return [line] if style.width is None or cell_len(line) <= style.width else [*context]

    def notes(self, shown: Sequence[TextColumn], header: str, style: TextStyle) -> list[str]:
        """Return the notes below the table: columns without room, meanings, unmatched subtrees."""
        is_doubted = any("~" in cell for column in shown for cell in column.cells)
        return [
            *_no_room(self, header, style=style),
            *_footer(self, is_doubted=is_doubted, style=style),
        ]

    def table(self, findings: Sequence[Finding] = ()) -> Table:
        """Return a table with one row per line of the view and pair of scales."""
        size, names = len(self.outline), OutlineColumns(self.outline)
        made = [_columns(self, pair, DEFAULT_STYLE) for pair in range(len(self.losses.pairs))]
        parts = [file_values(columns, None) for columns in made]

        def cells(rows: IntArray) -> dict[str, list[Cell]]:
            # All pairs of a line are in consecutive rows.
            lines, pairs = rows // len(parts), (rows % len(parts)).tolist()
            distinct, which = np.unique(lines, return_inverse=True)
            columns = cells_of(names.cells(distinct), which)
            columns["metric"] = [self.losses.metric.name] * len(rows)
            of_pairs = [cells_of(part, distinct) for part in parts]
            places = [*zip(pairs, which.tolist(), strict=True)]
            return columns | {
                name: [of_pairs[k][name][at] for k, at in places] for name in parts[0]
            }

        columns = RowColumns(np.arange(size * len(parts)), cells)
        return Table(columns, file_units(made[0], None), _header(self, findings))


def _untitled(_: object) -> str:
    """Return the title of the column of marks."""
    return ""


def _columns(shown: ExcessView, k: int, style: TextStyle) -> list[Column[None]]:
    """Return the columns of a pair of scales; those of the last pair have more in text."""
    losses, size, last = shown.losses, len(shown.outline), len(shown.losses.pairs) - 1
    is_only, is_last, unit, ensemble = not last, k == last, losses.metric.unit, losses.ensemble
    ends, overlaps = losses.columns(k), shown.overlaps[k]
    own, whole = (values[:, k] for values in shown.excess)
    run_time = losses.run_time[ends[1]]
    cost = np.nan_to_num(shown.spent[1][:, ends[1]])
    efficiency = efficiency_of(cost, np.nan_to_num(whole) * run_time)
    marks = readings(whole, own)
    bands = shown.bands if losses.is_predicted(k) else None

    def every(cell: Cell) -> list[Cell]:
        return [cell] * size

    def both(
        key: str, values: Sequence[Values] | None, titles: Sequence[str] = ("", ""), **more: Any
    ) -> list[Column[None]]:
        """Return columns of inclusive and of exclusive values; None = none are known."""
        exclusive, inclusive = (every(None), every(None)) if values is None else values
        of_own = {**more, "below": ()}
        return [
            Column(f"{key}_inclusive", inclusive, title=titles[0], **more),
            Column(f"{key}_exclusive", exclusive, title=titles[1], **of_own),
        ]

    def costs(end: int, *, has_title: bool) -> list[Column[None]]:
        """Return the costs at the smaller or at the larger scale."""
        column = ends[end]
        total = float(losses.run_time[column])
        amounts = total - float(losses.costs.total[column]), total
        return both(
            f"cost_at_{('base', 'scale')[end]}",
            [values[:, column] for values in shown.spent],
            (shown.scale(k, end) * has_title, ""),
            unit=unit,
            droppable=3,
            below=[style.amount(amount, unit) for amount in amounts],
        )

    def shares(kind: int) -> Callable[..., list[str]]:
        """Return excess work, with ``~`` where noise of the repetitions could explain it."""
        values = shown.excess[kind][:, k]
        known = None if overlaps is None else overlaps[kind]
        return lambda *_: excess_texts(values, doubtful(values, known))

    mean = [each[:, 0] for each in shown.means] if ensemble.count else None
    titles = (ENSEMBLE, "own") if is_last and last and shown.has_ensemble else ("", "")
    low, high = ([getattr(each, end) for each in bands] if bands else [every(None)] * 2
                 for end in ("low", "high"))  # fmt: skip
    # Larger scales are more informative, so a narrow terminal drops the smaller ones first.
    rank = 0 if is_last else 2 + last - k
    return [
        Column("base", every(losses.pairs[k][0])),
        Column("scale", every(losses.pairs[k][1])),
        *costs(0, has_title=is_only and losses.ideal.is_relative),
        *costs(1, has_title=is_only),
        *both("cost_expected", [values[:, k] for values in shown.expected], unit=unit),
        Column(
            "excess_inclusive",
            whole,
            title="excess" if is_only else shown.title(k),
            text=shares(1),
            droppable=rank,
            below=[percent(losses.imbalance[k]), percent(losses.total[k])],
        ),
        Column("excess_exclusive", own, title="own", text=shares(0), droppable=rank),
        Column(
            "excess_low_inclusive",
            low[1],
            title=shown.band_title * (is_last and bands is not None),
            text=lambda *_: [_share_band(bands[1], line) for line in range(size)] if bands else [],
            droppable=2,
            below=[_share_band(shown.band_of_total, 0)],
        ),
        Column("excess_high_inclusive", high[1]),
        Column("excess_low_exclusive", low[0]),
        Column("excess_high_exclusive", high[0]),
        *both(
            "excess_ensemble",
            mean,
            titles,
            form=percent,
            droppable=3 + last,
            below=[percent(ensemble.imbalance), percent(ensemble.total)],
        ),
        Column(
            "efficiency",
            efficiency if losses.ideal.scaling else every(None),
            title=("efficiency" if losses.ideal.scaling else "expected") * is_only,
            text=lambda *_: [percent(share) for share in efficiency.tolist()],
            droppable=2,
            below=[percent(1 - losses.total[k])],
        ),
        *both("overlap", overlaps),
        Column(
            "reading",
            [shown.gain if mark is ExcessPattern.GAIN else str(mark) for mark in marks],
            title="reading" * is_last,
            text=lambda *_: [_SHORT[mark] for mark in marks],
            right=False,
            droppable=1,
        ),
        Column("occurs", _occurs(*(shown.spent[1][:, end] for end in ends))),
        Column("basis", every(_basis(shown, k))),
        Column(
            "is_hot",
            shown.is_hot,
            title=_untitled if is_last else "",
            form=lambda is_hot: ">" * is_hot,
        ),
    ]


def _basis(shown: ExcessView, pair: int) -> str:
    return basis_of(not shown.losses.is_predicted(pair))


def _occurs(before: FloatArray, after: FloatArray) -> list[Cell]:
    words = {(True, True): "both", (True, False): "base", (False, True): "scale"}
    pairs = zip(~np.isnan(before), ~np.isnan(after), strict=True)
    return [words.get((bool(a), bool(b)), "neither") for a, b in pairs]


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
    heads = [style.say(shown.title(k)) for k in range(len(losses.pairs))]
    heads += [ENSEMBLE] * shown.has_ensemble
    if len(heads) < 3:  # A single pair has no column of the ensemble.
        return []
    gone = [head for head in heads if head not in header.split()]
    return [f"not shown for lack of space: {', '.join(gone)}; use --wide or -f csv"] if gone else []


def _footer(shown: ExcessView, *, is_doubted: bool, style: TextStyle) -> list[str]:
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
    name = "the sum" if len(shown.names_below) > 1 else "the total"
    return [*lines, sum_check_text(shown.outline, shown.check, sums, name)]


def _notes(shown: ExcessView) -> list[str]:
    """Return the notes on scales without an expected cost, on the target, and on the ensemble."""
    losses, name = shown.losses, shown.losses.parameter
    notes = []
    if len(shown.names_below) > 1:
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
    if shown.has_ensemble and len(losses.pairs) > 1:
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
