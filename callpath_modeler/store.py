"""Experiments with their models on disk: a `.cpm` directory of plain arrays, memory-mapped.

``header.json`` holds everything that is not an array, and the type and shape of every array;
``tree.npy`` the columns of the call tree, ``ids.npy`` the ids that are longer than others and,
where they are known, ``sites.npy`` the lines of calls;
``values-K.npy``, ``total-K.npy`` and, where they are known, ``imbalance-K.npy`` and
``run-time-K.npy`` the K-th metric;
``models-K-NAME.npy`` the columns of the K-th set of models, and ``run-time-of-K-NAME.npy`` those of
the model of the run time;
``checksums.json`` the CRC-32 of every other file. A store appears whole or not at all.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import IO, TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct, structs

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError, OutputError, UsageError
from callpath_modeler.printable import printable, shortened
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.metric_formulas import parse_definitions
from callpath_modeler.profile.omissions import Omission, OmissionKind
from callpath_modeler.profile.runs import Parameter, Run, RunNumber
from callpath_modeler.profile.schema import Metric, Reduction, Region
from callpath_modeler.support.atomic import build_identity, new_directory

if TYPE_CHECKING:
    from callpath_modeler.fitted import Fitted

SCHEMA = 4
SUFFIX = ".cpm"
_HEADER = "header.json"
_CHECKSUMS = "checksums.json"
_SOON_READ = 64 * 2**20
"""Size up to which a store is checked whenever it is opened, which takes a few hundredths of a
second. Columns of models in larger ones are checked when they are used."""
_LARGEST = 1e200
"""Largest stored value; readers accept values up to 1e100, and a store may hold sums of them."""
_PIECE = 2**20
_READ_FROM = "read from"
"""Attribute of a tree with the store that it was read from, so that no header is read twice."""
_COLUMNS_OF_TREES = 4
_OTHER = "differs from its checksum"
_MAKE_ANEW = "make a new store from the profiles: cpmodel fit PROFILES -o NAME.cpm"


class _ModelsHeader(msgspec.Struct):
    metric: str
    parameter: str
    settings: dict[str, str]
    findings: list[Finding]
    columns: list[str]
    models: dict[str, object]
    parameters: list[str] = []
    run_time: dict[str, object] | None = None


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
    numbers: list[RunNumber] = []
    chains: dict[int, list[str]] = {}
    omissions: list[Omission] = []
    build: str = ""
    definitions: list[str] = []


class _Store(Struct, frozen=True):
    """An open store.

    Attributes
    ----------
    path : the directory
    header : everything that is not an array
    checksums : CRC-32 of its files, by name
    whole : check all files and all values at once
    """

    path: Path
    header: _Header
    checksums: Mapping[str, int]
    whole: bool


class _Counting:
    """A file that computes the checksum of everything that is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.checksum = 0

    def write(self, data: bytes) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        return self._file.write(data)


def is_stored(path: Path) -> bool:
    """Return whether `path` is a stored experiment, or has the name of one."""
    if path.suffix == SUFFIX:
        return True
    return os.access(path, os.X_OK) and (path / _HEADER).is_file()


def may_be_replaced(path: Path) -> bool:
    """Return whether a folder is a store, so that another one may take its place."""
    return (path / _HEADER).is_file()


def write(fits: Sequence[Fitted], path: Path, *, overwrite: bool = False) -> None:
    """Store an experiment with models of some of its metrics.

    Parameters
    ----------
    fits : models of one experiment, at least one
    path : the directory of the store
    overwrite : replace an existing store; anything else is never replaced

    Raises
    ------
    OutputError
        If something else has that name, or if it cannot be written.
    """
    foreign = path.exists() and not may_be_replaced(path)
    with new_directory(path, in_the_way=foreign, overwrite=overwrite) as folder:
        _fill(_Folder(folder), fits)


