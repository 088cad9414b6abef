"""Experiments from sources: profiles, directories, globs, manifests and stored experiments."""

from __future__ import annotations

import functools
import glob
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from callpath_modeler import store
from callpath_modeler.arrays import BoolArray
from callpath_modeler.config import NAME as CONFIGURATION
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError, UsageError, check_type, parse_enum
from callpath_modeler.printable import shell_word, shortened
from callpath_modeler.profile import pruning
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.metric_formulas import OPTION as DEFINE
from callpath_modeler.profile.metric_formulas import (
    Definition,
    measured_operands,
    parse_definitions,
)
from callpath_modeler.profile.omissions import Omission, OmissionKind, with_omission
from callpath_modeler.profile.runs import Run, case_keys, case_names, of_case, refuse_unknown_case
from callpath_modeler.profile.scaling_kind import (
    AS_TOLD,
    ScalingKind,
    with_scaling,
    with_scaling_of,
)
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.profile.unify import with_coverage_of
from callpath_modeler.readers.assemble import (
    GroupName,
    ReadOptions,
    assemble,
    assemble_groups,
    assemble_outcomes,
    outcomes_of,
    refuse_several_tools,
    without_repeats,
)
from callpath_modeler.readers.base import (
    OF_COLUMNS,
    Agreement,
    ColumnReader,
    TableReading,
    VerifyingReader,
)
from callpath_modeler.readers.discover import (
    UNLISTED,
    RunFile,
    discover,
    natural_order,
    write_manifest,
)
from callpath_modeler.readers.parameters import FROM_PROFILE, SCALE_REFUSED
from callpath_modeler.readers.profile_runs import Progress, ReadRun
from callpath_modeler.readers.registry import Registry, naming_the_reader
from callpath_modeler.readers.run_cases import (
    RunSelection,
    is_metadata,
    keys_of_cases,
    metadata_value,
)
from callpath_modeler.units import decimal_of, parameter_value

if TYPE_CHECKING:
    from callpath_modeler.readers.process_selection import ProcessSelection
    from callpath_modeler.shards import Shard

_MOST_GROUPS = 50
_SCALE = "--param p"
BESIDE = "cpmodel.toml"
"""Name of the statements of an untrusted file, in a shard."""

