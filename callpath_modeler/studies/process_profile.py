"""Values of the single processes of call paths, and their distribution.

An experiment holds one number per call path and run, so the values of processes are read when they
are asked for. Profiles are opened one after another, and only sums over the call paths are kept.

The rule for outlying processes works on logarithms, because noise of times is skewed. The unit of
distance is the distance between the median and the quartile on the same side, divided by log 2. For
an exponential tail, this is its scale. The limit grows with the logarithm of the number of
processes, as the largest of so many values does.

Sources: robust outlier labelling by quartiles is of J. W. Tukey, Exploratory Data Analysis, 1977.
Its limits ignore the number of values and the skewness, so the constants here come from simulations
of noise; `tests/unit/analysis/test_process_distribution.py` repeats them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError, UsageError
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.balance import in_subtrees
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.metric_formulas import measured_operands
from callpath_modeler.profile.pruning import Folding
from callpath_modeler.profile.runs import Run, main_parameter
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.readers.base import CallSiteSource, ProfileSource, RunSource, opened_runs
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.process_selection import fulfilling
from callpath_modeler.readers.process_values import (
    CommonTree,
    ProcessValues,
    ValueChoice,
    process_values,
)
from callpath_modeler.readers.profile_runs import name_of, of_steps
from callpath_modeler.readers.reductions import statistic_of_present
from callpath_modeler.readers.registry import Registry, naming_the_reader
from callpath_modeler.readers.threads import in_given_units
from callpath_modeler.studies.loading import LoadOptions
from callpath_modeler.studies.question import Target
from callpath_modeler.units import counted, parameter_value, setting_text

FALSE_RATE = 0.05
"""Largest fraction of call paths with an outlying process, if all processes have the same noise."""
LEAST = 8
"""Smallest number of processes with values above zero from which on processes are outlying."""

_NEAREST, _SLOPE = 6.8, 1.2
"""Limit in scales of the tail: the first, plus the second times the logarithm of the processes."""


class NotJudged(StrEnum):
    """Reason why no process is outlying."""

    FEW = "few"
    """Too few processes have a value above zero."""
    EQUAL = "equal"
    """More than half of the processes have the same value."""


@dataclass(frozen=True, slots=True, eq=False)
class ProcessDistribution:
    """The distribution of the values of processes.

    Attributes
    ----------
    values : float64 [processes]; NaN = no valid value
    low, high : a process beyond these limits is outlying; NaN = there are no limits
    reason : the reason why there are no limits, or None
    most_common : value of more than half of the processes with values above zero; NaN = none
    """

    values: FloatArray
    low: float
    high: float
    reason: NotJudged | None
    most_common: float

    @property
    def valid(self) -> FloatArray:
        """The valid values."""
        return self.values[~np.isnan(self.values)]

    @property
    def zeros(self) -> int:
        """Number of processes without cost."""
        return int(np.count_nonzero(self.values == 0))

    @property
    def median(self) -> float:
        """Median of the valid values; NaN = no valid value."""
        return float(np.median(self.valid)) if len(self.valid) else float("nan")

    @property
    def mean(self) -> float:
        """Mean of the valid values; NaN = no valid value."""
        return float(np.mean(self.valid)) if len(self.valid) else float("nan")

    @property
    def outlying(self) -> BoolArray:
        """Mask of outlying processes, [processes]; processes without cost never are outlying."""
        with np.errstate(invalid="ignore"):
            beyond = (self.values > self.high) | (self.values < self.low)
        return np.asarray(beyond & (self.values > 0))


def distribution(values: FloatArray) -> ProcessDistribution:
    """Return the distribution of values over processes.

    Parameters
    ----------
    values : float64 [processes], not negative; NaN = no valid value

    Returns
    -------
    ProcessDistribution
        Processes without cost are no part of the rule: they do not execute the call path. If all
        others have the same noise, normal, lognormal, exponential or of another common kind, an
        outlying process is found in at most `FALSE_RATE` of all call paths.
    """
    nowhere = float("nan")
    some = values[values > 0]
    if len(some) < LEAST:
        return ProcessDistribution(values, nowhere, nowhere, NotJudged.FEW, nowhere)
    logs = np.log(some)
    lower, middle, upper = np.quantile(logs, [0.25, 0.5, 0.75], method="median_unbiased")
    down, up = (middle - lower) / np.log(2), (upper - middle) / np.log(2)
    known, count = np.unique(some, return_counts=True)
    if 2 * count.max() > len(some):
        common = float(known[count.argmax()])
        return ProcessDistribution(values, nowhere, nowhere, NotJudged.EQUAL, common)
    # Values with few digits may have a quartile at the median, on one side only.
    down, up = down or up, up or down
    limit = _NEAREST + _SLOPE * np.log(len(some))
    with np.errstate(over="ignore"):
        low, high = float(np.exp(middle - limit * down)), float(np.exp(middle + limit * up))
    return ProcessDistribution(values, low, high, None, nowhere)


def agreement(values: FloatArray) -> float:
    """Return how well repetitions agree on the order of the processes.

    Parameters
    ----------
    values : [repetitions, processes]; NaN = no valid value

    Returns
    -------
    float
        Mean of Spearman's rank correlation over all pairs of repetitions: 1 = the same processes
        are slow in every repetition, 0 = there is no relation. NaN = there are fewer than two
        repetitions or `LEAST` processes, or the values of a repetition are all the same.
    """
    known = values[:, ~np.isnan(values).any(axis=0)]
    repetitions, processes = known.shape
    if repetitions < 2 or processes < LEAST:
        return float("nan")
    ranks = np.stack([_average_ranks(row) for row in known])
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.sqrt((ranks**2).sum(axis=1, keepdims=True))
    if not lengths.all():
        return float("nan")
    ranks /= lengths
    # The square of the sum holds all pairs, and the pairs of a repetition with itself.
    total = float((ranks.sum(axis=0) ** 2).sum()) - repetitions
    return float(total / (repetitions * (repetitions - 1)))


def _average_ranks(values: FloatArray) -> FloatArray:
    """Return the rank of each value; equal values share the mean of their ranks."""
    _, which, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    found: FloatArray = (last - (count - 1) / 2)[which]
    return found


UNREADABLE = "CPM101"
"""Finding about a profile that cannot be read."""
RENUMBERED = "CPM123"
"""Finding about functions of one name that only their order identifies."""
_LISTED = 8
"""Largest number of scales that an error lists."""


@dataclass(frozen=True, slots=True, eq=False)
class ProcessProfile:
    """Values of processes of call paths in the runs at one scale.

    Attributes
    ----------
    experiment : the experiment
    rows : rows of the call paths; their values are summed
    inclusive : True = with their callees
    metric : the metric, with the unit of the values
    at : values of the varying parameters, or else of the main parameter
    runs : positions of the runs in the experiment, in order of repetitions
    values : values of processes, for each run
    skipped : runs at this scale without values, with the reasons
    """

    experiment: Experiment
    rows: IntArray
    inclusive: bool
    metric: Metric
    at: Mapping[str, float]
    runs: tuple[int, ...]
    values: tuple[ProcessValues, ...]
    skipped: Mapping[str, str]

    @property
    def ranks(self) -> IntArray:
        """The ranks of all runs, ascending, [processes]."""
        return np.unique(np.concatenate([each.ranks for each in self.values]))

    def of_repetitions(self) -> FloatArray:
        """Return values by repetition and rank, [repetitions, processes]; NaN = no valid value."""
        ranks = self.ranks
        found = np.full((len(self.values), len(ranks)), np.nan)
        for row, each in zip(found, self.values, strict=True):
            row[np.searchsorted(ranks, each.ranks)] = each.values
        return found

    def nodes(self) -> tuple[str, ...]:
        """Return the compute node of each rank; "" = not known, or different between runs."""
        known: dict[int, str] = {}
        for each in self.values:
            for rank, node in zip(each.ranks.tolist(), each.placement.nodes, strict=True):
                known[rank] = node if known.setdefault(rank, node) == node else ""
        return tuple(known[rank] for rank in self.ranks.tolist())

    def distribution(self) -> ProcessDistribution:
        """Return the distribution over processes of the medians of the repetitions."""
        return distribution(statistic_of_present(self.of_repetitions().T, Reduction.MEDIAN))

    def times_outlying(self) -> IntArray:
        """Return in how many repetitions each process is an outlier, [processes]."""
        each = [distribution(row).outlying for row in self.of_repetitions()]
        found: IntArray = np.sum(each, axis=0, dtype=np.intp)
        return found

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about the runs at this scale, and about profiles that cannot be read."""
        runs = {self.experiment.runs[number].source for number in self.runs} | {*self.skipped}
        known = (f for f in self.experiment.findings if f.subject in runs or f.code == UNREADABLE)
        read = (f for each in self.values for f in each.findings)
        return tuple(dict.fromkeys([*known, *read]))


