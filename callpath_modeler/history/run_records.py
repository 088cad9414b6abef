"""Records of runs for a history: what was measured, what was predicted, and what came of it.

`record_of` and `outcomes_of` read runs, and `prediction_of` takes a ranking. `history_store` and
`predictions` keep the records.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from callpath_modeler.analysis.answer import Ranking, rank
from callpath_modeler.analysis.efficiency_factors import PopFactor, Scheme
from callpath_modeler.analysis.measured import sum_over, with_means_of_repetitions
from callpath_modeler.analysis.verification import noise_of_run, runs_at
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.history.history_store import FORMULA, MOST_CALL_PATHS, HistoryRecord
from callpath_modeler.history.predictions import MOST_NOISE, OutcomeRecord, PredictionRecord
from callpath_modeler.printable import printable, shortened
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import inclusive_values
from callpath_modeler.profile.metric_formulas import needed_for
from callpath_modeler.profile.omissions import Omission, OmissionKind, share_of
from callpath_modeler.profile.runs import main_parameter, nearest_line
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.readers.reductions import statistic_of_present
from callpath_modeler.readers.run_cases import ENVIRONMENT
from callpath_modeler.studies.question import Question, findings_at
from callpath_modeler.studies.study import Study
from callpath_modeler.units import parameter_value, setting_text

KEPT = 1_024
"""Largest number of call paths in a record: the costliest ones."""

_FACTORS = (PopFactor.PARALLEL, PopFactor.BALANCE, PopFactor.COMMUNICATION)
"""Factors of a record, in the order of `history_store.FACTORS`."""


def record_of(
    study: Study,
    commit: str,
    time: float,
    question: Question,
    labels: Mapping[str, str] | None = None,
) -> tuple[HistoryRecord, PredictionRecord | None, tuple[Finding, ...]]:
    """Return the record of the runs of one commit, predictions, and findings about the runs.

    Parameters
    ----------
    study : the runs
    commit : name of the commit
    time : seconds since 1970, which order the history
    question : metric; with a target, predictions at the target are returned as well
    labels : what the user says about the runs

    Raises
    ------
    UsageError, InputError, DataError
        As `load` and `fit` do, and if the runs do not tell their scale.
    """
    chosen = study.fit_options.parameter
    asked = question.scale(chosen)
    target = asked.value if asked.parameter is None else asked.named[asked.parameter]
    if target is not None and np.isinf(target):
        raise _no_outcome_at_infinity()
    experiment = study.experiment(question.metric)
    metric = experiment.metric(question.metric)
    findings = experiment.findings
    predictions = None
    if target is None:
        parameter, held = _line(experiment, metric.name, asked.parameter or chosen, {})
    else:
        ranking = rank(*study.predicted(question), predicted=True)
        fitted = ranking.fitted
        predictions = prediction_of(ranking, time, labels or {}, commit)
        parameter, held = fitted.parameter, dict(fitted.measured_at)
        findings = findings_at(fitted, target)
    here = experiment.at(held)
    points, cube = here.by_point(metric.name, parameter)
    measured = ~np.isnan(cube).all(axis=(0, 2))
    if not measured.any():
        raise DataError(f"no call path has a value of {metric.name}", hint="see `cpmodel info`")
    points, cube = points[measured], cube[:, measured]
    is_missing = np.isnan(cube).all(axis=(1, 2))
    rows = _costliest(np.where(is_missing, np.nan, np.nan_to_num(cube).max(axis=(1, 2))), KEPT)
    record = HistoryRecord(
        commit=printable(commit),
        time=time,
        metric=metric.name,
        unit=metric.unit,
        parameter=parameter,
        reduction=str(experiment.reduction),
        scales=points,
        callpaths=_names(experiment, rows),
        values=cube[rows],
        seconds=_seconds(here, metric.name, parameter, points),
        labels=_printable_labels(labels or {}),
        environment=_environment(experiment, metric.name),
        held=held,
        target=target,
        efficiency=_factors(study, metric.name, parameter, held, points),
        omissions=(*experiment.omissions, *_cheap(cube, rows, metric)),
    )
    return record, predictions, findings


def _cheap(cube: FloatArray, rows: IntArray, metric: Metric) -> Iterator[Omission]:
    """Yield the omission of the call paths with a value for which a record has no room."""
    others = np.setdiff1d(np.flatnonzero(~np.isnan(cube).all(axis=(1, 2))), rows)
    if len(others):
        total = float(np.nansum(cube)) if metric.additive else 0.0
        share, count = share_of(float(np.nansum(cube[others])), total), len(others)
        yield Omission(OmissionKind.CHEAP, count, share=share, metric=metric.name)


def _line(
    experiment: Experiment, metric: str, wanted: str | None, held: Mapping[str, float]
) -> tuple[str, dict[str, float]]:
    """Return the parameter of the record, and measured values of the others."""
    if not experiment.parameters:
        name = wanted or main_parameter(experiment.constants)
        if name is None or name not in experiment.constants:
            raise DataError(
                "nothing says at which scale these runs were made",
                hint="say where it is found: --param p=SOURCE",
            )
        return name, {}
    names = experiment.modelled_parameters(wanted)
    settings, cube = experiment.by_setting(metric, names)
    line = nearest_line(names, settings[~np.isnan(cube).all(axis=(0, 2))], held)
    return line.parameter, dict(line.measured_at)


def _costliest(cost: FloatArray, most: int) -> IntArray:
    """Return the rows with the largest costs, in their order; NaN = no cost."""
    rows = np.flatnonzero(~np.isnan(cost))
    return np.sort(rows[np.argsort(-cost[rows], kind="stable")[:most]])


def _names(experiment: Experiment, rows: IntArray) -> tuple[str, ...]:
    """Return names of call paths that are the same in each build, and differ from each other."""
    seen: Counter[str] = Counter()
    names = []
    for row in rows.tolist():
        name = shortened(printable(experiment.tree.common_path(row)), 4_000)
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return tuple(names)


def _seconds(experiment: Experiment, metric: str, parameter: str, points: FloatArray) -> FloatArray:
    """Return run time times processes of one run at each scale, [K]; NaN = not known."""
    run_time = experiment.columns[metric].run_time
    if run_time is None:
        return np.full(len(points), np.nan)
    processes = np.array([max(1, run.extent.processes) for run in experiment.runs], float)
    cost, at = run_time * processes, experiment.settings((parameter,))[:, 0]
    found = [cost[(at == point) & ~np.isnan(cost)] for point in points]
    return np.array([np.median(each) if len(each) else np.nan for each in found])


def _environment(experiment: Experiment, metric: str) -> dict[str, str]:
    """Return what all runs say about machine and build, and the definition of the metric."""
    definition = "; ".join(each.text for each in needed_for(experiment.definitions, metric))
    found = {FORMULA: shortened(definition, 4_000)} if definition else {}
    for key in ENVIRONMENT:
        values = {run.metadata.get(key, "") for run in experiment.runs}
        if len(values) == 1 and "" not in values:
            found[printable(key)] = shortened(printable(values.pop()), 200)
    return found


def _factors(
    study: Study,
    metric: str,
    parameter: str,
    held: Mapping[str, float],
    points: FloatArray,
) -> FloatArray:
    """Return factors of efficiency [factors, K]; empty if the profiles do not allow them."""
    options = replace(study.fit_options, parameter=parameter)
    quiet = Study(study.sources, study.load_options, options)
    try:
        found = quiet.efficiency(at=held or None, metric=metric).efficiency
    except (DataError, UsageError):
        return np.empty((0, 0))
    factors = np.full((len(_FACTORS), len(points)), np.nan)
    for each in found.estimates:
        at = points == each.scale
        for row, factor in enumerate(_FACTORS):
            known = each.value.get((Scheme.MULTIPLICATIVE, factor))
            if known is not None:
                factors[row, at] = known[0]
    return factors if found.line.parameter == parameter else np.empty((0, 0))


def _printable_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {printable(key): printable(labels[key]) for key in sorted(labels)}


def prediction_of(
    ranking: Ranking, time: float, labels: Mapping[str, str], commit: str = ""
) -> PredictionRecord:
    """Return the record of the predictions of a ranking: bands of the costliest call paths.

    Parameters
    ----------
    ranking : predicted values at a finite target
    time : seconds since 1970
    labels : what the user says about the runs
    commit : commit of the runs; "" = not known

    Raises
    ------
    UsageError
        If the values are measured, the target was measured or is infinite.
    DataError
        If no call path has a prediction.
    """
    fitted, target = ranking.fitted, ranking.target
    if np.isinf(target):
        raise _no_outcome_at_infinity()
    if ranking.repetitions or (target in fitted.points and fitted.held == fitted.measured_at):
        where = setting_text({fitted.parameter: target})
        raise UsageError(
            f"runs at {where} are known, so nothing is predicted there that a later run can test",
            hint=f"a target beyond {parameter_value(float(fitted.points[-1]))}",
        )
    experiment = fitted.experiment
    has_model = (ranking.leader >= 0) & ~np.isnan(ranking.low) & ~np.isnan(ranking.value)
    rows = _costliest(np.where(has_model, ranking.value, np.nan), KEPT)
    if not len(rows):
        raise DataError("no call path has a prediction", hint="see `cpmodel fit`")
    whole = ranking.total if ranking.run_time is None else ranking.run_time.total
    bands = np.column_stack([ranking.value, ranking.low, ranking.high])[rows]
    held = {**experiment.own_constants, **fitted.held}
    held.pop(fitted.parameter, None)
    return PredictionRecord(
        time=time,
        metric=fitted.metric.name,
        unit=fitted.metric.unit,
        parameter=fitted.parameter,
        reduction=str(experiment.reduction),
        scale=target,
        runs=run_hashes(fitted.line, fitted.metric.name),
        callpaths=_names(experiment, rows),
        held={name: held[name] for name in sorted(held)},
        labels=_printable_labels(labels),
        environment=_environment(experiment, fitted.metric.name),
        commit=printable(commit),
        inclusive=ranking.inclusive,
        level=fitted.models.confidence,
        method=fitted.models.method,
        scales=tuple(fitted.points.tolist()),
        bands=tuple(zip(*bands.T.tolist(), strict=True)),
        trust=tuple(ranking.trust[rows].tolist()),
        models=tuple(shortened(text, 4_000) for text in _formulas(ranking, rows)),
        total=whole,
        is_run_time=ranking.run_time is not None,
        noise=tuple(np.minimum(noise_of_run(ranking)[rows], MOST_NOISE).tolist()),
    )


def _formulas(ranking: Ranking, rows: IntArray) -> list[str]:
    models, tree = ranking.fitted.models, ranking.fitted.experiment.tree
    name = ranking.fitted.parameter
    if not ranking.inclusive:
        return models.formulas(rows, name)
    return [models.sum_formula(np.arange(row, tree.end[row]), name) for row in rows.tolist()]


def _no_outcome_at_infinity() -> UsageError:
    return UsageError("--target inf: no later run can be held against that", hint="a finite one")


def outcomes_of(
    experiment: Experiment,
    predictions: Sequence[PredictionRecord],
    time: float,
    labels: Mapping[str, str],
    commit: str = "",
) -> tuple[OutcomeRecord, ...]:
    """Return what runs measured at the scales of predictions, one record for each scale.

    Parameters
    ----------
    experiment : runs of later scales
    predictions : predictions that the runs are held against
    time : seconds since 1970
    labels : what the user says about the runs
    commit : commit of the runs; "" = not known

    Raises
    ------
    DataError
        If no run is at the target of a prediction.
    """
    found = {}
    for each in predictions:
        setting = {**each.held, each.parameter: each.scale}
        there = runs_at(experiment, each.parameter, setting)
        if there is not None and each.reduction == str(experiment.reduction):
            found[each.series] = _outcome(there, each, time, labels, commit)
    if not found:
        targets = sorted({(each.parameter, each.scale) for each in predictions})
        listed = ", ".join(setting_text({name: scale}) for name, scale in targets[:8])
        raise DataError(
            "no run is at the target of a remembered prediction, with the same parameters and "
            "statistic over processes",
            hint=f"predictions are at {listed or 'no scale'}",
        )
    return tuple(found.values())


def _outcome(
    runs: Experiment,
    prediction: PredictionRecord,
    time: float,
    labels: Mapping[str, str],
    commit: str,
) -> OutcomeRecord:
    metric = runs.metric(prediction.metric)
    values = runs.values(metric.name)
    sums = sum_over(with_means_of_repetitions(values))
    run_time = runs.columns[metric.name].run_time
    own = statistic_of_present(values, Reduction.MEAN)
    whole = inclusive_values(runs.tree, own) if metric.additive else own
    cost = np.fmax(np.nan_to_num(own), np.nan_to_num(whole))
    rows = _costliest(cost, MOST_CALL_PATHS)
    return OutcomeRecord(
        time=time,
        metric=metric.name,
        unit=metric.unit,
        parameter=prediction.parameter,
        reduction=prediction.reduction,
        scale=prediction.scale,
        runs=run_hashes(runs, metric.name),
        callpaths=_names(runs, rows),
        held=prediction.held,
        labels=_printable_labels(labels),
        environment=_environment(runs, metric.name),
        commit=printable(commit),
        own=tuple(own[rows].tolist()),
        whole=tuple(whole[rows].tolist()),
        total=float(np.nanmean(sums)),
        run_time=float("nan") if run_time is None else float(np.nanmean(run_time)),
    )


def run_hashes(experiment: Experiment, metric: str) -> tuple[str, ...]:
    """Return a hash of each run by its parameters and its cost, without doubles.

    It does not depend on the other runs, nor on call paths that are folded.
    """
    columns = experiment.columns[metric]
    known = columns.run_time
    costs = sum_over(experiment.values(metric)) if known is None else known
    said = (
        (sorted(run.parameters.items()), cost)
        for run, cost in zip(experiment.runs, costs.tolist(), strict=True)
    )
    names = (hashlib.blake2b(repr(each).encode(), digest_size=8).hexdigest() for each in said)
    return tuple(dict.fromkeys(names))