class _Folder:
    """The directory of a new store, with the types, shapes and checksums of its files."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.arrays: dict[str, tuple[str, list[int]]] = {}
        self.checksums: dict[str, int] = {}

    def save(self, name: str, array: np.ndarray) -> None:
        """Write an array."""
        with (self._path / f"{name}.npy").open("wb") as file:
            counting = _Counting(file)
            np.lib.format.write_array(counting, array, allow_pickle=False)
        self.arrays[name] = array.dtype.str, list(array.shape)
        self.checksums[f"{name}.npy"] = counting.checksum

    def finish(self, header: _Header) -> None:
        """Write the header and, last, all checksums."""
        try:
            text = msgspec.json.encode(header)
        except UnicodeEncodeError as cause:
            raise OutputError("a file name is not UTF-8 text", hint="rename the runs") from cause
        content = msgspec.json.format(text)
        (self._path / _HEADER).write_bytes(content)
        checksums = msgspec.json.encode({**self.checksums, _HEADER: zlib.crc32(content)})
        (self._path / _CHECKSUMS).write_bytes(msgspec.json.format(checksums))


def _fill(folder: _Folder, fits: Sequence[Fitted]) -> None:
    experiment = fits[0].experiment
    tree = experiment.tree
    folder.save("tree", tree.columns)
    if tree.has_sites:
        folder.save("sites", tree.site)
    folder.save("ids", tree.long_ids)
    for k, values in enumerate(experiment.columns.values()):
        folder.save(f"values-{k}", values.exclusive)
        folder.save(f"total-{k}", values.total)
        if values.imbalance is not None:
            folder.save(f"imbalance-{k}", values.imbalance)
        if values.run_time is not None:
            folder.save(f"run-time-{k}", values.run_time)
    models = [_save_models(folder, k, fitted) for k, fitted in enumerate(fits)]
    folder.finish(
        _Header(
            schema=SCHEMA,
            name=experiment.name,
            regions=list(tree.regions),
            annotations=list(tree.annotations),
            runs=list(experiment.runs),
            parameters=list(experiment.parameters),
            constants=dict(experiment.constants),
            metrics=[values.metric for values in experiment.columns.values()],
            arrays=folder.arrays,
            declared=dict(experiment.declared),
            reduction=experiment.reduction,
            scaling=experiment.scaling,
            scaling_reason=experiment.scaling_reason,
            findings=list(experiment.findings),
            models=models,
            numbers=list(experiment.numbers),
            chains={row: list(names) for row, names in experiment.chains.items()},
            omissions=list(experiment.omissions),
            build=build_identity(),
            definitions=[each.text for each in experiment.definitions],
        )
    )


def _save_models(folder: _Folder, number: int, fitted: Fitted) -> _ModelsHeader:
    columns, header = _save_columns(folder, f"models-{number}", fitted)
    run_time = None
    if fitted.run_time is not None:
        _, run_time = _save_columns(folder, f"run-time-of-{number}", fitted.run_time)
    surface = fitted.surface
    return _ModelsHeader(
        fitted.metric.name,
        fitted.parameter,
        fitted.settings,
        list(fitted.findings),
        columns,
        header,
        list(surface.parameters) if surface else [],
        run_time,
    )


def _save_columns(
    folder: _Folder, prefix: str, fitted: Fitted
) -> tuple[list[str], dict[str, object]]:
    """Write the columns of models; return their names, and the other attributes of the models."""
    from callpath_modeler.modeling.stored import to_arrays

    surface = fitted.surface
    arrays, header = to_arrays(surface.models if surface else fitted.models)
    if surface is None:
        arrays = {**arrays, "measured": fitted.measured}
    for name, array in arrays.items():
        folder.save(f"{prefix}-{name}", array)
    return list(arrays), header


def build_of(path: Path) -> str:
    """Return the build of this package that wrote a store; "" = an earlier version.

    Raises
    ------
    InputError
        As `read_experiment`.
    """
    return printable(_open(path).header.build)


def read_experiment(path: Path) -> Experiment:
    """Return a stored experiment; values stay on disk until they are used.

    Raises
    ------
    InputError
        If it is missing, broken, or of another version.
    """
    return _experiment(_open(path))


def _experiment(store: _Store) -> Experiment:
    path, header = store.path, store.header
    tree, runs = _tree(store), len(header.runs)
    try:
        from callpath_modeler.stored_checks import check_findings, check_runs

        check_runs(header.runs, header.parameters, header.constants, header.metrics)
        check_findings(header.findings)
        definitions = parse_definitions(header.definitions)
    except (ValueError, UsageError) as cause:
        raise _broken(path, f"{_HEADER}: {cause}") from cause
    columns = {}
    for k, metric in enumerate(metric.in_one_line() for metric in header.metrics):
        values = _measured(store, f"values-{k}", "<f8", (len(tree), runs))
        total = _measured(store, f"total-{k}", "<f8", (runs,))
        imbalance = run_time = None
        # Experiments with one process have no imbalance, and tables have no run time.
        if (name := f"imbalance-{k}") in header.arrays:
            imbalance = _measured(store, name, "<f4", (len(tree), runs))
        if (name := f"run-time-{k}") in header.arrays:
            run_time = _measured(store, name, "<f8", (runs,))
        columns[metric.name] = MetricValues(metric, values, total, imbalance, run_time)
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
        numbers=tuple(header.numbers),
        chains=_chains(store, len(tree)),
        omissions=_omissions(header),
        definitions=definitions,
    )


def _omissions(header: _Header) -> tuple[Omission, ...]:
    """Return what a store leaves out; earlier versions stored a finding only."""
    if header.omissions:
        return tuple(header.omissions)
    counts = (each.count for each in header.findings if each.code == "CPM139")
    return tuple(Omission(OmissionKind.CALL_PATHS, count) for count in counts)


def _chains(store: _Store, count: int) -> dict[int, tuple[str, ...]]:
    """Return the names of folded call paths by the row of the call path below them."""
    chains = store.header.chains
    if any(not 0 <= row < count for row in chains):
        raise _broken(store.path, f"{_HEADER}: a chain leads to no call path")
    return {row: tuple(map(printable, names)) for row, names in chains.items()}


def _holds(store: _Store, tree: CallTree) -> bool:
    """Return whether a stored experiment has these call paths."""
    known: _Store | None = vars(tree).get(_READ_FROM)
    if known is not None and known.header is store.header:
        return True
    columns, header = _array(store, "tree", "<i4"), store.header
    return (
        np.array_equal(columns, tree.columns)
        and (tuple(header.regions), tuple(header.annotations)) == (tree.regions, tree.annotations)
        and ("sites" in header.arrays) == tree.has_sites
        and (not tree.has_sites or np.array_equal(_array(store, "sites", "<i4"), tree.site))
    )


def _tree(store: _Store) -> CallTree:
    columns, header = _array(store, "tree", "<i4"), store.header
    if columns.ndim != 2 or len(columns) != _COLUMNS_OF_TREES:
        raise _broken(store.path, f"tree.npy: wrong shape {columns.shape}")
    try:
        sites = _array(store, "sites", "<i4") if "sites" in header.arrays else None
        tree = CallTree.from_columns(columns, header.regions, header.annotations, sites)
    except ValueError as cause:
        raise _broken(store.path, f"tree.npy: {cause}") from cause
    ids = _array(store, "ids", "<i4")
    if ids.ndim != 2 or len(ids) != 2:
        raise _broken(store.path, f"ids.npy: wrong shape {ids.shape}")
    try:
        tree.know_long_ids(ids)
    except ValueError as cause:
        raise _broken(store.path, f"ids.npy: {cause}") from cause
    vars(tree)[_READ_FROM] = store
    return tree


def read_models(
    path: Path, experiment: Experiment, metric: str, settings: dict[str, str] | None
) -> Fitted | None:
    """Return the stored models of `metric` with `settings`, or with any; None if there are none.

    If the experiment has other call paths than the stored one, there are none: some may have been
    excluded or joined after the models were stored.
    """
    store = _open(path, vars(experiment.tree).get(_READ_FROM))
    if not _holds(store, experiment.tree):
        return None
    for k, header in enumerate(store.header.models):
        if header.metric != metric or (settings is not None and header.settings != settings):
            continue
        return _models_with_run_time(store, k, experiment)
    return None


def _models_with_run_time(store: _Store, number: int, experiment: Experiment) -> Fitted:
    """Return a set of models, with the model of the run time if there is one."""
    header = store.header.models[number]
    fitted = _models(store, f"models-{number}", header, experiment)
    program = experiment.of_program(header.metric)
    if header.run_time is None or program is None:
        return fitted
    of_program = msgspec.structs.replace(header, models=header.run_time, findings=[])
    return replace(fitted, run_time=_models(store, f"run-time-of-{number}", of_program, program))


def _models(store: _Store, prefix: str, header: _ModelsHeader, experiment: Experiment) -> Fitted:
    # Opening an experiment does not import the code of models.
    from callpath_modeler.fitted import Fitted, Surface, sliced
    from callpath_modeler.modeling.stored import from_arrays

    rows = len(experiment.tree)
    try:
        arrays = {
            name: _array(store, f"{prefix}-{name}") for name in header.columns if name != "measured"
        }
        measured = None
        if not header.parameters:
            measured = arrays["measured"] = _measured(store, f"{prefix}-measured", "<f8")
        models = from_arrays(arrays, header.models, rows, partial(_broken, store.path))
        if header.metric not in experiment.columns:
            raise _broken(store.path, f"{prefix}: there is no metric {header.metric!r}")
        names = header.parameters or [header.parameter]
        from callpath_modeler.stored_checks import (
            check_centres,
            check_findings,
            check_measured,
            check_models,
        )

        check_models(models, names, header.settings, experiment)
        check_findings(header.findings)
        if measured is not None and measured.shape != (rows, len(models.points)):
            raise _broken(store.path, f"{prefix}-measured.npy: wrong shape {measured.shape}")
        if store.whole:
            models.require()
        if measured is None:
            check_measured(models, names, experiment, header.metric)
        elif store.whole:
            check_centres(models, names, experiment, header.metric, measured)
    except (KeyError, TypeError, ValueError, OverflowError) as cause:
        raise _broken(store.path, str(cause)) from cause
    described, found = experiment.columns[header.metric].metric, tuple(header.findings)
    if measured is None:
        surface = Surface(tuple(header.parameters), models)
        return sliced(experiment, described, surface, header.settings, found)
    return Fitted(
        experiment=experiment,
        metric=described,
        parameter=header.parameter,
        points=models.points,
        measured=measured,
        models=models,
        settings=header.settings,
        findings=found,
    )


def verify(path: Path) -> int:
    """Compare every file of a store with its checksum and its content with the schema.

    Returns
    -------
    int
        The number of files, all of which are as they were written.

    Raises
    ------
    InputError
        If a file differs from its checksum, or its content is not valid.
    """
    store = structs.replace(_open(path), whole=True)
    for name, told in store.checksums.items():
        if Path(name).name != name or not (path / name).is_file():
            # A name with a path could point to any file, or to an endless device.
            raise _broken(path, f"{_CHECKSUMS}: a file cannot have the name {shortened(name)!r}")
        try:
            found = _checksum(path / name)
        except OSError as cause:
            raise _broken(path, f"{name}: {cause.strerror or cause}") from cause
        if found != told:
            raise _broken(path, f"{name}: {_OTHER}")
    experiment = _experiment(store)
    for number in range(len(store.header.models)):
        _models_with_run_time(store, number, experiment)
    return len(store.checksums)


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            checksum = zlib.crc32(piece, checksum)
    return checksum


def _open(path: Path, known: _Store | None = None) -> _Store:
    """Return an open store, or the `known` one if its header is still the same."""
    try:
        content = (path / _HEADER).read_bytes()
    except OSError as cause:
        raise InputError(
            f"{path}: not a stored experiment: {cause.strerror}",
            hint="make one: cpmodel fit PROFILES -o NAME.cpm",
        ) from cause
    if known is not None and (known.path, known.checksums.get(_HEADER)) == (
        path,
        zlib.crc32(content),
    ):
        return structs.replace(known, checksums=_checksums(path))
    try:
        header = msgspec.json.decode(content, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as cause:
        schema = _schema(content)
        if schema in (None, SCHEMA):
            raise _broken(path, f"{_HEADER}: {cause}") from cause
    else:
        schema = header.schema
        if schema == SCHEMA:
            checksums = _checksums(path)
            if zlib.crc32(content) != checksums.get(_HEADER):
                raise _broken(path, f"{_HEADER}: {_OTHER}")
            return _Store(path, header, checksums, _is_soon_read(path, checksums))
    raise InputError(
        f"{path}: this store has schema {schema}, but this version reads schema {SCHEMA}",
        hint=_MAKE_ANEW,
    )


def _is_soon_read(path: Path, names: Iterable[str]) -> bool:
    """Return whether all files together are small."""
    try:
        return sum((path / name).stat().st_size for name in names) <= _SOON_READ
    except (OSError, ValueError):
        return True  # whoever reads this file gets an error


def _checksums(path: Path) -> dict[str, int]:
    try:
        content = (path / _CHECKSUMS).read_bytes()
        return msgspec.json.decode(content, type=dict[str, int])
    except OSError as cause:
        raise _broken(path, f"{_CHECKSUMS}: {cause.strerror or cause}") from cause
    except (msgspec.DecodeError, UnicodeDecodeError) as cause:
        raise _broken(path, f"{_CHECKSUMS}: {cause}") from cause


def _schema(content: bytes) -> int | None:
    try:
        return msgspec.json.decode(content, type=_Version).schema
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _array(
    store: _Store, name: str, dtype: str | None = None, shape: tuple[int, ...] | None = None
) -> np.ndarray:
    """Return an array that matches the header, and the given type and shape."""
    path, file = store.path, store.path / f"{name}.npy"
    if file.name != f"{name}.npy":
        raise _broken(path, f"an array cannot have the name {shortened(name)!r}")
    try:
        with warnings.catch_warnings():
            # This package writes no header that numpy has to repair.
            warnings.simplefilter("error", UserWarning)
            stored = np.load(file, mmap_mode="r", allow_pickle=False)
        is_other = store.whole and _checksum(file) != store.checksums.get(file.name)
    except OSError as cause:
        raise _broken(path, f"{name}.npy: {cause.strerror or cause}") from cause
    except (ValueError, EOFError, TokenError, SyntaxError, UserWarning) as cause:
        # The header of an array is a Python expression, so parsing it can fail.
        raise _broken(path, f"{name}.npy: {cause}") from cause
    if is_other or (stored.dtype.str, list(stored.shape)) != store.header.arrays.get(name):
        raise _broken(path, f"{name}.npy: {_OTHER}")
    if (dtype or stored.dtype.str, shape or stored.shape) != (stored.dtype.str, stored.shape):
        raise _broken(path, f"{name}.npy: {stored.dtype.str} of shape {stored.shape}")
    # A plain array of the same mapping avoids the overhead of `np.memmap` at each access.
    return np.asarray(stored)


def _measured(
    store: _Store, name: str, dtype: str, shape: tuple[int, ...] | None = None
) -> np.ndarray:
    """Return an array of measured values: numbers of a plausible size, or NaN."""
    array = _array(store, name, dtype, shape)
    if array.size and store.whole:
        least, most = (float(each.reduce(array, axis=None)) for each in (np.fmin, np.fmax))
        if max(-least, most) > _LARGEST:
            what = f"holds a value beyond -{_LARGEST:g} and {_LARGEST:g}"
            raise _broken(store.path, f"{name}.npy {what}")
    return array


def _broken(path: Path, what: str) -> InputError:
    return InputError(f"{path}: broken store: {what}", hint=_MAKE_ANEW)
