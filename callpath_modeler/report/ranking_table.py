"""Rankings as tables; growths and models of ranked values as text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.argument_checks import check_type
from callpath_modeler.arrays import IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth, changes_since
from callpath_modeler.report.pair_columns import pair_cells, pair_header
from callpath_modeler.report.table_formats import Cell, Table, json_number, provenance
from callpath_modeler.report.verdicts import verdict_columns, verdict_header
from callpath_modeler.report.verification import (
    calibration_header,
    verification_columns,
    verification_header,
)

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.calibration import BandCalibration
    from callpath_modeler.analysis.expectations.check import Check
    from callpath_modeler.analysis.optimal_scale import ScalingOptimum
    from callpath_modeler.analysis.run_time import RunTime
    from callpath_modeler.analysis.verification import Verification
    from callpath_modeler.diagnostics import Finding


def growth_text(ranking: Ranking, row: int, *, pretty: bool = False) -> str:
    """Return the fastest growth among the parts of a ranked value; "" without a model."""
    return growth_texts(ranking, np.array([row]), pretty=pretty)[0]


def growth_texts(ranking: Ranking, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the growth of each ranked value, as `growth_text` does."""
    fitted, leader = ranking.fitted, ranking.leader[rows]
    texts = fitted.models.growth_texts(leader, fitted.parameter, pretty=pretty)
    return [text if row >= 0 else "" for text, row in zip(texts, leader.tolist(), strict=True)]


def growth_range_text(ranking: Ranking, row: int, *, pretty: bool = False) -> str:
    """Return the growth of a ranked value; a range if the data leave it open."""
    return growth_range_texts(ranking, np.array([row]), pretty=pretty)[0]


