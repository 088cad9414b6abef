"""Columns of rankings and of nodes: a new one is one declaration, and shows in every format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.cause import NOTHING
from callpath_modeler.analysis.laws_of_time import Driver
from callpath_modeler.arrays import FloatArray, Int16Array, IntArray
from callpath_modeler.modeling import Growth, changes_since
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.columns import (
    band_text,
    band_title,
    has_maxima,
    mark_text,
    marks_cells,
    max_title,
    ratio_text,
    repeats_the_largest,
    share_texts,
    value_titles,
)
from callpath_modeler.report.headline import off_by
from callpath_modeler.report.layout import DEFAULT_STYLE, TextColumn, TextStyle, shorten
from callpath_modeler.report.losses_text import excess_styles, excess_texts
from callpath_modeler.report.model_formulas import (
    formula_texts,
    from_texts,
    growth_ends,
    growth_range_texts,
    growth_texts,
    growths_of,
)
from callpath_modeler.report.table_formats import Cell, Column, applying, text_columns
from callpath_modeler.units import percent, signed_percent

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.node_values import NodeValues
    from callpath_modeler.analysis.uncertain import Band


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of an answer, which are the rows of a table.

    Attributes
    ----------
    answer : the answer
    own, whole : exclusive and inclusive values of the nodes
    inclusive : whether inclusive values lead
    has_total : whether a line below has the total with its band
    """

    answer: Answer
    own: NodeValues
    whole: NodeValues
    inclusive: bool
    has_total: bool

    @property
    def main(self) -> NodeValues:
        """The values that lead."""
        return self.whole if self.inclusive else self.own

    @property
    def other(self) -> NodeValues:
        """The values that do not lead."""
        return self.own if self.inclusive else self.whole


def unit(nodes: Nodes) -> str:
    """Return the unit of the metric."""
    return nodes.answer.fitted.metric.unit


def has_models(nodes: Nodes) -> bool:
    """Return whether models give growth and trust."""
    return not nodes.answer.fitted.is_measured_only


def _has_band(nodes: Nodes) -> bool:
    """Return whether a node or the total has a band; there is none at infinity."""
    answer = nodes.answer
    known = nodes.has_total and not np.isnan(answer.program_total[1])
    return bool(np.isfinite(answer.target)) and bool(known or not np.isnan(nodes.main.low).all())


def _bands(nodes: Nodes, style: TextStyle) -> list[str]:
    ends = zip(nodes.main.low.tolist(), nodes.main.high.tolist(), strict=True)
    return [band_text(low, high, unit(nodes), style=style) for low, high in ends]


def _shares(nodes: Nodes, _: TextStyle) -> list[str]:
    before, after = np.nan_to_num(nodes.main.share_at_largest), nodes.main.share
    return share_texts(nodes.answer, before.tolist(), after.tolist())


def _measured(nodes: Nodes) -> bool:
    """Return whether the largest scale is not the target, and has a column of its own."""
    return has_models(nodes) and not repeats_the_largest(nodes.answer)


def _loss(key: str, name: str, place: int, values: Callable[[Nodes], NodeValues]) -> Column[Nodes]:
    """Return a column of excess work between two scales, which a narrow table keeps."""
    title = "excl." if name == "own_loss" else "excess"
    return Column(
        key=key,
        help="excess work between the smallest scale and the target",
        cells=lambda nodes: values(nodes).excess,
        title=title,
        text=lambda nodes, _: excess_texts(values(nodes).excess, values(nodes).doubted),
        styles=lambda nodes: excess_styles(values(nodes).excess),
        droppable=-1,
        name=name,
        place=place,
        applies=lambda nodes: nodes.answer.is_comparison,
    )


