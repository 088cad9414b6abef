"""Rankings as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.network import Unit
from callpath_modeler.analysis.step_time import step_time
from callpath_modeler.arrays import IntArray
from callpath_modeler.errors import check_type
from callpath_modeler.fitted import Fitted
from callpath_modeler.report.columns import calibration_header, verdict_header, verification_header
from callpath_modeler.report.further_columns import further_columns
from callpath_modeler.report.losses_text import pair_cells, pair_header
from callpath_modeler.report.ranking_columns import AFTER_PAIRS, BEFORE_PAIRS, RankedRows
from callpath_modeler.report.scale_cost_text import scale_cost_json
from callpath_modeler.report.table_formats import (
    BLOCK,
    Cell,
    RowColumns,
    Table,
    file_cells,
    file_units,
    provenance,
)

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.expectations.check_result import Check
    from callpath_modeler.analysis.run_time import RunTime
    from callpath_modeler.analysis.scales import ScalingOptimum
    from callpath_modeler.analysis.verification import BandCalibration, Verification
    from callpath_modeler.analysis.what_if import WhatIf
    from callpath_modeler.diagnostics import Finding


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
    changed: WhatIf | None = None,
    *,
    gains: bool = False,
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
    changed : the run after changes, which become a column; None = none
    gains : columns with what the run gains without each call path

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
    from callpath_modeler.analysis.expectations.check_result import Check
    from callpath_modeler.analysis.verification import Verification

    check_type(ranking, Ranking, "ranking")
    check_type(check, (Check, NoneType), "check")
    check_type(verified, (Verification, NoneType), "verified")
    rows = all_rows(ranking) if rows is None else ranking.fitted.experiment.tree.chosen(rows)
    has_energy = ranking.energy is not None
    further = further_columns(check, verified, changed, gains=gains, energy=has_energy)
    after = [*AFTER_PAIRS, *further]

    # The order of the rows is not that of the store: each block would read alternatives anew.
    growths = ranking.fitted.models.all_growth_ends() if len(rows) > BLOCK else None

    def cells(block: IntArray) -> dict[str, list[Cell]]:
        of = RankedRows.of(ranking, block, growths)
        columns = file_cells(BEFORE_PAIRS, of)
        columns |= pair_cells(
            ranking, lambda costs: (costs.exclusive[block], costs.inclusive[block])
        )
        columns |= file_cells(after, of)
        ranking.fitted.give_back()
        return columns

    header = answer_header(
        ranking,
        findings,
        first={"values": "inclusive" if ranking.inclusive else "exclusive"},
        kind={"by": str(ranking.by)},
        last={},
    )
    header |= scale_cost_json(ranking)
    if check is not None:
        header["expectations"] = verdict_header(check)
    if verified is not None:
        header["verification"] = verification_header(verified)
    if changed is not None:
        header["what_if"] = what_if_header(changed)
    if calibration is not None:
        header["calibration"] = calibration_header(calibration)
    units = file_units((*BEFORE_PAIRS, *after), RankedRows.of(ranking, rows[:0]))
    return Table(RowColumns(rows, cells), units, header)


_NETWORK = {Unit.STEP: "seconds_per_step", Unit.BYTE: "seconds_per_byte"}
"""Fields of the costs of a network."""


def what_if_header(changed: WhatIf) -> dict[str, object]:
    """Return the JSON fields of a run after changes, in the unit of the metric."""
    ends = ("value", "low", "high")
    return {
        "changes": [change.text for change in changed.changes],
        **{
            name: dict(zip(ends, told, strict=True))
            for name, told in (
                ("gain", changed.gain),
                ("before", changed.before),
                ("after", changed.after),
                *((_NETWORK[cost.unit], cost.each) for cost in changed.network),
            )
        },
    }


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
    total, low, high = answer.sum_of_call_paths
    run_time = answer.run_time
    imbalance = {"at_largest": answer.imbalance_at_largest, "at_target": answer.imbalance}
    return {
        **provenance(fitted.experiment, findings),
        "metric": fitted.metric.name,
        **first,
        **measured_json(fitted),
        "target": answer.target,
        "base": answer.base,
        **kind,
        "basis": answer.basis,
        "repetitions": answer.repetitions,
        "total": {
            "at_largest": answer.inputs.whole_at_largest if answer.has_sums else None,
            "at_target": total,
            "low": low,
            "high": high,
            "predicted": answer.predicted_total,
        },
        "run_time": None if run_time is None else run_time_json(answer, run_time),
        "imbalance": None if run_time is None else imbalance,
        **_step_json(answer),
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


def _step_json(answer: Answer) -> dict[str, object]:
    """Return the time of a step of a training run; nothing for other programs."""
    step = step_time(answer)
    if step is None:
        return {}
    return {
        "step": {
            "steps": step.steps,
            "at_target": step.value,
            "low": step.low,
            "high": step.high,
            "scatter": step.scatter,
            "one_low": step.one_low,
            "one_high": step.one_high,
            "batch": step.batch,
            "samples_per_second": step.samples_per_second,
            "seconds_per_sample": step.seconds_per_sample,
        }
    }


def _excess_json(answer: Answer) -> dict[str, object] | None:
    """Return the excess work of the program and of its imbalance; None = not defined."""
    if np.isnan(answer.total_excess):
        return None
    band = answer.program_excess
    return {
        "program": answer.total_excess,
        "low": band.low[0],
        "high": band.high[0],
        "imbalance": answer.imbalance_excess,
    }


def run_time_json(answer: Answer, run_time: RunTime) -> dict[str, object]:
    """Return the run time at the target and at all measured scales."""
    value, low, high = run_time.total
    fitted = run_time.fitted
    return {
        "at_largest": run_time.at_largest,
        "at_target": value,
        "low": low,
        "high": high,
        "predicted": answer.predicted_run_time,
        "repetitions": run_time.repetitions,
        "model": fitted.models.formula(0, fitted.parameter),
        "measured": fitted.measured[0].tolist(),
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
