"""Results of Ramble and Benchpark experiments: JSON and text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import RunSource
from cpmodel_tables.grid import as_numbers
from cpmodel_tables.results import NODES, PROCESSES, THREADS, Results, counts_of
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, opened_lines, whole_text

_CREATOR = "Ramble"
_COUNTS = {"n_ranks": PROCESSES, "n_threads": THREADS, "n_nodes": NODES}
_NO_CONTEXT = frozenset({"", "null", "(null)", "none", "default", "default (null)",
                         "default (null) context"})  # fmt: skip
_NO_VARIABLE = re.compile(
    r".*(_dir|_path|_file|_hash|_index|_name|_namespace|_spec|_command)|batch_\w+|command|mpi_\w+"
    r"|n_repeats|repeat_index|env_\w+|log_\w+|input_\w+|license_\w+|timeout|processes_per_node"
)
"""Ramble's own variables, which are not inputs of the program."""
_SUMMARY, _MEAN = "summary::", "summary::mean"
_BEGINS = re.compile(r"From Workspace: .*\n")
_EXPERIMENT = re.compile(r"Experiment (\S.*) figures of merit:")
_STATUS = re.compile(r"  Status = (\w+)")
_CONTEXT = re.compile(r"  (\S.*) figures of merit:")
_FIGURE = re.compile(r"    (\S.*?) = (\S+)(?: (\S.*))?", re.DOTALL)
_FIGURES = re.compile(r"    (\S.*):")
_SECTION = re.compile(r"  \S.*")
_STATISTIC = re.compile(r"      (\S.*?) = (\S+)(?: (\S.*))?", re.DOTALL)

_Json = dict[str, Any]


def is_json(text: str) -> bool:
    """Return whether JSON contains experiment results, by its first block."""
    return text.lstrip().startswith("{") and (
        '"RAMBLE_STATUS"' in text or ('"workspace_hash"' in text and '"experiments"' in text)
    )


def is_text(text: str) -> bool:
    """Return whether a text contains experiment results, by its beginning."""
    return bool(_BEGINS.match(text))


def is_yaml(text: str) -> bool:
    """Return whether a text looks like results in YAML."""
    return bool(re.search(r"^[ \t-]*RAMBLE_STATUS[ \t]*:", text, re.MULTILINE))


def read_json(path: Path) -> list[RunSource]:
    """Return the runs in JSON results.

    Raises
    ------
    InputError
        If the JSON does not have Ramble's layout.
    """
    document = json_of(path, whole_text(path))
    experiments = document.get("experiments") if isinstance(document, dict) else None
    if not isinstance(experiments, list):
        raise InputError(f"{path}: the list of experiments is missing", hint=COPY_IT_AGAIN)
    for number, experiment in enumerate(experiments, 1):
        if not isinstance(experiment, dict):
            raise InputError(f"{path}: experiment {number} is not an object", hint=COPY_IT_AGAIN)
    return _runs(path, experiments, "experiment")


def read_text(path: Path) -> list[RunSource]:
    """Return the runs in text results, whose only parameters are in the experiment names.

    Raises
    ------
    InputError
        If there are no results.
    """
    experiments: list[_Json] = []
    context: _Json = {}
    figure = ""
    with opened_lines(path) as text:
        for line in map(str.rstrip, text):
            if found := _EXPERIMENT.fullmatch(line):
                experiments.append({"name": found[1], "CONTEXTS": [], "is_text": True})
                context = {}
            elif not experiments:
                continue
            elif found := _STATUS.fullmatch(line):
                experiments[-1]["RAMBLE_STATUS"] = found[1]
            elif found := _CONTEXT.fullmatch(line):
                context = {"name": found[1], "foms": []}
                experiments[-1]["CONTEXTS"].append(context)
            elif _SECTION.fullmatch(line) and not line.startswith("   "):
                context = {}
            elif context and (found := _FIGURES.fullmatch(line)) and " = " not in line:
                figure = found[1]
            elif context and (found := _STATISTIC.fullmatch(line)):
                context["foms"].append(_fom(figure, found[2], found[3], found[1]))
            elif context and (found := _FIGURE.fullmatch(line)):
                context["foms"].append(_fom(found[1], found[2], found[3], ""))
    return _runs(path, experiments, "experiment")