AT_BASE: Column[Nodes] = Column(
    key="value_at_base",
    help="measured at the base of excess work, which is the smallest scale",
    cells=lambda nodes: nodes.main.at_base,
    unit=unit,
    title=lambda nodes: value_titles(nodes.answer)[0],
    droppable=-1,
    name="base",
    place=1,
    applies=lambda nodes: nodes.answer.is_comparison,
)
AT_LARGEST: Column[Nodes] = Column(
    key="value_at_largest",
    help="measured at the largest scale, over repetitions",
    cells=lambda nodes: nodes.main.at_largest,
    unit=unit,
    title=lambda nodes: value_titles(nodes.answer)[0],
    droppable=-1,
    name="measured",
    place=2,
    applies=_measured,
)
AT_TARGET: Column[Nodes] = Column(
    key="value_at_target",
    help="measured or predicted value at the target: see `basis`",
    cells=lambda nodes: nodes.main.value,
    unit=unit,
    title=lambda nodes: value_titles(nodes.answer)[1],
    name="value",
    place=3,
)
LOW: Column[Nodes] = Column(
    key="low",
    help="confidence interval of the measurement, or band of the prediction",
    cells=lambda nodes: nodes.main.low,
    unit=unit,
    title=lambda nodes: band_title(nodes.answer),
    text=_bands,
    droppable=-2,
    name="band",
    place=4,
    applies=_has_band,
)
HIGH: Column[Nodes] = Column("high", lambda nodes: nodes.main.high, unit=unit, help=LOW.help)
OTHER: Column[Nodes] = Column(
    key="",
    help="the value that does not lead: exclusive or inclusive",
    cells=lambda nodes: nodes.other.value,
    unit=unit,
    title=lambda nodes: "exclusive" if nodes.inclusive else "inclusive",
    droppable=7,
    name="other",
    place=8,
)
SHARE_AT_LARGEST: Column[Nodes] = Column(
    key="share_at_largest",
    help="fraction of the run time, or of the total without one",
    cells=lambda nodes: nodes.main.share_at_largest,
)
SHARE: Column[Nodes] = Column(
    key="share_at_target",
    help=SHARE_AT_LARGEST.help,
    cells=lambda nodes: nodes.main.share,
    title="share",
    text=_shares,
    droppable=5,
    name="share",
    place=11,
    applies=lambda nodes: nodes.answer.fitted.metric.additive,
)
EXCESS: Column[Nodes] = Column(
    key="excess",
    help="excess work between the smallest scale and the target",
    cells=lambda nodes: nodes.main.excess,
    title="excess",
    name="excess",
    form=percent,
    droppable=lambda nodes: -1 if nodes.answer.fitted.ideal else 6,
    place=12,
    applies=lambda nodes: has_models(nodes) and nodes.answer.fitted.metric.additive,
)
EXCESS_LOW: Column[Nodes] = Column(
    key="excess_low",
    help="its band at a predicted target",
    cells=lambda nodes: nodes.main.excess_low,
)
EXCESS_HIGH: Column[Nodes] = Column(
    key="excess_high", help=EXCESS_LOW.help, cells=lambda nodes: nodes.main.excess_high
)
PREDICTED: Column[Nodes] = Column(
    key="predicted",
    help="prediction, even if the target was measured",
    cells=lambda nodes: nodes.main.predicted,
    unit=unit,
    title="model",
    text=lambda nodes, _: [signed_percent(error) for error in nodes.main.deviation.tolist()],
    droppable=2,
    name="model",
    place=7,
    applies=lambda nodes: has_models(nodes) and nodes.answer.repetitions > 0,
)
TRUST: Column[Nodes] = Column(
    key="trust",
    help="0 to 4 marks",
    cells=lambda nodes: marks_cells(nodes.main.trust),
    title="trust",
    form=mark_text,
    droppable=-3,
    place=15,
    applies=has_models,
)
LOSS = _loss("", "loss", 16, lambda nodes: nodes.whole)
OWN_LOSS = _loss("", "own_loss", 17, lambda nodes: nodes.own)

VALUES = (
    *(AT_BASE, AT_LARGEST, AT_TARGET, LOW, HIGH, SHARE_AT_LARGEST, SHARE),
    *(EXCESS, EXCESS_LOW, EXCESS_HIGH, PREDICTED, TRUST),
)
"""Columns of exclusive values, and of inclusive ones, in files."""


