"""Reader of Cube profiles, and an opened profile."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import FloatArray, Int64Array
from callpath_modeler.errors import InputError, reading
from callpath_modeler.profile.schema import MetricStatus
from callpath_modeler.readers.base import API_VERSION, Agreement, Match, Workers
from callpath_modeler.support.input_limits import InputLimits, first_block
from cpmodel_scorep import anchor, rows
from cpmodel_scorep.container import (
    ANCHOR,
    COPY_IT_AGAIN,
    Container,
    ContainerShape,
    opened,
    shape_of,
)
from cpmodel_scorep.metrics import StoredMetric
from cpmodel_scorep.profile import CubeProfile
from cpmodel_scorep.rows import blocks
from cpmodel_scorep.tree import Latest


class CubexReader:
    """Reader of profiles of Score-P, Scalasca and the Cube tools."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "scorep"
    description: ClassVar[str] = "Score-P and Scalasca profiles (CUBE 4 and CUBE 3)"
    suffixes: ClassVar[tuple[str, ...]] = (".cubex", ".cube", ".cube.gz")

    def __init__(self) -> None:
        self._latest = Latest()

    def match(self, path: Path) -> Match:
        """Return whether `path` is a Cube profile, by its first block."""
        head = first_block(path, unpack=True)
        if not head:
            return Match.NO
        shape = shape_of(head)
        names = (b"anchor.xml", b"remapping.spec", b".data", b".index")
        if shape is ContainerShape.TAR and head[:100].rstrip(b"\0").endswith(names):
            return Match.CONTENT
        if shape is ContainerShape.XML and b"<cube" in head:
            return Match.CONTENT
        return Match.NAME if path.name.lower().endswith(self.suffixes) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[CubeProfile]:
        """Open `path`.

        Raises
        ------
        InputError
            If the file is not a Cube profile, or its definitions cannot be read.
        """
        with opened(path) as container:
            with reading(path, COPY_IT_AGAIN):
                profile = _profile(container, self._latest)
            yield profile

    @contextmanager
    def open_for(self, workers: Workers, path: Path) -> Iterator[CubeProfile]:
        """Open `path`; workers reduce parts of its rows.

        Raises
        ------
        InputError
            As in `open`.
        """
        with self.open(path) as profile:
            profile.share_between(workers, self.open)
            yield profile

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a reader that has read nothing."""
        return type(self), ()

    def verify(self, path: Path) -> Sequence[Agreement]:
        """Return the comparison of every stored value with an independent reader."""
        with self.open(path) as profile:
            return verify(profile)


def _profile(container: Container, latest: Latest) -> CubeProfile:
    limits = InputLimits.of(container.path)
    if container.shape is ContainerShape.XML:
        text = container.content(container.members[""])
        rest, values = rows.split(text)
        definitions, repaired = anchor.parse(rest, str(container.path), latest, limits)
        held = rows.values(values, definitions, str(container.path))
        layout = latest.layout_of(definitions)
        return CubeProfile(container, definitions, layout, held=held, repaired=repaired)
    member = container.members.get(ANCHOR)
    if member is None:
        raise InputError(
            f"{container.path}: the definitions (anchor.xml), which are written last, are missing: "
            "the file is cut off, or its run was killed",
            hint="copy the file again, or repeat the run",
        )
    where = f"{container.path}: anchor.xml at byte {member.offset}"
    definitions, repaired = anchor.parse(container.content(member), where, latest, limits)
    layout = latest.layout_of(definitions)
    return CubeProfile(container, definitions, layout, held=None, repaired=repaired)


def verify(profile: CubeProfile) -> list[Agreement]:
    """Compare `profile` with an independent reading of its file.

    Stored rows are compared by value and by location, before they are made exclusive or reduced.
    They include the values of GPU streams. If pycubexr fails, the note states the reason.
    """
    readable = [
        stored
        for stored in profile.stored.values()
        if stored.status.is_readable
        and not stored.on_gpu
        and not stored.declared.metric.is_of_all_threads
    ]
    try:
        with _other(profile) as other:
            by_number = {metric.id: metric for metric in other.all_metrics()}
            return [_compare(profile, stored, other, by_number) for stored in readable]
    # pycubexr has no exception types; it raises various errors of Python.
    except Exception as error:  # noqa: BLE001
        note = f"pycubexr cannot open the file: {_reason(error)}"
        return [Agreement(stored.declared.metric.name, 0, 0, note) for stored in readable]


@contextmanager
def _other(profile: CubeProfile) -> Iterator[Any]:
    from pycubexr import CubexParser

    # pycubexr logs to the root logger, and its warnings repeat the findings of cpmodel.
    parser = CubexParser(profile.container.path)
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with parser:
                yield parser
    finally:
        # pycubexr leaves the archive open if opening it fails.
        archive = getattr(parser, "_cubex_file", None)
        if archive is not None:
            archive.close()
        logging.disable(before)


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:120]}" if lines else type(error).__name__


def _compare(
    profile: CubeProfile, stored: StoredMetric, other: Any, by_number: dict[int, Any]
) -> Agreement:
    name = stored.declared.metric.name
    try:
        found = other.get_metric_values(
            by_number[stored.number], cache=False, allow_full_uint64_values=True
        )
        theirs = _numbers(found.values).reshape(-1, profile.columns.stored)
        paths = np.array(list(found.cnode_indices), np.int64)
    except Exception as error:  # noqa: BLE001
        if stored.status is MetricStatus.ABSENT and type(error).__name__ == "MissingMetricError":
            return Agreement(name, 0, 0, "absent in both readers")
        return Agreement(name, 0, 0, f"pycubexr cannot read it: {_reason(error)}")
    if stored.status is MetricStatus.ABSENT:
        return Agreement(name, theirs.size, int(np.count_nonzero(theirs)))
    return _compare_rows(profile, stored, paths, theirs)


def _numbers(values: Any) -> FloatArray:
    # Minima, maxima and tuples are wrapped. Tuples give no other access to their numbers.
    plain: NDArray[Any] = getattr(values, "_values", values)
    if plain.dtype.names:
        plain = plain[plain.dtype.names[3]]
    elif plain.dtype == np.uint64:
        plain = plain.view(np.int64)
    return plain.astype(np.float64)


def _compare_rows(
    profile: CubeProfile,
    stored: StoredMetric,
    paths: Int64Array,
    theirs: FloatArray,
) -> Agreement:
    name = stored.declared.metric.name
    rows = profile.rows(name)
    ours = profile.layout.ids[profile.layout.enumeration(stored.order)[rows.numbers]]
    order = np.argsort(paths)
    place = np.searchsorted(paths[order], ours).clip(max=max(0, len(paths) - 1))
    known = paths[order][place] == ours if len(paths) else np.zeros(len(ours), np.bool_)
    differing = int(np.count_nonzero(~known)) * profile.columns.stored
    for first, stop, block in blocks(rows):
        mine = block[known[first:stop]]
        same = theirs[order[place[first:stop][known[first:stop]]]]
        differing += int(np.count_nonzero((mine != same) & ~(np.isnan(mine) & np.isnan(same))))
    differing += (len(paths) - int(np.count_nonzero(known))) * profile.columns.stored
    return Agreement(name, max(len(ours), len(paths)) * profile.columns.stored, differing)
