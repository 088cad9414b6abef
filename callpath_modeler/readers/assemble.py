"""Experiments from profiles: the runs are read, checked and united on one call tree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from callpath_modeler.arrays import Float32Array, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import (
    CallpathModelerError,
    DataError,
    InputError,
    UsageError,
    check_choice,
    check_count,
    check_executor,
    check_type,
    parse_enum,
)
from callpath_modeler.printable import printable, shell_word
from callpath_modeler.profile.balance import Balance
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.experiment import TOLD_SCALINGS, Experiment, Scaling, unknown_metric
from callpath_modeler.profile.groups import MetricValues, RunLines
from callpath_modeler.profile.runs import (
    PROGRAM_KEY,
    SEVERAL,
    Run,
    are_named_programs,
    case_findings,
    case_names,
    names_a_case,
    refuse_several_cases,
    refuse_several_programs,
    split_parameters,
    varying_keys,
)
from callpath_modeler.profile.scaling_kind import (
    AS_TOLD,
    ScalingKind,
    recognise_scaling,
    with_scaling,
)
from callpath_modeler.profile.schema import Metric, MetricStatus, Reduction
from callpath_modeler.profile.unify import (
    Unified,
    coverage_findings,
    lost_findings,
    scatter_to_union,
    unify,
)
from callpath_modeler.readers.base import NO_CHOICES, ColumnChoices, RunSource, StepRange
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.parameters import COLUMN, NOT_USED, Settled, settle_parameters
from callpath_modeler.readers.profile_runs import (
    Outcome,
    Progress,
    ReadRequest,
    ReadRun,
    read_files,
    read_process_times,
    read_run,
    reduction_of,
)
from callpath_modeler.readers.registry import Registry
from callpath_modeler.readers.run_cases import keys_of_cases, provenance_findings, with_cases
from callpath_modeler.readers.threads import BalanceRequest
from callpath_modeler.readers.tokens import odd_names
from callpath_modeler.support.front_ends import stage
from callpath_modeler.units import counted, percent

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from callpath_modeler.readers.process_groups import ProcessTimes
    from callpath_modeler.readers.process_selection import ProcessSelection

GroupName = tuple[str, str]
"""Value of the group of runs, and name of the case; "" = there is one."""
_DIGITS = dict.fromkeys(map(ord, "0123456789"))
"""Translation that removes digits."""
_ZERO = re.compile(r"(?<![0-9.])0(?![0-9.])")
"""The number 0, from which names may count kinds of runs."""
_CONSERVED = 1e-6
_TOO_MUCH = 1.25
"""Ratio of the sum of maxima to the total from which on a finding is reported."""
ALTERING = frozenset({"CPM103", "CPM104", "CPM105", "CPM117"})
"""Findings of readers that removed values, so that call paths need not add up to the total."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of reading profiles.

    Attributes
    ----------
    metrics : names of metrics to read; empty = the first duration, or else the first metric;
        None = all
    requirements : read requirements (visits, bytes, operations), energy and times of GPUs as
        well
    locations : statistic over processes; None = the mean, or the statistic of profiles that have
        only one
    parameter_sources : source of each parameter: ``"name"``, ``"profile"``, ``"processes"``,
        ``"threads"``, ``"nodes"`` or ``"metadata:KEY"``
    scale_beside : untrusted configuration file that states p or the names of runs; it does not
        replace the number of processes of a profile. "" = none
    units : units of metrics whose profiles do not state them, such as ``{"time": "us"}``
    columns : roles of columns of tables that the user states
    scaling : weak or strong; None = found from the data
    balance : parts of the run time to read, for the factors of parallel efficiency; None = none
    processes : selected processes and their groups; None = all in one group
    call_sites : calls of a function from several lines are several call paths, if the profiles have
        these lines; else they are one
    lines : read the costs of lines, too, for a view of the source
    steps : selected steps of a loop, such as ``"3-"``; None = all that the profiles have
    strict : a profile that cannot be used is an error instead of a finding
    jobs : largest number of processes that read, or of threads that share one large profile; 0 =
        one for each processor. Few small files are read by one process, because this takes less
        time
    executor : reads the profiles instead of processes and threads of this machine
    """

    metrics: tuple[str, ...] | None = ()
    requirements: bool = False
    locations: Reduction | None = None
    parameter_sources: Mapping[str, str] = field(default_factory=dict)
    scale_beside: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    columns: ColumnChoices = NO_CHOICES
    scaling: Scaling | None = None
    balance: BalanceRequest | None = None
    processes: ProcessSelection | None = None
    call_sites: bool = True
    lines: bool = False
    steps: StepRange | str | None = None
    strict: bool = False
    jobs: int = 1
    executor: Executor | None = field(default=None, repr=False, compare=False)

    def request(self, processes: ProcessSelection | None) -> ReadRequest:
        """Return the contents of profiles to read, of some processes."""
        return ReadRequest(
            metrics=self.metrics,
            requirements=self.requirements,
            units=self.units,
            balance=self.balance,
            processes=processes,
            call_sites=self.call_sites,
            lines=self.lines,
            columns=self.choices,
            steps=self.selected_steps,
        )

    @property
    def selected_steps(self) -> StepRange | None:
        """The selected steps; None = all."""
        return StepRange.of(self.steps) if isinstance(self.steps, str) else self.steps

    @property
    def choices(self) -> ColumnChoices:
        """The roles of columns that the user states, with those of parameters."""
        sources = self.parameter_sources.values()
        titles = tuple(each.removeprefix(COLUMN) for each in sources if each.startswith(COLUMN))
        return structs.replace(self.columns, parameters=titles) if titles else self.columns

    def __post_init__(self) -> None:
        if self.locations is not None:
            object.__setattr__(
                self, "locations", parse_enum(Reduction, self.locations, "locations")
            )
        if self.scaling is not None:
            check_choice(self.scaling, TOLD_SCALINGS, "scaling")
            object.__setattr__(self, "scaling", Scaling(self.scaling))
        check_type(self.steps, (StepRange, str, NoneType), "steps")
        object.__setattr__(self, "steps", self.selected_steps)
        check_type(self.metrics, (tuple, list, NoneType), "metrics")
        check_type(self.parameter_sources, Mapping, "parameter_sources")
        check_type(self.units, Mapping, "units")
        check_type(self.columns, ColumnChoices, "columns")
        check_count(self.jobs, 0, "--jobs")
        check_executor(self.executor)


def assemble(
    files: Sequence[RunFile],
    registry: Registry,
    options: ReadOptions,
    progress: Progress | None = None,
    *,
    select: Callable[[list[ReadRun]], list[ReadRun]] | None = None,
) -> Experiment:
    """Read profiles and return one experiment.

    Parameters
    ----------
    files : profiles
    registry : readers
    options : options of reading
    progress : function that gets the number of profiles read, and the number of all profiles
    select : function that selects runs, before their parameters are determined; None = all runs

    Raises
    ------
    InputError
        If there is no profile, or if none can be read. With `strict`, if any cannot be read.
    DataError
        If the profiles do not belong together.
    UsageError
        If the profiles are of several programs, or if no profile has a requested metric.
    """
    found = assemble_groups(
        files,
        registry,
        options,
        progress,
        groups=lambda read: {("", ""): select(read) if select else read},
    )
    return found["", ""]


def assemble_groups(
    files: Sequence[RunFile],
    registry: Registry,
    options: ReadOptions,
    progress: Progress | None = None,
    *,
    groups: Callable[[list[ReadRun]], Mapping[GroupName, list[ReadRun]]],
) -> dict[GroupName, Experiment]:
    """Read profiles and return one experiment for each group of runs.

    A group whose runs do not belong together is left out, with a finding about the others.

    Parameters
    ----------
    files : profiles
    registry : readers
    options : options of reading
    progress : function that gets the number of profiles read, and the number of all profiles
    groups : function that divides the runs into groups by name, before their parameters are
        determined

    Raises
    ------
    InputError, DataError, UsageError
        As in `assemble`. Of several groups, all have an error, or `strict` refuses the first one.
    """
    if not files:
        raise InputError("no profiles were given", hint="give profiles or directories of runs")
    findings: list[Finding] = []
    distinct = without_repeats(files, findings)
    with stage("read"):
        read = _collected(outcomes_of(distinct, registry, options, progress), options, findings)
    with stage("unify"):
        divided = groups(_with_cases(read, options))
        found = _experiments_of(divided, options, findings)
    return {
        name: _with_counted_scaling(each, divided[name], registry, options)
        for name, each in found.items()
    }


def _experiments_of(
    groups: Mapping[GroupName, list[ReadRun]], options: ReadOptions, findings: Sequence[Finding]
) -> dict[GroupName, Experiment]:
    """Return the experiment of each group; one with an error is left out, if others have none."""
    if len(groups) < 2:
        return {name: _experiment_of(runs, options, [*findings]) for name, runs in groups.items()}
    found: dict[GroupName, Experiment] = {}
    errors: list[CallpathModelerError] = []
    left_out: list[Finding] = []
    for name, runs in groups.items():
        try:
            found[name] = _experiment_of(runs, options, [*findings])
        except (DataError, UsageError) as error:
            shown = printable("/".join(filter(None, name)))
            errors.append(type(error)(f"{shown}: {error.message}", hint=error.hint))
            left_out.append(Finding("CPM101", f"case {shown}", error.message, len(runs)))
    if errors and (options.strict or not found):
        raise errors[0] from errors[0].__cause__
    if left_out:
        chosen = next(iter(found))
        findings = (*left_out, *found[chosen].findings)
        found[chosen] = replace(found[chosen], findings=findings)
    return found


def _with_counted_scaling(
    experiment: Experiment, runs: Sequence[ReadRun], registry: Registry, options: ReadOptions
) -> Experiment:
    """Return an experiment; if its times do not tell its scaling, counts are read to tell it.

    So the kind is the same for commands that read counts and for those that do not.
    """
    unread = (d for run in runs for d in run.declared if d.metric.name not in experiment.columns)
    if experiment.scaling is not Scaling.UNCLEAR or not any(d.is_requirement for d in unread):
        return experiment
    more = replace(options, requirements=True)
    names = {run.name for run in runs}
    with stage("read"):
        files = list({run.file.path: run.file for run in runs}.values())
        read = _collected(outcomes_of(files, registry, more), more, [])
    found = _experiment_of([run for run in read if run.name in names], more, [])
    return with_scaling(experiment, ScalingKind(found.scaling, found.scaling_reason))


def assemble_outcomes(
    outcomes: Iterable[tuple[RunFile, Outcome]],
    options: ReadOptions,
    findings: Sequence[Finding] = (),
    *,
    select: Callable[[list[ReadRun]], list[ReadRun]],
) -> Experiment:
    """Return the experiment of profiles that were read before.

    Parameters
    ----------
    outcomes : profiles with their runs or errors
    options : options of reading; those that concern single profiles are ignored
    findings : findings about the profiles
    select : function that selects runs, before their parameters are determined

    Raises
    ------
    InputError, DataError, UsageError
        As in `assemble`.
    """
    noted = [*findings]
    with stage("read"):
        read = _collected(outcomes, options, noted)
    with stage("unify"):
        return _experiment_of(select(_with_cases(read, options)), options, noted)


def assemble_runs(name: str, runs: Sequence[RunSource], options: ReadOptions) -> Experiment:
    """Return the experiment of runs in memory.

    Parameters
    ----------
    name : source of the runs, for messages
    runs : runs of one program, at least one
    options : options of reading

    Raises
    ------
    DataError, UsageError
        As in `assemble`.
    """
    reduction = reduction_of(runs[0].source, options.locations, Path(name))
    request, several = options.request(options.processes), len(runs) > 1
    read = [
        read_run(RunFile(Path(name)), run, name, request, reduction, several=several)
        for run in runs
    ]
    _require_units(read, options)
    return _experiment_of(read, options, [])


def _experiment_of(
    read: list[ReadRun], options: ReadOptions, findings: list[Finding]
) -> Experiment:
    refuse_several_tools(read)
    if options.metrics is not None and not options.metrics:
        _refuse_several_metrics(read)
    keys = varying_keys(keys_of_cases(read), read)
    if not keys:
        refuse_several_programs(read)
    findings += case_findings(keys, read)
    findings += [
        finding
        for run in read
        for finding in run.findings
        # The user has decided on these parameters and units.
        if (finding.code != "CPM141" or finding.subject not in options.parameter_sources)
        and (finding.code != "CPM160" or finding.subject not in options.units)
    ]
    _refuse_units(read)
    try:
        read, settled = _settled(read, options, findings)
    except UsageError:
        # The parameters of several cases need not fit together.
        refuse_several_cases(keys, read)
        raise
    findings += settled.findings
    read, runs = _in_order(read, settled, keys)
    known = {*keys, *_excluded(options)}
    others = (each for each in provenance_findings(runs) if each.subject not in known)
    findings += [each for each in others if not keys or each.code != SEVERAL]
    return replace(
        _unite(read, runs, settled.origins, options, findings, keys), numbers=settled.numbers
    )


def _with_cases(read: list[ReadRun], options: ReadOptions) -> list[ReadRun]:
    """Return runs with the keys of the metadata that tell cases apart, as `with_cases`."""
    if _may_be_of_several_cases(read):
        stated = options.parameter_sources.keys()
        read = with_cases(read, lambda runs: _points(runs, options), _excluded(options), stated)
    if any(run.cases for run in read) or not are_named_programs(read):
        return read
    return [structs.replace(run, cases=(PROGRAM_KEY,)) for run in read]


def _excluded(options: ReadOptions) -> frozenset[str]:
    """Return the names that are neither parameters nor cases, because the user says so."""
    sources = options.parameter_sources.items()
    return frozenset(name for name, source in sources if source == NOT_USED)


def _may_be_of_several_cases(read: Sequence[ReadRun]) -> bool:
    """Return whether runs differ in words; this takes little time, and most series do not."""
    if any(run.cases for run in read):
        return True
    if len({str(run.file.path).translate(_DIGITS) for run in read}) > 1:
        return True
    if any(_ZERO.search(str(run.file.path)) for run in read):
        return True
    keys = dict.fromkeys(key for run in read for key in run.metadata)
    return any(
        names_a_case(key) and len({run.metadata.get(key) for run in read}) > 1 for key in keys
    )


def _points(read: Sequence[ReadRun], options: ReadOptions) -> list[tuple[object, ...]]:
    """Return the values of the parameters of each run, or those that the profiles state."""
    try:
        settled = settle_parameters(read, options.parameter_sources, options.scale_beside)
    except UsageError:
        return [(*run.stated.items(), run.extent.processes, run.extent.threads) for run in read]
    return [tuple(own.values()) for own in settled.parameters]


def _settled(
    read: list[ReadRun], options: ReadOptions, findings: list[Finding]
) -> tuple[list[ReadRun], Settled]:
    """Return the runs with their parameters; few runs with another form of name are left out.

    Raises
    ------
    UsageError
        As in `settle_parameters`.
    """
    asked = options.parameter_sources, options.scale_beside
    try:
        return read, settle_parameters(read, *asked)
    except UsageError:
        odd = odd_names([run.file.components for run in read])
        rest = [run for k, run in enumerate(read) if k not in odd]
        if options.strict or len(rest) == len(read):
            raise
        settled = settle_parameters(rest, *asked)
    for k in sorted(odd):
        message = "left out, because its name has another form than those of the other runs"
        findings.append(Finding("CPM101", str(read[k].file.path), message))
    return rest, settled


def without_repeats(files: Sequence[RunFile], findings: list[Finding]) -> list[RunFile]:
    """Return every profile once; one that is given twice is a finding."""
    seen: dict[Path, RunFile] = {}
    folders: dict[Path, Path] = {}
    for file in files:
        folder, name = file.path.parent, file.path.name
        if file.path.is_symlink() or name in {"", ".."}:
            place = file.path.resolve()
        else:
            if folder not in folders:
                folders[folder] = folder.resolve()
            place = folders[folder] / name
        if place in seen:
            findings.append(Finding("CPM122", str(file.path), "given twice, used once"))
        seen.setdefault(place, file)
    return list(seen.values())


def outcomes_of(
    files: Sequence[RunFile],
    registry: Registry,
    options: ReadOptions,
    progress: Progress | None = None,
) -> Iterator[tuple[RunFile, Outcome]]:
    """Return an iterator over profiles with their runs or errors, as `read_files` does."""
    return read_files(
        *(files, registry, options.request(_selection(files, registry, options))),
        options.locations,
        jobs=options.jobs,
        executor=options.executor,
        progress=progress,
    )


def _collected(
    outcomes: Iterable[tuple[RunFile, Outcome]], options: ReadOptions, findings: list[Finding]
) -> list[ReadRun]:
    """Return the runs of all profiles; an error becomes a finding, or is raised."""
    read: list[ReadRun] = []
    errors: list[InputError] = []
    for file, outcome in outcomes:
        if isinstance(outcome, InputError):
            errors.append(outcome)
            reason = outcome.message.removeprefix(f"{file.path}: ").removeprefix(f"{file.path}/")
            findings.append(Finding("CPM101", str(file.path), reason))
        else:
            read += outcome
    if errors and (options.strict or not read):
        first = errors[0]
        others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InputError(first.message + others, hint=first.hint)
    _require(read, options)
    _require_units(read, options)
    return read


def _selection(
    files: Sequence[RunFile], registry: Registry, options: ReadOptions
) -> ProcessSelection | None:
    """Return the selected processes; groups are found from the times of all runs."""
    selection = options.processes
    if selection is None or not selection.auto:
        return selection
    metric = next(iter(options.metrics or ()), None)
    times: dict[str, ProcessTimes] = {}
    for file in files:
        try:
            times |= read_process_times(file, registry, metric, options.units)
        except InputError:
            continue  # it is reported when the values are read
    return selection.with_found_groups(times)


def _require(read: Sequence[ReadRun], options: ReadOptions) -> None:
    have = {name for run in read for name in run.values}
    for name in options.metrics or ():
        if name not in have:
            for declared in (d for run in read for d in run.declared if d.metric.name == name):
                raise DataError(
                    f"metric {name!r} cannot be read: {declared.note or declared.status}",
                    hint=f"readable metrics: {', '.join(sorted(have))}",
                )
            known = {d.metric.name: 0 for r in read for d in r.declared if d.status.is_readable}
            raise unknown_metric(name, known)


def _require_units(read: Sequence[ReadRun], options: ReadOptions) -> None:
    """Raise `UsageError` if no profile has a metric for which the user gave a unit."""
    known = {declared.metric.name: 0 for run in read for declared in run.declared}
    for name in options.units:
        if name not in known:
            raise unknown_metric(name, known)


def refuse_several_tools(read: Sequence[ReadRun]) -> None:
    """Raise `DataError` if profiles are of several tools, or only some are post-processed."""
    readers = sorted({run.reader for run in read})
    if len(readers) > 1:
        raise DataError(
            f"profiles of several tools in one series: {', '.join(readers)}",
            hint="their values have different meanings; choose one tool with --reader",
        )
    processed = [any(d.status is MetricStatus.DERIVED for d in run.declared) for run in read]
    if any(processed) and not all(processed):
        odd = read[processed.index(True)].name
        raise DataError(
            f"{odd}: a post-processed report among plain profiles has times of another meaning",
            hint="give all runs as profile.cubex or all as summary.cubex",
        )


def _refuse_several_metrics(read: Sequence[ReadRun]) -> None:
    """Raise `DataError` if the runs measured the run time with different metrics."""
    examples = {next(iter(run.values)): run.name for run in reversed(read) if run.values}
    if len(examples) < 2:
        return
    of_each = [{d.metric.name for d in run.declared if d.status.is_readable} for run in read]
    shared = sorted(set.intersection(*of_each))
    listed = ", ".join(f"{name} in {where}" for name, where in sorted(examples.items()))
    chosen = f"choose a metric of all runs: -m {shell_word(shared[0])}" if shared else ""
    raise DataError(
        f"the runs measured the run time with different metrics: {listed}",
        hint=chosen or "measure all runs with the same metric",
    )


def _refuse_units(read: Sequence[ReadRun]) -> None:
    """Raise `DataError` if runs have one metric in several units; an empty unit fits all units."""
    units: dict[str, dict[str, str]] = {}
    for run in read:
        for metric in (declared.metric for declared in run.declared):
            if metric.name in run.values and metric.unit:
                units.setdefault(metric.name, {}).setdefault(metric.unit, run.name)
    for name, known in units.items():
        if len(known) > 1:
            listed = ", ".join(f"{unit} in {where}" for unit, where in known.items())
            raise DataError(
                f"{name} has different units: {listed}", hint="give runs with the same unit"
            )


def _in_order(
    read: Sequence[ReadRun], settled: Settled, keys: Sequence[str]
) -> tuple[list[ReadRun], tuple[Run, ...]]:
    """Return runs in order of point and repetition; those of a point and case count from 1."""
    parameters, cases = settled.parameters, case_names(keys, read)

    def key(i: int) -> tuple[tuple[float, ...], int, int]:
        return tuple(parameters[i].values()), settled.repetitions[i] or 0, i

    order = sorted(range(len(read)), key=key)
    count: Counter[Hashable] = Counter()
    runs = []
    for i in order:
        point = (*parameters[i].values(), cases[i])
        count[point] += 1
        of = read[i]
        runs.append(Run(of.name, of.reader, of.extent, parameters[i], count[point], of.metadata))
    return [read[i] for i in order], tuple(runs)


def _stem(path: Path, run: Run) -> str:
    """Return the beginning of the name of a profile; of names like ``p8.r1``, the folder above."""
    stem = path.name.split(".")[0]
    is_parameter = stem == f"p{run.parameters.get('p', 0):g}"
    return (is_parameter and path.absolute().parent.name) or stem


def _unite(
    read: Sequence[ReadRun],
    runs: tuple[Run, ...],
    origins: Mapping[str, str],
    options: ReadOptions,
    findings: list[Finding],
    keys: Sequence[str],
) -> Experiment:
    united = unify([run.tree for run in read])
    points = [
        (*run.parameters.values(), case)
        for run, case in zip(runs, case_names(keys, runs), strict=True)
    ]
    reduction = read[0].reduction
    columns = {}
    known = {d.metric.name: d.metric for run in reversed(read) for d in reversed(run.declared)}
    for name in dict.fromkeys(name for run in read for name in run.values):
        column = _column(known[name], read, points, united.rows, len(united.tree), reduction)
        columns[column.metric.name] = column
    findings += _unification_findings(read, united)
    findings += _cost_findings(columns, read, reduction)
    findings += lost_findings(united.tree, columns, [run.name for run in read], points)
    varying, constants = split_parameters(runs, origins)
    kind = recognise_scaling(united.tree, columns, runs, reduction)
    if options.scaling is not None:
        kind = ScalingKind(options.scaling, AS_TOLD)
    experiment = Experiment(
        name=runs[0].metadata.get("program") or _stem(read[0].file.path, runs[0]),
        tree=united.tree,
        runs=runs,
        parameters=varying,
        constants=constants,
        columns=columns,
        declared=_declared(read),
        reduction=reduction,
        scaling=kind.kind,
        scaling_reason=kind.reason,
        findings=(*findings, *coverage_findings(united.tree, columns)),
        balances=tuple(map(_balance, read, united.rows)) if options.balance is not None else (),
        lines=tuple(map(_lines, read, united.rows)) if options.lines else (),
    )
    return with_scaling(experiment, kind)


def _lines(run: ReadRun, rows: IntArray) -> RunLines:
    """Return the costs of the lines of a run, with rows of the common tree."""
    return {name: costs.moved(rows) for name, costs in run.lines.items()}


def _balance(run: ReadRun, rows: IntArray) -> Balance | None:
    """Return the parts of the run time of a run, with rows of the common tree."""
    own = run.balance
    if own is None:
        return None
    return structs.replace(own, rows=np.where(own.rows == ROOT, ROOT, rows[own.rows]))


def _column(
    declared: Metric,
    read: Sequence[ReadRun],
    points: Sequence[Hashable],
    rows: Sequence[IntArray],
    n_rows: int,
    reduction: Reduction,
) -> MetricValues:
    exclusive = np.full((n_rows, len(read)), np.nan)
    total, run_time = np.full((2, len(read)), np.nan)
    # Names of metrics come from files and may contain control characters.
    name, metric = declared.name, declared.in_one_line()
    additive = metric.additive and reduction is not Reduction.IMBALANCE
    for i, run in enumerate(read):
        if name in run.values:
            own = run.values[name].exclusive
            exclusive[:, i] = scatter_to_union(own, rows[i], n_rows, additive=additive)
            total[i], run_time[i] = run.values[name].total, run.values[name].run_time
    if additive:
        _fill_absent(exclusive, points, rows)
    if reduction is Reduction.IMBALANCE:
        # A ratio has no unit, and ratios do not add up.
        words = f"{name}: maximum over mean of the processes"
        metric = Metric(metric.name, "1", words, additive=False)
        total[:] = run_time[:] = np.nan
    for array in (exclusive, total, run_time):
        array.flags.writeable = False
    uneven = _imbalance(name, read, rows, n_rows) if metric.additive else None
    known = None if np.isnan(run_time).all() else run_time
    return MetricValues(metric, exclusive, total, uneven, known)


def _fill_absent(values: FloatArray, points: Sequence[Hashable], rows: Sequence[IntArray]) -> None:
    """Set call paths to 0 in runs without them, if repetitions of these runs have them.

    The means of call paths then add up to the mean run. A value that a profile lists as missing is
    not known, and stays NaN.

    Parameters
    ----------
    values : [call paths, runs], changed in place
    points : [runs] point and case, which repetitions share
    rows : for each run, the rows of its call paths
    """
    groups: dict[Hashable, list[int]] = {}
    for i, point in enumerate(points):
        if not np.isnan(values[:, i]).all():
            groups.setdefault(point, []).append(i)
    for group in groups.values():
        if len(group) < 2:
            continue
        occurs = np.asarray(~np.isnan(values[:, group]).all(axis=1))
        for i in group:
            absent = occurs.copy()
            absent[rows[i]] = False
            values[absent, i] = 0.0


def _imbalance(
    name: str, read: Sequence[ReadRun], rows: Sequence[IntArray], n_rows: int
) -> Float32Array | None:
    """Return the imbalance from the readers, [call paths, runs]; None = no reader has it.

    If several call paths share a row, the row has their largest imbalance, because ratios do not
    add up.
    """
    told = {i: run.values[name].imbalance for i, run in enumerate(read) if name in run.values}
    if all(column is None for column in told.values()):
        return None
    uneven = np.full((n_rows, len(read)), np.nan, np.float32)
    for i, column in told.items():
        if column is not None:
            uneven[:, i] = scatter_to_union(
                column.astype(np.float64), rows[i], n_rows, additive=False
            )
    uneven.flags.writeable = False
    return uneven


def _declared(read: Sequence[ReadRun]) -> dict[str, str]:
    """Return all declared metrics with the reason why they cannot be read, or ""."""
    notes: dict[str, str] = {}
    for run in read:
        for declared in run.declared:
            readable = declared.status.is_readable
            note = "" if readable else declared.note or str(declared.status)
            name = declared.metric.name
            notes[name] = "" if readable or notes.get(name) == "" else note
    return notes


def _unification_findings(read: Sequence[ReadRun], united: Unified) -> list[Finding]:
    lacking = [run.name for run, lacks in zip(read, united.without_sites, strict=True) if lacks]
    found = [
        Finding("CPM112", run.name, f"{n} call paths added to a sibling of the same name", n)
        for run, n in zip(read, united.added, strict=True)
        if n and not lacking
    ]
    if lacking:
        message = f"{counted(len(lacking), 'run')} of {len(read)} (first {lacking[0]})"
        found.append(Finding("CPM148", "lines of calls", message, len(lacking)))
    found += [
        Finding("CPM123", name, "first lines differ between runs, so their order was used")
        for name in united.renumbered
    ]
    return found


def _cost_findings(
    columns: Mapping[str, MetricValues], read: Sequence[ReadRun], reduction: Reduction
) -> list[Finding]:
    """Return findings about runs whose call paths do not add up to the measured total."""
    found: list[Finding] = []
    for name, values in columns.items():
        for i, run in enumerate(read):
            subject = run.name
            if name not in run.values:
                found.append(Finding("CPM119", subject, f"no metric {name}"))
                continue
            total, parts = float(values.total[i]), float(np.nansum(values.exclusive[:, i]))
            if _adds_up(run, values, reduction):
                if abs(parts - total) > _CONSERVED * max(abs(total), abs(parts)):
                    message = f"{name}: call paths add up to {parts:g}, the program took {total:g}"
                    found.append(Finding("CPM114", subject, message))
            elif parts > _TOO_MUCH * total > 0 and reduction is not Reduction.GIVEN:
                more = percent(parts / total - 1)
                message = f"{name}: call paths add up to {more} more than the program took"
                found.append(Finding("CPM115", subject, message))
    return found


def _adds_up(run: ReadRun, values: MetricValues, reduction: Reduction) -> bool:
    """Return whether the call paths of a run must add up to its total.

    They need not if the values are maxima over processes or, for times, over GPU streams or over
    threads that the profile does not count. They need not if the reader removed values either.
    """
    several = run.extent.threads == 0 or values.metric.is_on_gpu_streams
    folded = values.metric.is_time and several
    altered = any(finding.code in ALTERING for finding in run.findings)
    return reduction in {Reduction.SUM, Reduction.MEAN} and not folded and not altered