def loss_columns(answer: Answer, own: NodeValues, whole: NodeValues) -> dict[str, TextColumn]:
    """Return inclusive and exclusive excess work of nodes between two scales as text."""
    nodes = Nodes(answer, own, whole, inclusive=True, has_total=False)
    return text_columns(applying((LOSS, OWN_LOSS), nodes), nodes, style=DEFAULT_STYLE)


def program_cells(answer: Answer, *, style: TextStyle) -> tuple[dict[str, str], dict[str, str]]:
    """Return the cells of the imbalance and of the total, by name of the column."""
    unit = answer.fitted.metric.unit
    imbalance = {
        "measured": style.amount(answer.imbalance_at_largest, unit),
        "base": style.amount(answer.imbalance_at_base, unit),
        "value": style.amount(answer.imbalance, unit),
        **dict.fromkeys(("excess", "loss", "own_loss"), percent(answer.imbalance_excess)),
    }
    total = {
        "measured": style.amount(answer.program_at_largest, unit),
        "base": style.amount(answer.program_at_base, unit),
        "value": style.amount(answer.program_total[0], unit),
        "band": band_text(*answer.program_total[1:], unit, style=style),
        "model": off_by(answer),
        **dict.fromkeys(("excess", "loss"), percent(answer.total_excess)),
    }
    return imbalance, total


def process_columns(
    answer: Answer, rows: Sequence[int | None], *, style: TextStyle
) -> dict[str, TextColumn]:
    """Return maxima over processes and the imbalance at the largest scale, by name of the column.

    They are next to exclusive means and sums. Lines with several call paths (None) have none,
    because their slowest processes may differ.
    """
    fitted, (maximum, imbalance) = answer.fitted, answer.maxima_at_largest
    if not has_maxima(fitted, maximum):
        return {}

    def texts(values: FloatArray, text: Callable[[float], str]) -> list[str]:
        return ["" if row is None else text(float(values[row])) for row in rows]

    maxima = texts(maximum, lambda value: style.amount(value, fitted.metric.unit))
    return {
        "maximum": TextColumn(max_title(fitted), maxima, droppable=7),
        "imbalance": TextColumn("imbalance", texts(imbalance, ratio_text), droppable=7),
    }


def with_lines_below(
    columns: Mapping[str, TextColumn], below: Sequence[Mapping[str, str]]
) -> dict[str, TextColumn]:
    """Return columns with further lines, each by name of the column; "" = an empty cell."""
    return {
        name: replace(
            column,
            cells=[*column.cells, *(line.get(name, "") for line in below)],
            styles=[*column.styles, *[""] * len(below)] if column.styles else (),
        )
        for name, column in columns.items()
    }


_CAUSE = 26
"""Width of a cause, in cells."""


@dataclass(frozen=True, eq=False)
class RankedRows(Nodes):
    """Call paths of a ranking.

    Attributes
    ----------
    ranking : the ranking, which is the answer
    rows : the call paths, in order
    growths : ranges of growths of all call paths, if they are known; see `Models.growth_ends`
    """

    ranking: Ranking
    rows: IntArray
    growths: Int16Array | None

    @classmethod
    def of(cls, ranking: Ranking, rows: IntArray, growths: Int16Array | None = None) -> RankedRows:
        """Return some call paths of a ranking."""
        own, whole = ranking.of_rows(rows)
        additive = ranking.fitted.metric.additive
        return cls(ranking, own, whole, ranking.inclusive, additive, ranking, rows, growths)

    @property
    def leader(self) -> IntArray:
        """The call path whose model stands for each row; -1 = none."""
        return self.ranking.leader[self.rows]

    @cached_property
    def places(self) -> IntArray:
        """The rank of each row; 0 = it has none."""
        return self.ranking.places[self.rows]

    @cached_property
    def ends(self) -> list[tuple[Growth, ...] | None]:
        """The slowest and the fastest probable growth of each row."""
        fitted, leader = self.ranking.fitted, self.leader
        if self.growths is None:
            return growth_ends(fitted, leader)
        return growths_of(fitted, leader, self.growths[leader])

    @cached_property
    def gains(self) -> Band:
        """What the run gains without each call path; NaN = not known."""
        # Most rankings are without gains.
        from callpath_modeler.analysis.what_if import gains_at

        return gains_at(self.ranking, self.rows)

    def of_ranked(self, values: FloatArray) -> FloatArray:
        """Return the values of rows with a rank; NaN for others."""
        return np.where(self.places > 0, values, np.nan)

    def of_present(self, values: FloatArray) -> FloatArray:
        """Return excess work of rows; a call path without a rank has some only if it is absent.

        At a scale that was run, such a call path costs nothing. Otherwise its cost is not known.
        """
        return values if self.ranking.repetitions else self.of_ranked(values)