_OF_COLUMNS = ("--drop", "--time-column", "--repetition")
OF_PROFILES = (
    *("--locations", "--ranks", "--split-ranks", "--param", "--unit", "--name", "--reader"),
    *(*_OF_COLUMNS, "--steps"),
)
"""Options of reading profiles; they do not apply to stored experiments."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Selection of runs and call paths, and options of reading.

    Attributes
    ----------
    read : options of reading each profile
    where : conditions on parameters and metadata, such as ``"p>=64,InputType=Random"``
    ignore : pattern, or several, of call paths that are dropped together with their callees
    hide : pattern, or several, of call paths that are folded into their callers
    fold : call paths that are joined: any of ``"call-sites"``, ``"recursion"`` and ``"chains"``
    name_pattern : pattern of run names, such as ``"app.p{p}.r{rep}"``
    reader : name of the reader; None = chosen by the contents of the files
    preset : names of options from a configuration file, such as ``--name``; such an option is
        ignored if it does not apply to the sources
    beside : what an untrusted configuration file beside the profiles states, by option and key;
        verdicts name it
    define : a metric by a formula, or several, such as ``"ipc = instructions / cycles"``; a formula
        uses measured metrics and earlier definitions
    case : name of a case, such as ``"quick/random"``, or one word of it, such as ``"quick"``; of
        several, all must hold
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    where: str = ""
    ignore: str | Sequence[str] = ()
    hide: str | Sequence[str] = ()
    fold: str | Sequence[str] = ()
    name_pattern: str | None = None
    reader: str | None = None
    preset: frozenset[str] = frozenset()
    beside: Mapping[str, Omission] = field(default_factory=dict)
    define: str | Sequence[str] = ()
    case: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        check_type(self.read, ReadOptions, "read")
        for name in ("where", "name_pattern", "reader"):
            check_type(getattr(self, name), (str, NoneType), name)
        for name in ("ignore", "hide", "define", "case"):
            patterns = getattr(self, name)
            # A string would be split into characters.
            patterns = (patterns,) if isinstance(patterns, str) else patterns
            check_type(patterns, (tuple, list), name)
            for pattern in patterns:
                check_type(pattern, str, name)
            object.__setattr__(self, name, tuple(patterns))
        given = (self.fold,) if isinstance(self.fold, str) else self.fold
        check_type(given, (tuple, list), "fold")
        folds = tuple(parse_enum(pruning.Folding, each, "--fold") for each in given)
        object.__setattr__(self, "fold", folds)
        if pruning.Folding.CALL_SITES in folds:
            object.__setattr__(self, "read", replace(self.read, call_sites=False))
        parse_definitions(self.define)  # before any profile is read

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The metrics of `define`."""
        return parse_definitions(self.define)

    @property
    def read_with_operands(self) -> ReadOptions:
        """The options of reading, with the operands of defined metrics instead of these."""
        if not (self.define and self.read.metrics):
            return self.read
        needed = (measured_operands(self.definitions, name) for name in self.read.metrics)
        metrics = dict.fromkeys(name for names in needed for name in names)
        return replace(self.read, metrics=tuple(metrics))

    def of_metric(self, metric: str | None) -> LoadOptions:
        """Return the options to read `metric` as well; None = the run time."""
        if metric is None or self.read.metrics is None or metric in self.read.metrics:
            return self
        return replace(self, read=replace(self.read, metrics=(metric,)))

    def of_another(self) -> LoadOptions:
        """Return the options for a second experiment, in which patterns may select nothing."""
        columns = structs.replace(self.read.columns, if_there=OF_COLUMNS)
        return replace(
            self,
            read=replace(self.read, columns=columns),
            preset=self.preset | {"--ignore", "--hide", "--case", DEFINE},
        )

    def with_requirements(self) -> LoadOptions:
        """Return the options to read requirements (visits, bytes, operations) as well."""
        return replace(self, read=replace(self.read, requirements=True))

    def with_lines(self) -> LoadOptions:
        """Return the options to read the costs of lines as well."""
        return replace(self, read=replace(self.read, lines=True))


def load(
    sources: str | Path | Sequence[str | Path],
    options: LoadOptions | None = None,
    progress: Progress | None = None,
) -> Experiment:
    """Return the experiment of profiles, directories, globs, manifests, or of one store.

    Configuration files belong to the command line; this function does not read them.

    Parameters
    ----------
    sources : one path or several; a ``cpmodel.toml`` among them is ignored
    options : selection of runs, and options of reading
    progress : called with the number of files that are read, and of all files

    Returns
    -------
    Experiment
        The call paths of all runs in one tree, with exclusive values in SI base units.

    Raises
    ------
    InputError
        If no file can be read.
    DataError
        If the profiles do not belong together, or if `where` selects no run.
    UsageError
        If an option is invalid.
    """
    check_type(options, (LoadOptions, NoneType), "options")
    options = options or LoadOptions()
    selection = _selection_of(options)
    whole = _whole(sources, options, selection, progress)
    _refuse_unnamed([whole], options)
    return _chosen(whole, options, selection)


def selected(experiment: Experiment, options: LoadOptions) -> Experiment:
    """Return the selected runs and call paths of an experiment in memory.

    Raises
    ------
    UsageError, DataError
        As in `load`.
    """
    _refuse_unnamed([experiment], options)
    return _chosen(experiment, options, _selection_of(options))


def defining(experiment: Experiment, options: LoadOptions) -> Experiment:
    """Return an experiment with the metrics that the options define.

    Raises
    ------
    UsageError
        As in `with_defined_metrics`. Definitions of a configuration file may not apply.
    """
    definitions, is_preset = options.definitions, DEFINE in options.preset
    return pruning.with_defined_metrics(experiment, definitions, if_possible=is_preset)


