"""Experiments with their models on disk: a `.cpm` directory of plain arrays, memory-mapped.

``header.json`` holds everything that is not an array; ``tree.npy`` the columns of the call tree;
``values-K.npy`` and ``total-K.npy`` the K-th metric; ``models-K-NAME.npy`` the columns of the K-th
set of models. A store appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from callpath_modeler.atomic import new_directory
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment, Parameter, Run, Scaling, Values
from callpath_modeler.profile.schema import Metric, Reduction, Region

SCHEMA = 1
SUFFIX = ".cpm"
_HEADER = "header.json"


class _ModelsHeader(msgspec.Struct):
    metric: str
    inclusive: bool
    parameter: str
    settings: dict[str, str]
    findings: list[Finding]
    columns: list[str]
    models: dict[str, object]


class _Header(msgspec.Struct):
    schema: int
    name: str
    regions: list[Region]
    annotations: list[str]
    runs: list[Run]
    parameters: list[Parameter]
    constants: dict[str, float]
    metrics: list[Metric]
    declared: dict[str, str]
    reduction: Reduction
    scaling: Scaling
    scaling_reason: str
    findings: list[Finding]
    models: list[_ModelsHeader]


def is_stored(path: Path) -> bool:
    """Tell whether `path` is a stored experiment, or is named like one."""
    return path.suffix == SUFFIX or (path / _HEADER).is_file()


def write(fits: Sequence[Fitted], path: Path, *, overwrite: bool = False) -> None:
    """Store an experiment with models of some of its metrics.

    Parameters
    ----------
    fits : models of one experiment, at least one
    path : where the directory is to appear
    overwrite : replace a store that is there; anything else is never replaced

    Raises
    ------
    OutputError
        If something is in the way or cannot be written.
    """
    foreign = path.exists() and not (path / _HEADER).is_file()
    with new_directory(path, in_the_way=foreign, overwrite=overwrite) as folder:
        _fill(folder, fits)


def _fill(folder: Path, fits: Sequence[Fitted]) -> None:
    experiment = fits[0].experiment
    tree = experiment.tree
    np.save(folder / "tree.npy", np.stack([tree.parent, tree.region, tree.annotation]))
    for k, values in enumerate(experiment.columns.values()):
        np.save(folder / f"values-{k}.npy", values.exclusive)
        np.save(folder / f"total-{k}.npy", values.total)
    headers = []
    for k, fitted in enumerate(fits):
        arrays, models = fitted.models.to_arrays()
        arrays = {**arrays, "measured": fitted.measured}
        for name, array in arrays.items():
            np.save(folder / f"models-{k}-{name}.npy", array)
        headers.append(
            _ModelsHeader(
                fitted.metric.name,
                fitted.inclusive,
                fitted.parameter,
                fitted.settings,
                list(fitted.findings),
                list(arrays),
                models,
            )
        )
    header = _Header(
        schema=SCHEMA,
        name=experiment.name,
        regions=list(tree.regions),
        annotations=list(tree.annotations),
        runs=list(experiment.runs),
        parameters=list(experiment.parameters),
        constants=dict(experiment.constants),
        metrics=[values.metric for values in experiment.columns.values()],
        declared=dict(experiment.declared),
        reduction=experiment.reduction,
        scaling=experiment.scaling,
        scaling_reason=experiment.scaling_reason,
        findings=list(experiment.findings),
        models=headers,
    )
    (folder / _HEADER).write_bytes(msgspec.json.format(msgspec.json.encode(header)))


def read_experiment(path: Path) -> Experiment:
    """Open a stored experiment; values stay on disk until they are used.

    Raises
    ------
    InputError
        If it is missing, broken, or of another version.
    """
    header = _read_header(path)
    parent, region, annotation = _array(path, "tree")
    tree = CallTree.from_parents(parent, region, header.regions, annotation, header.annotations)
    columns = {
        metric.name: Values(metric, _array(path, f"values-{k}"), _array(path, f"total-{k}"))
        for k, metric in enumerate(header.metrics)
    }
    return Experiment(
        name=header.name,
        tree=tree,
        runs=tuple(header.runs),
        parameters=tuple(header.parameters),
        constants=header.constants,
        columns=columns,
        declared=header.declared,
        reduction=header.reduction,
        scaling=header.scaling,
        scaling_reason=header.scaling_reason,
        findings=tuple(header.findings),
    )


def read_models(
    path: Path, experiment: Experiment, metric: str, settings: dict[str, str]
) -> Fitted | None:
    """Return the stored models of `metric` that were fitted with `settings`, if there are any."""
    for k, header in enumerate(_read_header(path).models):
        if header.metric != metric or header.settings != settings:
            continue
        arrays = {name: _array(path, f"models-{k}-{name}") for name in header.columns}
        measured = arrays.pop("measured")
        models = Models.from_arrays(arrays, header.models)
        return Fitted(
            experiment=experiment,
            metric=experiment.columns[metric].metric,
            inclusive=header.inclusive,
            parameter=header.parameter,
            points=models.points,
            measured=measured,
            models=models,
            settings=header.settings,
            findings=tuple(header.findings),
        )
    return None


def _read_header(path: Path) -> _Header:
    try:
        header = msgspec.json.decode((path / _HEADER).read_bytes(), type=_Header)
    except OSError as cause:
        raise InputError(f"{path}: no stored experiment: {cause.strerror}") from cause
    except msgspec.DecodeError as cause:
        raise InputError(
            f"{path}: broken store: {cause}", hint="make it anew: cpmodel fit"
        ) from cause
    if header.schema != SCHEMA:
        raise InputError(
            f"{path}: store of schema {header.schema}, this version reads {SCHEMA}",
            hint="make it anew from the profiles: cpmodel fit PROFILES -o NAME.cpm",
        )
    return header


def _array(path: Path, name: str) -> np.ndarray:
    try:
        return np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
    except (OSError, ValueError, EOFError) as cause:
        raise InputError(
            f"{path}: broken store: {name}.npy: {cause}", hint="make it anew: cpmodel fit"
        ) from cause
