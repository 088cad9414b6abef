"""Shards of an experiment on disk: the values of some of its profiles, read where they are.

Each of N jobs reads every N-th profile and writes one file. `merge` takes the runs of all files in
the order of the profiles, and then works as if it had read them itself. So its result has the same
bits as that of one command.

A file is eight bytes (`_MAGIC`), the CRC-32 of the rest, and `_Shard` in msgpack. Arrays are bytes
in it; their types and lengths are checked when they are read. It may come from anybody.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from math import isfinite
from pathlib import Path

import msgspec
import numpy as np

from callpath_modeler import store
from callpath_modeler.arrays import Float32Array, FloatArray, Int32Array
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import DeclaredMetric, Extent, Reduction, Region
from callpath_modeler.readers.base import Reduced
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.profile_runs import LARGEST, Outcome, ReadRun
from callpath_modeler.stored_checks import check_findings
from callpath_modeler.support.atomic import build_identity, same_build, write_file

_MAGIC = b"cpmshrd1"
_CHECKSUM = struct.Struct("<I")
_LEAST = len(_MAGIC) + _CHECKSUM.size
_COLUMNS = 4
_AGAIN = "write the shard again: cpmodel fit PROFILES --shard K/N -o FILE"


class _Tree(msgspec.Struct):
    columns: bytes
    sites: bytes | None
    regions: list[Region]
    annotations: list[str]


class _Values(msgspec.Struct):
    exclusive: bytes
    total: float
    imbalance: bytes | None
    run_time: float


class _File(msgspec.Struct):
    path: str
    parameters: dict[str, float]
    repetition: int | None
    from_manifest: bool
    from_pattern: bool
    names: list[str]


class _Run(msgspec.Struct):
    name: str
    file: _File
    stated: dict[str, float]
    reader: str
    tree: int
    extent: Extent
    metadata: dict[str, str]
    declared: list[DeclaredMetric]
    reduction: Reduction
    values: dict[str, _Values]
    findings: list[Finding]
    cases: list[str] = []


class _Profile(msgspec.Struct):
    """A profile: its runs, or the message and the hint of its error."""

    file: _File
    runs: list[_Run]
    error: tuple[str, str | None] | None


class _Shard(msgspec.Struct):
    number: int
    count: int
    asked: dict[str, str]
    metrics: tuple[str, ...] | None
    profiles: list[_Profile]
    trees: list[_Tree]
    findings: list[Finding]
    build: str = ""


@dataclass(frozen=True, slots=True)
class Shard:
    """Every N-th profile of an experiment, with its runs or its error.

    Attributes
    ----------
    number, count : which shard of how many, from 1
    asked : options of reading that decide what the values mean, and the profiles of all shards
    metrics : names of requested metrics; None = all
    outcomes : profiles with their runs or errors, in the order of the profiles
    findings : findings about the names of all profiles
    build : build of this package that read the profiles; "" = not known
    """

    number: int
    count: int
    asked: dict[str, str]
    metrics: tuple[str, ...] | None
    outcomes: Sequence[tuple[RunFile, Outcome]]
    findings: Sequence[Finding]
    build: str = field(default_factory=build_identity)


def write(shard: Shard, path: Path, *, overwrite: bool = False) -> None:
    """Write a shard to a file.

    Raises
    ------
    OutputError
        If the file exists and may not be replaced, or cannot be written.
    """
    trees = _Trees()
    profiles = [_profile(file, outcome, trees) for file, outcome in shard.outcomes]
    told = (shard.number, shard.count, shard.asked, shard.metrics, profiles)
    content = msgspec.msgpack.encode(_Shard(*told, trees.stored, list(shard.findings), shard.build))
    pieces = [_MAGIC, _CHECKSUM.pack(zlib.crc32(content)), content]
    write_file(path, pieces, overwrite=overwrite)


class _Trees:
    """The distinct call trees of a shard; runs of one binary mostly have the same."""

    def __init__(self) -> None:
        self.stored: list[_Tree] = []
        self._numbers: dict[bytes, int] = {}

    def number(self, tree: CallTree) -> int:
        sites = _bytes(tree.site, "<i4") if tree.has_sites else None
        columns = _bytes(tree.columns, "<i4")
        stored = _Tree(columns, sites, list(tree.regions), list(tree.annotations))
        number = self._numbers.setdefault(msgspec.msgpack.encode(stored), len(self.stored))
        if number == len(self.stored):
            self.stored.append(stored)
        return number


def _bytes(array: FloatArray | Float32Array | Int32Array, dtype: str) -> bytes:
    return array.astype(dtype, copy=False).tobytes()


def _file(file: RunFile) -> _File:
    return _File(
        str(file.path),
        dict(file.parameters),
        file.repetition,
        file.from_manifest,
        file.from_pattern,
        list(file.names),
    )


def _profile(file: RunFile, outcome: Outcome, trees: _Trees) -> _Profile:
    if isinstance(outcome, InputError):
        return _Profile(_file(file), [], (outcome.message, outcome.hint))
    return _Profile(_file(file), [_run(run, trees) for run in outcome], None)


def _run(run: ReadRun, trees: _Trees) -> _Run:
    values = {
        name: _Values(
            _bytes(found.exclusive, "<f8"),
            found.total,
            None if found.imbalance is None else _bytes(found.imbalance, "<f4"),
            found.run_time,
        )
        for name, found in run.values.items()
    }
    return _Run(
        run.name,
        _file(run.file),
        dict(run.stated),
        run.reader,
        trees.number(run.tree),
        run.extent,
        dict(run.metadata),
        list(run.declared),
        run.reduction,
        values,
        list(run.findings),
        list(run.cases),
    )


def is_shard(path: Path) -> bool:
    """Return whether a file begins as a shard does."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read(path: Path) -> Shard:
    """Return the shard in a file.

    Raises
    ------
    InputError
        If it cannot be read, is no shard, or is damaged.
    """
    if store.is_stored(path) and path.is_dir():
        raise InputError(
            f"{path}: a whole experiment, not a shard",
            hint="leave it out; merge takes the files of `cpmodel fit --shard` only",
        )
    try:
        content = path.read_bytes()
    except OSError as cause:
        raise InputError(f"{path}: {cause.strerror or cause}", hint=_AGAIN) from cause
    if not content.startswith(_MAGIC) or len(content) < _LEAST:
        raise InputError(f"{path}: not a shard of this version of cpmodel", hint=_AGAIN)
    (told,) = _CHECKSUM.unpack_from(content, len(_MAGIC))
    body = memoryview(content)[_LEAST:]
    if zlib.crc32(body) != told:
        raise InputError(f"{path}: differs from its checksum, so a copy failed", hint=_AGAIN)
    try:
        stored = msgspec.msgpack.decode(body, type=_Shard)
        _check_place(stored)
        check_findings(stored.findings)
        trees = [_read_tree(tree) for tree in stored.trees]
        outcomes = [(_read_file(each.file), _outcome(each, trees)) for each in stored.profiles]
    except (msgspec.DecodeError, ValueError, RecursionError) as cause:
        raise InputError(f"{path}: damaged: {cause}", hint=_AGAIN) from cause
    told = (stored.number, stored.count, stored.asked, stored.metrics)
    return Shard(*told, outcomes, stored.findings, printable(stored.build))