def load_shard(
    sources: Sequence[str | Path],
    options: LoadOptions,
    number: int,
    count: int,
    progress: Progress | None = None,
) -> Shard:
    """Return a shard: every `count`-th profile, from profile `number` on.

    Parameters
    ----------
    sources : profiles of all shards, as for `load`
    options : options of reading
    number, count : which shard of how many, from 1
    progress : called with the number of files that are read, and of all files

    Raises
    ------
    UsageError
        If an option needs the profiles of all shards.
    InputError
        If there is no profile.
    """
    from callpath_modeler.shards import Shard

    processes = options.read.processes
    if processes is not None and processes.auto:
        raise UsageError(
            "--split-ranks auto needs the times of all profiles, and a shard has only some",
            hint="state the groups, e.g. --split-ranks rank=0",
        )
    registry, files, findings = _discovered(_profiles(sources), options)
    files = without_repeats(files, findings)
    mine = files[number - 1 :: count]
    outcomes = list(outcomes_of(mine, registry, options.read_with_operands, progress))
    read = options.read
    names = "\n".join(str(file.path) for file in files).encode(errors="surrogateescape")
    asked = {
        "--metric": str(read.metrics),
        "--locations": str(read.locations),
        "--unit": str(sorted(read.units.items())),
        **({"--drop, --time, --repetition": repr(read.columns)} if read.columns else {}),
        "--ranks": _ranks_text(processes),
        "--split-ranks": repr(processes and structs.replace(processes, ranks=None)),
        "--fold call-sites": str(not read.call_sites),
        **({"--steps": str(read.steps)} if read.steps else {}),
        **({DEFINE: "\n".join(options.define)} if options.define else {}),
        BESIDE: ", ".join(each.condition for each in _read_with(options)),
        "profiles": f"{zlib.crc32(names):08x}",
    }
    return Shard(number, count, asked, read.metrics, outcomes, findings)


def load_shards(
    paths: Sequence[str | Path], options: LoadOptions
) -> tuple[Experiment, tuple[str, ...] | None]:
    """Return the experiment of all shards, and the names of the metrics that were requested.

    Parameters
    ----------
    paths : files of all shards, in any order
    options : as for `load`; those of reading single profiles are ignored

    Raises
    ------
    InputError
        If a file is not a shard.
    DataError
        If a shard is missing, or if they do not belong together.
    """
    from callpath_modeler import shards

    opened = [(path, shards.read(path)) for path in _expand(paths)]
    outcomes = shards.together(opened)
    runs = (run for _, found in outcomes if not isinstance(found, InputError) for run in found)
    reduction = next((run.reduction for run in runs), Reduction.MEAN)
    if option := _late_option(options, reduction, but="--param"):
        raise UsageError(
            f"{opened[0][0]}: {option} is for reading profiles; this shard was read before",
            hint=f"cpmodel fit PROFILES --shard K/N {option} ... -o FILE",
        )
    asked = opened[0][1].asked
    if DEFINE in asked:
        defined = (*asked[DEFINE].split("\n"), *options.define)
        options = replace(options, define=tuple(dict.fromkeys(defined)))
    selection = _selection_of(options)
    whole = assemble_outcomes(
        outcomes, options.read, opened[0][1].findings, select=selection.by_metadata
    )
    if condition := asked.get("--ranks", ""):
        whole = _with_processes(whole, condition)
    if condition := asked.get(BESIDE, ""):
        whole = _with_omissions(whole, [Omission(OmissionKind.CONFIGURED, condition=condition)])
    whole = _with_omissions(whole, _of_stored(options, but="--param"))
    _refuse_unnamed([whole], options)
    return _chosen(whole, options, selection), opened[0][1].metrics