def process_profile(
    experiment: Experiment,
    rows: Sequence[int] | IntArray,
    metric: str | None = None,
    *,
    inclusive: bool = False,
    target: Target | None = None,
    options: LoadOptions | None = None,
) -> ProcessProfile:
    """Return the values of processes in some call paths.

    Parameters
    ----------
    experiment : the experiment
    rows : rows of the call paths in its tree, at least one; their values are summed
    metric : name of the metric; None = the first duration
    inclusive : add the callees; call paths that are callees of others count once
    target : the measured scale; by default, parameters have their largest measured values
    options : the options with which the experiment was loaded

    Raises
    ------
    DataError
        If the scale was not measured, or if no run at this scale has values of processes.
    InputError
        If a profile is no longer there, or cannot be read.
    UsageError
        If there is no such metric or parameter, or if the processes were split into groups.
    """
    (found,) = process_profiles(
        experiment, [rows], metric, inclusive=inclusive, target=target, options=options
    )
    if isinstance(found, DataError):
        raise found
    return found


def process_profiles(
    experiment: Experiment,
    choices: Sequence[Sequence[int] | IntArray],
    metric: str | None = None,
    *,
    inclusive: bool = False,
    target: Target | None = None,
    options: LoadOptions | None = None,
) -> list[ProcessProfile | DataError]:
    """Return the values of processes in several choices of call paths.

    Each profile is opened once. Parameters and errors are as in `process_profile`, but each
    choice has rows.

    Returns
    -------
    list
        For a choice without values of processes in any run, the error.
    """
    options = options or LoadOptions()
    _refuse_groups(options)
    chosen_metric = experiment.metric(metric)
    _refuse_defined(experiment, chosen_metric)
    at, numbers = _runs_at(experiment, target or Target())
    asked = [np.asarray(rows, np.intp) for rows in choices]
    masks = [_mask(experiment, rows, inclusive=inclusive) for rows in asked]
    renumbered = [each.subject for each in experiment.findings if each.code == RENUMBERED]
    wanted = np.logical_or.reduce(masks)
    common = CommonTree(experiment.tree, options.ignore, options.hide, renumbered, wanted)
    registry = Registry.of_installed(options.reader)
    found: list[dict[int, ProcessValues]] = [{} for _ in asked]
    skipped: list[dict[str, DataError]] = [{} for _ in asked]
    for number in numbers:
        run = experiment.runs[number]
        column = experiment.columns[chosen_metric.name].exclusive[:, number]
        wanted = [_choice(mask, column, experiment.reduction) for mask in masks]
        with _opened(run, registry) as opened:
            source = of_steps(opened.source, options.read.selected_steps)
            if experiment.tree.has_sites and isinstance(source, CallSiteSource):
                source = source.with_call_sites()
            rows_here = common.rows_of(source.call_tree)
            each = _of_run(source, chosen_metric.name, rows_here, wanted, options)
        for values, kept, left in zip(each, found, skipped, strict=True):
            if isinstance(values, DataError):
                left[run.source] = values
            else:
                kept[number] = values
    profiles: list[ProcessProfile | DataError] = []
    for rows, kept, left in zip(asked, found, skipped, strict=True):
        if not kept:
            name, first = next(iter(left.items()))
            profiles.append(DataError(f"{name}: {first.message}", hint=first.hint))
            continue
        told = {name: why.message for name, why in left.items()}
        of_runs = tuple(kept.values())
        profiles.append(
            ProcessProfile(
                experiment, rows, inclusive, of_runs[0].metric, at, tuple(kept), of_runs, told
            )
        )
    return profiles


