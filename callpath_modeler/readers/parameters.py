"""Parameters of every run, from its profile and its names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError, nearest_or_all
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.runs import RunNumber
from callpath_modeler.profile.schema import Extent
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.inference import Decision, Role, infer, named_number, refuse_undecided
from callpath_modeler.readers.tokens import NameWord, NumberColumn, columns_of, word_of
from callpath_modeler.units import counted, decimal_of, is_number

FROM_PROFILE = {"p": "processes", "threads": "threads", "nodes": "nodes"}
"""Parameters that profiles contain, each with the count that is its source."""

SCALE_REFUSED = "CPM183"
"""Code of findings about an untrusted file that replaces the number of processes."""

METADATA = "metadata:"
COLUMN = "column:"
"""Prefix of a source that is a column of a table, by its title or by the name of its parameter."""
NOT_USED = "none"
SOURCES = ("name", "profile", *FROM_PROFILE.values(), NOT_USED)


class _ProfileRun(Protocol):
    """The attributes of a run that determine its parameters."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> RunFile: ...
    @property
    def extent(self) -> Extent: ...
    @property
    def stated(self) -> Mapping[str, float]: ...
    @property
    def defaults(self) -> Mapping[str, float]: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


class Settled(Struct, frozen=True):
    """The parameters of all runs.

    Attributes
    ----------
    parameters : for each run, the values of all parameters by name, in the order of `origins`
    origins : source of each parameter, by name
    repetitions : for each run, the number of the repetition, or None
    numbers : numbers in names, and their interpretation
    findings : disagreements between profiles and names, and numbers whose role is in doubt
    """

    parameters: list[dict[str, float]]
    origins: dict[str, str]
    repetitions: list[int | None]
    numbers: tuple[RunNumber, ...]
    findings: list[Finding]


def settle_parameters(
    runs: Sequence[_ProfileRun], sources: Mapping[str, str], scale_beside: str = ""
) -> Settled:
    """Return the parameters of every run.

    The parameters of a manifest are used unchanged. Otherwise, `sources` have priority, then the
    profile: the parameters that it states, its number of processes as p, and its threads if they
    vary. If all profiles have the same number of processes, and the names have larger and varying
    ones, the names have priority, because only some of the processes were measured. All other
    parameters come from names.

    Parameters
    ----------
    runs : the runs
    sources : source of each parameter, by name: ``"name"``, ``"profile"``, ``"processes"``,
        ``"threads"``, ``"nodes"``, ``"metadata:KEY"``, or ``"none"`` to exclude the parameter
    scale_beside : untrusted configuration file that states p or the names of runs; it does not
        replace the number of processes of a profile. "" = none

    Raises
    ------
    UsageError
        If a source is unknown, if a run lacks a parameter of the other runs, or if the role of a
        number in the names cannot be decided.
    """
    for name, source in sources.items():
        check_source(name, source)
    keeps_scale = bool(scale_beside) and any(run.extent.processes for run in runs)
    refused = _refused_scale(runs, sources, scale_beside) if keeps_scale else []
    if refused:
        sources = {**sources, "p": FROM_PROFILE["p"]}
    taken = (source.removeprefix(COLUMN) for source in sources.values() if COLUMN in source)
    # The order of the sources is that of the parameters, so it is no order of a set.
    sources = {**sources, **{name: NOT_USED for name in taken if name not in sources}}
    sources = _of_processes(runs, sources)
    sources = {name: _resolved(runs, name, source) for name, source in sources.items()}
    columns = [] if any(run.file.is_explicit for run in runs) else _columns(runs, sources)
    origins = _origins_of_profiles(runs, sources, columns)
    decisions = infer(
        columns,
        _values_of_profiles(runs, origins),
        counts=_counts(runs),
        required=[name for name, source in sources.items() if source == "name"],
    )
    refuse_undecided(decisions, [run.name for run in runs])
    named = _named(runs, decisions, sources)
    _add_origins_of_names(runs, named, decisions, origins)
    settled, findings = _settled(runs, named, origins)
    if "threads" not in sources and origins.get("threads") == FROM_PROFILE["threads"]:
        findings += _without_dependent(settled, origins, "threads")
    sampling = _sampling(runs, origins, sources)
    findings += _stated_in_part(runs, {*origins, *sources})
    return Settled(
        settled,
        origins,
        _repetitions(runs, decisions),
        tuple(named_number(decision) for decision in decisions),
        [*refused, *sampling, *findings, *_in_doubt(decisions, is_sample=bool(sampling))],
    )