def _ranks_text(processes: ProcessSelection | None) -> str:
    """Return the condition of ``--ranks``; "" = there is none."""
    return "" if processes is None or processes.ranks is None else processes.ranks.text


def _with_processes(experiment: Experiment, condition: str) -> Experiment:
    """Return an experiment that says that it only has the processes of a condition."""
    return _with_omissions(experiment, [Omission(OmissionKind.PROCESSES, condition=condition)])


def _with_omissions(experiment: Experiment, more: Iterable[Omission]) -> Experiment:
    omissions = functools.reduce(with_omission, more, experiment.omissions)
    return replace(experiment, omissions=omissions)


def _read_with(options: LoadOptions) -> Iterator[Omission]:
    """Yield what an untrusted file states about reading profiles, for one profile alone."""
    told = {"--unit", "--name", *_OF_COLUMNS}
    return (each for option, each in options.beside.items() if option in told)


def _of_stored(options: LoadOptions, *, but: str = "--") -> Iterator[Omission]:
    """Yield what an untrusted file states besides reading profiles, which it cannot change."""
    for option, each in options.beside.items():
        if option.split(" ")[0] not in OF_PROFILES or option.startswith(f"{but} "):
            yield each


def _with_beside(experiment: Experiment, options: LoadOptions) -> Experiment:
    """Return an experiment of profiles with the statements of an untrusted file about them."""
    beside = dict(options.beside)
    if any(each.code == SCALE_REFUSED for each in experiment.findings) and _SCALE in beside:
        beside[_SCALE] = replace(beside[_SCALE], kind=OmissionKind.NOT_CONFIGURED)
    return _with_omissions(experiment, beside.values())


def load_both(
    base: Sequence[str | Path],
    new: Sequence[str | Path],
    options: LoadOptions,
    progress: Progress | None = None,
) -> tuple[Experiment, Experiment]:
    """Return two experiments; a pattern or the name of a case may match nothing in one of them."""
    lenient = replace(options, preset=options.preset | {"--case"})
    selections = _selection_of(lenient), _selection_of(lenient)
    first = _whole(base, options, selections[0], progress)
    second = _whole(new, options, selections[1], progress)
    is_wrong = "--case" not in options.preset and not any(each.finds_cases for each in selections)
    if options.case and is_wrong:
        refuse_unknown_case(options.case[0])
    first, second = _alike(first, second), _alike(second, first)
    _refuse_unnamed([first, second], options)
    return _chosen(first, options, selections[0]), _chosen(second, options, selections[1])


def load_parts(
    sources: Sequence[str | Path],
    options: LoadOptions,
    group_by: str | None = None,
    progress: Progress | None = None,
) -> dict[tuple[str, str], Experiment]:
    """Return one experiment for each group of runs, and for each case in it.

    Parameters
    ----------
    sources : sources, as for `load`
    options : options of loading
    group_by : key of the metadata, in any case, or a parameter; None = all runs are one group
    progress : called with the number of files that are read, and of all files

    Returns
    -------
    dict
        Experiments by the value of the group and the name of the case. Numbers come before words,
        ascending. Without groups, and in a group of one case, the texts are empty.

    Raises
    ------
    UsageError
        If there is no such key or parameter, or it has too many values.
    DataError
        If some runs lack it.
    """
    selection = _selection_of(options)
    is_key = False

    def divided(runs: list[ReadRun]) -> dict[GroupName, list[ReadRun]]:
        nonlocal is_key
        chosen = selection.by_metadata(runs)
        refuse_several_tools(chosen)
        groups = {"": chosen}
        if is_key := group_by is not None and is_metadata(chosen, group_by):
            groups = _divided(chosen, _known(group_by, _entries(chosen, group_by)))
        return {
            (value, case): some
            for value, of in groups.items()
            for case, some in _divided(of, case_names(keys_of_cases(of), of)).items()
        }

    paths = _expand(sources)
    if any(store.is_stored(path) for path in paths):
        experiments = {("", ""): _whole(sources, options, selection, progress)}
    else:
        registry, files, findings = _discovered(paths, options)
        found = assemble_groups(
            files, registry, options.read_with_operands, progress, groups=divided
        )
        experiments = {
            name: _as_read(replace(each, findings=(*findings, *each.findings)), options)
            for name, each in found.items()
        }
    _refuse_unnamed([*experiments.values()], options)
    chosen = {name: _chosen(each, options, selection) for name, each in experiments.items()}
    if group_by is None or is_key:
        return chosen
    return {
        (value, case): part
        for (_, case), each in chosen.items()
        for value, part in _by_value(each, group_by).items()
    }