def _fom(name: str, value: str, units: str | None, origin: str) -> _Json:
    return {"name": name, "value": value, "units": units, "origin_type": origin}


def _runs(path: Path, experiments: Sequence[_Json], place: str) -> list[RunSource]:
    results = Results(path, _CREATOR, place=place)
    names = {str(each.get("name")) for each in experiments}
    means = 0
    for number, experiment in enumerate(experiments, 1):
        name = str(experiment.get("name") or f"experiment {number}")
        if _is_summary(experiment) and f"{name}.1" in names:
            # The repetitions of an experiment are listed individually.
            continue
        results.listed += 1
        if str(experiment.get("RAMBLE_STATUS", "SUCCESS")).upper() != "SUCCESS":
            results.failed += 1
            continue
        run = _run(experiment, name)
        for context, fom in _figures(path, experiment, number):
            kind = str(fom.get("origin_type") or "")
            if kind.startswith(_SUMMARY) and kind != _MEAN:
                continue
            means += kind == _MEAN
            results.add(
                *(run, context, str(fom.get("name") or ""), fom.get("value")),
                *(fom.get("units"), number),
            )
    message = f"{means} values are means; the file does not contain their repetitions"
    return results.runs([Finding("CPM130", str(path), message, means)] if means else [])


def _is_summary(experiment: Mapping[str, object]) -> bool:
    repeats = as_numbers([experiment.get("N_REPEATS")])
    if repeats is not None and repeats[0] > 0:
        return True
    return any(
        str(fom.get("origin_type") or "").startswith(_SUMMARY)
        for context in _dicts(experiment.get("CONTEXTS"))
        for fom in _dicts(context.get("foms"))
    )


def _run(experiment: Mapping[str, Any], name: str) -> dict[str, object]:
    """Return the properties of the run of an experiment."""
    held = experiment.get("RAMBLE_VARIABLES")
    variables: Mapping[str, object] = held if isinstance(held, dict) else {}
    told = {**variables, **{k: v for k, v in experiment.items() if k in _COUNTS}}
    program = experiment.get("application_name") or variables.get("application_name")
    run: dict[str, object] = {"program": str(program or name.partition(".")[0])}
    run |= counts_of(told, _COUNTS)
    workload = experiment.get("workload_name") or variables.get("workload_name")
    if isinstance(workload, str) and workload:
        run["workload"] = workload
    for key, value in variables.items():
        is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        if is_plain and key not in {*_COUNTS, *run} and not _NO_VARIABLE.fullmatch(key):
            run[key] = value
    repetition = as_numbers([variables.get("repeat_index")])
    if repetition is not None and repetition[0] > 0:
        run["repetition"] = int(repetition[0])
    if experiment.get("is_text"):
        run["file"] = name
    return run


def _figures(
    path: Path, experiment: Mapping[str, object], number: int
) -> Iterator[tuple[list[str], Mapping[str, object]]]:
    """Yield the figures of merit of an experiment, with their call paths below the program."""
    contexts = experiment.get("CONTEXTS", [])
    if not isinstance(contexts, list):
        raise InputError(f"{path}: experiment {number} has no list of contexts", hint=COPY_IT_AGAIN)
    for context in _dicts(contexts):
        name = str(context.get("display_name") or context.get("name") or "").strip()
        below = [] if name.lower() in _NO_CONTEXT else [name]
        for fom in _dicts(context.get("foms")):
            yield below, fom


def _dicts(items: object) -> Iterator[Mapping[str, object]]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            yield item