def _end(which: int, rows: RankedRows) -> list[Cell]:
    """Return the slowest or the fastest growths as text."""
    parameter = rows.ranking.fitted.parameter
    return [None if ends is None else ends[which].text(parameter) for ends in rows.ends]


def _since(rows: RankedRows) -> list[Cell]:
    """Return the first scale of the law after a change point; None without a change point."""
    since = changes_since(rows.ranking.fitted.models.take(np.maximum(rows.leader, 0)))
    known = zip(since.tolist(), rows.leader.tolist(), strict=True)
    return [at if at and row >= 0 else None for at, row in known]


def _growths(rows: RankedRows, style: TextStyle) -> list[str]:
    ranges = growth_range_texts(rows.ranking, rows.rows, pretty=not style.ascii_only)
    since = from_texts(rows.ranking.fitted, rows.leader)
    return [text + start for text, start in zip(ranges, since, strict=True)]


def _statuses(rows: RankedRows) -> list[str]:
    # Status and growth belong to the same model: the fastest growing one.
    speaks = np.where(rows.leader >= 0, rows.leader, rows.rows)
    return [*rows.ranking.fitted.statuses(speaks)]


def _cause_text(label: str) -> str:
    """Return a cause with a short name of the call path that is waited for."""
    waits = f"{Driver.SOURCE.value} "
    if not label.startswith(waits):
        return label
    name = short_name(label.removeprefix(waits))
    return waits + shorten([name], _CAUSE - len(waits))


def _has_processes(rows: RankedRows) -> bool:
    """Return whether maxima over processes are next to exclusive means and sums."""
    ranking = rows.ranking
    return not ranking.inclusive and has_maxima(ranking.fitted, ranking.maxima_at_largest[0])


def _predicted(end: str, rows: RankedRows) -> FloatArray:
    """Return the lower or the upper limits of predictions."""
    ranking = rows.ranking
    its: FloatArray = getattr(rows.main, end)
    return getattr(ranking.predicted, end)[rows.rows] if ranking.repetitions else its