def parts_of(
    experiment: Experiment, group_by: str | None = None
) -> dict[tuple[str, str], Experiment]:
    """Return one experiment for each group and case of an experiment in memory, as `load_parts`."""
    groups = {"": experiment} if group_by is None else _by_value(experiment, group_by)
    return {
        (value, case): part
        for value, each in groups.items()
        for case, part in _split(each, each.cases_of_runs()).items()
    }


def _by_value(experiment: Experiment, name: str) -> dict[str, Experiment]:
    """Return the runs of each value of a parameter or of an entry of the metadata."""
    return _split(experiment, _known(name, _values_of_runs(experiment, name)))


def _split(experiment: Experiment, texts: Sequence[str]) -> dict[str, Experiment]:
    """Return the runs of each text, in the order of the texts."""
    values = sorted({*texts}, key=natural_order)
    if len(values) < 2:
        return dict.fromkeys(values, experiment)
    parts = {v: experiment.where(np.array([text == v for text in texts])) for v in values}
    return {value: with_coverage_of(with_scaling_of(part)) for value, part in parts.items()}


def _divided(runs: Sequence[ReadRun], texts: Sequence[str]) -> dict[str, list[ReadRun]]:
    """Return the runs of each text, in the order of the texts."""
    pairs = [*zip(runs, texts, strict=True)]
    values = sorted({*texts}, key=natural_order)
    return {value: [run for run, text in pairs if text == value] for value in values}


def _values_of_runs(experiment: Experiment, name: str) -> list[str | None]:
    """Return the value of a parameter or of a metadata key of each run, as text."""
    runs = experiment.runs
    if name in runs[0].parameters:
        return [parameter_value(run.parameters[name]) for run in runs]
    if not is_metadata(runs, name):
        raise _unknown_name(runs, name, "--group-by")
    return _entries(runs, name)


def _unknown_name(runs: Sequence[Run], name: str, option: str) -> UsageError:
    """Return the error about a name that is neither a parameter nor in the metadata."""
    keys = dict.fromkeys(key for run in runs for key in run.metadata)
    told = f"; metadata: {', '.join(keys)}" if keys else ""
    return UsageError(
        f"no parameter {name!r} in {option}, and no such metadata",
        hint=f"parameters: {', '.join(runs[0].parameters)}{told}",
    )


def _entries(runs: Sequence[Run | ReadRun], name: str) -> list[str | None]:
    """Return an entry of the metadata of each run; None = it lacks the entry."""
    return [metadata_value(run, name) or None for run in runs]


def _known(name: str, told: Sequence[str | None]) -> list[str]:
    """Return the values by which runs are grouped, or raise an error for those that cannot be."""
    known = [value for value in told if value is not None]
    lacking = len(told) - len(known)
    if lacking:
        raise DataError(
            f"{lacking} of {len(told)} runs have no {name!r}",
            hint=f"exclude them: --where {shell_word(name + '=?*')}",
        )
    count = len({*known})
    if count > _MOST_GROUPS:
        raise UsageError(
            f"--group-by {name}: {count} values, more than {_MOST_GROUPS}",
            hint="group by something that several runs share, or select some with --where",
        )
    return known


def _selection_of(options: LoadOptions) -> RunSelection:
    """Return the selection of runs; a case of a configuration file may not apply."""
    return RunSelection(options.where, options.case, if_possible="--case" in options.preset)


