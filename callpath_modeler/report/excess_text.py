"""Excess work between scales as lines of text, as a table, and in the three views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
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
    applying,
    file_cells,
    file_units,
    provenance,
    text_columns,
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
            # A single run has no scatter.
            if runs is None or min(costs.exclusive.shape[1] for costs in runs) < 2:
                found.append(None)
                continue
            before, after = (self.outline.values(costs) for costs in runs)
            own, whole = overlap(before[0], after[0]), overlap(before[1], after[1])
            found.append(None if own is None or whole is None else (own, whole))
        return found

    @cached_property
    def band_of_total(self) -> Band:
        """Excess work of the program at a predicted target with its band, [1]; NaN = no target."""
        if self.prediction is None:
            nothing = np.full(1, np.nan)
            return Band(nothing, nothing, nothing)
        return self.prediction.program_excess

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
        below, lines = len(self.names_below), ExcessLines(self, np.arange(len(self.outline)))
        made: list[TextColumn] = []
        for pair in range(len(self.losses.pairs)):
            columns = applying(_columns(self, pair, style), lines)
            made += text_columns(columns, lines, style=style, below=below).values()
        return made

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

        def cells(rows: IntArray) -> dict[str, list[Cell]]:
            # All pairs of a line are in consecutive rows.
            distinct, which = np.unique(rows // len(made), return_inverse=True)
            lines = ExcessLines(self, distinct)
            of_lines, of_pairs = names.cells(distinct), [file_cells(each, lines) for each in made]
            places = [*zip((rows % len(made)).tolist(), which.tolist(), strict=True)]
            return {
                **{name: [of_lines[name][at] for _, at in places] for name in of_lines},
                "metric": [self.losses.metric.name] * len(rows),
                **{name: [of_pairs[k][name][at] for k, at in places] for name in of_pairs[0]},
            }

        columns = RowColumns(np.arange(size * len(made)), cells)
        units = file_units(made[0], ExcessLines(self, np.arange(0)))
        return Table(columns, units, _header(self, findings))


@dataclass(frozen=True, eq=False)
class ExcessLines:
    """Some lines of a view of excess work, which are the rows of a table.

    Values are exclusive and inclusive, each [lines, columns], and made when a column asks for them.

    Attributes
    ----------
    shown : the view
    places : the lines
    """

    shown: ExcessView
    places: IntArray

    @cached_property
    def excess(self) -> tuple[FloatArray, FloatArray]:
        """Excess work, each [lines, pairs]."""
        return self._values(self.shown.losses.excess)

    @cached_property
    def spent(self) -> tuple[FloatArray, FloatArray]:
        """Costs, each [lines, scales]."""
        return self._values(self.shown.losses.costs)

    @cached_property
    def expected(self) -> tuple[FloatArray, FloatArray]:
        """Expected costs, each [lines, pairs]."""
        return self._values(self.shown.losses.expected)

    @cached_property
    def means(self) -> tuple[FloatArray, FloatArray]:
        """Mean excess work over all pairs, each [lines, 1]."""
        return self._values(self.shown.losses.ensemble.costs)

    def _values(self, costs: Costs) -> tuple[FloatArray, FloatArray]:
        return self.shown.outline.values_of(self.places, costs)

    @cached_property
    def bands(self) -> tuple[Band, Band] | None:
        """Excess work at a predicted target, exclusive and inclusive; None = no target."""
        prediction = self.shown.prediction
        if prediction is None:
            return None
        own, whole = prediction.of_outline(self.shown.outline, self.places)
        return own.excess_band, whole.excess_band

    def overlap(self, pair: int, kind: int) -> BoolArray | None:
        """Return the overlap of the repetitions of a pair of scales, [lines]; None = none."""
        known = self.shown.overlaps[pair]
        return None if known is None else known[kind][self.places]

    def shares(self, pair: int, kind: int) -> list[str]:
        """Return excess work, with ``~`` where noise of the repetitions could explain it."""
        values = self.excess[kind][:, pair]
        return excess_texts(values, doubtful(values, self.overlap(pair, kind)))

    def efficiency(self, pair: int) -> FloatArray:
        """Return the expected over the measured inclusive costs of a pair of scales, [lines]."""
        losses = self.shown.losses
        _, scale = losses.columns(pair)
        cost = np.nan_to_num(self.spent[1][:, scale])
        return efficiency_of(cost, np.nan_to_num(self.excess[1][:, pair]) * losses.run_time[scale])

    def readings(self, pair: int) -> list[ExcessPattern]:
        """Return the origin of the losses between a pair of scales."""
        own, whole = (values[:, pair] for values in self.excess)
        return readings(whole, own)

    def every(self, cell: Cell) -> list[Cell]:
        """Return a cell that all lines share."""
        return [cell] * len(self.places)


def _untitled(_: object) -> str:
    """Return the title of the column of marks."""
    return ""


def _columns(shown: ExcessView, k: int, style: TextStyle) -> list[Column[ExcessLines]]:
    """Return the columns of a pair of scales; those of the last pair have more in text."""
    losses, last = shown.losses, len(shown.losses.pairs) - 1
    is_only, is_last, unit, ensemble = not last, k == last, losses.metric.unit, losses.ensemble
    ends, has_bands = losses.columns(k), losses.is_predicted(k) and shown.prediction is not None

    def both(
        key: str,
        values: Callable[[ExcessLines, int], Values | None],
        titles: Sequence[str] = ("", ""),
        **more: Any,
    ) -> list[Column[ExcessLines]]:
        """Return columns of inclusive and of exclusive values; None = none are known."""

        def cells(lines: ExcessLines, kind: int) -> Values:
            found = values(lines, kind)
            return lines.every(None) if found is None else found

        of_own = {**more, "below": ()}
        return [
            Column(f"{key}_inclusive", partial(cells, kind=1), title=titles[0], **more),
            Column(f"{key}_exclusive", partial(cells, kind=0), title=titles[1], **of_own),
        ]

    def costs(end: int, *, has_title: bool) -> list[Column[ExcessLines]]:
        """Return the costs at the smaller or at the larger scale."""
        column = ends[end]
        total = float(losses.run_time[column])
        amounts = total - float(losses.costs.total[column]), total
        return both(
            f"cost_at_{('base', 'scale')[end]}",
            lambda lines, kind: lines.spent[kind][:, column],
            (shown.scale(k, end) * has_title, ""),
            unit=unit,
            droppable=3,
            below=[style.amount(amount, unit) for amount in amounts],
        )

    def band(lines: ExcessLines, kind: int, end: str) -> Values:
        """Return an end of the bands."""
        bands = lines.bands if has_bands else None
        found: FloatArray | None = bands and getattr(bands[kind], end)
        return lines.every(None) if found is None else found

    def band_texts(lines: ExcessLines, _: TextStyle) -> list[str]:
        bands = lines.bands
        return [_share_band(bands[1], at) for at in range(len(lines.places))] if bands else []

    titles = (ENSEMBLE, "excl.") if is_last and last and shown.has_ensemble else ("", "")
    # Larger scales are more informative, so a narrow terminal drops the smaller ones first.
    rank = 0 if is_last else 2 + last - k
    return [
        Column("base", lambda lines: lines.every(losses.pairs[k][0])),
        Column("scale", lambda lines: lines.every(losses.pairs[k][1])),
        *costs(0, has_title=is_only and losses.ideal.is_relative),
        *costs(1, has_title=is_only),
        *both("cost_expected", lambda lines, kind: lines.expected[kind][:, k], unit=unit),
        Column(
            "excess_inclusive",
            lambda lines: lines.excess[1][:, k],
            title="excess" if is_only else shown.title(k),
            text=lambda lines, _: lines.shares(k, 1),
            droppable=rank,
            below=[percent(losses.imbalance[k]), percent(losses.total[k])],
        ),
        Column(
            "excess_exclusive",
            lambda lines: lines.excess[0][:, k],
            title="excl.",
            text=lambda lines, _: lines.shares(k, 0),
            droppable=rank,
        ),
        Column(
            "excess_low_inclusive",
            partial(band, kind=1, end="low"),
            title=shown.band_title * (is_last and has_bands),
            text=band_texts,
            droppable=2,
            below=[_share_band(shown.band_of_total, 0)],
        ),
        Column("excess_high_inclusive", partial(band, kind=1, end="high")),
        Column("excess_low_exclusive", partial(band, kind=0, end="low")),
        Column("excess_high_exclusive", partial(band, kind=0, end="high")),
        *both(
            "excess_ensemble",
            lambda lines, kind: lines.means[kind][:, 0] if ensemble.count else None,
            titles,
            form=percent,
            droppable=3 + last,
            below=[percent(ensemble.imbalance), percent(ensemble.total)],
        ),
        Column(
            "efficiency",
            lambda lines: lines.efficiency(k) if losses.ideal.scaling else lines.every(None),
            title=("efficiency" if losses.ideal.scaling else "expected") * is_only,
            text=lambda lines, _: [percent(share) for share in lines.efficiency(k).tolist()],
            droppable=2,
            below=[percent(1 - losses.total[k])],
        ),
        *both("overlap", lambda lines, kind: lines.overlap(k, kind)),
        Column(
            "reading",
            lambda lines: [
                shown.gain if mark is ExcessPattern.GAIN else str(mark)
                for mark in lines.readings(k)
            ],
            title="where" * is_last,
            text=lambda lines, _: [_SHORT[mark] for mark in lines.readings(k)],
            right=False,
            droppable=1,
        ),
        Column("occurs", lambda lines: _occurs(*(lines.spent[1][:, end] for end in ends))),
        Column("basis", lambda lines: lines.every(_basis(shown, k))),
        Column(
            "is_hot",
            lambda lines: shown.is_hot[lines.places],
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
    ExcessPattern.OWN: "itself",
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
    lines = [
        f"{what}: {shares}; excl.: exclusive; negative: {shown.gain}",
        f"where: excess at {q} of the call path itself, or of its callees; > is the hot path",
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
