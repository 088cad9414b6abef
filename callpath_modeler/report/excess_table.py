"""Excess work between scales as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.bands import basis_of
from callpath_modeler.analysis.ensemble import unmatched
from callpath_modeler.analysis.excess import (
    ExcessPattern,
    readings,
)
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.report.excess_view import ExcessView
from callpath_modeler.report.outlined_view import (
    OutlineColumns,
    view_header,
)
from callpath_modeler.report.pair_columns import ENSEMBLE, ensemble_json, expected_json
from callpath_modeler.report.table_formats import (
    Cell,
    RowColumns,
    Table,
    cells_of,
    provenance,
)
from callpath_modeler.report.unmatched import unmatched_json

if TYPE_CHECKING:
    from callpath_modeler.report.table_formats import Values


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