def _refuse_unnamed(experiments: Sequence[Experiment], options: LoadOptions) -> None:
    """Raise an error if a pattern matches no call path of any experiment."""
    ignored = () if "--ignore" in options.preset else options.ignore
    hidden = () if "--hide" in options.preset else options.hide
    if ignored or hidden:
        pruning.refuse_unnamed([each.tree for each in experiments], ignored, hidden)


def _whole(
    sources: str | Path | Sequence[str | Path],
    options: LoadOptions,
    selection: RunSelection,
    progress: Progress | None,
) -> Experiment:
    """Return all call paths of the runs whose metadata fulfil the conditions."""
    # A string would be split into characters, and "/" is the whole file system.
    paths = _expand([sources] if isinstance(sources, str | Path) else sources)
    stored = [path for path in paths if store.is_stored(path)]
    if stored:
        if len(paths) > 1:
            raise UsageError(
                f"{stored[0]}: a stored experiment stands alone",
                hint="give either one .cpm or profiles",
            )
        return _with_omissions(_opened(stored[0], options), _of_stored(options))
    registry, files, findings = _discovered(paths, options)
    read = options.read_with_operands
    experiment = assemble(files, registry, read, progress, select=selection.by_metadata)
    if findings:
        experiment = replace(experiment, findings=(*findings, *experiment.findings))
    return _as_read(experiment, options)


def _as_read(experiment: Experiment, options: LoadOptions) -> Experiment:
    """Return an experiment of profiles that says how the options restricted its reading."""
    condition = _ranks_text(options.read.processes)
    experiment = _with_processes(experiment, condition) if condition else experiment
    return _with_beside(experiment, options)


def _chosen(experiment: Experiment, options: LoadOptions, selection: RunSelection) -> Experiment:
    """Return the selected runs and call paths."""
    omissions = _left_out(experiment, selection)
    kept = _kept(experiment, selection) if selection.open or selection.cases else None
    if kept is not None:
        omissions = _with_runs(experiment, omissions, kept)
    if omissions != experiment.omissions:
        experiment = replace(experiment, omissions=omissions)
    whole = experiment
    if kept is not None:
        experiment = experiment.where(kept)
    experiment = pruning.drop_subtrees(experiment, options.ignore)
    if experiment is not whole:
        experiment = with_scaling_of(experiment)
    # Folded call paths become part of their callers, so they do not decide how the callers scale.
    chosen = pruning.merge_into_callers(experiment, options.hide)
    if pruning.Folding.RECURSION in options.fold:
        chosen = pruning.fold_recursion(chosen)
    if pruning.Folding.CHAINS in options.fold:
        chosen = pruning.fold_chains(chosen)
    chosen = chosen if chosen is whole else with_coverage_of(chosen)
    return defining(chosen, options)


def _left_out(experiment: Experiment, selection: RunSelection) -> tuple[Omission, ...]:
    """Return what was left out of an experiment while its profiles were found and read."""
    omissions = experiment.omissions
    excluded, runs = selection.excluded
    if excluded:
        omissions = with_omission(omissions, Omission(OmissionKind.RUNS, excluded, runs))
    unlisted = sum(each.count for each in experiment.findings if each.code == UNLISTED)
    if unlisted and all(each.kind is not OmissionKind.PROFILES for each in omissions):
        number = unlisted + len(experiment.runs) + excluded
        omissions = (*omissions, Omission(OmissionKind.PROFILES, unlisted, number))
    return omissions


def _with_runs(
    experiment: Experiment, omissions: tuple[Omission, ...], kept: BoolArray
) -> tuple[Omission, ...]:
    """Return omissions with that of the runs that are not kept."""
    if kept.all():
        return omissions
    share, count = pruning.cost_share(experiment, slice(None), ~kept), int((~kept).sum())
    metric = experiment.metric().name
    return with_omission(omissions, Omission(OmissionKind.RUNS, count, len(kept), share, metric))