def _refuse_groups(options: LoadOptions) -> None:
    """Raise `UsageError` for options that change the processes or the call paths of profiles."""
    selection = options.read.processes
    if selection is not None and (selection.conditions or selection.auto):
        raise UsageError(
            "the values of single processes are not split into groups",
            hint="omit --split-ranks; --ranks selects processes",
        )
    if joined := [fold for fold in options.fold if fold is not Folding.CALL_SITES]:
        raise UsageError(
            "the values of single processes are those of call paths that profiles have",
            hint=f"omit --fold {joined[0]}",
        )


def _refuse_defined(experiment: Experiment, metric: Metric) -> None:
    """Raise `UsageError` for a metric that no profile has."""
    needed = measured_operands(experiment.definitions, metric.name)
    if needed != (metric.name,):
        raise UsageError(
            f"{metric.name} is defined by a formula, and profiles have its operands only",
            hint=f"-m {shell_word(needed[0])}",
        )


def _of_run(
    source: ProfileSource,
    metric: str,
    rows: IntArray,
    choices: Sequence[ValueChoice],
    options: LoadOptions,
) -> Sequence[ProcessValues | DataError]:
    """Return the values of processes in each choice of one run, or the errors."""
    stated = in_given_units(tuple(source.metrics), options.read.units, source.extent)
    selection, used = options.read.processes, None
    if selection is not None and selection.ranks is not None:
        used = fulfilling(selection.ranks, source)
    try:
        return process_values(source, stated, metric, rows, choices, used)
    except DataError as error:
        return [error] * len(choices)


