"""Columns of rankings. A new column is one declaration here, and shows in every format."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.causes import NOTHING, Driver
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.trust import marks_text
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling import Growth, changes_since
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.change_points import from_texts
from callpath_modeler.report.column import Column
from callpath_modeler.report.columns import has_maxima, max_title, ratio_text
from callpath_modeler.report.growths import (
    formula_texts,
    growth_ends,
    growth_range_texts,
    growth_texts,
)
from callpath_modeler.report.layout import TextStyle, shorten
from callpath_modeler.report.table_formats import Cell
from callpath_modeler.report.value_columns import (
    AT_BASE,
    AT_LARGEST,
    AT_TARGET,
    EXCESS,
    EXCESS_HIGH,
    EXCESS_LOW,
    HIGH,
    LOSS,
    LOW,
    OWN_LOSS,
    PREDICTED,
    SHARE,
    SHARE_AT_LARGEST,
    Nodes,
    has_models,
    unit,
)

_CAUSE = 26
"""Width of a cause, in cells."""


@dataclass(frozen=True, eq=False)
class RankedRows(Nodes):
    """Call paths of a ranking.

    Attributes
    ----------
    ranking : the ranking, which is the answer
    rows : the call paths, in order
    """

    ranking: Ranking
    rows: IntArray

    @classmethod
    def of(cls, ranking: Ranking, rows: IntArray) -> RankedRows:
        """Return some call paths of a ranking."""
        own, whole = ranking.of_rows(rows)
        additive = ranking.fitted.metric.additive
        return cls(ranking, own, whole, ranking.inclusive, additive, ranking, rows)

    @property
    def leader(self) -> IntArray:
        """The call path whose model stands for each row; -1 = none."""
        return self.ranking.leader[self.rows]

    @property
    def is_ranked(self) -> list[bool]:
        """True for the rows with a rank."""
        ranked: list[bool] = self.ranking.is_ranked[self.rows].tolist()
        return ranked

    @cached_property
    def ends(self) -> list[tuple[Growth, ...] | None]:
        """The slowest and the fastest probable growth of each row."""
        return growth_ends(self.ranking.fitted, self.leader)

    def of_ranked(self, values: FloatArray) -> FloatArray:
        """Return the values of rows with a rank; NaN for others."""
        return np.where(self.is_ranked, values, np.nan)

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


BEFORE_PAIRS: tuple[Column[RankedRows], ...] = (
    Column(
        key="rank",
        help="1 = worst; empty without a value",
        cells=lambda rows: [place or None for place in rows.ranking.places[rows.rows].tolist()],
        title="#",
        text=lambda rows, _: [*map(str, rows.ranking.places[rows.rows].tolist())],
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
    Column(
        key="metric",
        help="",
        cells=lambda rows: [rows.ranking.fitted.metric.name] * len(rows.rows),
    ),
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
        key="since",
        help="first measured scale of the law beyond a change point; empty without one",
        cells=_since,
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
        key="excess_inclusive",
        help=EXCESS.help,
        cells=lambda rows: rows.ranking.excess.inclusive[rows.rows],
    ),
    Column(
        key="excess_exclusive",
        help=EXCESS.help,
        cells=lambda rows: rows.of_present(rows.own.excess),
    ),
    Column(
        key="loss",
        help="cost per process at the target beyond perfect scaling",
        cells=lambda rows: rows.of_present(rows.ranking.lost[rows.rows]),
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
        text=lambda rows, _: [*map(_cause_text, rows.ranking.why(rows.rows))],
        right=False,
        droppable=4,
        place=14,
        applies=lambda rows: any(each != NOTHING for each in rows.ranking.why(rows.rows)),
    ),
    Column(
        key="trust",
        help="0 to 4 marks, see [Trust](#trust)",
        cells=lambda rows: [
            mark if mark >= 0 else None for mark in rows.ranking.trust[rows.rows].tolist()
        ],
        title="trust",
        text=lambda rows, _: [*map(marks_text, rows.ranking.trust[rows.rows].tolist())],
        droppable=-3,
        place=15,
        applies=has_models,
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
        cells=lambda rows: [rows.ranking.basis if ranked else None for ranked in rows.is_ranked],
    ),
    PREDICTED,
    Column(
        key="predicted_low",
        help="band of the prediction",
        cells=lambda rows: rows.ranking.predicted.low[rows.rows],
        unit=unit,
    ),
    Column(
        key="predicted_high",
        help="band of the prediction",
        cells=lambda rows: rows.ranking.predicted.high[rows.rows],
        unit=unit,
    ),
    Column(
        key="maximum_at_largest",
        help="exclusive maximum over processes at the largest scale; empty if unknown",
        cells=lambda rows: rows.ranking.maxima_at_largest[0][rows.rows],
        unit=unit,
        title=lambda rows: max_title(rows.ranking.fitted),
        text=lambda rows, style: [
            style.amount(value, unit(rows))
            for value in rows.ranking.maxima_at_largest[0][rows.rows].tolist()
        ],
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
        text=lambda rows, _: [
            ratio_text(value) for value in rows.ranking.maxima_at_largest[1][rows.rows].tolist()
        ],
        droppable=7,
        name="imbalance",
        place=10,
        applies=_has_processes,
    ),
    Column(
        key="growth_low",
        help="slowest and fastest probable growth (see below)",
        cells=lambda rows: _end(0, rows),
    ),
    Column(
        key="growth_high",
        help="slowest and fastest probable growth (see below)",
        cells=lambda rows: _end(1, rows),
    ),
)
"""Columns after the excess work of chosen pairs of scales."""