def _refused_scale(
    runs: Sequence[_ProfileRun], sources: Mapping[str, str], path: str
) -> list[Finding]:
    """Return a finding if an untrusted file replaces the number of processes of profiles."""
    source, own = sources.get("p"), FROM_PROFILE["p"]
    if source is None:
        is_pattern = any(run.file.is_explicit and not run.file.from_manifest for run in runs)
        source = "name" if is_pattern and _is_sample(runs, []) else own
    if source == own or (source.startswith(COLUMN) and _equals_processes(runs, source)):
        return []
    return [Finding(SCALE_REFUSED, path, f'p "{source}"')]


def _equals_processes(runs: Sequence[_ProfileRun], source: str) -> bool:
    """Return whether a source of p states the number of processes of every profile."""
    try:
        return all(_of_profile(run, "p", source) == run.extent.processes for run in runs)
    except UsageError:
        return False  # it is raised when the values are read


def check_source(name: str, source: str) -> None:
    """Raise `UsageError` if `source` is not a source of parameters."""
    if source not in SOURCES and not source.startswith((METADATA, COLUMN)):
        raise UsageError(
            f"unknown source {source!r} of parameter {name!r}",
            hint=f"--param NAME=SOURCE with one of {', '.join(SOURCES)}, {METADATA}KEY, "
            f"{COLUMN}TITLE",
        )


def _of_processes(runs: Sequence[_ProfileRun], sources: Mapping[str, str]) -> dict[str, str]:
    """Return sources that exclude p if they exclude a column that a reader calls p."""
    stated = {name for run in runs for name in (*run.stated, *run.metadata)}
    if "p" not in stated or "p" in sources:
        return {**sources}
    return {
        "p"
        if source == NOT_USED and name not in stated and _names_processes(name)
        else name: source
        for name, source in sources.items()
    }


def _names_processes(title: str) -> bool:
    """Return whether a reader may call the column of a title p."""
    return word_of(title) is NameWord.PROCESSES


def _resolved(runs: Sequence[_ProfileRun], name: str, source: str) -> str:
    """Return the source of a parameter; the source ``"name"`` also covers columns of a table."""
    told = source == "name" and all(name in run.metadata for run in runs)
    if told and not any(column.label == name for column in _columns(runs, {})):
        return f"{METADATA}{name}"
    return source


def _columns(runs: Sequence[_ProfileRun], sources: Mapping[str, str]) -> list[NumberColumn]:
    """Return the numbers in the names of runs, without those that the user excluded."""
    columns = columns_of([run.file.components for run in runs])
    return [column for column in columns if sources.get(column.label) != NOT_USED]


def _origins_of_profiles(
    runs: Sequence[_ProfileRun], sources: Mapping[str, str], columns: Sequence[NumberColumn]
) -> dict[str, str]:
    """Return the sources of the parameters that the user or the profiles state."""
    origins = {name: source for name, source in sources.items() if source != NOT_USED}
    excluded = {name for name, source in sources.items() if source == NOT_USED}
    for name in dict.fromkeys(name for run in runs for name in run.stated):
        is_left_out = name in excluded or _is_constant_in_part(runs, name)
        if not is_left_out and not _is_named_as_well(runs, name, columns):
            origins.setdefault(name, "profile")
    if "p" not in excluded and any(run.extent.processes for run in runs):
        is_sample = _is_sample(runs, columns)
        origins.setdefault("p", "name" if is_sample else FROM_PROFILE["p"])
    threads = {run.extent.threads for run in runs}
    if len(threads) > 1 and min(threads) > 0 and "threads" not in excluded:
        origins.setdefault("threads", FROM_PROFILE["threads"])
    return origins