def _mask(experiment: Experiment, rows: IntArray, *, inclusive: bool) -> BoolArray:
    """Return which call paths are summed, [call paths]."""
    if inclusive:
        return in_subtrees(experiment.tree, rows)
    chosen = np.zeros(len(experiment.tree), np.bool_)
    chosen[rows] = True
    return chosen


def _choice(chosen: BoolArray, column: FloatArray, reduction: Reduction) -> ValueChoice:
    """Return call paths, the costliest of which is compared with its value in `column`."""
    rows = np.flatnonzero(chosen)
    known = column[rows]
    row = ROOT if np.isnan(known).all() else int(rows[np.nanargmax(known)])
    return ValueChoice(chosen, row, float("nan") if row == ROOT else float(column[row]), reduction)


def _runs_at(experiment: Experiment, target: Target) -> tuple[dict[str, float], list[int]]:
    """Return the values of the varying parameters at a measured scale, and its runs."""
    names = [parameter.name for parameter in experiment.parameters]
    wanted = dict(target.named)
    chosen = target.parameter or main_parameter(names) or next(iter(names), None)
    if target.value is not None:
        known = experiment.runs[0].parameters
        wanted[chosen or main_parameter(known) or next(iter(known), "p")] = target.value
    for name in wanted:
        if name not in experiment.runs[0].parameters:
            listed = ", ".join(experiment.runs[0].parameters) or "none"
            raise UsageError(f"no parameter {name!r} is known", hint=f"parameters: {listed}")
    left = [k for k, run in enumerate(experiment.runs) if _is_at(run, wanted)]
    if not left:
        raise DataError(
            f"{setting_text(wanted)} was not measured, so there are no values of its processes",
            hint=f"choose a measured scale: {_measured(experiment, list(wanted))}",
        )
    for name in sorted(names, key=lambda name: name != chosen):
        largest = max(experiment.runs[k].parameters[name] for k in left)
        left = [k for k in left if experiment.runs[k].parameters[name] == largest]
    of = experiment.runs[left[0]].parameters
    stated = [name for name, value in experiment.constants.items() if value > 0 and name in of]
    names = names or [str(main_parameter(stated))] * bool(stated)
    return {name: of[name] for name in names}, left


def _is_at(run: Run, wanted: Mapping[str, float]) -> bool:
    return all(run.parameters.get(name) == value for name, value in wanted.items())


def _measured(experiment: Experiment, names: Sequence[str]) -> str:
    """Return the measured settings of some parameters, the last ones if they are many."""
    known = sorted({tuple(run.parameters[name] for name in names) for run in experiment.runs})
    if len(names) == 1:
        texts = [parameter_value(values[0]) for values in known]
    else:
        texts = [setting_text(dict(zip(names, values, strict=True))) for values in known]
    more = f"{counted(len(texts) - _LISTED, 'other')}, " if len(texts) > _LISTED else ""
    return more + (", " if len(names) == 1 else "; ").join(texts[-_LISTED:])


@contextmanager
def _opened(run: Run, registry: Registry) -> Iterator[RunSource]:
    """Open the profile of a run again."""
    path = _path_of(run)
    reader = registry.find(path)
    with naming_the_reader(reader, path), opened_runs(reader, path) as runs:
        file, several = RunFile(path), len(runs) > 1
        for each in runs:
            if name_of(file, each, several=several) == run.source or not several:
                yield each
                return
        raise _gone(run)


def _path_of(run: Run) -> Path:
    """Return the file or directory of a run; the name of a file with several runs has brackets."""
    for name in (run.source, run.source.rpartition("[")[0]):
        path = Path(name)
        try:
            # A device or a pipe may never end.
            if name and (path.is_file() or path.is_dir()):
                return path
        except (OSError, ValueError):
            continue
    raise _gone(run)


def _gone(run: Run) -> InputError:
    return InputError(
        f"{run.source}: the profile is not there, and only profiles have values of processes",
        hint="give the profiles, or run the command in the directory in which they were read",
    )