def _opened(path: Path, options: LoadOptions) -> Experiment:
    """Return a stored experiment; raise an error for options that only apply to profiles."""
    if path.is_file() and _is_shard(path):
        raise UsageError(
            f"{path}: one shard of an experiment, not all of it",
            hint="cpmodel merge FILE... -o NAME.cpm, with all shards",
        )
    experiment = store.read_experiment(path)
    if option := _late_option(options, experiment.reduction):
        raise UsageError(
            f"{path}: {option} is for reading profiles; this store was read before "
            f"({experiment.reduction.words})",
            hint=f"cpmodel fit PROFILES {option} ... -o NAME.cpm",
        )
    read = options.read
    if read.scaling is not None:
        experiment = with_scaling(experiment, ScalingKind(read.scaling, AS_TOLD))
    if pruning.Folding.CALL_SITES in options.fold and experiment.tree.has_sites:
        if experiment.reduction not in pruning.SUMS:
            raise UsageError(
                f"{path}: the {experiment.reduction} over processes of several calls is not known",
                hint=f"cpmodel fit PROFILES --fold {pruning.Folding.CALL_SITES} ... -o NAME.cpm",
            )
        experiment = pruning.join_call_sites(experiment)
    return experiment


def _is_shard(path: Path) -> bool:
    from callpath_modeler import shards

    return shards.is_shard(path)


def _late_option(options: LoadOptions, reduction: Reduction, *, but: str = "") -> str:
    """Return the first option of reading profiles that was given, except `but`; "" = none.

    The reduction that the profiles were read with may be given again.
    """
    read = options.read
    given = (
        read.locations not in {None, reduction},
        read.processes is not None and read.processes.ranks is not None,
        read.processes is not None and not read.processes.ranks,
        bool(read.parameter_sources),
        bool(read.units),
        options.name_pattern is not None,
        options.reader is not None,
        bool(read.columns.drop),
        bool(read.columns.time),
        bool(read.columns.repetition),
        read.steps is not None,
    )
    late = (option for option, is_given in zip(OF_PROFILES, given, strict=True) if is_given)
    return next((each for each in late if each != but and each not in options.preset), "")


def _alike(experiment: Experiment, other: Experiment) -> Experiment:
    """Return the experiment without call sites if the other one has none."""
    is_less = experiment.tree.has_sites and not other.tree.has_sites
    if not is_less or experiment.reduction not in pruning.SUMS:
        return experiment
    finding = Finding("CPM148", "lines of calls", f"no run of {other.name}")
    joined = pruning.join_call_sites(experiment)
    return replace(joined, findings=(*joined.findings, finding))


def _discovered(
    paths: Sequence[Path], options: LoadOptions
) -> tuple[Registry, list[RunFile], list[Finding]]:
    """Return the readers, the files of runs, and findings about them."""
    registry, findings = Registry.of_installed(options.reader), list[Finding]()
    files = discover(paths, registry, name_pattern=options.name_pattern, findings=findings)
    return registry, files, findings


def _profiles(sources: Sequence[str | Path]) -> list[Path]:
    paths = _expand(sources)
    for path in paths:
        if store.is_stored(path):
            raise UsageError(f"{path}: contains no profiles", hint="give the profiles themselves")
    return paths


def _expand(sources: Sequence[str | Path]) -> list[Path]:
    paths: list[Path] = []
    check_type(sources, Iterable, "sources")
    for source in sources:
        check_type(source, (str, Path), "source")
        text = str(source)
        if source == "":
            raise UsageError("a name is empty", hint="is a shell variable empty?")
        is_there = _is_there(text)
        # A shell without a match passes the pattern on; so do scripts and Windows.
        if not is_there and glob.has_magic(text):
            found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - may be absolute
            if not found:
                raise InputError(f"{text}: no file matches", hint="check the directory")
            paths += [Path(path) for path in found]
        else:
            paths.append(Path(text))
    from callpath_modeler.profile.bookmarks import NAME as BOOKMARKS

    # A glob of the shell may include them.
    return [path for path in paths if path.name not in {CONFIGURATION, BOOKMARKS}] or paths


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except OSError as cause:
        what = f"{shortened(path)}: {cause.strerror}"
        raise InputError(what, hint="check the name and its permissions") from cause