def _check_place(stored: _Shard) -> None:
    if not 1 <= stored.number <= stored.count:
        raise ValueError(f"it is shard {stored.number} of {stored.count}")


def _read_tree(tree: _Tree) -> CallTree:
    columns = np.frombuffer(tree.columns, "<i4")
    if len(columns) % _COLUMNS:
        raise ValueError("a call tree has columns of several lengths")
    sites = None if tree.sites is None else np.frombuffer(tree.sites, "<i4")
    return CallTree.from_columns(
        columns.reshape(_COLUMNS, -1), tree.regions, tree.annotations, sites
    )


def _read_file(file: _File) -> RunFile:
    if not all(map(isfinite, file.parameters.values())):
        raise ValueError("the value of a parameter is not finite")
    return RunFile(
        Path(file.path),
        file.parameters,
        file.repetition,
        file.from_manifest,
        file.from_pattern,
        tuple(file.names),
    )


def _outcome(profile: _Profile, trees: Sequence[CallTree]) -> Outcome:
    if profile.error is not None:
        message, hint = profile.error
        return InputError(message, hint=hint)
    if not profile.runs:
        raise ValueError("a profile has neither runs nor an error")
    return [_read_run(run, trees) for run in profile.runs]


def _read_run(run: _Run, trees: Sequence[CallTree]) -> ReadRun:
    if not 0 <= run.tree < len(trees):
        raise ValueError("the number of a call tree is out of range")
    if min(run.extent.processes, run.extent.threads, run.extent.nodes) < 0:
        raise ValueError("a run has a negative number of processes")
    check_findings(run.findings)
    tree = trees[run.tree]
    declared = {each.metric.name for each in run.declared if each.status.is_readable}
    if not run.values.keys() <= declared:
        raise ValueError("a run has values of a metric that its profile does not declare")
    return ReadRun(
        name=run.name,
        file=_read_file(run.file),
        stated={printable(name): value for name, value in run.stated.items()},
        reader=run.reader,
        tree=tree,
        extent=run.extent,
        metadata=run.metadata,
        declared=tuple(run.declared),
        reduction=run.reduction,
        values={name: _reduced(found, len(tree)) for name, found in run.values.items()},
        findings=tuple(run.findings),
        cases=tuple(run.cases),
    )


