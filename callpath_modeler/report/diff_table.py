"""Comparisons of two experiments as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.analysis.changes import Changes
from callpath_modeler.analysis.days import ScatterOfDays
from callpath_modeler.analysis.difference import (
    ExperimentDifference,
    Violation,
    causes_of,
    only_in_one,
)
from callpath_modeler.arrays import IntArray
from callpath_modeler.errors import check_type
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.omissions import Omission, omissions_json
from callpath_modeler.report.outlined_view import unmatched_json
from callpath_modeler.report.ranking_table import fit_settings
from callpath_modeler.report.table_formats import Cell, Table, findings_json, provenance
from callpath_modeler.studies.comparison import Compared

VERDICTS = {1: "worse", -1: "better", 0: "not shown"}
"""Names of the marks of changes."""

_SCALE, _TARGET, _MODELS = "{}_at_scale", "{}_at_target", "predicted_{}"
"""Names of columns: for the largest common scale, the target, and predictions at the target."""

_OF_GROWTH = {1: "faster", -1: "slower", 0: "not shown"}


def difference_table(
    compared: Compared,
    rows: IntArray | None = None,
    broken: Sequence[Violation] = (),
    unjudged: Sequence[Omission] = (),
) -> Table:
    """Return a comparison as a table with one row per call path.

    Parameters
    ----------
    compared : the comparison
    rows : call paths, in order; None = all
    broken : limits that the comparison exceeds
    unjudged : call paths that no limit is applied to

    Returns
    -------
    Table
        The columns of ``cpmodel diff -f csv``, in SI base units; `to_frame` returns it for pandas.

    Raises
    ------
    UsageError
        If `compared` is no comparison, or if there is no such row.
    """
    check_type(compared, Compared, "compared")
    found = compared.difference
    rows = found.order if rows is None else found.pair.tree.chosen(rows)
    tree = found.pair.tree
    columns: dict[str, list[Cell]] = {
        "callpath": [tree.path(int(row)) for row in rows],
        "id": [f"@{each}" for each in tree.ids(rows)],
        "metric": [found.pair.metric.name] * len(rows),
        "occurs": [_occurs(found, int(row)) for row in rows],
    }
    columns |= _change_columns(found.measured, _SCALE, rows)
    columns |= _change_columns(found.at_target, _TARGET, rows)
    columns |= _growth_columns(found, rows)
    causes = causes_of(found, rows)
    columns["why_base"] = [cause.base for cause in causes]
    columns["why_new"] = [cause.new for cause in causes]
    columns["basis"] = _bases(found, rows)
    columns |= _change_columns(found.predicted, _MODELS, rows)
    costs = ("base", "new", "change")
    united = [form.format(name) for form in (_SCALE, _TARGET, _MODELS) for name in costs]
    units = dict.fromkeys(united, found.pair.metric.unit)
    return Table(columns, units, comparison_header(compared, broken, unjudged))


def _occurs(found: ExperimentDifference, row: int) -> str:
    both = bool(found.in_base[row]) and bool(found.in_new[row])
    return "both" if both else ("base" if found.in_base[row] else "new")


def _change_columns(changes: Changes | None, form: str, rows: IntArray) -> dict[str, list[Cell]]:
    names = ("base", "new", "change", "relative", "low", "high", "p", "rate")
    if changes is None:
        return {form.format(name): [None] * len(rows) for name in (*names, "verdict")}
    columns: dict[str, list[Cell]] = {
        form.format(name): getattr(changes, name)[rows].tolist() for name in names
    }
    verdicts = [VERDICTS[int(mark)] for mark in changes.mark[rows]]
    return {**columns, form.format("verdict"): [*verdicts]}


def _bases(found: ExperimentDifference, rows: IntArray) -> list[Cell]:
    changes = found.at_target
    if changes is None:
        return [None] * len(rows)
    return [None if unknown else found.basis for unknown in np.isnan(changes.change[rows])]


def _growth_columns(found: ExperimentDifference, rows: IntArray) -> dict[str, list[Cell]]:
    growth = found.growth
    if growth is None:
        names = ("growth_base", "growth_new", "faster", "slower", "verdict_of_growth")
        return {name: [None] * len(rows) for name in names}
    before, after = growth_texts(found, rows)
    return {
        "growth_base": [*before],
        "growth_new": [*after],
        "faster": growth.faster[rows].tolist(),
        "slower": growth.slower[rows].tolist(),
        "verdict_of_growth": [_OF_GROWTH[int(mark)] for mark in growth.mark[rows]],
    }


def comparison_header(
    compared: Compared, broken: Sequence[Violation] = (), unjudged: Sequence[Omission] = ()
) -> dict[str, object]:
    """Return what JSON says of a comparison besides its rows.

    Parameters
    ----------
    broken : exceeded limits
    unjudged : call paths that no limit is applied to
    """
    found = compared.difference
    pair, tree = found.pair, found.pair.tree
    sides = {}
    of_sides = (("base", pair.base, compared.base), ("new", pair.new, compared.new))
    for (name, side, findings), runs in zip(of_sides, found.repetitions, strict=True):
        sides[name] = {
            **provenance(side.experiment, findings),
            "points": [float(point) for point in side.points],
            "repetitions": runs,
            "fit": fit_settings(side.fitted) if side.fitted else None,
        }
    return {
        **sides,
        "metric": pair.metric.name,
        "values": "inclusive" if found.inclusive else "exclusive",
        "parameter": pair.parameter,
        "held": dict(pair.line.held),
        "measured_at": dict(pair.line.measured_at),
        "common_scales": [float(scale) for scale in pair.scales],
        "scale": found.measured.scale if found.measured else None,
        "target": found.at_target.scale if found.at_target else None,
        "basis": found.basis,
        "confidence": found.confidence,
        "days": None if found.days is None else _days_json(found.days),
        "total": {
            "at_scale": _total(found.measured),
            "at_target": _total(found.at_target),
            "predicted": _total(found.predicted),
            "is_run_time": pair.has_run_times,
        },
        "unmatched": unmatched_json(only_in_one(found), tree, ("base", "new")),
        "unjudged": omissions_json(unjudged),
        "left_out": [tree.path(int(row)) for row in np.flatnonzero(found.left_out)],
        "breaches": [
            {
                "limit": breach.limit,
                "callpath": None if breach.row is None else tree.path(breach.row),
                "scale": breach.scale,
                "at": None if breach.at is None else dict(breach.at),
                "amount": breach.amount,
            }
            for breach in broken
        ],
        "findings": findings_json(compared.both),
    }


def _days_json(days: ScatterOfDays) -> dict[str, object]:
    """Return the records of a history, and its usual scatter from day to day at each scale."""
    scatter = {f"{at:g}": days.usual(at) for at in days.scales.tolist()}
    return {"records": days.records, "scatter": scatter, "is_base": days.has_base}


def _total(changes: Changes | None) -> dict[str, object] | None:
    if changes is None or np.isnan(changes.base[-1]):
        return None
    names = ("base", "new", "change", "relative", "low", "high", "p")
    numbers = {name: float(getattr(changes, name)[-1]) for name in names}
    return {**numbers, "verdict": VERDICTS[int(changes.mark[-1])]}


def growth_texts(
    found: ExperimentDifference, rows: IntArray, *, pretty: bool = False
) -> tuple[list[str | None], list[str | None]]:
    """Return the growth of each call path before and after, None without a model."""
    growth, pair = found.growth, found.pair
    if growth is None:
        return [None] * len(rows), [None] * len(rows)

    def texts(fitted: Fitted | None, models: IntArray) -> list[str | None]:
        known = models >= 0
        if fitted is None:
            return [None] * len(models)
        written = iter(fitted.models.growth_texts(models[known], pair.parameter, pretty=pretty))
        return [next(written) if is_known else None for is_known in known.tolist()]

    before, after = growth.before[rows], growth.after[rows]
    return texts(pair.base.fitted, before), texts(pair.new.fitted, after)