BEFORE_PAIRS: tuple[Column[RankedRows], ...] = (
    Column(
        key="rank",
        help="1 = worst; empty without a value",
        cells=lambda rows: [place or None for place in rows.places.tolist()],
        title="#",
        text=lambda rows, _: [*map(str, rows.places.tolist())],
        place=0,
    ),
    Column(
        key="callpath",
        help="region names from the root, joined by `/`; a slash inside a name is `\\/`",
        cells=lambda rows: rows.ranking.fitted.experiment.tree.paths(rows.rows),
    ),
    Column(
        key="id",
        help="short id that every command accepts instead of the call path",
        cells=lambda rows: [f"@{i}" for i in rows.ranking.fitted.experiment.tree.ids(rows.rows)],
    ),
    Column("metric", lambda rows: [rows.ranking.fitted.metric.name] * len(rows.rows)),
    Column(
        key="growth",
        help="leading term without coefficient, e.g. `O(p^(1/2) log p)`",
        cells=lambda rows: [text or None for text in growth_texts(rows.ranking, rows.rows)],
        title="growth",
        text=_growths,
        right=False,
        droppable=1,
        place=13,
        applies=has_models,
    ),
    Column(
        key="model",
        help="formula with four digits (`cpmodel export` gives all). Beyond a change point, it is "
        "the law there",
        cells=lambda rows: [text or None for text in formula_texts(rows.ranking, rows.rows)],
    ),
    Column(
        "since",
        _since,
        help="first measured scale of the law beyond a change point; empty without one",
    ),
    AT_BASE,
    AT_LARGEST,
    structs.replace(AT_TARGET, cells=lambda rows: rows.of_ranked(rows.main.value)),
    structs.replace(LOW, cells=lambda rows: rows.of_ranked(rows.main.low)),
    structs.replace(HIGH, cells=lambda rows: rows.of_ranked(rows.main.high)),
    SHARE_AT_LARGEST,
    structs.replace(SHARE, cells=lambda rows: rows.of_ranked(rows.main.share)),
    structs.replace(EXCESS, key=""),
    Column(
        "excess_inclusive", lambda rows: rows.ranking.inclusive_excess[rows.rows], help=EXCESS.help
    ),
    Column("excess_exclusive", lambda rows: rows.of_present(rows.own.excess), help=EXCESS.help),
    Column(
        key="loss",
        help="cost per process at the target beyond perfect scaling",
        cells=lambda rows: rows.of_present(rows.main.lost),
        unit=unit,
    ),
    LOSS,
    OWN_LOSS,
    EXCESS_LOW,
    EXCESS_HIGH,
)
"""Columns before the excess work of chosen pairs of scales."""

AFTER_PAIRS: tuple[Column[RankedRows], ...] = (
    Column(
        key="why",
        help="[cause of the growth](../explanation/requirements.md); `-` = nothing grows, or not "
        "known",
        cells=lambda rows: rows.ranking.why(rows.rows),
        title="why",
        form=_cause_text,
        right=False,
        droppable=4,
        place=14,
        applies=lambda rows: any(each != NOTHING for each in rows.ranking.why(rows.rows)),
    ),
    structs.replace(
        TRUST,
        cells=lambda rows: marks_cells(rows.ranking.trust_of(rows.rows)),
        help="0 to 4 marks, see [Trust](#trust)",
    ),
    Column(
        key="top10",
        help="probability to be among the 10 largest values at the target; empty at infinity",
        cells=lambda rows: rows.of_ranked(rows.ranking.first[rows.rows]),
    ),
    Column(key="status", help="see [Statuses](#statuses)", cells=_statuses),
    Column(
        key="basis",
        help="`measured` or `predicted`: the origin of the values at the target; empty without a "
        "value",
        cells=lambda rows: [rows.ranking.basis if at else None for at in rows.places.tolist()],
    ),
    PREDICTED,
    *(
        Column(
            f"predicted_{end}", partial(_predicted, end), unit=unit, help="band of the prediction"
        )
        for end in ("low", "high")
    ),
    Column(
        key="maximum_at_largest",
        help="exclusive maximum over processes at the largest scale; empty if unknown",
        cells=lambda rows: rows.ranking.maxima_at_largest[0][rows.rows],
        unit=unit,
        title=lambda rows: max_title(rows.ranking.fitted),
        droppable=7,
        name="maximum",
        place=9,
        applies=_has_processes,
    ),
    Column(
        key="imbalance_at_largest",
        help="exclusive imbalance (largest over mean) at the largest scale; empty if unknown",
        cells=lambda rows: rows.ranking.maxima_at_largest[1][rows.rows],
        title="imbalance",
        form=ratio_text,
        droppable=7,
        name="imbalance",
        place=10,
        applies=_has_processes,
    ),
    *(
        Column(
            f"growth_{end}",
            partial(_end, k),
            help="slowest and fastest probable growth (see below)",
        )
        for k, end in enumerate(("low", "high"))
    ),
)
"""Columns after the excess work of chosen pairs of scales."""
