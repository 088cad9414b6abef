"""Which value of which parameter each run has, from its profile and its name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import Extent
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.run_numbers import without_run_numbers

FROM_PROFILE = {"p": "processes", "threads": "threads", "nodes": "nodes"}
"""Parameters that a profile tells by itself, and of what."""

METADATA = "metadata:"
EXCLUDED = "none"
SOURCES = ("name", "profile", *FROM_PROFILE.values(), EXCLUDED)


class _Read(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def file(self) -> RunFile: ...
    @property
    def extent(self) -> Extent: ...
    @property
    def stated(self) -> Mapping[str, float]: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...


def settle_parameters(
    runs: Sequence[_Read], sources: Mapping[str, str]
) -> tuple[list[dict[str, float]], dict[str, str], list[Finding]]:
    """Decide every parameter of every run.

    A manifest counts as it is. Else `sources` decide where given, else the profile: what it
    states as parameters; its number of processes is p, its threads count where they vary.
    Where that number never varies, though larger ones in the names do, those count: some of the
    processes were measured. What is left comes from the name.

    Returns
    -------
    parameters : per run, the value of every parameter, in the order of the origins
    origins : where each parameter comes from, by name, in order
    findings : disagreements between profile and name

    Raises
    ------
    UsageError
        If a source is unknown, or a run lacks a parameter that others have.
    """
    for name, source in sources.items():
        check_source(name, source)
    excluded = [name for name, source in sources.items() if source == EXCLUDED]
    sources = {name: source for name, source in sources.items() if source != EXCLUDED}
    origins = _origins(runs, sources)
    for name in excluded:
        origins.pop(name, None)
    settled, findings = _settled(runs, origins)
    if "p" not in sources and origins.get("p") == "name" and runs[0].extent.processes:
        message = f"p varies in the names, each profile holds {runs[0].extent.processes} processes"
        sampled = Finding("CPM102", runs[0].name, f"{message}: the names count", len(runs))
        findings.insert(0, sampled)
    if not any(run.file.is_explicit for run in runs):
        findings += without_run_numbers(settled, origins, sources)
    if "threads" not in sources and origins.get("threads") == FROM_PROFILE["threads"]:
        findings += _without_dependent(settled, origins, "threads")
    return settled, origins, findings


def _settled(
    runs: Sequence[_Read], origins: Mapping[str, str]
) -> tuple[list[dict[str, float]], list[Finding]]:
    """Return the parameters of each run, and where profile and name disagree."""
    settled: list[dict[str, float]] = []
    findings: list[Finding] = []
    for run in runs:
        parameters = {}
        for name, origin in origins.items():
            measured, named = _of_profile(run, name, origin), run.file.parameters.get(name)
            if origin == "name" and name == "p":
                named = _processes_in_name(run)
            if measured is not None and named is not None and named != measured:
                counts = "name" if run.file.from_manifest else "profile"
                message = f"{name} = {named:g} in the name, {measured:g} in the profile"
                findings.append(Finding("CPM102", run.name, f"{message}: the {counts} counts"))
            value = named if measured is None or run.file.from_manifest else measured
            value = measured if value is None else value
            if value is None:
                where = "name" if origin == "name" else "profile or the name"
                raise UsageError(
                    f"{run.name}: no parameter {name!r} in the {where} of this run",
                    hint="give a pattern (--name 'app.p{p}.n{n}.r{rep}') or a manifest runs.toml",
                )
            parameters[name] = value
        settled.append(parameters)
    return settled, findings


def check_source(name: str, source: str) -> None:
    """Raise `UsageError` where parameter `name` cannot come from `source`."""
    if source not in SOURCES and not source.startswith(METADATA):
        raise UsageError(
            f"unknown source {source!r} of parameter {name!r}",
            hint=f"--param NAME=SOURCE with one of {', '.join(SOURCES)}, {METADATA}KEY",
        )


def _without_dependent(
    settled: list[dict[str, float]], origins: dict[str, str], name: str
) -> list[Finding]:
    """Take `name` out if the other parameters determine it, and say how it varies with them."""
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


def _processes_in_name(run: _Read) -> float | None:
    """Return the p of a run's name, or the number that ends a name without parameters."""
    file = run.file
    return file.parameters.get("p", None if file.parameters else file.ending)


def _is_sample(runs: Sequence[_Read]) -> bool:
    """Tell whether names scale while every profile holds the same, smaller number of processes.

    Measurements of large runs are often taken on some of their processes only.
    """
    measured = {(run.extent.processes, run.extent.threads) for run in runs}
    named = [value for run in runs if (value := _processes_in_name(run)) is not None]
    if len(measured) != 1 or len(named) < len(runs) or _counts_up(runs):
        return False
    return max(named) >= 2 * min(named) and min(named) >= runs[0].extent.processes


def _counts_up(runs: Sequence[_Read]) -> bool:
    """Tell whether the numbers that end names are those of repetitions: 1, 2, 3."""
    files = [run.file for run in runs if not run.file.parameters]
    endings = {file.ending for file in files if file.ending is not None}
    return bool(endings) and max(endings) - min(endings) == len(endings) - 1


def _of_profile(run: _Read, name: str, origin: str) -> float | None:
    if origin == "name":
        return None
    if origin == "profile":
        return run.stated.get(name)
    if origin.startswith(METADATA):
        return _of_metadata(run, origin.removeprefix(METADATA))
    return float(getattr(run.extent, origin)) or None


def _of_metadata(run: _Read, key: str) -> float:
    try:
        value = float(run.metadata[key])
    except KeyError:
        numeric = [name for name, text in run.metadata.items() if _is_number(text)]
        raise UsageError(
            f"{run.name}: no {key!r} in its metadata",
            hint=f"numbers there: {', '.join(numeric) or 'none'}",
        ) from None
    except ValueError:
        raise UsageError(
            f"{run.name}: {key} = {run.metadata[key]!r} is no number", hint="choose another one"
        ) from None
    return value


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _named_as_well(runs: Sequence[_Read], stated: str) -> bool:
    """Tell whether the names have what profiles state, under another name and in every run."""
    return any(
        all(
            key in run.file.parameters
            and key not in run.stated
            and run.file.parameters[key] == run.stated.get(stated)
            for run in runs
        )
        for key in runs[0].file.parameters
        if key != "p"
    )


def _origins(runs: Sequence[_Read], sources: Mapping[str, str]) -> dict[str, str]:
    origins = dict(sources)
    for name in dict.fromkeys(name for run in runs for name in run.stated):
        if not _named_as_well(runs, name):
            origins.setdefault(name, "profile")
    if _is_sample(runs):
        origins.setdefault("p", "name")
    elif any(run.extent.processes for run in runs):
        origins.setdefault("p", FROM_PROFILE["p"])
    threads = {run.extent.threads for run in runs}
    if len(threads) > 1 and min(threads) > 0:
        origins.setdefault("threads", FROM_PROFILE["threads"])
    named = [run.file.parameters for run in runs]
    for name in dict.fromkeys(key for parameters in named for key in parameters):
        values = {parameters.get(name) for parameters in named}
        told = any(run.file.from_manifest and name in run.file.parameters for run in runs)
        # A number that only some names have, and always the same, is no parameter.
        if told or None not in values or len(values) > 2:
            origins.setdefault(name, "name")
    return origins
