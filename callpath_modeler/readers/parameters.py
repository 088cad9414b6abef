"""Which value of which parameter each run has, from its profile and its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.schema import Extent
from callpath_modeler.readers.discover import RunFile

FROM_PROFILE = {"p": "processes", "threads": "threads", "nodes": "nodes"}
"""Parameters that a profile tells by itself, and of what."""

SOURCES = ("name", *FROM_PROFILE.values())


def settle_parameters(
    runs: Sequence[tuple[RunFile, Extent]], sources: Mapping[str, str]
) -> tuple[list[dict[str, float]], dict[str, str], list[Finding]]:
    """Decide every parameter of every run.

    A manifest counts as it is. Else `sources` decide where given, else the profile: its number
    of processes is p, its threads count where they vary. What is left comes from the name.

    Returns
    -------
    parameters : per run, the value of every parameter, in the order of the origins
    origins : where each parameter comes from, by name, in order
    findings : disagreements between profile and name

    Raises
    ------
    UsageError
        If a source is unknown, or a run's name lacks a parameter that others have.
    """
    for name, source in sources.items():
        if source not in SOURCES:
            raise UsageError(
                f"unknown source {source!r} of parameter {name!r}",
                hint=f"--param NAME=SOURCE with one of {', '.join(SOURCES)}",
            )
    origins = _origins(runs, sources)
    settled: list[dict[str, float]] = []
    findings: list[Finding] = []
    for file, extent in runs:
        parameters = {}
        for name, origin in origins.items():
            measured = None if origin == "name" else float(getattr(extent, origin))
            named = file.parameters.get(name)
            if measured is not None and named is not None and named != measured:
                counts = "name" if file.from_manifest else "profile"
                message = f"{name} = {named:g} in the name, {measured:g} in the profile"
                findings.append(
                    Finding("CPM102", str(file.path), f"{message}: the {counts} counts")
                )
            value = named if measured is None or file.from_manifest else measured
            value = measured if value is None else value
            if value is None:
                raise UsageError(
                    f"{file.path}: no parameter {name!r} in the name of this run",
                    hint="give a pattern (--name 'app.p{p}.n{n}.r{rep}') or a manifest runs.toml",
                )
            parameters[name] = value
        settled.append(parameters)
    return settled, origins, findings


def _origins(runs: Sequence[tuple[RunFile, Extent]], sources: Mapping[str, str]) -> dict[str, str]:
    origins = dict(sources)
    origins.setdefault("p", FROM_PROFILE["p"])
    threads = {extent.threads for _, extent in runs}
    if len(threads) > 1 and min(threads) > 0:
        origins.setdefault("threads", FROM_PROFILE["threads"])
    named = [file.parameters for file, _ in runs]
    for name in dict.fromkeys(key for parameters in named for key in parameters):
        values = {parameters.get(name) for parameters in named}
        told = any(file.from_manifest and name in file.parameters for file, _ in runs)
        # A number that only some names have, and always the same, is no parameter.
        if told or None not in values or len(values) > 2:
            origins.setdefault(name, "name")
    return origins
