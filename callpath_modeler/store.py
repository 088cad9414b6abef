"""Experiments with their models on disk: a `.cpm` directory of plain arrays, memory-mapped.

``header.json`` holds everything that is not an array, and the type and shape of every array;
``tree.npy`` the columns of the call tree;
``values-K.npy``, ``total-K.npy`` and, of several processes, ``imbalance-K.npy`` the K-th metric;
``models-K-NAME.npy`` the columns of the K-th set of models. A store appears whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from callpath_modeler.atomic import new_directory
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError, OutputError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment, Parameter, Run, Scaling, Values
from callpath_modeler.profile.schema import Metric, Reduction, Region

if TYPE_CHECKING:
    from callpath_modeler.fitted import Fitted

SCHEMA = 2
SUFFIX = ".cpm"
_HEADER = "header.json"
_MAKE_ANEW = "make it anew from the profiles: cpmodel fit PROFILES -o NAME.cpm"


class _ModelsHeader(msgspec.Struct):
    metric: str
    parameter: str
    settings: dict[str, str]
    findings: list[Finding]
    columns: list[str]
    models: dict[str, object]
    parameters: list[str] = []


class _Version(msgspec.Struct):
    schema: int


class _Header(msgspec.Struct):
    schema: int
    name: str
    regions: list[Region]
    annotations: list[str]
    runs: list[Run]
    parameters: list[Parameter]
    constants: dict[str, float]
    metrics: list[Metric]
    arrays: dict[str, tuple[str, list[int]]]
    declared: dict[str, str]
    reduction: Reduction
    scaling: Scaling
    scaling_reason: str
    findings: list[Finding]
    models: list[_ModelsHeader]


def is_stored(path: Path) -> bool:
    """Tell whether `path` is a stored experiment, or is named like one."""
    if path.suffix == SUFFIX:
        return True
    return os.access(path, os.X_OK) and (path / _HEADER).is_file()


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
    shapes: dict[str, tuple[str, list[int]]] = {}

    def save(name: str, array: np.ndarray) -> None:
        np.save(folder / f"{name}.npy", array)
        shapes[name] = array.dtype.str, list(array.shape)

    save("tree", tree.columns)
    for k, values in enumerate(experiment.columns.values()):
        save(f"values-{k}", values.exclusive)
        save(f"total-{k}", values.total)
        if values.imbalance is not None:
            save(f"imbalance-{k}", values.imbalance)
    headers = []
    for k, fitted in enumerate(fits):
        surface = fitted.surface
        arrays, models = (surface.models if surface else fitted.models).to_arrays()
        if surface is None:
            arrays = {**arrays, "measured": fitted.measured}
        for name, array in arrays.items():
            save(f"models-{k}-{name}", array)
        headers.append(
            _ModelsHeader(
                fitted.metric.name,
                fitted.parameter,
                fitted.settings,
                list(fitted.findings),
                list(arrays),
                models,
                list(surface.parameters) if surface else [],
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
        arrays=shapes,
        declared=dict(experiment.declared),
        reduction=experiment.reduction,
        scaling=experiment.scaling,
        scaling_reason=experiment.scaling_reason,
        findings=list(experiment.findings),
        models=headers,
    )
    try:
        text = msgspec.json.encode(header)
    except UnicodeEncodeError as cause:
        raise OutputError("a file name is no UTF-8 text", hint="rename the runs") from cause
    (folder / _HEADER).write_bytes(msgspec.json.format(text))


def read_experiment(path: Path) -> Experiment:
    """Open a stored experiment; values stay on disk until they are used.

    Raises
    ------
    InputError
        If it is missing, broken, or of another version.
    """
    header = _read_header(path)
    columns = {
        metric.name: Values(
            metric,
            _array(path, header, f"values-{k}"),
            _array(path, header, f"total-{k}"),
            # Experiments of one process, and stores that were written before, have none.
            _array(path, header, name) if (name := f"imbalance-{k}") in header.arrays else None,
        )
        for k, metric in enumerate(header.metrics)
    }
    return Experiment(
        name=header.name,
        tree=_tree(path, header),
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


def _tree(path: Path, header: _Header) -> CallTree:
    columns = _array(path, header, "tree")
    try:
        return CallTree.from_columns(columns, header.regions, header.annotations)
    except ValueError as cause:
        raise _broken(path, f"tree.npy: {cause}") from cause


def read_models(
    path: Path, experiment: Experiment, metric: str, settings: dict[str, str] | None
) -> Fitted | None:
    """Return the stored models of `metric` that were fitted with `settings`, or any, or None."""
    whole = _read_header(path)
    # An experiment alone is opened without the code that models.
    from callpath_modeler.fitted import Fitted, Surface, sliced
    from callpath_modeler.modeling import Models

    for k, header in enumerate(whole.models):
        if header.metric != metric or (settings is not None and header.settings != settings):
            continue
        arrays = {name: _array(path, whole, f"models-{k}-{name}") for name in header.columns}
        try:
            measured = None if header.parameters else arrays.pop("measured")
            models = Models.from_arrays(arrays, header.models)
        except (KeyError, ValueError) as cause:
            raise _broken(path, str(cause)) from cause
        described = experiment.columns[metric].metric
        if measured is None:
            surface = Surface(tuple(header.parameters), models)
            found = tuple(header.findings)
            return sliced(experiment, described, surface, header.settings, found)
        return Fitted(
            experiment=experiment,
            metric=described,
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
        content = (path / _HEADER).read_bytes()
    except OSError as cause:
        raise InputError(
            f"{path}: no stored experiment: {cause.strerror}",
            hint="make one: cpmodel fit PROFILES -o NAME.cpm",
        ) from cause
    try:
        header = msgspec.json.decode(content, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as cause:
        schema = _schema(content)
        if schema in (None, SCHEMA):
            raise _broken(path, f"{_HEADER}: {cause}") from cause
    else:
        schema = header.schema
        if schema == SCHEMA:
            return header
    raise InputError(
        f"{path}: store of schema {schema}, this version reads {SCHEMA}", hint=_MAKE_ANEW
    )


def _schema(content: bytes) -> int | None:
    try:
        return msgspec.json.decode(content, type=_Version).schema
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _array(path: Path, header: _Header, name: str) -> np.ndarray:
    try:
        stored = np.load(path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    except OSError as cause:
        raise _broken(path, f"{name}.npy: {cause.strerror or cause}") from cause
    except (ValueError, EOFError, TokenError) as cause:
        # The header of an array is an expression of Python.
        raise _broken(path, f"{name}.npy: {cause}") from cause
    if (stored.dtype.str, list(stored.shape)) != header.arrays.get(name):
        raise _broken(path, f"{name}.npy: not the array that was written")
    # As mapped as before, without what `np.memmap` does at every access to a number.
    return np.asarray(stored)


def _broken(path: Path, what: str) -> InputError:
    return InputError(f"{path}: broken store: {what}", hint=_MAKE_ANEW)