def growth_range_texts(ranking: Ranking, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the growth of each ranked value, as `growth_range_text` does."""
    return model_range_texts(ranking.fitted, ranking.leader[rows], pretty=pretty)


def model_range_texts(fitted: Fitted, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the growth of the models of call paths; a range if the data leave it open.

    A range is short: ``O(p^½ … p)`` has no logarithms, ``O(1 … log p)`` has the same powers. Rows
    of -1 stand for no model and give "".
    """
    name, between = fitted.parameter, " … " if pretty else " ... "
    texts = []
    for ends in _growth_ends(fitted, rows):
        if ends is None:
            texts.append("")
            continue
        far = ends[0].exponent != ends[1].exponent
        low, high = (replace(end, log=0) if far else end for end in ends)
        first, last = low.text(name, pretty=pretty), high.text(name, pretty=pretty)
        range_ = f"{first[:-1]}{between}{last.removeprefix('O(')}"
        texts.append(first if low == high else range_)
    return texts


def _growth_ends(fitted: Fitted, rows: IntArray) -> list[tuple[Growth, ...] | None]:
    """Return the slowest and the fastest possible growth of call paths; None for rows of -1."""
    growths = fitted.models.shapes.growths
    return [
        tuple(growths[rank] for rank in end) if row >= 0 else None
        for end, row in zip(fitted.models.growth_ends(rows).tolist(), rows.tolist(), strict=True)
    ]


def formula_text(ranking: Ranking, row: int, *, pretty: bool = False) -> str:
    """Return the model of a ranked value: of the call path, or the sum over its subtree, or ""."""
    return formula_texts(ranking, np.array([row]), pretty=pretty)[0]


def formula_texts(ranking: Ranking, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the models of ranked values, each as `formula_text` does."""
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    models, name, leader = fitted.models, fitted.parameter, ranking.leader[rows].tolist()
    if ranking.inclusive:
        subtrees = (np.arange(row, tree.end[row]) for row in rows)
        texts = [models.sum_formula(subtree, name, pretty=pretty) for subtree in subtrees]
    else:
        texts = models.formulas(rows, name, pretty=pretty)
    return [text if row >= 0 else "" for text, row in zip(texts, leader, strict=True)]


def _since(ranking: Ranking, rows: IntArray) -> list[Cell]:
    """Return the first scale of the law after a change point; None without a change point."""
    leader = ranking.leader[rows]
    since = changes_since(ranking.fitted.models.take(np.maximum(leader, 0)))
    return [at if at and row >= 0 else None for at, row in zip(since.tolist(), leader, strict=True)]


def all_rows(ranking: Ranking) -> IntArray:
    """Return every call path that occurred: ranked ones in order, then those without a value."""
    occurs = ~np.isnan(ranking.fitted.measured).all(axis=1)
    rest = np.flatnonzero(occurs & ~ranking.is_ranked)
    return np.concatenate([ranking.order, rest])


def fit_settings(fitted: Fitted) -> dict[str, object]:
    """Return the settings of the fit as JSON values; `centre` is the choice that ``auto`` made."""
    settings = dict(fitted.settings)
    numbers = {"confidence": float(settings.pop("confidence"))}
    chosen = {"centre": fitted.models.aggregate}
    return {**settings, **chosen, **numbers, "hypotheses": json.loads(settings["hypotheses"])}


def measured_json(fitted: Fitted) -> dict[str, object]:
    """Return the JSON fields of the points: parameter, values, and other parameters."""
    return {
        "parameter": fitted.parameter,
        "points": [float(point) for point in fitted.points],
        "held": dict(fitted.held),
        "measured_at": dict(fitted.measured_at),
    }


def ranking_table(
    ranking: Ranking,
    rows: IntArray | None = None,
    findings: Sequence[Finding] = (),
    check: Check | None = None,
    verified: Verification | None = None,
    calibration: BandCalibration | None = None,
) -> Table:
    """Return a ranking as a table: ranked call paths, worst first, then those without a value.

    Parameters
    ----------
    ranking : the ranking
    rows : rows of the experiment, in order; None = all
    findings : findings for JSON
    check : results of expectations about the same models; None = no expectations
    verified : measurements at the target, which become columns; None = none
    calibration : earlier predictions that corrected the bands, for JSON; None = none

    Returns
    -------
    Table
        The columns of ``cpmodel rank -f csv``, in SI base units; `to_frame` returns it for pandas.

    Raises
    ------
    UsageError
        If `ranking` is no ranking, `check` no check, or if there is no such row.
    """
    # Most rankings are without expectations and measurements, and views need none of their modules.
    from callpath_modeler.analysis.expectations.check import Check
    from callpath_modeler.analysis.verification import Verification

    check_type(ranking, Ranking, "ranking")
    check_type(check, (Check, NoneType), "check")
    check_type(verified, (Verification, NoneType), "verified")
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    rows = all_rows(ranking) if rows is None else tree.chosen(rows)
    is_ranked = ranking.is_ranked
    columns: dict[str, list[Cell]] = {
        "rank": [k or None for k in ranking.places[rows].tolist()],
        "callpath": [*tree.paths(rows)],
        "id": [f"@{short}" for short in tree.ids(rows)],
        "metric": [fitted.metric.name] * len(rows),
        "growth": [text or None for text in growth_texts(ranking, rows)],
        "model": [text or None for text in formula_texts(ranking, rows)],
        "since": _since(ranking, rows),
    }
    numbers = {
        "value_at_base": ranking.at_base,
        "value_at_largest": ranking.at_largest,
        "value_at_target": ranking.value,
        "low": ranking.low,
        "high": ranking.high,
        "share_at_largest": ranking.share_at_largest,
        "share_at_target": ranking.share,
        "excess_inclusive": ranking.excess.inclusive,
        "excess_exclusive": ranking.excess.exclusive,
        "loss": ranking.lost,
    }
    of_target = {"value_at_target", "low", "high", "share_at_target"}
    if not ranking.repetitions:
        # A call path that is known to be absent costs and loses nothing; of others, it is unknown.
        of_target |= {"excess_exclusive", "loss"}
    for name, values in numbers.items():
        shown = np.where(is_ranked, values, np.nan) if name in of_target else values
        columns[name] = shown[rows].tolist()
    band = ranking.excess_band
    columns["excess_low"], columns["excess_high"] = (
        end[rows].tolist() for end in (band.low, band.high)
    )
    columns |= pair_cells(ranking, lambda costs: (costs.exclusive[rows], costs.inclusive[rows]))
    columns["why"] = [*ranking.why(rows)]
    columns["trust"] = [mark if mark >= 0 else None for mark in ranking.trust[rows].tolist()]
    columns["top10"] = np.where(is_ranked, ranking.first, np.nan)[rows].tolist()
    # Status and growth belong to the same model: the fastest growing one.
    speaks = np.where(ranking.leader >= 0, ranking.leader, np.arange(len(tree)))
    columns["status"] = [*fitted.statuses(speaks[rows])]
    columns["basis"] = [ranking.basis if ranked else None for ranked in is_ranked[rows].tolist()]
    of_models = {
        "predicted": ranking.predicted.value,
        "predicted_low": ranking.predicted.low,
        "predicted_high": ranking.predicted.high,
    }
    columns |= {name: values[rows].tolist() for name, values in of_models.items()}
    maximum, imbalance = ranking.maxima_at_largest
    columns["maximum_at_largest"] = maximum[rows].tolist()
    columns["imbalance_at_largest"] = imbalance[rows].tolist()
    ends = _growth_ends(fitted, ranking.leader[rows])
    for which, name in enumerate(("growth_low", "growth_high")):
        known = [None if end is None else end[which] for end in ends]
        columns[name] = [growth.text(fitted.parameter) if growth else None for growth in known]
    header = answer_header(
        ranking,
        findings,
        first={"values": "inclusive" if ranking.inclusive else "exclusive"},
        kind={"by": str(ranking.by)},
        last={},
    )
    if check is not None:
        columns |= verdict_columns(check, rows.tolist())
        header["expectations"] = verdict_header(check)
    if verified is not None:
        columns |= verification_columns(verified, rows)
        header["verification"] = verification_header(verified)
    if calibration is not None:
        header["calibration"] = calibration_header(calibration)
    unit = fitted.metric.unit
    united = (
        "maximum_at_largest",
        "value_at_base",
        "value_at_largest",
        "value_at_target",
        "low",
        "high",
        "loss",
        *of_models,
        *(["verified_value"] if verified is not None else []),
    )
    return Table(columns, dict.fromkeys(united, unit), header)


def answer_header(
    answer: Answer,
    findings: Sequence[Finding],
    *,
    first: Mapping[str, object],
    kind: Mapping[str, object],
    last: Mapping[str, object],
) -> dict[str, object]:
    """Return the JSON fields of an answer.

    Parameters
    ----------
    answer : the answer
    findings : findings about it
    first, kind, last : further fields: before the points, after the target, before the fit
    """
    fitted = answer.fitted
    total, low, high = (json_number(number) for number in answer.sum_of_call_paths)
    run_time = answer.run_time
    return {
        **provenance(fitted.experiment, findings),
        "metric": fitted.metric.name,
        **first,
        **measured_json(fitted),
        "target": json_number(answer.target),
        "base": answer.base,
        **kind,
        "basis": answer.basis,
        "repetitions": answer.repetitions,
        "total": {
            "at_largest": json_number(answer.inputs.whole_at_largest) if answer.has_sums else None,
            "at_target": total,
            "low": low,
            "high": high,
            "predicted": json_number(answer.predicted_total),
        },
        "run_time": None if run_time is None else run_time_json(answer, run_time),
        "imbalance": None if run_time is None else _imbalance_json(answer),
        "excess": _excess_json(answer),
        "fastest": turning_json(answer.turning),
        "unmodelled": {
            "callpaths": len(answer.unmodelled),
            "share": answer.unmodelled_share if answer.has_sums else None,
        },
        **pair_header(answer),
        **last,
        "fit": fit_settings(fitted),
    }


def _imbalance_json(answer: Answer) -> dict[str, object]:
    """Return the cost of the program beyond the sum of its call paths."""
    return {
        "at_largest": json_number(answer.imbalance_at_largest),
        "at_target": json_number(answer.imbalance),
    }


def _excess_json(answer: Answer) -> dict[str, object] | None:
    """Return the excess work of the program and of its imbalance; None = not defined."""
    if np.isnan(answer.total_excess):
        return None
    band = answer.program_excess
    return {
        "program": json_number(answer.total_excess),
        "low": json_number(float(band.low[0])),
        "high": json_number(float(band.high[0])),
        "imbalance": json_number(answer.imbalance_excess),
    }


def run_time_json(answer: Answer, run_time: RunTime) -> dict[str, object]:
    """Return the run time at the target and at all measured scales."""
    value, low, high = (json_number(number) for number in run_time.total)
    fitted = run_time.fitted
    return {
        "at_largest": json_number(run_time.at_largest),
        "at_target": value,
        "low": low,
        "high": high,
        "predicted": json_number(answer.predicted_run_time),
        "repetitions": run_time.repetitions,
        "model": fitted.models.formula(0, fitted.parameter),
        "measured": [json_number(float(number)) for number in fitted.measured[0]],
    }


def turning_json(optimum: ScalingOptimum | None) -> dict[str, object] | None:
    """Return the fastest scale of the program; None unless it is below the target."""
    if optimum is None:
        return None
    value, low, high = optimum.total
    return {
        "at": optimum.at,
        "value": value,
        "low": low,
        "high": high,
        "from": optimum.first,
        "to": optimum.last,
        "until": optimum.until,
        "is_slower": optimum.is_slower,
    }