def _is_constant_in_part(runs: Sequence[_ProfileRun], name: str) -> bool:
    """Return whether some runs state one value, and others none, as for numbers in names."""
    values = {run.stated.get(name, run.defaults.get(name)) for run in runs}
    return None in values and len(values) == 2


def _is_named_as_well(
    runs: Sequence[_ProfileRun], stated: str, columns: Sequence[NumberColumn]
) -> bool:
    """Return whether the names of all runs contain a stated parameter under another word.

    Some runs may not state it; their names have it.
    """
    values = [run.stated.get(stated) for run in runs]
    return any(
        all(value in {None, own} for value, own in zip(values, column.values, strict=True))
        and None not in column.values
        and column.word in {NameWord.SIZE, NameWord.OTHER}
        and column.joined
        and column.label not in {"p", *runs[0].stated}
        for column in columns
    )


def _values_of_profiles(
    runs: Sequence[_ProfileRun], origins: Mapping[str, str]
) -> dict[str, list[float]]:
    known = {}
    for name, origin in origins.items():
        values = [_of_profile(run, name, origin) for run in runs]
        told = [value for value in values if value is not None]
        if told and len(told) == len(values):
            known[name] = told
    return known


def _counts(runs: Sequence[_ProfileRun]) -> dict[str, list[float]]:
    """Return the counts that all profiles contain, [runs], by name."""
    counts = {
        name: [float(getattr(run.extent, of)) for run in runs] for name, of in FROM_PROFILE.items()
    }
    return {name: values for name, values in counts.items() if all(values)}


def _is_sample(runs: Sequence[_ProfileRun], columns: Sequence[NumberColumn]) -> bool:
    """Return whether only a sample of the processes was measured.

    All profiles then have the same number of processes, and the names have larger and varying ones.
    Large runs are often measured in this way.
    """
    if len({(run.extent.processes, run.extent.threads) for run in runs}) != 1:
        return False
    measured = float(runs[0].extent.processes)
    if any(run.file.is_explicit for run in runs):
        told = [run.file.parameters.get("p") for run in runs]
        return not runs[0].file.from_manifest and _scales(told, measured)
    varying = [column for column in columns if len({*column.values}) > 1]
    for column in varying:
        if column.label == "p" or column.word is NameWord.PROCESSES:
            return _scales(column.values, measured)
    loose = [c for c in varying if c.word in {NameWord.NONE, NameWord.OTHER} and not c.joined]
    others = [c for c in varying if c.joined and c.word is not NameWord.REPETITION]
    if len(loose) != 1 or others:
        return False
    (decision,) = infer(loose, {})
    return decision.role is Role.PARAMETER and _scales(loose[0].values, measured)


def _scales(values: Sequence[float | None], measured: float) -> bool:
    """Return whether all numbers are at least `measured`, and vary by a factor of 2 or more."""
    told = [value for value in values if value is not None]
    if not told or len(told) < len(values):
        return False
    return max(told) >= 2 * min(told) and min(told) >= measured


def _named(
    runs: Sequence[_ProfileRun], decisions: Sequence[Decision], sources: Mapping[str, str]
) -> list[dict[str, float]]:
    """Return the parameters of each run from names, manifests and patterns."""
    if any(run.file.is_explicit for run in runs):
        told = [_explicit(run.file) for run in runs]
        return [{k: v for k, v in own.items() if sources.get(k) != NOT_USED} for own in told]
    parameters = (Role.PARAMETER, Role.DEPENDENT, Role.CONSTANT, Role.CONTRADICTED)
    used = [each for each in decisions if each.role in parameters and each.name]
    return [
        {
            decision.name: value
            for decision in reversed(used)
            if (value := decision.column.values[i]) is not None
        }
        for i in range(len(runs))
    ]


