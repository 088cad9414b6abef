"""Histories of commits: a record of runs, and the judgement of all records.

Data flow: `record_of` reads runs into a `HistoryRecord`, which `history_store` keeps. `judged` lays
the records of one series on a grid of call paths, records, scales and repetitions. Then
`analysis.history` judges this grid. The words for people are in `report.history`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from callpath_modeler.analysis.history.alarms import AlarmRule
from callpath_modeler.analysis.history.judgement import HistoryChange, JudgedHistory, judge
from callpath_modeler.analysis.rank import Ranking, rank
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError, did_you_mean
from callpath_modeler.history_store import MOST_RECORDS, HistoryRecord
from callpath_modeler.loading import LoadOptions, load
from callpath_modeler.modeling import centre
from callpath_modeler.pipeline import FitOptions, models_of_loaded
from callpath_modeler.printable import printable, shortened
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.parameter_line import main_parameter, nearest_line
from callpath_modeler.readers.parallel_reading import Progress
from callpath_modeler.readers.run_provenance import ENVIRONMENT
from callpath_modeler.target_query import (
    PredictionQuery,
    checked_target,
    findings_at,
    parse_target,
    slice_at,
)
from callpath_modeler.units import parameter_value

KEPT = 1_024
"""Largest number of call paths in a record: the costliest ones."""

WORTH = 0.001
"""Least share of the cost, at any scale of any record, of a call path that is judged."""

_MOST_VALUES = 50_000_000
"""Largest number of values that are judged together."""


def record_of(
    sources: Sequence[str | Path],
    commit: str,
    time: float,
    question: PredictionQuery,
    *,
    labels: Mapping[str, str] | None = None,
    load_options: LoadOptions | None = None,
    fit_options: FitOptions | None = None,
    progress: Progress | None = None,
) -> tuple[HistoryRecord, tuple[Finding, ...]]:
    """Return the record of the runs of one commit, and findings about the runs.

    Parameters
    ----------
    sources : sources, as for `load`
    commit : name of the commit
    time : seconds since 1970, which order the history
    question : metric; with a target, predictions at the target are kept as well
    labels : what the user says about the runs
    load_options, fit_options : options of loading and of making models
    progress : called with the number of files that are read, and of all files

    Raises
    ------
    UsageError, InputError, DataError
        As `load` and `fit` do, and if the runs do not tell their scale.
    """
    load_options, fit_options = load_options or LoadOptions(), fit_options or FitOptions()
    asked = parse_target(question.target, question.at, fit_options.parameter)
    target = asked.value if asked.parameter is None else asked.named[asked.parameter]
    if target is not None and np.isinf(target):
        raise UsageError("--target inf: no later run can be held against that", hint="a finite one")
    fit_options = replace(fit_options, parameter=asked.parameter or fit_options.parameter)
    load_options = load_options.of_metric(question.metric)
    experiment = load(sources, load_options, progress)
    metric = experiment.metric(question.metric)
    findings = experiment.findings
    ranking = None
    if target is None:
        parameter, held = _line(experiment, metric.name, fit_options.parameter, {})
    else:
        found = models_of_loaded(experiment, sources, metric.name, load_options, fit_options)
        fitted = slice_at(found, asked)
        ranking = rank(fitted, checked_target(fitted, target), predicted=True)
        parameter, held = fitted.parameter, dict(fitted.measured_at)
        findings = findings_at(fitted, target)
    here = experiment.at(held)
    points, cube = here.by_point(metric.name, parameter)
    measured = ~np.isnan(cube).all(axis=(0, 2))
    if not measured.any():
        raise DataError(f"no call path has a value of {metric.name}", hint="see `cpmodel info`")
    points, cube = points[measured], cube[:, measured]
    rows = _costliest(cube)
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
        labels={printable(key): printable(value) for key, value in (labels or {}).items()},
        environment=_environment(experiment),
        held=held,
    )
    return _with_predictions(record, ranking, rows), findings


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


def _costliest(cube: FloatArray) -> IntArray:
    """Return the rows with the largest costs of values [n, K, R], in their order."""
    cost = np.nan_to_num(cube).max(axis=(1, 2))
    rows = np.flatnonzero(~np.isnan(cube).all(axis=(1, 2)))
    return np.sort(rows[np.argsort(-cost[rows], kind="stable")[:KEPT]])


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


def _environment(experiment: Experiment) -> dict[str, str]:
    """Return what all runs say about machine and build."""
    found = {}
    for key in ENVIRONMENT:
        values = {run.metadata.get(key, "") for run in experiment.runs}
        if len(values) == 1 and "" not in values:
            found[printable(key)] = shortened(printable(values.pop()), 200)
    return found


def _with_predictions(
    record: HistoryRecord, ranking: Ranking | None, rows: IntArray
) -> HistoryRecord:
    if ranking is None:
        return record
    fitted = ranking.fitted
    own = ranking.own
    bands = np.column_stack([own.value, own.low, own.high])[rows]
    has_model = ranking.leader[rows] >= 0
    growth = [
        fitted.models.growth(int(row)).text(fitted.parameter) if known else ""
        for row, known in zip(rows, has_model, strict=True)
    ]
    return replace(
        record,
        target=ranking.target,
        predicted=np.where(has_model[:, None], bands, np.nan),
        trust=ranking.trust[rows],
        growth=tuple(growth),
    )


@dataclass(frozen=True, slots=True, eq=False)
class CommitHistory:
    """The records of one series on one grid, with their judgement.

    Attributes
    ----------
    records : T records in their order
    others : number of records of other series or with other labels
    callpaths : [n] names of the judged call paths
    scales : [K] scales that the newest record and at least half of all have in common
    values : [n, T, K, R] exclusive values; NaN = missing
    target : value of the parameter that the third question is about; None = none
    rule : when evidence is an alarm
    found : the judgement
    accepted : number of the oldest records, up to which the user accepts all changes
    """

    records: tuple[HistoryRecord, ...]
    others: int
    callpaths: tuple[str, ...]
    scales: FloatArray
    values: FloatArray
    target: float | None
    rule: AlarmRule
    found: JudgedHistory
    accepted: int = 0

    @property
    def newest(self) -> HistoryRecord:
        """The newest record."""
        return self.records[-1]

    @property
    def regressions(self) -> tuple[HistoryChange, ...]:
        """Changes for the worse that are neither accepted nor followed by one for the better."""
        standing, better = [], set()
        for change in self.found.own:  # the newest first
            if not change.is_worse:
                better.add(change.row)
            elif change.row not in better and change.leading.latest >= self.accepted:
                standing.append(change)
        return tuple(standing)

    def levels(self, row: int) -> FloatArray:
        """Return the centre of the values of a call path at the largest scale, [T]."""
        return np.asarray(centre(self.values[[row], :, -1], "median")[0])


def judged(
    records: Sequence[HistoryRecord],
    rule: AlarmRule | None = None,
    *,
    target: float | None = None,
    metric: str | None = None,
    labels: Mapping[str, str] | None = None,
    accepted: str | None = None,
) -> CommitHistory:
    """Return the judgement of a history: of the newest state, and of all changes before it.

    Parameters
    ----------
    records : records in their order
    rule : when evidence is an alarm
    target : a further scale to judge; None = that of the newest predictions
    metric : judge the records of this metric; None = that of the newest record
    labels : judge the records with these labels
    accepted : commit up to which changes are accepted

    Raises
    ------
    DataError
        If no record is left, or the newest one has no scale in common with most others.
    UsageError
        If there is no such metric or commit.
    """
    rule, wanted = rule or AlarmRule(), labels or {}
    chosen = [each for each in records if wanted.items() <= each.labels.items()]
    if metric is not None and records and metric not in {each.metric for each in records}:
        known = sorted({each.metric for each in records})
        raise UsageError(f"no record of metric {metric!r}", hint=f"metrics: {', '.join(known)}")
    chosen = [each for each in chosen if metric in (None, each.metric)]
    if not chosen:
        raise DataError("the history has no such record", hint="cpmodel watch add STORE RUNS")
    newest = chosen[-1]
    mine = [each for each in chosen if each.series == newest.series]
    scales = _common_scales(mine)
    callpaths, values = _grid(mine, scales)
    target = newest.target if target is None else target
    found = judge(values, scales, target, rule)
    until = 0 if accepted is None else 1 + position_of(accepted, mine)
    others = len(records) - len(mine)
    return CommitHistory(tuple(mine), others, callpaths, scales, values, target, rule, found, until)


def position_of(commit: str, records: Sequence[HistoryRecord]) -> int:
    """Return the number of the newest record of a commit, given by its name or its beginning.

    Raises
    ------
    UsageError
        If there is no such record, or if several commits begin so.
    """
    names = [each.commit for each in records]
    found = {name for name in names if name == commit} or {
        name for name in names if name.startswith(commit)
    }
    if not commit or len(found) != 1:
        what = "no record" if not found else "several records"
        raise UsageError(
            f"{what} of commit {commit!r}", hint=did_you_mean(commit, names) or "its full name"
        )
    return len(names) - 1 - names[::-1].index(found.pop())


def _common_scales(records: Sequence[HistoryRecord]) -> FloatArray:
    """Return the scales that the newest record and at least half of all have."""
    count = Counter(scale for each in records for scale in each.scales.tolist())
    newest = records[-1].scales.tolist()
    common = [scale for scale in newest if 2 * count[scale] >= len(records)]
    if not common:
        listed = " and ".join(parameter_value(scale) for scale in newest)
        raise DataError(
            f"most records have no run at {records[-1].parameter} = {listed}, as the newest has",
            hint="measure the newest commit at a scale of the earlier ones",
        )
    return np.array(common)


def _grid(
    records: Sequence[HistoryRecord], scales: FloatArray
) -> tuple[tuple[str, ...], FloatArray]:
    """Return the call paths that carry cost in any record, and their values [n, T, K, R]."""
    rows: dict[str, int] = {}
    for record in records:
        there = np.isin(record.scales, scales)
        cost = np.nan_to_num(record.values[:, there]).max(axis=2)
        worth = (cost >= WORTH * cost.sum(axis=0)).any(axis=1) & (cost > 0).any(axis=1)
        for name in np.array(record.callpaths, object)[worth].tolist():
            rows.setdefault(name, len(rows))
    repetitions = max(each.values.shape[2] for each in records)
    shape = len(rows), len(records), len(scales), repetitions
    if np.prod(shape, dtype=float) > _MOST_VALUES:
        raise DataError(
            "the history has too many values to judge at once",
            hint=f"judge the newest records: --last {min(100, MOST_RECORDS)}",
        )
    values = np.full(shape, np.nan)
    for number, record in enumerate(records):
        own_scales = np.flatnonzero(np.isin(record.scales, scales))
        columns = np.searchsorted(scales, record.scales[own_scales])
        known = [(rows[name], k) for k, name in enumerate(record.callpaths) if name in rows]
        if known:
            to, own = np.array(known).T
            block = record.values[np.ix_(own, own_scales)]
            values[to[:, None], number, columns[None], : block.shape[2]] = block
    return tuple(rows), values