def _kept(experiment: Experiment, selection: RunSelection) -> BoolArray:
    keep = np.ones(len(experiment.runs), bool)
    runs = experiment.runs
    for condition in selection.open:
        name = condition.name
        if name in runs[0].parameters:
            parse_number(condition.text, name)
            keep &= [condition.holds(run.parameters[name]) for run in runs]
        elif is_metadata(runs, name):
            keep &= [condition.holds(metadata_value(run, name)) for run in runs]
        else:
            raise _unknown_name(runs, name, "--where")
    of_cases = case_keys(experiment.findings)
    for text in selection.cases if of_cases or not selection.if_possible else ():
        keep &= of_case(of_cases, runs, text)
    if not keep.any():
        told = ",".join(f"{c.name}{c.sign}{c.text}" for c in selection.open)
        raise DataError(f"no run is left where {told}", hint="see `cpmodel info`")
    return keep


def parse_number(text: str, what: str) -> float:
    """Return the number that `text` writes, or raise `UsageError` naming `what`."""
    try:
        return decimal_of(text)
    except ValueError:
        raise UsageError(
            f"{what}: {text!r} is not a number", hint="e.g. 4096, 1e6 or inf"
        ) from None


def manifest(sources: Sequence[str | Path], options: LoadOptions, directory: Path) -> str:
    """Return the text of a manifest of the runs of `sources`.

    It contains the parameters from the names of runs, and the repetitions.
    """
    registry, files, _ = _discovered(_profiles(sources), options)
    select = _selection_of(options).by_metadata
    experiment = assemble(files, registry, options.read, select=select)
    of_names = [p.name for p in experiment.parameters if p.origin == "name"]
    of_names += [name for name in experiment.constants if name not in FROM_PROFILE]
    runs = {run.source: run for run in experiment.runs}
    told = []
    for file in files:
        run = runs.get(str(file.path))
        parameters = {name: run.parameters[name] for name in of_names} if run else {}
        told.append(
            structs.replace(file, parameters=parameters, repetition=run.repetition if run else None)
        )
    return write_manifest(told, directory)


def table_reading(
    sources: Sequence[str | Path], options: LoadOptions, *, of_first: bool = False
) -> tuple[Path, TableReading] | None:
    """Return a table among the sources, and how it is read; None = without a table.

    Parameters
    ----------
    sources : sources, as for `load`
    options : options of loading
    of_first : take the first of several tables; else only a single table is explained
    """
    paths = _expand(sources)
    if any(store.is_stored(path) for path in paths):
        return None
    registry = Registry.of_installed(options.reader)
    if of_first:
        paths = [file.path for file in discover(paths, registry, name_pattern=options.name_pattern)]
    elif len(paths) != 1 or not paths[0].is_file():
        return None
    reader = registry.find(paths[0])
    with naming_the_reader(reader, paths[0]):
        if not isinstance(reader, ColumnReader):
            return None
        return paths[0], reader.explain(paths[0], options.read.choices)


def verify(
    sources: Sequence[str | Path], options: LoadOptions
) -> Iterator[tuple[Path, Sequence[Agreement] | None]]:
    """Compare every profile, value by value, with the result of an independent reader.

    Yields
    ------
    path : Path
        The profile.
    agreement : sequence of Agreement or None
        One per metric; None if there is no independent reader.
    """
    registry, files, _ = _discovered(_profiles(sources), options)
    for file in files:
        reader = registry.find(file.path)
        with naming_the_reader(reader, file.path):
            compared = reader.verify(file.path) if isinstance(reader, VerifyingReader) else None
        yield file.path, compared