def _reduced(values: _Values, count: int) -> Reduced:
    exclusive = _numbers(values.exclusive, "<f8", count)
    imbalance = None if values.imbalance is None else _numbers(values.imbalance, "<f4", count)
    if max(abs(values.total), abs(values.run_time)) > LARGEST:
        raise ValueError(f"a total is beyond {LARGEST:g}")
    return Reduced(exclusive, values.total, imbalance, values.run_time)


def _numbers(content: bytes, dtype: str, count: int) -> np.ndarray:
    """Return numbers of call paths; NaN that raise signals become plain NaN."""
    found = np.frombuffer(content, dtype)
    if len(found) != count:
        raise ValueError("values are not one for each call path")
    if np.any(np.abs(found) > min(LARGEST, float(np.finfo(found.dtype).max))):
        raise ValueError(f"a value is beyond {LARGEST:g}")
    return np.where(np.isnan(found), found.dtype.type(np.nan), found)


def together(shards: Sequence[tuple[Path, Shard]]) -> list[tuple[RunFile, Outcome]]:
    """Return the outcomes of all shards of an experiment, in the order of the profiles.

    Raises
    ------
    DataError
        If a shard is missing or given twice, or if they were not read alike by the same build.
    """
    path, first = shards[0]
    by_number: dict[int, Shard] = {}
    for other, shard in shards:
        if (shard.count, shard.asked) != (first.count, first.asked):
            raise DataError(
                f"{other}: {_difference(first, shard)} differ from those of {path}",
                hint="read all shards of the same profiles with the same options",
            )
        if not same_build(shard.build, first.build):
            raise DataError(
                f"{other}: read by build {shard.build or 'of an earlier version'}, but {path} by "
                f"{first.build or 'one of an earlier version'}; two builds may read other values",
                hint="read all shards with one installation",
            )
        if by_number.setdefault(shard.number, shard) is not shard:
            raise DataError(
                f"{other}: shard {shard.number} of {shard.count} is given twice",
                hint="give each shard once",
            )
    lacking = first.count - len(by_number)
    if lacking:
        # A file may state any count, so only the first missing numbers are made.
        every = (str(k) for k in count(1) if k not in by_number)
        missing = list(islice(every, min(lacking, 5)))
        listed = ", ".join(missing) + ", ..." * (lacking > 5)
        raise DataError(
            f"{lacking} of {first.count} shards are missing: {listed}",
            hint=f"cpmodel fit PROFILES --shard {missing[0]}/{first.count} -o FILE",
        )
    ordered = [by_number[k].outcomes for k in range(1, first.count + 1)]
    longest = max(map(len, ordered))
    found = [each[k] for k in range(longest) for each in ordered if k < len(each)]
    _refuse_reductions(found)
    return found


def _difference(one: Shard, other: Shard) -> str:
    if one.count != other.count:
        return f"{other.count} shards"
    names = sorted({*one.asked, *other.asked})
    return ", ".join(name for name in names if one.asked.get(name) != other.asked.get(name))


def _refuse_reductions(outcomes: Sequence[tuple[RunFile, Outcome]]) -> None:
    """Raise `DataError` if profiles have several default statistics over processes."""
    runs = [
        run for _, outcome in outcomes if not isinstance(outcome, InputError) for run in outcome
    ]
    for run in runs:
        # Profiles of several tools have an error of their own.
        if run.reduction is not runs[0].reduction and run.reader == runs[0].reader:
            raise DataError(
                f"{run.name}: {run.reduction} over processes, but {runs[0].name} has the "
                f"{runs[0].reduction}",
                hint=f"read all shards with --locations {runs[0].reduction}",
            )