def _explicit(file: RunFile) -> Mapping[str, float]:
    """Return the parameters from a manifest or a pattern, or else those in the names of the run."""
    if file.is_explicit:
        return file.parameters
    columns = columns_of([file.components])
    return {c.label: v for c in columns if c.joined and (v := c.values[0]) is not None
            and c.word is not NameWord.REPETITION}  # fmt: skip


def _add_origins_of_names(
    runs: Sequence[_ProfileRun],
    named: Sequence[Mapping[str, float]],
    decisions: Sequence[Decision],
    origins: dict[str, str],
) -> None:
    if decisions:
        names = dict.fromkeys(each.name for each in decisions)
        for name in names:
            if name and any(name in of for of in named):
                origins.setdefault(name, "name")
        return
    for name in dict.fromkeys(key for parameters in named for key in parameters):
        values = {parameters.get(name) for parameters in named}
        told = any(run.file.from_manifest and name in run.file.parameters for run in runs)
        # A constant number that some names lack is not a parameter.
        if told or None not in values or len(values) > 2:
            origins.setdefault(name, "name")


def _settled(
    runs: Sequence[_ProfileRun], named: Sequence[Mapping[str, float]], origins: Mapping[str, str]
) -> tuple[list[dict[str, float]], list[Finding]]:
    """Return the parameters of each run, and findings about disagreements of profile and name."""
    settled: list[dict[str, float]] = []
    findings: list[Finding] = []
    for run, of_name in zip(runs, named, strict=True):
        parameters = {}
        # The name of a file with several runs does not determine the parameters of one run.
        several = bool(run.stated) and run.name != str(run.file.path)
        for name, origin in origins.items():
            measured, told = _of_profile(run, name, origin), of_name.get(name)
            is_manifest = run.file.from_manifest and told is not None
            if measured is not None and told not in {None, measured} and not several:
                counts = "manifest" if is_manifest else "profile"
                message = f"{name} = {told:g} in the name, {measured:g} in the profile"
                findings.append(Finding("CPM102", run.name, f"{message}: the {counts} is used"))
            value = told if measured is None or (is_manifest and not several) else measured
            if value is None and name in run.defaults and origin == "profile":
                value = run.defaults[name]
                message = f"{name} is not in this profile: {value:g} is used"
                findings.append(Finding("CPM102", run.name, message))
            if value is None:
                where = "name" if origin == "name" else "profile or the name"
                raise UsageError(
                    f"{run.name}: no parameter {name!r} in the {where} of this run",
                    hint=f"exclude the parameter with --param {shell_word(name)}=none, or give a "
                    "pattern (--name 'app.p{p}.n{n}.r{rep}') or a manifest runs.toml",
                )
            parameters[name] = value
        settled.append(parameters)
    return settled, findings


def _stated_in_part(runs: Sequence[_ProfileRun], known: Collection[str]) -> list[Finding]:
    """Return findings about parameters that only some profiles state; the names have them all."""
    findings = []
    for name in dict.fromkeys(name for run in runs for name in run.stated):
        lacking = [run.name for run in runs if name not in run.stated]
        if lacking and name not in known:
            used = "it is not used" if _is_constant_in_part(runs, name) else "the names are used"
            message = f"{name} is not in {counted(len(lacking), 'profile')}: {used}"
            findings.append(Finding("CPM102", lacking[0], message, len(lacking)))
    return findings


def _repetitions(runs: Sequence[_ProfileRun], decisions: Sequence[Decision]) -> list[int | None]:
    """Return the number of the repetition of each run; None = not stated."""
    columns = [each.column.values for each in decisions if each.role is Role.REPETITION]
    found: list[int | None] = []
    for i, run in enumerate(runs):
        told = next((values[i] for values in columns if values[i] is not None), None)
        in_name = None if told is None else int(told)
        found.append(in_name if run.file.repetition is None else run.file.repetition)
    return found


def _sampling(
    runs: Sequence[_ProfileRun], origins: Mapping[str, str], sources: Mapping[str, str]
) -> list[Finding]:
    if "p" in sources or origins.get("p") != "name" or not runs[0].extent.processes:
        return []
    message = f"p varies in the names, each profile holds {runs[0].extent.processes} processes"
    return [Finding("CPM102", runs[0].name, f"{message}: the names are used", len(runs))]


def _in_doubt(decisions: Sequence[Decision], *, is_sample: bool) -> list[Finding]:
    """Return findings about varying numbers that are not used, and about doubtful roles."""
    findings = []
    for decision in decisions:
        if decision.is_doubtful and not (is_sample and decision.name == "p"):
            number = named_number(decision)
            code = "CPM142" if decision.role is Role.PARAMETER else "CPM141"
            option = f"--param {decision.column.label or 'NAME'}=name"
            other = f"; {option} makes it a parameter" if code == "CPM141" else ""
            message = f"{number.values} in {number.place}: {number.reason}{other}"
            findings.append(Finding(code, number.name, message))
    return findings


def _without_dependent(
    settled: list[dict[str, float]], origins: dict[str, str], name: str
) -> list[Finding]:
    """Remove the parameter `name` if the others determine it; return a finding about its values."""
    values_at: dict[tuple[tuple[str, float], ...], set[float]] = {}
    for parameters in settled:
        others = tuple((key, value) for key, value in parameters.items() if key != name)
        values_at.setdefault(others, set()).add(parameters[name])
    if len(values_at) < 2 or any(len(values) > 1 for values in values_at.values()):
        return []
    scales: dict[float, set[float]] = {}
    for parameters in settled:
        scales.setdefault(parameters[name], set()).add(parameters.get("p", 0.0))
        del parameters[name]
    del origins[name]
    if len(scales) < 2:
        return []
    spread = "; ".join(
        f"{value:g} at p = {' '.join(f'{p:g}' for p in sorted(scales[value]))}"
        for value in sorted(scales)
    )
    return [Finding("CPM131", name, f"{name} vary with the scale: {spread}")]


def _of_profile(run: _ProfileRun, name: str, origin: str) -> float | None:
    if origin == "name":
        return None
    if origin == "profile":
        return run.stated.get(name)
    if origin.startswith(COLUMN):
        return _of_column(run, origin.removeprefix(COLUMN))
    if origin.startswith(METADATA):
        return _of_metadata(run, origin.removeprefix(METADATA))
    return float(getattr(run.extent, origin)) or None


def _of_column(run: _ProfileRun, title: str) -> float:
    if title in run.stated:
        return run.stated[title]
    if title in run.metadata and is_number(run.metadata[title]):
        return decimal_of(run.metadata[title])
    if _names_processes(title) and "p" in run.stated:
        # A reader calls this column p.
        return run.stated["p"]
    known = [*run.stated, *(key for key, text in run.metadata.items() if is_number(text))]
    raise UsageError(
        f"{run.name}: no column {title!r} of numbers about the runs",
        hint=nearest_or_all(title, known or ["none"]),
    )


def _of_metadata(run: _ProfileRun, key: str) -> float:
    try:
        value = decimal_of(run.metadata[key])
    except KeyError:
        numeric = [name for name, text in run.metadata.items() if is_number(text)]
        raise UsageError(
            f"{run.name}: no {key!r} in its metadata",
            hint=f"numbers in the metadata: {', '.join(numeric) or 'none'}",
        ) from None
    except ValueError:
        raise UsageError(
            f"{run.name}: {key} = {run.metadata[key]!r} is not a number", hint="choose another key"
        ) from None
    return value
